r"""Does regret follow sigma_bar?  Problems that differ in it and in little else, and sigma_bar against the horizon.

The paper's claim is a regret of order d H^2 sigma_bar sqrt(T).  To see it, sigma_bar has to change while d, H, T,
the features, B, V* and the gaps stay the same.  :func:`decisions` builds such problems: a row of H/2 independent
decisions.

    stage 0, 2, ..   an action a in {-1, 1}^2 leads to *good* with probability p(a) = 1/(1 + exp(-tilt x_h . a / 2)),
                     to *bad* otherwise; the signs x_h are unknown.  Good pays 1/2 + D/2, bad 1/2 - D/2.
    stage 1, 3, ..   a fair lottery whatever the action (zero features: nothing to learn), *high* pays 1/2 + E/2,
                     *low* 1/2 - E/2; what the last stage draws is not paid.

An action with k wrong signs loses k gap/2 where gap = D (2 p* - 1), for every tilt.  V* = H/2 + H gap/4, and since both
outcomes of a stage have the same future, the variance is the same along every trajectory:

    sigma_bar^2 = ( H/2 D^2 p* (1 - p*) + (H/2 - 1) E^2/4 ) / H^3,   p* = (1 + gap/D)/2.

Four families move sigma_bar tenfold:

``spread``   D from 0.1 to 1 at a fixed gap, E = 0: what is to be learned is worth the same, but is seen through more
             noise.  Telling the best action from its rival takes of the order of (H^{3/2} sigma_bar/gap)^2 episodes:
             slope 2 in a log-log plot until the regret of the uniform policy is near.
``lottery``  E from 0 to 1 at a fixed D: the noise is in a part of the model that no decision changes.
``scale``    D and the gap in proportion (p* fixed): all rewards are multiplied.  So is the regret of every agent that
             plays by the values alone, the uniform policy included: slope 1 says nothing about learning (compare
             reading E35).
``random``   :func:`livarot.envs.random_mdp` with three seeds of its own: transitions and all gaps fixed, V*
             multiplied, rewards of the other actions chosen to keep the gaps.  As in ``spread``, what is uncertain is
             multiplied and what it is worth is not; but V* moves too, and at the small end rewards decide alone.

Agents keep their settings over a family; signs and the environment's numbers of a seed are the same for all agents and
members, so seeds are compared in pairs.  :mod:`livarot.studies.variance.paths` asks where the learner's path takes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from livarot.agents import UCRLMNLOL, AdaptiveLivarot, CertaintyEquivalent, Livarot, SoundLivarot, Uniform
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import ROUNDING
from livarot.envs.random_model import random_mdp
from livarot.errors import bad, require_finite, require_positive_int
from livarot.model.problem import MNLMDP, Problem
from livarot.running.run import run
from livarot.simulation.streams import stream
from livarot.studies.runner import Contender, Count, Runner
from livarot.studies.variance.paths import PROBLEMS, Path, mean_and_error, run_paths
from livarot.studies.variance.sigma_curves import Curve, sigma_curves
from livarot.system.threads import Progress

HORIZON = 10
DIM = 2
PARAM_BOUND = 1.5  # B, the same for all: the largest |theta| is log 4
GAP = 0.06
N_EPISODES, QUICK_EPISODES = 3000, 500
N_SEEDS, QUICK_SEEDS = 30, 6
SPREADS = (0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.0)
LOTTERIES = (0.0, 0.125, 0.25, 0.5, 1.0)
FIXED_SPREAD = 0.1  # of the lottery family
FIXED_SIGNAL = 0.3  # 2 p* - 1 of the scale family
RANDOM_GAP, RANDOM_SIGMAS = 0.02, (0.0009, 0.0016, 0.0028, 0.005, 0.009)
RANDOM_MODELS = 3
SCALES = (0.1, 10.0)  # factors of beta_scale in the check of sensitivity
RESAMPLES = 2000
PATH_SHARE = 3  # runs of the paths have a third of the episodes


class Member(NamedTuple):
    """One problem of a family; ``gap`` is that of the worst action of a decision, the smallest one of a random MDP."""

    family: str
    gap: float
    sigma_bar: float
    spread: float | None = None  # D
    lottery: float | None = None  # E


def member(family: str, spread: float, lottery: float, gap: float) -> Member:
    """A row of decisions, with the closed form of its sigma_bar."""
    if not 0.0 < gap < spread <= 1.0 or not 0.0 <= lottery <= 1.0:
        cure = "take 0 < gap < spread <= 1, for gap/spread is 2 p* - 1, and 0 <= lottery <= 1"
        raise bad("member", f"gap {gap:.4g}, spread {spread:.4g}, lottery {lottery:.4g}", cure=cure)
    p = 0.5 * (1.0 + gap / spread)
    total = HORIZON / 2 * spread**2 * p * (1.0 - p) + (HORIZON / 2 - 1) * lottery**2 / 4.0
    return Member(family, gap, math.sqrt(total / HORIZON**3), spread, lottery)


FAMILIES: dict[str, tuple[Member, ...]] = {
    "spread": tuple(member("spread", spread, 0.0, GAP) for spread in SPREADS),
    "lottery": tuple(member("lottery", FIXED_SPREAD, lottery, GAP) for lottery in LOTTERIES),
    "scale": tuple(member("scale", spread, 0.0, FIXED_SIGNAL * spread) for spread in SPREADS[::2] + SPREADS[-1:]),
    "random": tuple(Member("random", RANDOM_GAP, sigma_bar) for sigma_bar in RANDOM_SIGMAS),
}
LIVAROT = Contender("livarot", "LIVAROT", Livarot())
ADAPTIVE = Contender("adaptive-livarot", "AdaptiveLivarot", AdaptiveLivarot())
SOUND = Contender("sound-livarot", "SoundLivarot", SoundLivarot())
PAPER = Contender("livarot-paper", "LIVAROT (paper, tau = 0)", replace(Livarot.paper(), n_explore=0))
UCRL_MNL_OL = Contender("ucrl-mnl-ol", "UCRL-MNL-OL", UCRLMNLOL.paper())
GREEDY = Contender("certainty-equivalent", "no optimism", CertaintyEquivalent())
UNIFORM = Contender("uniform", "uniform policy", Uniform())
CONTENDERS = (LIVAROT, ADAPTIVE, SOUND, PAPER, UCRL_MNL_OL, GREEDY, UNIFORM)
RESCALED = tuple(
    Contender(f"{base.key}-x{scale:g}", f"{base.label}, radius x {scale:g}", agent, everywhere=False)
    for scale in SCALES
    for base, agent in (
        (LIVAROT, Livarot(beta_scale=scale * Livarot().beta_scale)),
        (UCRL_MNL_OL, UCRLMNLOL(beta_scale=scale * UCRLMNLOL().beta_scale)),
    )
)


def decisions(which: Member, seeds: Sequence[int]) -> list[MNLMDP]:
    """One model per seed, which draws the signs; all have the same :class:`Problem`.

    >>> (mdp,) = decisions(member("spread", 0.1, 0.0, 0.06), [0])
    >>> round(float(mdp.problem.param_bound), 2), mdp.problem.n_states, mdp.problem.n_actions
    (1.5, 4, 4)
    """
    if which.spread is None or which.lottery is None:
        raise bad("which", f"a member of {which.family!r} has no decisions", cure="make it with member(..)")
    signal = which.gap / which.spread
    tilt = math.log((1.0 + signal) / (1.0 - signal))
    actions = np.array(list(product((-1.0, 1.0), repeat=DIM)))
    root = math.sqrt(DIM)

    def features(h: int, s: int, a: int) -> tuple[list[int], FloatArray]:
        if h % 2 == 0:
            return [0, 1], np.array([actions[a] / root, np.zeros(DIM)])
        return [2, 3], np.zeros((2, DIM))

    pays = 0.5 + 0.5 * np.array([which.spread, -which.spread, which.lottery, -which.lottery])
    problem = Problem.from_function(
        HORIZON,
        4,
        len(actions),
        features=features,
        reward=lambda h, s, a: 0.5 if h == 0 else float(pays[s]),
        start=2,
        param_bound=PARAM_BOUND,
    )
    models = []
    for seed in seeds:
        theta = np.zeros((HORIZON, DIM))
        theta[::2] = tilt / root * stream(seed, "decision signs").choice((-1.0, 1.0), size=(HORIZON // 2, DIM))
        models.append(MNLMDP(problem, theta))
    return models


class Group(NamedTuple):
    """Seeds that run together, with one model each or one for all."""

    models: MNLMDP | list[MNLMDP]
    seeds: range


def groups(which: Member, n_seeds: int) -> list[Group]:
    """The models of a member; the seeds of the random family are dealt out to its models."""
    if which.family != "random":
        return [Group(decisions(which, range(n_seeds)), range(n_seeds))]
    dealt = [range(k, n_seeds, RANDOM_MODELS) for k in range(min(RANDOM_MODELS, n_seeds))]
    return [
        Group(random_mdp(6, 3, 2, 4, HORIZON, 2.0, which.gap, which.sigma_bar, seed=k), seeds)
        for k, seeds in enumerate(dealt)
    ]


class Slope(NamedTuple):
    """How the mean regret of a family's members depends on sigma_bar; intervals hold 95 % of the resamples.

    There is no slope (None) where some member has no regret at all: few seeds, few episodes, an easy problem.
    """

    slope: float | None  # least squares of log regret on log sigma_bar
    low: float | None
    high: float | None
    rank_correlation: float  # Spearman's
    rank_low: float
    rank_high: float


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was run; :meth:`summary` gives the numbers behind figures and text."""

    n_seeds: int
    n_episodes: int
    regret: Mapping[tuple[Member, str], FloatArray] = field(repr=False)  # after the last episode, (seeds,)
    sigma_measured: Mapping[Member, float] = field(repr=False)  # largest error of a run's sigma_bar
    curves: tuple[Curve, ...] = field(repr=False)
    paths: tuple[Path, ...] = field(repr=False)

    @property
    def path_episodes(self) -> int:
        return path_episodes(self.n_episodes)

    def of(self, family: str, contender: Contender) -> FloatArray:
        """Final exact regret, (members, seeds)."""
        return np.stack([self.regret[which, contender.key] for which in FAMILIES[family]])

    def slope(self, family: str, contender: Contender) -> Slope:
        return slope([m.sigma_bar for m in FAMILIES[family]], self.of(family, contender))

    def shown(self, family: str) -> tuple[Contender, ...]:
        return CONTENDERS + RESCALED if family == "spread" else CONTENDERS

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "n_seeds": self.n_seeds,
            "n_episodes": self.n_episodes,
            "horizon": HORIZON,
            "dim": DIM,
            "param_bound": PARAM_BOUND,
            "definitions": {
                "regret": "exact: sum over episodes of V*(s_1) - V^pi_t(s_1); mean and standard error over seeds",
                "slope": "least squares of log mean regret on log sigma_bar over a family's members",
                "interval": f"2.5 and 97.5 % quantiles over {RESAMPLES} resamples of the seeds",
                "rank_correlation": "Spearman's, of mean regret and sigma_bar",
                "ratio": "sigma_bar_T along the agent's path over that of pi*; late: in the last tenth of the episodes",
                "deviation": "largest difference of a run's sigma_bar_T from sigma_bar, that of the optimal policy",
            },
            "agents": {c.key: {"label": c.label, "settings": repr(c.agent)} for c in CONTENDERS + RESCALED},
            "families": {name: self._family_summary(name) for name in FAMILIES},
            "sigma_bar_against_horizon": [curve.summary() for curve in self.curves],
            "path_episodes": self.path_episodes,
            "paths": [path.summary() for path in self.paths],
        }

    def _family_summary(self, family: str) -> dict[str, Any]:
        members = FAMILIES[family]
        sigmas = [m.sigma_bar for m in members]
        return {
            "members": [m._asdict() | {"sigma_bar": m.sigma_bar, "deviation": self.sigma_measured[m]} for m in members],
            "sigma_bar_ratio": max(sigmas) / min(sigmas),
            "agents": {
                c.key: {
                    "regret": [mean_and_error(row) for row in self.of(family, c)],
                    **self.slope(family, c)._asdict(),
                }
                for c in self.shown(family)
            },
        }


def path_episodes(n_episodes: int) -> int:
    """The length of the runs of :func:`livarot.studies.variance.paths.run_paths`."""
    return max(1, n_episodes // PATH_SHARE)


def slope(sigmas: Sequence[float], regret: FloatArray) -> Slope:
    """Fit and rank correlation of the members' mean regret (members, seeds), seeds resampled for the intervals.

    The same resample serves all members, for a seed's runs share their signs and their random numbers.

    >>> found = slope([1.0, 2.0, 4.0], np.array([[3.0, 3.0], [12.0, 12.0], [48.0, 48.0]]))
    >>> round(found.slope, 12), round(found.low, 12), round(found.rank_correlation, 12)
    (2.0, 2.0, 1.0)
    """
    regret = require_finite("regret", regret)
    if regret.ndim != 2 or len(regret) != len(sigmas) or len(sigmas) < 2 or regret.shape[1] < 1:
        raise bad("regret", f"has shape {regret.shape} for {len(sigmas)} members", cure="give (members, seeds)")
    x = np.log(np.asarray(sigmas, dtype=np.float64))
    n_seeds = regret.shape[1]
    draws = stream(0, "bootstrap").integers(n_seeds, size=(RESAMPLES, n_seeds))
    means = np.concatenate([regret.mean(axis=1)[None], regret[:, draws].mean(axis=2).T])  # (1 + resamples, members)
    ranks = _rank_correlation(x, means)
    rank_low, rank_high = (float(q) for q in np.quantile(ranks[1:], (0.025, 0.975)))
    if means[0].min() <= ROUNDING:
        return Slope(None, None, None, float(ranks[0]), rank_low, rank_high)
    away = x - x.mean()
    fits = np.log(means[means.min(axis=1) > ROUNDING]) @ away / (away @ away)  # the first is that of all seeds
    low, high = (float(q) for q in np.quantile(fits[1:] if len(fits) > 1 else fits, (0.025, 0.975)))
    return Slope(float(fits[0]), low, high, float(ranks[0]), rank_low, rank_high)


def _rank_correlation(x: FloatArray, rows: FloatArray) -> FloatArray:
    """Spearman's, of x and each row; 0 where one of them is constant (to twelve digits)."""
    own, others = _ranks(x[None]), _ranks(rows)
    spread = np.linalg.norm(own) * np.linalg.norm(others, axis=1)
    return np.asarray(others @ own[0] / np.where(spread > 0.0, spread, 1.0))


def _ranks(rows: FloatArray) -> FloatArray:
    """Centred ranks of each row, ties (within 1e-12 of the largest) sharing their mean."""
    near = 1e-12 * np.abs(rows).max(axis=1)[:, None, None]
    away = rows[:, None, :] - rows[:, :, None]
    ranks = (away < -near).sum(axis=2) + 0.5 * (np.abs(away) <= near).sum(axis=2)
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))


def run_study(
    *,
    quick: bool = False,
    n_seeds: int | None = None,
    n_episodes: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Study:
    """Run every agent on every member; the result does not depend on ``workers`` (threads).

    ``progress(done, total)`` counts replica-episodes; what it raises ends the study.
    """
    n_seeds = (QUICK_SEEDS if quick else N_SEEDS) if n_seeds is None else require_positive_int("seeds", n_seeds)
    if n_episodes is None:
        n_episodes = QUICK_EPISODES if quick else N_EPISODES
    require_positive_int("n_episodes", n_episodes)
    cells = [
        (which, contender)
        for members in FAMILIES.values()
        for which in members
        for contender in CONTENDERS + RESCALED
        if contender.everywhere or which.family == "spread"
    ]
    path_total = len(PROBLEMS) * len(CONTENDERS) * path_episodes(n_episodes)
    runner = Runner((len(cells) * n_episodes + path_total) * n_seeds, workers, progress)
    parts = {which: groups(which, n_seeds) for members in FAMILIES.values() for which in members}
    runner.compile(decisions(FAMILIES["spread"][0], [0])[0], (contender.agent for contender in CONTENDERS))
    curves = sigma_curves(max(2, n_seeds // 2))

    def one(cell: tuple[Member, Contender], count: Count) -> tuple[FloatArray, float]:
        which, contender = cell
        found = [run(models, contender.agent, n_episodes, seed=own, progress=count) for models, own in parts[which]]
        regret = np.concatenate([result.regret.sum(axis=1) for result in found])
        return regret, max(float(np.abs(result.sigma_bar - which.sigma_bar).max()) for result in found)

    found = runner.all(one, cells)
    deviation: dict[Member, float] = {}
    for (which, _), (_, off) in zip(cells, found, strict=True):
        deviation[which] = max(off, deviation.get(which, 0.0))
    regret = {(which, contender.key): final for (which, contender), (final, _) in zip(cells, found, strict=True)}
    paths = run_paths(runner, CONTENDERS, n_seeds, path_episodes(n_episodes))
    return Study(n_seeds, n_episodes, regret, deviation, curves, paths)
