"""``livarot warmup``: compile every kernel once, on tiny problems, so that later processes load them from the cache.

Machine code depends on the types of the arguments and not on their sizes: a chain of three stages compiles
what a model with a million states uses.  The cache is the folder ``NUMBA_CACHE_DIR``, or the package's own
``__pycache__`` folders.  This is the one list of what to call; a test checks that it reaches every kernel.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console

from livarot import infinite
from livarot.agents import (
    OFUMNLPP,
    ONSUCRLMNL,
    ORRLMNL,
    PSRL,
    RLSVI,
    RRLMNL,
    UCBVI,
    UCRL2,
    UCRLMNL,
    UCRLMNLLL,
    UCRLMNLOL,
    AdaptiveLivarot,
    BonusLivarot,
    CertaintyEquivalent,
    DriftingLivarot,
    LiteralExploration,
    Livarot,
    OFULMLogB,
    Oracle,
    RareSwitching,
    SoundLivarot,
    StateAwareExploration,
    ThompsonLivarot,
    UCRLMNLPlus,
    Uniform,
)
from livarot.agents.tabular.ucbvi import Bernstein
from livarot.cli.progress import progress_shown
from livarot.cli.report import warnings_shown
from livarot.core.compiling.jit import counts
from livarot.core.ellipsoid import Ellipsoid
from livarot.core.lanes import W
from livarot.data.estimator import MNLTransition
from livarot.data.reading.choices import Choices
from livarot.data.use.intervals import value_and_gradient
from livarot.envs import hard_chain, mnl_bandit, park_two_state, random_mdp, river_swim
from livarot.envs.gymnasium.env import MNLEnv
from livarot.errors import bad
from livarot.estimation.omd import initial_estimate
from livarot.model.probabilities import MANY, transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.planning.exact import evaluate, solve
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.inner_maximum import inner_max
from livarot.planning.optimistic.plan import SEVERAL
from livarot.planning.optimistic.rules import (
    FrankWolfe,
    JointMaximum,
    MaxNormBonus,
    PlugIn,
    SecondOrderBonus,
    VarianceBonus,
)
from livarot.planning.pessimistic import pessimistic_plan
from livarot.planning.robust.kl import worst_case
from livarot.planning.robust.plan import evaluate_robust, solve_robust
from livarot.running.run import run
from livarot.simulation.rollout import draw_row, simulate
from livarot.theory.all_constants import Constants
from livarot.theory.constants import diameter

SEEDS = (0, 1)
Step = Callable[[], Any]


def command(only: Iterable[str] | None = None) -> None:
    """See ``livarot warmup --help``."""
    with warnings_shown(), progress_shown(Console(stderr=True), "warmup", "steps", "compiling") as progress:
        began = time.process_time()
        found = warmup(only, progress)
    spent = time.process_time() - began
    message = f"{found['compiled']} functions compiled, {found['loaded']} were in the cache; {spent:.1f} CPU seconds"
    Console(soft_wrap=True).print(message, highlight=False)


def warmup(only: Iterable[str] | None = None, progress: Callable[[int, int], None] | None = None) -> Counter[str]:
    """Compile, or load from the cache, everything that the parts named in ``only`` call, or all parts.

    Counts the functions that were compiled and loaded, per combination of types.
    """
    names = list(PARTS if only is None else only)
    for name in names:
        if name not in PARTS:
            raise bad("only", f"there is no part {name!r}", cure=f"choose from {', '.join(PARTS)}")
    steps = [step for name in names for step in PARTS[name]()]
    before = counts.copy()
    for number, step in enumerate(steps):
        if progress is not None:
            progress(number, len(steps))
        step()
    if progress is not None:
        progress(len(steps), len(steps))
    return counts - before


def _planning() -> Iterator[Step]:
    yield _exact
    yield _ellipsoids


def _exact() -> None:
    for horizon in (2, 3, 4):  # the layout in memory of the uniforms depends on the horizon
        mdp = river_swim(4, horizon)
        policy = solve(mdp).policy
        mixed = np.full((*policy.shape, mdp.problem.n_actions), 1.0 / mdp.problem.n_actions)
        for table in (policy, mixed):
            evaluate(mdp, table)
            simulate(mdp, table, 2)
    transition_kernel(random_mdp(n_states=8, n_actions=8, n_reachable=8, dim=2, horizon=MANY // 512))  # many rows


def _ellipsoids() -> None:
    ellipsoid = Ellipsoid([0.1, 0.0], [[2.0, 0.5], [0.5, 1.0]], 1.0)
    ellipsoid.support([1.0, 0.0])
    ellipsoid.project([3.0, 4.0], np.eye(2))
    features = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    for n_outcomes in (2, 3):
        inner_max(features[:n_outcomes], [1.0, 0.5, 0.0][:n_outcomes], ellipsoid)
    inner_max(features, [1.0, 0.5, 0.0], ellipsoid, solver=FrankWolfe(n_iter=2))


def _learning(mdp: MNLMDP) -> list[Step]:
    agents = (
        Livarot(),
        Livarot(rule=JointMaximum(FrankWolfe(n_iter=2))),
        Livarot(rule=VarianceBonus()),
        UCRLMNLOL(),
        CertaintyEquivalent(),
        BonusLivarot(),
        ThompsonLivarot(),
        UCRLMNL(),
        UCRLMNLLL(),
        SoundLivarot(),
        AdaptiveLivarot(),
        ONSUCRLMNL(),
        UCRLMNLPlus(),
        RRLMNL(),
        ORRLMNL(),
        UCBVI(),
        UCBVI(Bernstein()),
        PSRL(),
        RLSVI(),
        UCRL2(doubling=True),
        RareSwitching(),
        DriftingLivarot(),
        Uniform(),
        Oracle(solve(mdp).policy),
    )
    steps: list[Step] = [partial(run, mdp, agent, 3, seed=SEEDS) for agent in agents]
    if mdp.problem.max_reachable == 2:
        steps.append(partial(run, mdp, SoundLivarot(optimism="level set"), 3, seed=SEEDS))
    return steps


def _exploration() -> Iterator[Step]:
    mdp = hard_chain(3)
    for routine in (LiteralExploration(), StateAwareExploration()):
        for keep in (False, True):
            agent = Livarot(n_explore=2, exploration=routine, start_at_mle=keep, warm_start=keep)
            yield partial(run, mdp, agent, 4, seed=SEEDS)
    tight = Livarot(n_explore=2, kappa=1.0, step_size=1e3, reg=1e-3)  # so that projections have work to do
    yield partial(run, mdp, tight, 20, seed=SEEDS)


def _theory() -> None:
    mdp = MNLMDP.from_function(
        2,
        3,
        1,
        features=lambda h, s, a: ([0, 1, 2], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        reward=np.zeros((3, 1)),
        theta=[0.5, 0.2],
        offset=lambda h, s, a: [0.0, 0.1, 0.2],
    )
    Constants.of(mdp)
    diameter((mdp.problem.rows.pack_identity(), 1.0), mdp)


def _robust() -> None:
    mdp = river_swim(4, 3)
    policy = solve_robust(mdp, radius=0.1).policy
    mixed = np.full((*policy.shape, mdp.problem.n_actions), 1.0 / mdp.problem.n_actions)
    solve_robust(mdp, penalty=1.0).kernel  # noqa: B018 (made on first use)
    solve_robust(mdp, radius=0.1).kernel  # noqa: B018
    for table in (policy, mixed):
        evaluate_robust(mdp, table, radius=0.1)
        evaluate_robust(mdp, table, penalty=1.0)
    worst_case([0.0, 1.0], [0.5, 0.5], radius=0.1)


def _bandits() -> Iterator[Step]:
    for agent in (OFULMLogB(), OFUMNLPP()):
        yield partial(run, mnl_bandit(3, 3, 2), agent, 3, seed=SEEDS)


def _infinite() -> None:
    endless = infinite.InfiniteMDP.from_mdp(park_two_state())
    infinite.run_infinite(endless, infinite.UCMNLK(discount=0.9), 3, seed=SEEDS)
    infinite.diameter(endless)
    bus = infinite.bus_engine(10)
    infinite.simulate(bus, np.zeros(10, dtype=np.int64), 2)
    infinite.solve_robust(bus, radius=0.1)
    infinite.solve_robust(bus, penalty=0.1)
    infinite.value_interval(bus, np.eye(2))
    infinite.solve_optimistic(bus, np.eye(2))
    infinite.solve_optimistic(bus, np.eye(2), rule=VarianceBonus())


def _gymnasium() -> None:
    environment = MNLEnv(hard_chain(3))
    environment.reset(seed=0)
    environment.step(0)
    draw_row(np.array([0.5, 0.5]), 0, 1, 0.3)  # an action of Online.act


def _lanes() -> Iterator[Step]:
    """Optimistic plans whose lanes are replicas, screened ones, and pessimistic ones."""
    chain, river = hard_chain(3).problem, river_swim(4, 3).problem
    bonuses = (VarianceBonus(), SecondOrderBonus(), SecondOrderBonus(clip_value=True), MaxNormBonus(), PlugIn())
    yield partial(optimistic_plan, chain, initial_estimate(chain, W, 1.0), 0.5)
    for rule in (JointMaximum(), JointMaximum(FrankWolfe(n_iter=2)), *bonuses):
        yield partial(optimistic_plan, river, initial_estimate(river, W, 1.0), 0.5, rule)
    phi = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    several = Problem.from_function(
        2, 3, SEVERAL, features=lambda h, s, a: ([0, 1, 2], phi), reward=np.zeros((3, SEVERAL)), param_bound=1.0
    )
    yield partial(optimistic_plan, several, initial_estimate(several, 1, 1.0), 0.5)
    for replicas in (1, W):
        yield partial(pessimistic_plan, river, initial_estimate(river, replicas, 1.0), 0.5)


def _data() -> None:
    features = np.array([[[0.0], [1.0]]] * 4)
    whole = Choices.from_arrays(features, chosen=[0, 1, 1, 1], offset=np.zeros((4, 2)))
    in_columns = Choices(whole.start, (features.reshape(-1),), whole.count, whole.columns)
    for choices in (whole, in_columns):
        fit = MNLTransition(covariance="sandwich").fit(choices)
        fit.confidence_set(kind="finite-sample")
        fit.predict_proba(choices)
    mdp = hard_chain(2, gap=0.1)
    policy = np.full((2, mdp.problem.n_states, mdp.problem.n_actions), 1.0 / mdp.problem.n_actions)
    value_and_gradient(mdp.problem, transition_kernel(mdp), policy)


PARTS: dict[str, Callable[[], Iterable[Step]]] = {
    "planning": _planning,
    "two-outcomes": lambda: _learning(hard_chain(3)),
    "ragged": lambda: _learning(river_swim(4, 3)),
    "shared-parameter": lambda: _learning(river_swim(4, 3, shared_parameter=True)),
    "exploration": _exploration,
    "theory": lambda: [_theory],
    "robust": lambda: [_robust],
    "bandits": _bandits,
    "infinite": lambda: [_infinite],
    "gymnasium": lambda: [_gymnasium],
    "lanes": _lanes,
    "data": lambda: [_data],
}
