"""Compile every kernel once, on tiny problems, so that later processes load them from numba's cache.

Machine code depends on the types of the arguments and not on their sizes: a chain of three stages compiles
what a model with a million states uses.  ``python -m livarot.experiments.warmup`` is the last step of
``make setup``; the cache is the folder ``NUMBA_CACHE_DIR``, or the package's own ``__pycache__`` folders.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np

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
    BonusLivarot,
    CertaintyEquivalent,
    DriftingLivarot,
    LiteralExploration,
    Livarot,
    OFULMLogB,
    Oracle,
    RareSwitching,
    StateAwareExploration,
    ThompsonLivarot,
    UCRLMNLPlus,
    Uniform,
)
from livarot.agents.ucbvi import Bernstein
from livarot.core.ellipsoid import Ellipsoid
from livarot.core.problem import MNLMDP
from livarot.envs import hard_chain, mnl_bandit, park_two_state, river_swim
from livarot.envs.gym import MNLEnv
from livarot.experiments.run import run
from livarot.infinite import UCMNLK, InfiniteMDP, run_infinite
from livarot.infinite.planning import diameter as infinite_diameter
from livarot.planning.backward import evaluate, solve
from livarot.planning.optimistic.inner import inner_max
from livarot.planning.optimistic.rules import FrankWolfe, JointMaximum, VarianceBonus
from livarot.planning.robust import evaluate_robust, solve_robust
from livarot.planning.softmin import worst_case
from livarot.simulation.rollout import simulate
from livarot.theory.constants import diameter
from livarot.theory.summary import Constants

logger = logging.getLogger(__name__)
SEEDS = (0, 1)


def warmup() -> None:
    """Compile, or load from the cache, everything that planning, learning and judging call."""
    parts: dict[str, Callable[[], None]] = {
        "exact planning and simulation": _planning,
        "the inner maximum and projections": _ellipsoids,
        "learning with two outcomes": lambda: _learning(hard_chain(3)),
        "learning with ragged reachable sets": lambda: _learning(river_swim(4, 3)),
        "one parameter for all stages": lambda: _learning(river_swim(4, 3, shared_parameter=True)),
        "exploration": _exploration,
        "constants of the theory": _theory,
        "robust planning": _robust,
        "one decision, and no end": _other_horizons,
        "stages that repeat": _repeated,
    }
    for number, (name, part) in enumerate(parts.items(), 1):
        begin = time.perf_counter()
        part()
        logger.info("warm-up %d of %d: %s, %.1f s", number, len(parts), name, time.perf_counter() - begin)


def _planning() -> None:
    for horizon in (2, 3, 4):  # the layout in memory of the uniforms depends on the horizon
        mdp = river_swim(4, horizon)
        policy = solve(mdp).policy
        mixed = np.full((*policy.shape, mdp.problem.n_actions), 1.0 / mdp.problem.n_actions)
        for table in (policy, mixed):
            evaluate(mdp, table)
            simulate(mdp, table, 2)


def _ellipsoids() -> None:
    ellipsoid = Ellipsoid([0.1, 0.0], [[2.0, 0.5], [0.5, 1.0]], 1.0)
    ellipsoid.support([1.0, 0.0])
    ellipsoid.project([3.0, 4.0], np.eye(2))
    features = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    for n_outcomes in (2, 3):
        inner_max(features[:n_outcomes], [1.0, 0.5, 0.0][:n_outcomes], ellipsoid)
    inner_max(features, [1.0, 0.5, 0.0], ellipsoid, solver=FrankWolfe(n_iter=2))


def _learning(mdp: MNLMDP) -> None:
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
    for agent in agents:
        run(mdp, agent, 3, seed=SEEDS)


def _exploration() -> None:
    mdp = hard_chain(3)
    for routine in (LiteralExploration(), StateAwareExploration()):
        for keep in (False, True):
            agent = Livarot(n_explore=2, exploration=routine, start_at_mle=keep, warm_start=keep)
            run(mdp, agent, 4, seed=SEEDS)
    tight = Livarot(n_explore=2, kappa=1.0, step_size=1e3, reg=1e-3)  # so that projections have work to do
    run(mdp, tight, 20, seed=SEEDS)


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


def _other_horizons() -> None:
    for agent in (OFULMLogB(), OFUMNLPP()):
        run(mnl_bandit(3, 3, 2), agent, 3, seed=SEEDS)
    endless = InfiniteMDP.from_mdp(park_two_state())
    run_infinite(endless, UCMNLK(discount=0.9), 3, seed=SEEDS)
    infinite_diameter(endless)
    gymnasium = MNLEnv(hard_chain(3))
    gymnasium.reset(seed=0)
    gymnasium.step(0)


def _repeated() -> None:
    mdp = river_swim(4, 4, shared_parameter=True)
    mdp.problem.cache["repeats"] = True  # as if it were large
    for rule in (JointMaximum(), VarianceBonus()):
        run(mdp, Livarot(rule=rule), 2, seed=SEEDS)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warmup()
