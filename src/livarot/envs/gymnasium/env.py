"""To Gymnasium: every MNL MDP as a ``gymnasium.Env`` and as a native vector environment.

States and actions are ``Discrete``; the stage is in ``info``.  The horizon belongs to the model, so the end of an
episode is ``terminated`` and never ``truncated``.  A terminal state ends it too.  Rewards are in the units that the
model was given; the reward of an episode's last step includes the terminal reward, discounted once.

Where some actions do not exist, ``info["action_mask"]`` says which do, int8 as ``Discrete.sample(mask)`` takes it, and
``action_masks()`` says so to sb3-contrib's MaskablePPO.  An action that does not exist is refused.

The numbers are those of :func:`livarot.simulate` and :func:`livarot.run`: ``reset(seed=s)`` begins episode 0 of the
environment stream of seed s, each further ``reset()`` the next episode, and ``reset(options={"episode": t})`` goes to
episode t.  The same seed and the same actions give the same episode in all three.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.envs.gymnasium import render
from livarot.envs.gymnasium.parallel import BLOCK, ParallelEpisodes
from livarot.errors import bad, require_positive_int, shown
from livarot.model.problem import MNLMDP
from livarot.system.sizes import require_memory

RENDER_MODES = ("ansi", "rgb_array")
LAST = 2**62  # the largest number of an episode that may be asked for; those after it still fit


def model_of(mdp: MNLMDP | str, options: dict[str, Any]) -> MNLMDP:
    """A model itself, or the one registered under a name, built with ``options``."""
    if isinstance(mdp, str):
        from livarot.envs import registry  # not above: livarot.envs imports this module

        return registry.make(mdp, **options)
    if not isinstance(mdp, MNLMDP):
        raise bad("mdp", f"{type(mdp).__name__} is not an MNLMDP", cure="give a model or the name of a registered one")
    if options:
        raise bad("mdp", f"a finished model takes no {', '.join(sorted(options))}", cure="build it as you want it")
    return mdp


class MNLEnv(gymnasium.Env[int, int]):
    """A model as a Gymnasium environment; the model is at ``env.unwrapped.mdp``.

    ``mdp`` is a model, or the name of a registered one, which is built with the further keywords.

    >>> import livarot
    >>> env = MNLEnv(livarot.envs.river_swim(4, 12))
    >>> env.reset(seed=0)
    (0, {'stage': 0, 'h': 0, 'episode_index': 0})
    >>> state, reward, terminated, truncated, info = env.step(1)
    >>> terminated, truncated, info["stage"]
    (False, False, 1)
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # type: ignore[misc]

    def __init__(self, mdp: MNLMDP | str, *, render_mode: str | None = None, **options: Any) -> None:
        self.render_mode = check_render_mode(render_mode)
        self.mdp = model_of(mdp, options)
        problem = self.mdp.problem
        self.observation_space = gymnasium.spaces.Discrete(problem.n_states)  # type: ignore[assignment]
        self.action_space = gymnasium.spaces.Discrete(problem.n_actions)  # type: ignore[assignment]
        self._parallel = ParallelEpisodes(self.mdp, 1)
        self._moving = np.ones(1, dtype=np.bool_)
        self._trail: list[int] = []
        self._actions: list[int] = []
        self._return = 0.0

    @property
    def stage(self) -> int:
        """The stage of the next action, from 0; the horizon when the episode has ended."""
        return int(self._parallel.stages[0])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        seed, episode = check_seed(seed), check_episode(options)
        super().reset(seed=seed)
        if seed is None and self._parallel.episodes[0] < 0:
            seed = self._own_seed()
        self._parallel.begin(0, seed, episode)
        self._trail, self._actions, self._return = [int(self._parallel.states[0])], [], 0.0
        return self._trail[0], self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if not self._trail or self.stage == self.mdp.problem.horizon:
            raise bad("step", "the episode has ended, or has not begun", cure="call reset() first")
        try:
            chosen = operator.index(action)
        except TypeError:
            chosen = -1
        if not 0 <= chosen < self.mdp.problem.n_actions:
            raise bad("action", f"{action!r} is not an action", cure=f"give 0..{self.mdp.problem.n_actions - 1}")
        if self._parallel.masked and not self._parallel.mask()[0, chosen]:
            message = f"{action!r} does not exist in state {self._trail[-1]} at stage {self.stage}"
            raise bad("action", message, cure='choose one of info["action_mask"]')
        reward = float(self._parallel.step(self._moving, np.array([chosen], dtype=np.int64))[0])
        state = int(self._parallel.states[0])
        self._trail.append(state)
        self._actions.append(chosen)
        self._return += reward
        return state, reward, self.stage == self.mdp.problem.horizon, False, self._info()

    def render(self) -> Any:
        """Text or an array (height, width, 3), as ``render_mode`` says."""
        if self.render_mode is None or not self._trail:
            return None
        problem = self.mdp.problem
        size = (problem.n_states, problem.horizon)
        if self.render_mode == "ansi":
            return render.text(*size, self._trail, self._actions, self._return, (problem.states, problem.actions))
        return render.pixels(*size, self._trail, self.stage, problem.states)

    def _own_seed(self) -> int:
        """The seed of ``np_random``; a generator put there by hand has no seed, so one is drawn from it."""
        known = self.np_random_seed
        return known if known >= 0 else int(self.np_random.integers(2**63))

    def action_masks(self) -> BoolArray:
        """Which actions exist now, (A,): what MaskablePPO of sb3-contrib asks for."""
        return np.asarray(self._parallel.mask()[0], dtype=np.bool_)

    def _info(self) -> dict[str, Any]:
        stage = self.stage
        info = {"stage": stage, "h": stage, "episode_index": int(self._parallel.episodes[0])}
        return info | {"action_mask": self._parallel.mask()[0]} if self._parallel.masked else info


class MNLVectorEnv(VectorEnv[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` episodes at once, stepped by one compiled loop.

    Sub-environment i equals an :class:`MNLEnv` with seed ``seed + i`` (or ``seed[i]``).  ``autoreset_mode``, also in
    ``metadata``, is ``NEXT_STEP`` (the step after the end resets and ignores the action), ``SAME_STEP`` (the step
    that ends an episode returns the first state of the next one and ``final_obs``) or ``DISABLED`` (reset the ended
    ones yourself with ``options={"reset_mask": ended}``).
    """

    def __init__(
        self,
        mdp: MNLMDP | str,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            modes = ", ".join(repr(mode.value) for mode in AutoresetMode)
            raise bad("autoreset_mode", f"{autoreset_mode!r} is unknown", cure=f"choose one of {modes}") from None
        self.num_envs = require_positive_int("num_envs", num_envs)
        self.render_mode = check_render_mode(render_mode)
        self.metadata = {**MNLEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.mdp = model_of(mdp, options)
        problem = self.mdp.problem
        require_memory("num_envs", "the environments side by side", num_envs * (BLOCK + 2) * (problem.horizon + 9))
        self.single_observation_space = gymnasium.spaces.Discrete(problem.n_states)
        self.single_action_space = gymnasium.spaces.Discrete(problem.n_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._parallel = ParallelEpisodes(self.mdp, self.num_envs)
        self._trails: list[list[int]] = [[] for _ in range(self.num_envs)]
        self._taken: list[list[int]] = [[] for _ in range(self.num_envs)]
        self._returns = np.zeros(self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        seeds, episode = self._check_seeds(seed), check_episode(options)
        mask = np.ones(self.num_envs, dtype=np.bool_)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise bad(
                    "reset_mask", "does not say which to reset", cure=f"give {self.num_envs} bools, not all False"
                )
        super().reset(seed=seeds[0] if isinstance(seed, int | np.integer) else None)
        for slot in np.flatnonzero(self._parallel.episodes < 0):
            if seeds[slot] is None:
                seeds[slot] = int(self.np_random.integers(2**63))
        for slot in np.flatnonzero(mask):
            self._begin(int(slot), seeds[slot], episode)
        return self._parallel.states.copy(), self._infos(mask)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        parallel = self._parallel
        chosen = self._check_actions(actions)
        ended = parallel.stages == parallel.horizon
        if (parallel.episodes < 0).any() or (ended.any() and self.autoreset_mode != AutoresetMode.NEXT_STEP):
            first = int(np.flatnonzero(ended)[0])
            cure = "call reset() first, with a reset_mask of the ended ones in DISABLED mode"
            raise bad("step", "an episode has ended, or has not begun", index=first, count=int(ended.sum()), cure=cure)
        wrong = parallel.unavailable(~ended, chosen)
        if len(wrong):
            message = f"{chosen[wrong[0]]} does not exist in its state"
            raise bad("actions", message, index=int(wrong[0]), count=len(wrong), cure='choose by info["action_mask"]')
        rewards = parallel.step(~ended, chosen)
        for slot in np.flatnonzero(ended):
            self._begin(int(slot), None, None)
        if self.render_mode is not None:
            for slot in np.flatnonzero(~ended):
                self._trails[slot].append(int(parallel.states[slot]))
                self._taken[slot].append(int(chosen[slot]))
            self._returns[~ended] += rewards[~ended]
        terminated = parallel.stages == parallel.horizon
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        infos: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and terminated.any():
            final = np.full(self.num_envs, None, dtype=object)
            for slot in np.flatnonzero(terminated):
                final[slot] = int(parallel.states[slot])
            infos = {"final_obs": final, "_final_obs": terminated.copy()}
            infos |= {"final_info": self._infos(terminated), "_final_info": terminated.copy()}
            for slot in np.flatnonzero(terminated):
                self._begin(int(slot), None, None)
        infos |= self._infos(everyone)
        return parallel.states.copy(), rewards, terminated, np.zeros(self.num_envs, dtype=np.bool_), infos

    def render(self) -> tuple[Any, ...] | None:
        """One frame per sub-environment."""
        if self.render_mode is None or not self._trails[0]:
            return None
        problem, parallel = self.mdp.problem, self._parallel
        size = (problem.n_states, problem.horizon)
        if self.render_mode == "ansi":
            names, kept = (problem.states, problem.actions), zip(self._trails, self._taken, self._returns, strict=True)
            return tuple(render.text(*size, trail, taken, float(earned), names) for trail, taken, earned in kept)
        now = zip(self._trails, parallel.stages, strict=True)
        return tuple(render.pixels(*size, trail, int(h), problem.states) for trail, h in now)

    def action_masks(self) -> BoolArray:
        """Which actions exist now in each sub-environment, (num_envs, A)."""
        return self._parallel.mask().astype(np.bool_)

    def _begin(self, slot: int, seed: int | None, episode: int | None) -> None:
        self._parallel.begin(slot, seed, episode)
        self._trails[slot], self._taken[slot] = [int(self._parallel.states[slot])], []
        self._returns[slot] = 0.0

    def _infos(self, mask: BoolArray) -> dict[str, Any]:
        """What each sub-environment would say, where ``mask`` is true, as Gymnasium lays it out."""
        infos: dict[str, Any] = {}
        for name, numbers in (
            ("stage", self._parallel.stages),
            ("h", self._parallel.stages),
            ("episode_index", self._parallel.episodes),
        ):
            infos |= {name: np.where(mask, numbers, 0), f"_{name}": mask.copy()}
        if self._parallel.masked:
            infos |= {"action_mask": self._parallel.mask() * mask[:, None], "_action_mask": mask.copy()}
        return infos

    def _check_seeds(self, seed: Any) -> list[int | None]:
        several = isinstance(seed, np.ndarray) and seed.ndim > 0
        if not several and (isinstance(seed, str | bytes) or not isinstance(seed, Sequence)):
            first = check_seed(seed)
            return [None if first is None else first + slot for slot in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise bad("seed", f"{len(seed)} seeds for {self.num_envs} environments", cure="give one each")
        return [check_seed(one) for one in seed]

    def _check_actions(self, actions: Any) -> IntArray:
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise bad("actions", f"has shape {chosen.shape}", cure=f"give {self.num_envs} integers")
        wrong = np.flatnonzero((chosen < 0) | (chosen >= self.mdp.problem.n_actions))
        if len(wrong):
            cure = f"give 0..{self.mdp.problem.n_actions - 1}"
            raise bad(
                "actions", f"{chosen[wrong[0]]} is not an action", index=int(wrong[0]), count=len(wrong), cure=cure
            )
        return np.ascontiguousarray(chosen, dtype=np.int64)


class StageObservation(gymnasium.ObservationWrapper[NDArray[np.int64], int, int], RecordConstructorArgs):
    """Observations (stage, state), for learners that want a Markov chain: the best action depends on the stage."""

    def __init__(self, env: gymnasium.Env[int, int]) -> None:
        base = getattr(env, "unwrapped", env)
        if not isinstance(base, MNLEnv):
            raise bad("env", f"{shown(base)} does not know its stage", cure="wrap an environment of livarot")
        RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        problem = base.mdp.problem
        self._base = base
        self.observation_space = gymnasium.spaces.MultiDiscrete([problem.horizon + 1, problem.n_states])

    def observation(self, observation: int) -> NDArray[np.int64]:
        return np.array([self._base.stage, observation], dtype=np.int64)


def check_render_mode(render_mode: str | None) -> str | None:
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode in RENDER_MODES):
        raise bad("render_mode", f"{render_mode!r} is unknown", cure=f"choose None or one of {', '.join(RENDER_MODES)}")
    return render_mode


def check_episode(options: dict[str, Any] | None) -> int | None:
    """``options["episode"]``, the episode to go to."""
    if options is not None and not isinstance(options, Mapping):
        raise bad("options", f"{type(options).__name__} is not a dict", cure='give {"episode": 3}, for example')
    if not options or options.get("episode") is None:
        return None
    episode = require_positive_int("episode", options["episode"], minimum=0)
    if episode > LAST:
        raise bad("episode", f"{episode} is too large", cure=f"give 0..{LAST}")
    return episode


def check_seed(seed: Any) -> int | None:
    """A seed of up to 256 bits: those that Gymnasium draws by itself have 128."""
    return None if seed is None else require_positive_int("seed", seed, minimum=0, maximum=2**256)
