"""UCMNLK: optimism over L1 balls with one online estimate (Park, Kwon and Lee, AISTATS 2025).

One theta, one OMD step per transition (:mod:`livarot.estimation.omd`), Sigma_t = lam I + sum of Hessians at the new
points.  An epoch begins when det Sigma_t > 2 det Sigma_{t_k}; its policy is greedy for discounted extended value
iteration (:mod:`livarot.infinite.learning.extended`) over

    |q - p(theta_hat)|_1 <= R(s, a) = min( 2 beta max_i |phi_i|_{Sigma^-1}, 2 ),
    beta = c sqrt(d) log^2(S t_k / (1 - gamma)).

For the average reward gamma = 1 - sqrt(d / (D T)) with D a bound on the diameter (:meth:`UCMNLK.average`); for a
discounted problem gamma is the problem's.

Sources: eta = log(2)/2 + 2, lam = 82 sqrt2 (1 + d) eta, c = 5, the doubling of the determinant, gamma and the number of
rounds are those of the authors' code (certain; eta and lam are there for B = 1 and U = 2 and written here with log(U)/2
+ B + 1 and (B + d): likely).  R is capped at 2, the diameter of the simplex in L1; their cap U is never smaller, and
the greedy step moves at most all mass, so that the two are the same set.  The factor 2 is theirs; 1 suffices, since
|p(theta) - p(theta')|_1 <= max_i |phi_i . (theta - theta')| (derived: along the segment |dp|_1 = E|x - E x| <= sd(x)).

What their code does and this one does not: it swaps A and A^-1 in the call of the fit, steps along the gradient
averaged over the whole history, leaves lam out of the Gram matrix, and updates the inverse by wrong rank-one formulas.
``tests/infinite/learning/test_ucmnlk.py`` has a test for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from livarot.confidence.radii import second_order_radius
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.errors import bad, require_positive, require_positive_int
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.infinite.learning.extended import Rounds, log_determinants, plan_replicas
from livarot.infinite.problem import InfiniteProblem, check_stationary
from livarot.model.episodes import Episodes, Estimate

State = TypeVar("State", bound=tuple[Any, ...])
MOST_ROUNDS = 1_000_000  # of one plan, unless more are asked for


class Steps(NamedTuple):
    """One transition per replica; ``choices`` says which of its reachable next states each took."""

    states: Int32Array  # (R,)
    actions: Int32Array  # (R,)
    choices: Int32Array  # (R,)
    next_states: Int32Array  # (R,)


class InfinitePlan(NamedTuple):
    """The policy in play, one per replica, and the epoch it belongs to; the rest is for the judge, or None.

    At the first step of an epoch ``value`` is the optimistic discounted value of the plan (at ``discount``) and
    (``center``, ``gram``, ``radius``) the confidence set it was made with.
    """

    policy: Int32Array  # (R, S), or (1, S) for all
    epoch: IntArray  # (R,) or (1,), from 0
    value: FloatArray | None = None  # (R, S)
    discount: float | None = None
    center: FloatArray | None = None  # (R, 1, d)
    gram: FloatArray | None = None  # (R, 1, G) packed
    radius: FloatArray | None = None  # (R,)


class InfiniteAgent(Protocol[State]):
    """As :class:`livarot.agents.base.Agent`, with steps in place of episodes."""

    name: ClassVar[str]

    def init(self, problem: InfiniteProblem, n_replicas: int = 1) -> State:
        """The state before the first step."""
        ...

    def plan(self, problem: InfiniteProblem, state: State) -> InfinitePlan:
        """The policies in play; called before every step, so it should only read them from the state."""
        ...

    def update(self, problem: InfiniteProblem, state: State, steps: Steps) -> State:
        """The state after that step; the old one is left as it was."""
        ...


class FixedState(NamedTuple):
    policy: Int32Array


@checked
@dataclass(frozen=True, eq=False)
class FixedPolicy:
    """Plays one stationary policy for ever: ``solve_average(mdp).policy`` makes it the optimal comparator."""

    name: ClassVar[str] = "fixed"

    policy: NDArray[Any]  # (S,) actions

    def init(self, problem: InfiniteProblem, n_replicas: int = 1) -> FixedState:
        table = check_stationary(problem, self.policy)
        if table.ndim != 1:
            raise bad("policy", "is stochastic", cure="give one action per state")
        return FixedState(table[None])

    def plan(self, problem: InfiniteProblem, state: FixedState) -> InfinitePlan:
        return InfinitePlan(state.policy, np.zeros(1, dtype=np.int64))

    def update(self, problem: InfiniteProblem, state: FixedState, steps: Steps) -> FixedState:
        return state


class UCMNLKState(NamedTuple):
    """The estimate, the epoch's policy with its optimistic values, and log det Sigma at its beginning."""

    estimate: Estimate  # theta (R, 1, d), gram and whiten (R, 1, G)
    policy: Int32Array  # (R, S)
    value: FloatArray  # (R, S)
    log_det: FloatArray  # (R,) at the epoch's beginning
    epoch: IntArray  # (R,)
    radius: FloatArray  # (R,) of the epoch's set
    step: int


@checked(diameter=require_positive)
@dataclass(frozen=True)
class UCMNLK:
    """OMD, doubling epochs, extended value iteration; see :meth:`average`, :meth:`paper` and :meth:`theory`."""

    name: ClassVar[str] = "ucmnlk"

    discount: float | None = None  # gamma; None is 1 - sqrt(d/(D T)), which needs the next two
    n_steps: int | None = None  # T
    diameter: float | None = None  # D, or an upper bound of it
    step_size: float | None = None  # eta; None is log(U)/2 + B + 1
    reg: float | None = 10.0  # lambda of the Gram matrix; None is 82 sqrt2 (B + d) eta
    beta_scale: float = 0.0005  # multiplies the radius; the authors' code has 5
    printed_radius: bool = True  # sqrt(d) log^2(S t/(1 - gamma)); False is the explicit radius of OFU-MNL+
    width_constant: float = 2.0  # of R; 1 suffices
    failure_level: float = 0.05  # delta; used by the explicit radius only
    growth: float = 2.0  # an epoch ends when the determinant has grown by this factor
    tol: float = 1e-6  # extended value iteration stops when a round changes no value by more
    n_rounds: int | None = None  # the most rounds of a plan; None is as many as ``tol`` needs

    def __post_init__(self) -> None:
        if self.discount is None:
            require_positive_int("n_steps", self.n_steps)
            require_positive("diameter", self.diameter)
        if not self.growth > 1.0:
            raise bad("growth", f"must be a finite number > 1, got {self.growth}")

    @classmethod
    def average(cls, n_steps: int, diameter: float, **settings: Any) -> UCMNLK:
        """For the average reward over T steps in a model of diameter at most D."""
        return cls(n_steps=n_steps, diameter=diameter, **settings)

    @classmethod
    @checked(diameter=require_positive)
    def paper(cls, n_steps: int, diameter: float, dim: int) -> UCMNLK:
        """The authors' code: c = 5, eta and lam theirs, max(20, sqrt(DT/d) log(sqrt T/(dD))) rounds."""
        ratio = math.log(math.sqrt(n_steps) / (dim * diameter))
        rounds = max(20, math.ceil(math.sqrt(diameter * n_steps / dim) * ratio))
        return cls(n_steps=n_steps, diameter=diameter, reg=None, beta_scale=5.0, n_rounds=rounds)

    @classmethod
    def theory(cls, n_steps: int, diameter: float) -> UCMNLK:
        """The same with the explicit radius of OFU-MNL+ (certain there, likely here) and as many rounds as needed."""
        return cls(n_steps=n_steps, diameter=diameter, reg=None, beta_scale=1.0, printed_radius=False)

    def init(self, problem: InfiniteProblem, n_replicas: int = 1) -> UCMNLKState:
        gamma = self.gamma(problem)
        if not 0.0 < gamma < 1.0:
            raise bad(
                "n_steps",
                f"1 - sqrt(d/(D T)) is {gamma:.6g} at d = {problem.dim}",
                cure="raise n_steps or diameter, or give discount",
            )
        state = UCMNLKState(
            initial_estimate(problem.stage, n_replicas, self._reg(problem)),
            np.zeros((n_replicas, problem.n_states), dtype=np.int32),
            np.zeros((n_replicas, problem.n_states)),
            np.zeros(n_replicas),
            np.full(n_replicas, -1, dtype=np.int64),
            np.zeros(n_replicas),
            0,
        )
        return self._next_epochs(problem, state, np.ones(n_replicas, dtype=np.bool_), self._log_det(problem, state))

    def plan(self, problem: InfiniteProblem, state: UCMNLKState) -> InfinitePlan:
        estimate = state.estimate
        return InfinitePlan(
            state.policy,
            state.epoch,
            state.value,
            self.gamma(problem),
            estimate.theta,
            estimate.gram,
            state.radius,
        )

    def update(self, problem: InfiniteProblem, state: UCMNLKState, steps: Steps) -> UCMNLKState:
        replicas = len(steps.states)
        episodes = Episodes(
            np.stack((steps.states, steps.next_states), axis=1),
            np.asarray(steps.actions)[:, None],
            np.asarray(steps.choices)[:, None],
        )
        within = ball(problem.stage, problem.param_bound, replicas)
        estimate = omd_update(problem.stage, state.estimate, episodes, self._step_size(problem), within)
        state = state._replace(estimate=estimate, step=state.step + 1)
        log_det = self._log_det(problem, state)
        over = log_det > state.log_det + math.log(self.growth)
        return self._next_epochs(problem, state, over, log_det) if over.any() else state

    def gamma(self, problem: InfiniteProblem) -> float:
        """The discount of the plan."""
        if self.discount is not None:
            return self.discount
        assert self.n_steps is not None  # noqa: S101 (checked in __post_init__, as the next one)
        assert self.diameter is not None  # noqa: S101
        return 1.0 - math.sqrt(problem.dim / (self.diameter * self.n_steps))

    def radius(self, problem: InfiniteProblem, step: int) -> float:
        """beta of an epoch that begins after ``step`` steps."""
        t, outcomes = step + 1, max(problem.max_reachable, 2)
        if self.printed_radius:
            beta = math.sqrt(problem.dim) * math.log(problem.n_states * t / (1.0 - self.gamma(problem))) ** 2
        else:
            eta, reg = self._step_size(problem), self._reg(problem)
            beta = second_order_radius(t, problem.dim, 1, outcomes, problem.param_bound, reg, eta, self.failure_level)
        return self.beta_scale * beta

    def _next_epochs(
        self, problem: InfiniteProblem, state: UCMNLKState, over: NDArray[np.bool_], log_det: FloatArray
    ) -> UCMNLKState:
        policy, value = state.policy.copy(), state.value.copy()
        radius = np.where(over, self.radius(problem, state.step), state.radius)
        gamma = self.gamma(problem)
        enough = math.log(min(self.tol, 0.5)) / math.log(gamma)  # a round shrinks changes by gamma
        if self.n_rounds is None and enough > MOST_ROUNDS:
            cure = "give n_rounds, a larger tol, or a smaller discount (n_steps, diameter)"
            raise bad("tol", f"a plan at discount {gamma:.9g} takes {enough:.3g} rounds", cure=cure)
        most = 1 + math.ceil(enough if self.n_rounds is None else min(self.n_rounds - 1, enough))
        rounds = Rounds(float(gamma), float(self.tol), most)
        plan_replicas(problem, state.estimate, over, radius, self.width_constant, rounds, value, policy)
        return state._replace(
            policy=policy,
            value=value,
            log_det=np.where(over, log_det, state.log_det),
            epoch=state.epoch + over,
            radius=radius,
        )

    def _log_det(self, problem: InfiniteProblem, state: UCMNLKState) -> FloatArray:
        found = np.empty(len(state.log_det))
        log_determinants(state.estimate.whiten, problem.rows.block_start, problem.rows.gram_start, found)
        return found

    def _step_size(self, problem: InfiniteProblem) -> float:
        if self.step_size is not None:
            return self.step_size
        return 0.5 * math.log(max(problem.max_reachable, 2)) + problem.param_bound + 1.0

    def _reg(self, problem: InfiniteProblem) -> float:
        if self.reg is not None:
            return self.reg
        return 82.0 * math.sqrt(2.0) * (problem.param_bound + problem.dim) * self._step_size(problem)
