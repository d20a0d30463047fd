"""``run_infinite``: an agent on one endless trajectory per seed, judged exactly.

Average reward (``discount`` None), per step t:

    regret            g* - g^{pi_t}(s_t)
    realised regret   g* - r_t

The first is exact: the gain of the policy in play, from the state it is in.  The second is what was really earned; its
sum is g* T - sum_t r_t.  The first has no noise and does not see the cost of changing policies; the two sums differ by
that (a bounded amount per epoch) and by a martingale.  Discounted reward: ``regret`` is V*(s_t) - V^{pi_t}(s_t) at the
visited states, with pi_t played for ever, and there is no realised regret.

Seeds are replicas, as in :func:`livarot.run`: one plan, one step, one update serve all of them, and each is computed by
the same operations whatever its neighbours are.  Step t of a seed uses number t of its stream: the same seed gives the
same bits, and a longer run begins with the shorter one.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.core.compiling.jit import jit
from livarot.core.linalg import packed_distance
from livarot.core.views import Bundle, opened
from livarot.errors import LivarotError, bad, require_finite
from livarot.extras import extras_explained
from livarot.infinite.learning.ucmnlk import InfiniteAgent, InfinitePlan, Steps
from livarot.infinite.planning.average import policy_gain, solve_average
from livarot.infinite.planning.discounted import policy_value, solve_discounted
from livarot.infinite.problem import InfiniteMDP, InfiniteProblem, check_stationary
from livarot.infinite.terms import below_one
from livarot.model.compiled import blocks_of
from livarot.model.episodes import plan_error, require_agent
from livarot.model.shown import html_of, text_of
from livarot.simulation.rollout import draw_start, row_of
from livarot.simulation.streams import DRAWS_PER_COUNT, seed_list, stream
from livarot.system.sizes import require_memory

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 1 << 14  # steps whose uniforms are drawn together; a multiple of what one count of the stream gives

Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False, repr=False)
class InfiniteResult:
    """Arrays (seeds, T), one number per seed and step; what an agent does not have is masked, never NaN.

    ``optimism_gap`` is the plan's value of the state where its epoch began, minus the optimal value at the plan's own
    discount; ``covered`` says whether theta* is in the set that the epoch was planned with.  Neither changes within an
    epoch.
    """

    agent: str
    settings: str
    seeds: NDArray[np.int64]
    discount: float | None
    optimum: float | FloatArray  # g*, or V* (S,)
    reward: FloatArray = field(repr=False)
    regret: FloatArray = field(repr=False)
    epoch: IntArray = field(repr=False)
    states: Int32Array = field(repr=False)  # (seeds, T + 1)
    optimism_gap: np.ma.MaskedArray[Any, Any] = field(repr=False)
    covered: np.ma.MaskedArray[Any, Any] = field(repr=False)

    def __repr__(self) -> str:
        return text_of("InfiniteResult", self._lines())

    def _repr_html_(self) -> str:
        return html_of("InfiniteResult", self._lines())

    def _lines(self) -> dict[str, str]:
        total, epochs = self.regret.sum(axis=1), self.n_epochs
        criterion = "average reward" if self.discount is None else f"discount {self.discount:.9g}"
        return {
            "agent": self.settings if len(self.settings) <= 80 else self.agent,
            "sizes": f"{len(self.seeds)} seeds, {self.n_steps} steps, {criterion}",
            "regret": f"{total.mean():.6g} on average, {total.min():.6g} to {total.max():.6g}",
            "reward": f"{self.reward.mean():.6g} a step on average",
            "epochs": f"{int(epochs.min())} to {int(epochs.max())}",
        }

    @property
    def n_steps(self) -> int:
        return int(self.regret.shape[1])

    @property
    def n_epochs(self) -> IntArray:
        """Policies planned so far by each seed, (seeds,)."""
        return np.asarray(self.epoch[:, -1] + 1)

    @property
    def realised_regret(self) -> np.ma.MaskedArray[Any, Any]:
        """g* - r_t; masked in a discounted run, where no such regret is defined."""
        if isinstance(self.optimum, float):
            return np.ma.MaskedArray(self.optimum - self.reward, mask=False)
        return np.ma.MaskedArray(np.zeros_like(self.reward), mask=True)

    @property
    def cumulative_regret(self) -> FloatArray:
        return np.cumsum(self.regret, axis=1)

    @property
    def cumulative_realised_regret(self) -> np.ma.MaskedArray[Any, Any]:
        """g* t - sum of the rewards up to t."""
        return np.ma.MaskedArray(np.cumsum(self.realised_regret.data, axis=1), mask=self.realised_regret.mask)

    def to_pandas(self) -> pd.DataFrame:
        """A long table: one row per seed and step (1-based)."""
        with extras_explained():
            import pandas as pd

        n_seeds, n_steps = self.regret.shape
        require_memory("result", "a table of all steps", 30 * n_seeds * n_steps)
        table: dict[str, Any] = {
            "agent": self.agent,
            "seed": np.repeat(self.seeds, n_steps),
            "step": np.tile(np.arange(1, n_steps + 1), n_seeds),
            "state": self.states[:, :-1].reshape(-1),
            "epoch": self.epoch.reshape(-1),
            "reward": self.reward.reshape(-1),
            "regret": self.regret.reshape(-1),
        }
        for name in ("realised_regret", "optimism_gap", "covered"):
            column = getattr(self, name)
            kind = "boolean" if name == "covered" else "Float64"
            series = pd.Series(np.ma.getdata(column).reshape(-1), dtype=kind)
            series[np.ma.getmaskarray(column).reshape(-1)] = pd.NA
            table[name] = series
        return pd.DataFrame(table)


@checked(discount=below_one)
def run_infinite(
    mdp: InfiniteMDP,
    agent: InfiniteAgent[Any],
    n_steps: int,
    seed: int | Sequence[int] = 0,
    *,
    discount: float | None = None,
    progress: Progress | None = None,
) -> InfiniteResult:
    """Let an agent act for ``n_steps`` steps and report its regret, per seed and step.

    ``discount`` None is the model's own; a model without one is judged by its average reward.  Rewards and regrets are
    in the user's units; a terminal state pays nothing more.  ``progress(n)`` is called with the number of replica-steps
    just done; an exception that it raises ends the run.

    >>> from livarot.envs import park_two_state
    >>> from livarot.infinite import FixedPolicy, InfiniteMDP, run_infinite, solve_average
    >>> mdp = InfiniteMDP.from_mdp(park_two_state())
    >>> best = FixedPolicy(solve_average(mdp).policy)
    >>> result = run_infinite(mdp, best, 1000, seed=range(3))
    >>> result.regret.shape, float(abs(result.regret).max()) < 1e-12
    ((3, 1000), True)
    """
    require_agent(agent)
    seeds = seed_list(seed)
    discount = mdp.discount if discount is None and mdp.discount != 1.0 else discount
    require_memory("n_steps", "the results of all steps", 12 * len(seeds) * n_steps)
    judge = _Judge(mdp, discount, len(seeds))
    problem = mdp.problem
    world = world_of(mdp)
    replicas = len(seeds)
    reward, regret = np.empty((n_steps, replicas)), np.empty((n_steps, replicas))
    epoch = np.empty((n_steps, replicas), dtype=np.int64)
    gap, covered = np.full((n_steps, replicas), np.nan), np.full((n_steps, replicas), np.nan)
    states = np.empty((n_steps + 1, replicas), dtype=np.int32)
    states[0] = [draw_start(problem.start, stream(s, "infinite start").random()) for s in seeds]
    state, check = agent.init(problem, replicas), _PlanCheck(problem, replicas, agent.name)
    uniforms = np.empty((0, replicas))
    for t in range(n_steps):
        if t % BLOCK == 0:
            uniforms = _step_uniforms(seeds, t, min(BLOCK, n_steps - t))
        plan = check(agent.plan(problem, state), t)
        actions, choices = np.empty(replicas, dtype=np.int32), np.empty(replicas, dtype=np.int32)
        if not _step(world, plan.policy, uniforms[t % BLOCK], states[t], actions, choices, states[t + 1], reward[t]):
            check.policy(plan, t)
        if judge.begins(plan):
            check.beliefs(plan, t)
        judge.step(plan, states[t], regret[t], epoch[t], gap[t], covered[t])
        state = agent.update(problem, state, Steps(states[t], actions, choices, states[t + 1]))
        if progress is not None:
            progress(replicas)
    return InfiniteResult(
        agent=agent.name,
        settings=repr(agent),
        seeds=np.asarray(seeds, dtype=np.int64),
        discount=discount,
        optimum=judge.optimum,
        reward=np.ascontiguousarray(reward.T),
        regret=np.ascontiguousarray(regret.T),
        epoch=np.ascontiguousarray(epoch.T),
        states=np.ascontiguousarray(states.T),
        optimism_gap=np.ma.MaskedArray(np.nan_to_num(gap.T), mask=np.isnan(gap.T)),
        covered=np.ma.MaskedArray(covered.T > 0.5, mask=np.isnan(covered.T)),
    )


class _PlanCheck:
    """Checks every plan before it is played; a policy is checked once, and ``_step`` checks each action it takes."""

    def __init__(self, problem: InfiniteProblem, replicas: int, agent: str) -> None:
        self.problem, self.replicas, self.agent = problem, replicas, agent
        self._given: Any = None  # the policies that were checked last; ``_policy`` is the same as kernels take it
        self._policy: Int32Array = np.zeros((0, 0), dtype=np.int32)

    def __call__(self, plan: InfinitePlan, step: int) -> InfinitePlan:
        if not isinstance(plan, InfinitePlan):
            wrong = bad("it", f"is {type(plan).__name__}, not an InfinitePlan")
            raise plan_error(self.agent, f"step {step}", wrong)
        if plan.policy is not self._given:
            self._given, self._policy = plan.policy, self.policy(plan, step)
        return plan if self._policy is plan.policy else plan._replace(policy=self._policy)

    def policy(self, plan: InfinitePlan, step: int) -> Int32Array:
        """One policy per replica, or one for all, as int32 (R or 1, S)."""
        try:
            if np.ndim(plan.policy) != 2 or len(plan.policy) not in (1, self.replicas):
                shape = (self.replicas, self.problem.n_states)
                raise bad("policy", f"has shape {np.shape(plan.policy)}", cure=f"give actions {shape}")
            rows = [check_stationary(self.problem, row) for row in plan.policy]
            if rows and rows[0].ndim != 1:
                raise bad("policy", "is stochastic", cure="give one action per state")
            if np.shape(plan.epoch) not in ((1,), (self.replicas,)):
                raise bad("epoch", f"has shape {np.shape(plan.epoch)}", cure="give one number per replica")
            given = np.require(plan.policy, np.int32, ["C", "W"])
            return np.stack(rows) if self.problem.terms.terminal.any() else given
        except LivarotError as error:
            raise plan_error(self.agent, f"step {step}", error) from error

    def beliefs(self, plan: InfinitePlan, step: int) -> None:
        """Refuse values and confidence sets that have other shapes than the problem's, or are not finite."""
        sizes = (self.problem.stage.theta_shape, self.problem.stage.gram_shape)
        shapes = {"value": (self.problem.n_states,), "center": sizes[0], "gram": sizes[1], "radius": ()}
        try:
            for name, shape in shapes.items():
                part = getattr(plan, name)
                if part is not None and require_finite(name, part).shape != (self.replicas, *shape):
                    raise bad(name, f"has shape {np.shape(part)}", cure=f"give {(self.replicas, *shape)}")
        except LivarotError as error:
            raise plan_error(self.agent, f"step {step}", error) from error


class _Judge:
    """True regrets, optimism gaps and coverage, computed once per policy and per epoch."""

    def __init__(self, mdp: InfiniteMDP, discount: float | None, replicas: int) -> None:
        self.mdp, self.discount = mdp, discount
        self.optimum: float | FloatArray
        if discount is None:
            self.optimum = solve_average(mdp).gain
        else:
            self.optimum = solve_discounted(mdp, discount).value
        self._loss: dict[bytes, FloatArray] = {}  # the regret of each policy ever played, (S,)
        self._own = np.empty((replicas, mdp.problem.n_states))  # of the policies in play
        self._epoch = np.full(replicas, -1, dtype=np.int64)
        self._gap, self._covered = np.full(replicas, np.nan), np.full(replicas, np.nan)
        self._planned: tuple[float, FloatArray] | None = None  # optimal values at the plan's discount

    def begins(self, plan: InfinitePlan) -> bool:
        """Is this the first step of some replica's epoch?"""
        return bool((self._epoch != plan.epoch).any())

    def step(
        self,
        plan: InfinitePlan,
        states: Int32Array,
        regret: FloatArray,
        epoch: IntArray,
        gap: FloatArray,
        covered: FloatArray,
    ) -> None:
        for r in np.flatnonzero(self._epoch != plan.epoch):
            self._begin(plan, int(r), int(states[r]))
        self._epoch[:] = plan.epoch
        regret[:] = self._own[np.arange(len(states)), states]
        epoch[:], gap[:], covered[:] = self._epoch, self._gap, self._covered

    def _begin(self, plan: InfinitePlan, r: int, state: int) -> None:
        policy = plan.policy[r if len(plan.policy) > 1 else 0]
        key = policy.tobytes()
        if key not in self._loss:
            if self.discount is None:
                self._loss[key] = self.optimum - policy_gain(self.mdp, policy).gain
            else:
                self._loss[key] = self.optimum - policy_value(self.mdp, policy, self.discount)
        self._own[r] = self._loss[key]
        if plan.value is not None and plan.discount is not None:
            if self._planned is None or self._planned[0] != plan.discount:
                self._planned = plan.discount, solve_discounted(self.mdp, plan.discount).value
            self._gap[r] = plan.value[r, state] - self._planned[1][state]
        if plan.radius is not None and plan.center is not None and plan.gram is not None:
            problem = self.mdp.problem.stage
            order = problem.rows.block_coords
            away = packed_distance(blocks_of(problem), plan.gram[r, 0], self.mdp.theta[order], plan.center[r, 0][order])
            self._covered[r] = float(away <= plan.radius[r])


def _step_uniforms(seeds: Sequence[int], first: int, count: int) -> FloatArray:
    """Number t of each seed's stream for steps first .. first + count - 1, (count, seeds)."""
    drawn = [stream(s, "infinite steps", first // DRAWS_PER_COUNT).random(count) for s in seeds]
    return np.ascontiguousarray(np.stack(drawn, axis=1))


class _World(NamedTuple):
    """What a step reads."""

    row_start: IntArray
    next_state: Int32Array
    prob: FloatArray
    reward: FloatArray  # (S, A)
    outcome_reward: FloatArray  # (rows,), or (0,) where nothing depends on the next state


def world_of(mdp: InfiniteMDP) -> Bundle:
    """What a step reads of a model."""
    terms, rows = mdp.problem.terms, mdp.problem.rows
    extra = np.zeros(0) if terms.outcome_reward is None else terms.outcome_reward
    return Bundle(_World(rows.row_start, rows.next_state, mdp.prob, terms.reward, extra))


@jit
def _step(world, policy, uniforms, states, actions, choices, follow, paid):
    """One transition of every replica; False if a policy has an action that does not exist."""
    for r in range(len(states)):
        a = policy[r if len(policy) > 1 else 0, states[r]]
        if not 0 <= a < opened(world).reward.shape[1]:
            return False
        actions[r] = a
    return play(world, actions, uniforms, states, choices, follow, paid)


@jit
def play(world, actions, uniforms, states, choices, follow, paid):
    """One transition of every replica, with these actions; False if one of them has no next state."""
    w = opened(world)
    n_actions = w.reward.shape[1]
    for r in range(len(states)):
        s, a = states[r], actions[r]
        pair = s * n_actions + a
        first, end = w.row_start[pair], w.row_start[pair + 1]
        if first == end:
            return False
        row = row_of(w.prob, first, end - 1, uniforms[r])
        choices[r] = row - first
        follow[r] = w.next_state[row]
        paid[r] = w.reward[s, a]
        if len(w.outcome_reward) > 0:
            paid[r] += w.outcome_reward[row]
    return True
