r"""sigma_bar along the learner's path against sigma_bar under pi*: the paper's open question, measured.

The theorem has sigma_bar_T of the states that the *learner* visits; the paper asks whether that of pi* would do, which
is at most 1/(2 sqrt(H)) in every model.  Three numbers per model, all normalised alike:

``path``     sigma_bar_T of a run, from the judge's increments, and the same over the last tenth of its episodes;
``optimal``  sqrt(E_{pi*}[sigma_bar^2]), exact (:func:`livarot.theory.variance.sigma_bar_star`);
``worst``    no trajectory has more (:func:`livarot.theory.audits.facts.sigma_bar_worst`).

A learner whose regret per episode vanishes need not have path -> optimal: :func:`waiting_room` has a state whose best
action tosses a coin for all that is left, and whose other action waits, at the price of ``gap``.  Waiting costs next
to nothing and keeps the coin ahead, so that with gap -> 0

    path^2/optimal^2  ->  (H-1)(2H-1)/24 / H^2  over  (H-1)^2/(4 H^3)  =  H (2H-1) / (6 (H-1)) ~ H/3

for who always waits: the bound cannot be about pi* alone without a price for near ties.  What learners do there and
elsewhere is what :func:`run_paths` measures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from livarot import envs
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.model.problem import MNLMDP
from livarot.running.run import run
from livarot.studies.runner import Contender, Count, Runner
from livarot.theory.audits.facts import sigma_bar_worst
from livarot.theory.variance import sigma_bar_star

WAITING, WON, LOST = 0, 1, 2
LATE = 10  # the last tenth


@checked
def waiting_room(horizon: int, gap: float) -> MNLMDP:
    """Toss for the rest or wait: a stage in the room pays 1/2, the winner's stages 1, the loser's 0; waiting costs gap.

    The coin is fair (theta* = 0) and unknown, one parameter per stage.  V* of the room is (H - h)/2, and waiting loses
    ``gap`` at each stage but the last.

    >>> import livarot
    >>> solution = livarot.solve(waiting_room(4, 0.01))
    >>> solution.value[:, 0].tolist(), round(float(solution.value[0, 0] - solution.q[0, 0, 0]), 12)
    ([2.0, 1.5, 1.0, 0.5, 0.0], 0.01)
    """

    def features(h: int, s: int, a: int) -> tuple[list[int], list[list[float]]]:
        return ([WON, LOST], [[0.5], [-0.5]]) if s == WAITING and a == 1 else ([s], [[0.0]])

    def reward(h: int, s: int, a: int) -> float:
        return 0.5 - gap * (a == 0 and h < horizon - 1) if s == WAITING else float(s == WON)

    theta = np.zeros((horizon, 1))
    return MNLMDP.from_function(horizon, 3, 2, features=features, reward=reward, theta=theta, start=0, param_bound=1.0)


Models = Callable[[Sequence[int]], MNLMDP | list[MNLMDP]]


def _chains(horizon: int, seeds: Sequence[int]) -> list[MNLMDP]:
    return [envs.hard_chain(horizon, gap=0.5 / horizon, seed=seed) for seed in seeds]


def _same(make: Callable[[], MNLMDP], _seeds: Sequence[int]) -> MNLMDP:
    return make()


PROBLEMS: dict[str, tuple[str, Models]] = {
    "chain-10": ("hard chain, H = 10", partial(_chains, 10)),
    "chain-20": ("hard chain, H = 20", partial(_chains, 20)),
    "lock": ("combination lock", lambda seeds: [envs.combination_lock(seed=seed) for seed in seeds]),
    "kl-robust": ("KL-robust", partial(_same, partial(envs.kl_robust, 12, horizon=8))),
    "park": ("Park's two states", partial(_same, envs.park_two_state)),
    "maintenance": ("machine maintenance", partial(_same, envs.machine_maintenance)),
    "river": ("RiverSwim, moves unknown", partial(_same, envs.unknown_river)),
    "random": ("random MDP", partial(_same, envs.random_mdp)),
    "waiting-room": ("waiting room, H = 20, gap 0.01", partial(_same, partial(waiting_room, 20, 0.01))),
}


class Path(NamedTuple):
    """One problem: sigma_bar under pi* and at worst, (seeds,), and of each agent's runs over sigma_bar under pi*."""

    key: str
    label: str
    optimal: FloatArray
    worst: FloatArray
    ratio: Mapping[str, FloatArray]  # by the key of the agent, (seeds,)
    late: Mapping[str, FloatArray]  # the same over the last tenth of the episodes
    regret: Mapping[str, FloatArray]

    @property
    def ceiling(self) -> float:
        """The largest ratio that any trajectory has."""
        return float((self.worst / self.optimal).max())

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "key": self.key,
            "label": self.label,
            "optimal": float(self.optimal.mean()),
            "worst": float(self.worst.mean()),
            "agents": {
                key: {name: mean_and_error(found[key]) for name, found in self._columns().items()} for key in self.ratio
            },
        }

    def _columns(self) -> dict[str, Mapping[str, FloatArray]]:
        return {"ratio": self.ratio, "late": self.late, "regret": self.regret}


def mean_and_error(x: FloatArray) -> dict[str, float]:
    """Mean over seeds and its standard error (0 for a single seed)."""
    error = float(x.std(ddof=1) / math.sqrt(len(x))) if len(x) > 1 else 0.0
    return {"mean": float(x.mean()), "standard_error": error}


def run_paths(runner: Runner, contenders: Sequence[Contender], n_seeds: int, n_episodes: int) -> tuple[Path, ...]:
    """Every agent on every problem."""
    seeds = range(n_seeds)
    models = {key: made(seeds) for key, (_, made) in PROBLEMS.items()}
    agents = {contender.key: contender.agent for contender in contenders}
    cells = [(problem, agent) for problem in PROBLEMS for agent in agents]

    def one(cell: tuple[str, str], count: Count) -> tuple[FloatArray, FloatArray, FloatArray]:
        result = run(models[cell[0]], agents[cell[1]], n_episodes, seed=seeds, progress=count)
        late = result.variance[:, -max(1, n_episodes // LATE) :]
        return result.sigma_bar, np.sqrt(late.mean(axis=1)), result.regret.sum(axis=1)

    found = dict(zip(cells, runner.all(one, cells), strict=True))
    paths = []
    for key, (label, _) in PROBLEMS.items():
        made = models[key]
        single = made if isinstance(made, list) else [made]
        optimal, worst = (
            np.broadcast_to(np.array([measure(mdp) for mdp in single]), (n_seeds,))
            for measure in (sigma_bar_star, sigma_bar_worst)
        )
        whole, last, regret = ({agent: found[key, agent][k] for agent in agents} for k in range(3))
        ratio, late = ({agent: sigma / optimal for agent, sigma in which.items()} for which in (whole, last))
        paths.append(Path(key, label, optimal, worst, ratio, late, regret))
    return tuple(paths)
