"""Episodes of one model side by side, for the Gymnasium environments: stages, states, rewards and masks."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.core.compiling.jit import jit
from livarot.core.views import Bundle, opened
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.model.terms.after import last_values
from livarot.simulation.rollout import draw_start, row_of
from livarot.simulation.streams import environment_uniforms

BLOCK = 16  # episodes whose random numbers are drawn together: seeding a stream costs as much as an episode


class Moves(NamedTuple):
    """What a step reads, rewards in the units that were given."""

    row_start: Any
    next_state: Any
    stage_table: Any
    reward: Any  # (H, S, A)
    more: Any  # (rows,) what the next state adds, or nothing
    final: Any  # (S,) what an episode that ends there earns in the end, discounted by one step, or nothing
    over: Any  # (S,) is the episode over there?
    prob: Any
    base: Any

    @classmethod
    def of(cls, mdp: MNLMDP) -> Moves:
        problem, units, nothing = mdp.problem, mdp.problem.units, np.empty(0)
        more, end = problem.next_reward, problem.terminal_reward
        final = nothing if end is None and units.end == 0.0 else units.terminal_reward(last_values(problem))
        over = (
            np.zeros(problem.n_states, dtype=np.uint8)
            if problem.terminal is None
            else problem.terminal.astype(np.uint8)
        )
        return cls(
            problem.rows.row_start,
            problem.rows.next_state,
            problem.stage_table,
            np.ascontiguousarray(units.reward(problem.reward)),
            nothing if more is None else np.ascontiguousarray(units.regret(more)),
            np.ascontiguousarray(problem.discount * final),
            over,
            *transition_kernel(mdp),
        )


class ParallelEpisodes:
    """n slots side by side, each with an episode of the model that has its own seed, number and stage.

    An episode ends after H stages, or earlier in a terminal state: its stage is then H too.
    """

    def __init__(self, mdp: MNLMDP, count: int) -> None:
        problem = mdp.problem
        self.horizon, self.start, self._exists = problem.horizon, problem.start, problem.exists
        self.masked = not problem.all_exist
        self._model = Bundle(Moves.of(mdp))
        self.states = np.zeros(count, dtype=np.int64)
        self.stages = np.full(count, self.horizon, dtype=np.int64)  # as if ended: no episode has begun yet
        self.episodes = np.full(count, -1, dtype=np.int64)
        self.uniforms = np.zeros((count, self.horizon + 1))
        self._seeds = [-1] * count
        self._blocks: list[FloatArray] = [self.uniforms[:0]] * count
        self._first = [0] * count

    def begin(self, slot: int, seed: int | None, episode: int | None) -> None:
        """The next episode of a slot; a seed begins again at episode 0, ``episode`` chooses another one."""
        if seed is not None and seed != self._seeds[slot]:
            self._seeds[slot], self._blocks[slot] = seed, self.uniforms[:0]
        t = episode if episode is not None else 0 if seed is not None else int(self.episodes[slot]) + 1
        at = t - self._first[slot]
        if not 0 <= at < len(self._blocks[slot]):
            self._blocks[slot] = environment_uniforms(self._seeds[slot], t, BLOCK, self.horizon)
            self._first[slot], at = t, 0
        self.uniforms[slot] = self._blocks[slot][at]
        self.episodes[slot], self.stages[slot] = t, 0
        self.states[slot] = draw_start(self.start, self.uniforms[slot, 0])

    def step(self, moving: BoolArray, actions: IntArray) -> FloatArray:
        """One stage of the moving slots; their rewards, 0 for the others."""
        rewards = np.zeros(len(self.states))
        advance(self._model, self.uniforms, moving, actions, self.states, self.stages, rewards)
        return rewards

    def mask(self) -> NDArray[np.int8]:
        """Which actions each slot can take, (n, A); all of them after the end, where no action is taken."""
        found = np.ones((len(self.states), self._exists.shape[2]), dtype=np.int8)
        going = self.stages < self.horizon
        found[going] = self._exists[self.stages[going], self.states[going]]
        return found

    def unavailable(self, moving: BoolArray, actions: IntArray) -> IntArray:
        """The moving slots whose actions do not exist in their states."""
        if not self.masked:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(moving & (self.mask()[np.arange(len(actions)), actions] == 0))


@jit
def advance(model, uniforms, moving, actions, states, stages, rewards):
    """The simulator's transition, for slots that need not be at the same stage."""
    m = opened(model)
    _, n_states, n_actions = m.reward.shape
    for i in range(len(states)):
        if moving[i]:
            h, s, a = stages[i], states[i], actions[i]
            pair, base = (m.stage_table[h] * n_states + s) * n_actions + a, m.base[h]
            row = row_of(m.prob, base + m.row_start[pair], base + m.row_start[pair + 1] - 1, uniforms[i, h + 1])
            follow = m.next_state[row - base]
            rewards[i] = m.reward[h, s, a]
            if len(m.more) > 0:
                rewards[i] += m.more[row - base]
            ends = h + 1 == len(m.reward) or m.over[follow] > 0
            if ends and len(m.final) > 0:
                rewards[i] += m.final[follow]
            states[i], stages[i] = follow, len(m.reward) if ends else h + 1
