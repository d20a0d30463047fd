"""The paper's experiment (Appendix `appendix:experiments`), and the same with a gap that can be learned.

Both families are hard chains (:mod:`livarot.envs.problems.hard`) with d = 2 and one random sign per stage and seed;
the model and the run of a seed use that same seed, and all agents meet the same environment randomness.

``paper-gap``   Delta = 1/(4 sqrt(2 H T)), as the paper runs it.  A policy that errs with a fixed probability
                loses of the order of Delta H^2 per episode, hence T Delta H^2 ~ H^{3/2} sqrt(T) in all:
                Regret_T / H^{3/2} is flat in H for *every* such policy, the uniform one too (reading E35).
``fixed-gap``   Delta = 1/(2 H), which does not shrink with T: learning shows.

Regret is reported twice: exactly, V*(s_1) - V^{pi_t}(s_1) summed over episodes, and as the paper measures it,
V*(s_1) minus the rewards really earned (E33).

What can be had (:mod:`livarot.theory.limits`) stands beside: the sign oracle, which knows all but the signs, and
C log T, the least that a consistent learner can have as T -> infinity.

Deviations: the uniform policy is added, and LIVAROT without its burn-in; H = 5, 10, .., 30 (the paper does
not say, E34).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from livarot.agents import UCRLMNLOL, Livarot, Uniform
from livarot.core.arrays import FloatArray
from livarot.envs.problems.hard import hard_chain, paper_gap
from livarot.errors import bad, require_positive_int
from livarot.running.run import run
from livarot.studies.runner import Contender, Count, Runner
from livarot.studies.writing import spread
from livarot.system.threads import Progress
from livarot.theory.limits import SignOracle, chain_log_rate, sign_oracle

DIM = 2
N_SEEDS = 40
N_EPISODES = 1000
HORIZONS = (5, 10, 15, 20, 25, 30)
ORACLE_RUNS = 5  # of the sign oracle, per seed
QUICK_SEEDS = 8
QUICK_HORIZONS = (5, 10, 20)

Regret = Literal["exact", "realised"]


class Family(NamedTuple):
    """Chains of all horizons with one rule for the gap."""

    key: str
    title: str
    formula: str  # of the gap, for figures
    gap: Callable[[int, int], float]  # (H, T) -> Delta


PAPER_GAP = Family("paper-gap", "gap of the paper", r"$1/(4\sqrt{2HT})$", paper_gap)
FIXED_GAP = Family("fixed-gap", "gap independent of T", r"$1/(2H)$", lambda horizon, n_episodes: 0.5 / horizon)
FAMILIES = (PAPER_GAP, FIXED_GAP)

LIVAROT = Contender("livarot", "LIVAROT (paper)", Livarot.paper())
SINGLE_PHASE = Contender(
    "livarot-single-phase",
    "LIVAROT (paper, no burn-in)",
    replace(Livarot.paper(), n_explore=0),  # the same constants, no burn-in
)
UCRL_MNL_OL = Contender("ucrl-mnl-ol", "UCRL-MNL-OL", UCRLMNLOL.paper())
UNIFORM = Contender("uniform", "uniform policy", Uniform())
CONTENDERS = (LIVAROT, SINGLE_PHASE, UCRL_MNL_OL, UNIFORM)


class Curves(NamedTuple):
    """Cumulative regret, (seeds, T)."""

    exact: FloatArray
    realised: FloatArray


class Cell(NamedTuple):
    """What one run is: an agent on the chains of one family and horizon, all seeds."""

    family: str
    contender: str
    horizon: int


@dataclass(frozen=True, eq=False)
class Reproduction:
    """All runs of the experiment; :meth:`summary` gives the numbers behind the figures."""

    n_seeds: int
    n_episodes: int
    horizons: tuple[int, ...]
    curves: Mapping[Cell, Curves] = field(repr=False)
    oracle: Mapping[tuple[str, int], SignOracle] = field(repr=False, default_factory=dict)  # by family and horizon

    def limits(self, family: Family, horizon: int) -> tuple[float, float] | None:
        """The sign oracle's mean regret and C log T; None where the oracle was not run."""
        found = self.oracle.get((family.key, horizon))
        if found is None:
            return None
        rate = chain_log_rate(horizon, family.gap(horizon, self.n_episodes), DIM)
        return found.mean, rate * math.log(self.n_episodes)

    def of(self, family: Family, contender: Contender, horizon: int) -> Curves:
        return self.curves[Cell(family.key, contender.key, horizon)]

    def final(self, family: Family, contender: Contender, horizon: int, regret: Regret) -> FloatArray:
        """Regret after the last episode, (seeds,)."""
        return np.asarray(getattr(self.of(family, contender, horizon), regret)[:, -1])

    def ratio(self, family: Family, contender: Contender, regret: Regret) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation over seeds of Regret_T / H^{3/2}, one number per horizon."""
        found = [self.final(family, contender, h, regret) / h**1.5 for h in self.horizons]
        return np.array([x.mean() for x in found]), np.array([spread(x) for x in found])

    def locked_in(self, family: Family, contender: Contender, horizon: int) -> float | None:
        """Share of seeds whose exact regret exceeds half of the uniform policy's; None for that policy."""
        if contender == UNIFORM:
            return None
        own = self.final(family, contender, horizon, "exact")
        return float(np.mean(own > 0.5 * self.final(family, UNIFORM, horizon, "exact")))

    def summary(self) -> dict[str, Any]:
        """The numbers behind the figures, ready for JSON: per family, agent and horizon."""
        return {
            "n_seeds": self.n_seeds,
            "n_episodes": self.n_episodes,
            "dim": DIM,
            "horizons": list(self.horizons),
            "definitions": {
                "exact": "sum over episodes of V*(s_1) - V^pi_t(s_1)",
                "realised": "sum over episodes of V*(s_1) - the rewards earned",
                "sd": "over seeds, n - 1 in the denominator",
                "regret_over_h15": "mean and sd of Regret_T / H^1.5",
                "sign_oracle": "regret of the oracle that knows all but the signs; c_log_t: C log T, see theory.limits",
                "locked_in": "share of seeds whose exact regret exceeds half of the uniform policy's",
            },
            "agents": {c.key: {"label": c.label, "settings": repr(c.agent)} for c in CONTENDERS},
            "families": {
                f.key: {
                    "title": f.title,
                    "gap": {str(h): f.gap(h, self.n_episodes) for h in self.horizons},
                    "sign_oracle": {str(h): self._oracle_summary(f, h) for h in self.horizons},
                    "agents": {c.key: {str(h): self._cell_summary(f, c, h) for h in self.horizons} for c in CONTENDERS},
                }
                for f in FAMILIES
            },
        }

    def _oracle_summary(self, family: Family, horizon: int) -> dict[str, float] | None:
        found, limits = self.oracle.get((family.key, horizon)), self.limits(family, horizon)
        if found is None or limits is None:
            return None
        return {"mean": found.mean, "standard_error": found.se, "runs": len(found.regret), "c_log_t": limits[1]}

    def _cell_summary(self, family: Family, contender: Contender, horizon: int) -> dict[str, Any]:
        numbers: dict[str, Any] = {
            "exact": _statistics(self.final(family, contender, horizon, "exact"), horizon),
            "realised": _statistics(self.final(family, contender, horizon, "realised"), horizon),
        }
        return numbers | {"locked_in": self.locked_in(family, contender, horizon)}


def _statistics(final: FloatArray, horizon: int) -> dict[str, Any]:
    scaled = final / horizon**1.5
    return {
        "mean": float(final.mean()),
        "sd": spread(final),
        "median": float(np.median(final)),
        "regret_over_h15": {"mean": float(scaled.mean()), "sd": spread(scaled)},
    }


def reproduce(
    *,
    n_seeds: int = N_SEEDS,
    n_episodes: int = N_EPISODES,
    horizons: Sequence[int] = HORIZONS,
    workers: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Run the experiment; the result does not depend on ``workers`` (threads).

    ``progress(done, total)`` is called now and then, from one thread at a time; what it raises ends the
    experiment.

    >>> small = reproduce(n_seeds=2, n_episodes=20, horizons=[3])
    >>> small.final(FIXED_GAP, UNIFORM, 3, "exact").shape
    (2,)
    """
    require_positive_int("seeds", n_seeds)
    require_positive_int("n_episodes", n_episodes)
    if not horizons:
        raise bad("horizons", "is empty", cure="give at least one horizon")
    cells = [Cell(f.key, c.key, h) for f in FAMILIES for c in CONTENDERS for h in horizons]
    runner = Runner(len(cells) * n_seeds * n_episodes, workers, progress)
    models = {
        (f.key, h): [hard_chain(h, dim=DIM, gap=f.gap(h, n_episodes), seed=s) for s in range(n_seeds)]
        for f in FAMILIES
        for h in horizons
    }
    agents = {c.key: c.agent for c in CONTENDERS}
    runner.compile(models[FAMILIES[0].key, horizons[0]][0], agents.values())

    def one(cell: Cell, count: Count) -> Curves:
        chains = models[cell.family, cell.horizon]
        result = run(chains, agents[cell.contender], n_episodes, seed=range(n_seeds), progress=count)
        return Curves(result.cumulative_regret, result.cumulative_realised_regret)

    oracle = {
        (f.key, h): sign_oracle(h, n_episodes, f.gap(h, n_episodes), DIM, n_runs=ORACLE_RUNS * n_seeds)
        for f in FAMILIES
        for h in horizons
    }
    longest_first = sorted(cells, key=lambda cell: (-cell.horizon, cell.contender == UNIFORM.key))
    found = dict(zip(longest_first, runner.all(one, longest_first), strict=True))
    return Reproduction(n_seeds, n_episodes, tuple(horizons), {cell: found[cell] for cell in cells}, oracle)
