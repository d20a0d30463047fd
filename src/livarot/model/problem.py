"""The model: ``Problem`` is what a learner knows, ``MNLMDP`` adds the parameter it does not know.

An inhomogeneous episodic MNL mixture MDP has horizon H, states 0..S-1, actions 0..A-1, known rewards ``r_h(s, a)`` in
[0, 1] (those of any scale, and costs, are mapped there: :mod:`livarot.model.terms.units`), known features with
``|phi| <= 1`` and unknown ``theta_h`` with ``|theta_h| <= B``:

    P_h(s' | s, a) = exp(offset(s') + phi_h(s'|s,a) . theta_h) / sum_{s''} exp(offset(s'') + phi_h(s''|s,a) . theta_h),

s'' over the reachable next states.  The paper has no offset and features that do not depend on h; both are allowed here
(reading E21).  One theta may be shared by all stages.  Stages are numbered from 0.  Beyond the paper there may be a
discount, rewards of the next state and of the last one, actions that exist in some states only, and terminal states.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.errors import LivarotError, bad, require_finite
from livarot.model.building import build
from livarot.model.building.validation import check_parameters
from livarot.model.derived import Derived
from livarot.model.labels import Labels, check_labels
from livarot.model.ragged import STORED, Rows
from livarot.model.shown import html_of, problem_lines, text_of
from livarot.model.terms.units import PLAIN, Units
from livarot.storage import content_digest

if TYPE_CHECKING:
    from livarot.model.episodes import Episodes

WITHOUT_END = "it has no end: use the function of livarot.infinite, or give the model a horizon"


@dataclass(frozen=True, eq=False)
class Problem:
    """What a learner knows: features, rewards, horizon, start and the bound B; never theta."""

    horizon: int
    rows: Rows
    stage_table: Int32Array  # (H,)
    reward: FloatArray  # (H, S, A)
    start: FloatArray  # (S,) distribution of the first state
    param_bound: float  # B
    shared_parameter: bool = False  # one theta for all stages?
    feature_scale: float = 1.0  # features were divided by it (theta multiplied)
    states: Labels | None = None  # their names, if they have any
    actions: Labels | None = None
    stages: Labels | None = None
    discount: float = 1.0
    next_reward: FloatArray | None = None  # (rows,) what the next state adds to the reward
    terminal_reward: FloatArray | None = None  # (S,) V_H, None is 0
    terminal: BoolArray | None = None  # (S,) where the episode is over, None is nowhere
    units: Units = PLAIN  # how rewards were mapped into [0, 1]
    derived: Derived = field(default_factory=dict, init=False, repr=False, compare=False)  # see model.derived

    def __post_init__(self) -> None:
        for name, size in (("states", self.n_states), ("actions", self.n_actions), ("stages", self.horizon)):
            object.__setattr__(self, name, check_labels(name, getattr(self, name), size))
        if self.units.discount != self.discount:
            object.__setattr__(self, "units", self.units._replace(discount=self.discount))

    def __repr__(self) -> str:
        return text_of("Problem", problem_lines(self))

    def _repr_html_(self) -> str:
        return html_of("Problem", problem_lines(self))

    def __getstate__(self) -> dict[str, Any]:
        """The fields that a copy or a pickle holds: not what is derived, which can be computed again."""
        return vars(self) | {"derived": {}}

    @property
    def n_states(self) -> int:
        return self.rows.n_states

    @property
    def n_actions(self) -> int:
        return self.rows.n_actions

    @property
    def dim(self) -> int:
        return self.rows.dim

    @property
    def n_parameters(self) -> int:
        """K: one parameter per stage, or one for all."""
        return 1 if self.shared_parameter else self.horizon

    @cached_property
    def theta_shape(self) -> tuple[int, int]:
        """(K, d)."""
        return self.n_parameters, self.dim

    @cached_property
    def gram_shape(self) -> tuple[int, int]:
        """(K, G), G numbers in a packed Gram matrix."""
        return self.n_parameters, self.rows.gram_size

    @cached_property
    def max_reachable(self) -> int:
        """U, the largest number of reachable next states."""
        return int(self.rows.outcomes.max())

    @cached_property
    def stage_parameter(self) -> Int32Array:
        """Which parameter each stage uses, (H,)."""
        return np.asarray(np.arange(self.horizon) * (not self.shared_parameter), dtype=np.int32)

    @cached_property
    def reachable(self) -> BoolArray:
        """Which states can be reached from the start at each stage, (H + 1, S)."""
        reach = np.zeros((self.horizon + 1, self.n_states), dtype=np.bool_)
        reach[0] = self.start > 0
        for h, table in enumerate(self.stage_table.tolist()):
            known = h > 0 and table == self.stage_table[h - 1] and (reach[h] == reach[h - 1]).all()
            reach[h + 1] = reach[h] if known else self.rows.successors(table, reach[h])
        return reach

    @cached_property
    def exists(self) -> BoolArray:
        """Which pairs have a next state, (H, S, A): available actions, and action 0 of terminal states."""
        counts = self.rows.outcomes.reshape(-1, self.n_states, self.n_actions)
        return np.asarray((counts > 0)[self.stage_table])

    @cached_property
    def all_exist(self) -> bool:
        """Does every pair exist?"""
        return bool(self.rows.outcomes.all())

    @cached_property
    def available(self) -> BoolArray:
        """Which actions a user can take, (H, S, A); none in terminal states."""
        return self.exists if self.terminal is None else self.exists & ~self.terminal[:, None]

    @cached_property
    def nodes(self) -> tuple[IntArray, Int32Array]:
        """The reachable states stage by stage: ``node_state[node_start[h]:node_start[h+1]]``."""
        stage, state = np.nonzero(self.reachable[:-1])
        start = np.searchsorted(stage, np.arange(self.horizon + 1))
        return start.astype(np.int64), state.astype(np.int32)

    @checked
    def pair(self, stage: int, state: int, action: int) -> int:
        sizes = {"stage": (stage, self.horizon), "state": (state, self.n_states), "action": (action, self.n_actions)}
        for name, (number, size) in sizes.items():
            if number >= size:
                raise bad(name, f"{number} is out of range", cure=f"they are numbered 0..{size - 1}")
        return self.rows.pair(int(self.stage_table[stage]), state, action)

    def next_states(self, stage: int, state: int, action: int) -> Int32Array:
        """The U states that may follow."""
        pair = self.pair(stage, state, action)
        return self.rows.next_state[self.rows.row_start[pair] : self.rows.row_start[pair + 1]]

    def features(self, stage: int, state: int, action: int) -> FloatArray:
        """phi_h(.|s, a), dense (U, d), in the order of :meth:`next_states`."""
        return self.rows.features(self.pair(stage, state, action))

    def offset(self, stage: int, state: int, action: int) -> FloatArray:
        """What is added to the logits, (U,), in the order of :meth:`next_states`."""
        pair = self.pair(stage, state, action)
        return self.rows.offset[self.rows.row_start[pair] : self.rows.row_start[pair + 1]].copy()

    def probabilities(self, theta: ArrayLike, stage: int, state: int, action: int) -> FloatArray:
        """softmax(offset + phi_h(.|s, a) . theta), (U,), in the order of :meth:`next_states`.

        ``theta`` is the stage's own parameter (d,), or all of them (K, d).

        >>> import livarot
        >>> problem = livarot.envs.hard_chain(4, gap=0.1).problem
        >>> problem.next_states(0, 0, 1), problem.probabilities(np.zeros(problem.theta_shape), 0, 0, 1)
        (array([1, 5], dtype=int32), array([0.5, 0.5]))
        """
        from livarot.core.mnl import softmax

        phi, own = self.features(stage, state, action), require_finite("theta", theta)
        if not len(phi):
            message = f"{action} does not exist in state {state} at stage {stage}"
            raise bad("action", message, cure="`available` says which do")
        if own.shape == self.theta_shape:
            own = own[self.stage_parameter[stage]]
        if own.shape != (self.dim,):
            shapes = f"({self.dim},) or {self.theta_shape}"
            raise bad("theta", f"has shape {own.shape}", cure=f"give the stage's own parameter or all: {shapes}")
        return softmax(self.offset(stage, state, action) + phi @ own)

    def original_theta(self, theta: ArrayLike) -> FloatArray:
        """A parameter in the units of the features as they were given (undoes ``normalise=True``)."""
        return require_finite("theta", theta) / self.feature_scale

    def returns(self, episodes: Episodes) -> FloatArray:
        """The discounted rewards of each episode, terminal ones included, in the units that were given, (n,).

        >>> import livarot
        >>> mdp = livarot.envs.river_swim(4, 6)
        >>> mdp.problem.returns(livarot.simulate(mdp, livarot.solve(mdp).policy, 3)).shape
        (3,)
        """
        from livarot.model.episodes import check_episodes

        states, actions, choices = check_episodes(self, episodes)
        stages = np.arange(self.horizon)
        pair = (self.stage_table.astype(np.int64) * self.n_states + states[:, :-1]) * self.n_actions + actions
        paid = self.reward[stages, states[:, :-1], actions]
        if self.next_reward is not None:
            paid = paid + self.next_reward[self.rows.row_start[pair] + choices]
        total = paid @ np.power(self.discount, stages)
        if self.terminal_reward is not None:
            total = total + self.discount**self.horizon * self.terminal_reward[states[:, -1]]
        return np.asarray(self.units.value(total, self.horizon))

    @checked
    def same_as(self, other: Problem) -> bool:
        """Do both describe the same knowledge, number for number?"""
        if self is other:
            return True
        mine, theirs = self._tensors(), other._tensors()
        same = self._header() == other._header() and mine.keys() == theirs.keys()
        return same and all(np.array_equal(mine[k], theirs[k]) for k in mine)

    @checked
    def with_labels(
        self, *, states: Iterable[Hashable] | None = None, actions: Iterable[Hashable] | None = None
    ) -> Problem:
        """The same problem with other names; None keeps the present ones."""
        named = check_labels("states", states, self.n_states), check_labels("actions", actions, self.n_actions)
        return replace(self, states=named[0] or self.states, actions=named[1] or self.actions)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the whole problem: two problems have the same one if and only if they are :meth:`same_as`."""
        return content_digest(self._header(), self._tensors())

    from_function = classmethod(build.from_function)
    from_arrays = classmethod(build.from_arrays)

    def _header(self) -> dict[str, Any]:
        names = "horizon n_states n_actions dim param_bound shared_parameter feature_scale"
        header = {name: getattr(self, name) for name in names.split()}
        return header if self.units == PLAIN else header | {"units": list(map(float, self.units))}

    def _tensors(self) -> dict[str, NDArray[Any]]:
        own = {"stage_table": self.stage_table, "reward": self.reward, "start": self.start}
        more = {"next_reward": self.next_reward, "terminal_reward": self.terminal_reward, "terminal": self.terminal}
        own |= {name: part for name, part in more.items() if part is not None}  # without them, files stay as they were
        return {name: getattr(self.rows, name) for name in STORED} | own


@checked
@dataclass(frozen=True, eq=False, repr=False)
class MNLMDP:
    """A :class:`Problem` with its true parameter: for the simulator, the planner and the judge.

    >>> import livarot
    >>> def features(h, s, a):            # stay or leave, a logit in one feature
    ...     return [0, 1], [[0.0], [1.0 if a else -1.0]]
    >>> mdp = livarot.MNLMDP.from_function(
    ...     3, 2, 2, features=features, reward=[[0, 0], [1, 1]], theta=[0.5], start=0)
    >>> livarot.solve(mdp).policy[:, 0]
    array([1, 1, 0], dtype=int32)
    """

    problem: Problem
    theta: FloatArray  # (K, d)

    def __post_init__(self) -> None:
        theta = np.require(require_finite("theta", self.theta), requirements=["C", "W"])
        check_parameters(theta, self.problem.theta_shape, self.problem.param_bound)
        object.__setattr__(self, "theta", theta)

    def __repr__(self) -> str:
        return text_of(type(self).__name__, problem_lines(self.problem, self.theta))

    def _repr_html_(self) -> str:
        return html_of(type(self).__name__, problem_lines(self.problem, self.theta))

    @property
    def original_theta(self) -> FloatArray:
        """theta in the units of the features as given."""
        return self.problem.original_theta(self.theta)

    from_function = classmethod(build.model_from_function)
    from_arrays = classmethod(build.model_from_arrays)

    def probabilities(self, stage: int, state: int, action: int) -> FloatArray:
        """P_h(.|s, a) over :meth:`Problem.next_states`."""
        return self.problem.probabilities(self.theta, stage, state, action)

    def with_labels(
        self, *, states: Iterable[Hashable] | None = None, actions: Iterable[Hashable] | None = None
    ) -> Self:
        """The same model with other names of its states or actions, any hashables; None keeps the present ones.

        >>> import livarot
        >>> mdp = livarot.envs.park_two_state(4).with_labels(states=["poor", "rich"])
        >>> mdp.problem.states
        Labels(['poor', 'rich'])
        """
        return replace(self, problem=self.problem.with_labels(states=states, actions=actions))

    def save(self, path: str | Path) -> None:
        """Write the model, and its labels, to one file (safetensors, no code inside), complete or not at all."""
        from livarot.model.file import save_model

        save_model(path, self, self._more())

    def _more(self) -> dict[str, Any]:
        """What the file's header holds in addition to the problem."""
        return {}

    @classmethod
    def load(cls, path: str | Path) -> MNLMDP:
        """Read a model written by :meth:`save`; a file that does not hold one, whatever it holds, is refused."""
        from livarot.model.file import load_model

        return load_model(path)[0]


def not_a_model(given: Any, index: int | None = None) -> LivarotError:
    """The error for something that should have been an :class:`MNLMDP`."""
    message = f"{given.__name__} is a class" if isinstance(given, type) else f"{type(given).__name__} is not an MNLMDP"
    cure = "give an MNLMDP, such as livarot.envs.hard_chain(5)"
    if isinstance(given, str):
        cure = f"make it: livarot.envs.make({given[:60]!r})"
    elif isinstance(given, Problem):
        cure = "a Problem does not say what theta is: give the MNLMDP"
    elif without_end(given):
        cure = WITHOUT_END
    return bad("mdp", message, index=index, cure=cure)


def without_end(given: Any) -> bool:
    """Is it a model of :mod:`livarot.infinite` (which is above this layer)?"""
    return type(given).__name__ in ("InfiniteMDP", "InfiniteProblem")


def require_problem(given: Any) -> None:
    """Refuse something that should have been a :class:`Problem`."""
    if not isinstance(given, Problem):
        cure = "give mdp.problem" if isinstance(given, MNLMDP) else "give a livarot.Problem"
        cure = WITHOUT_END if without_end(given) else cure
        raise bad("problem", f"{type(given).__name__} is not a Problem", cure=cure)


def require_model(given: Any) -> Problem:
    """The problem of a model; what is not a model is refused."""
    if not isinstance(given, MNLMDP):
        raise not_a_model(given)
    return given.problem
