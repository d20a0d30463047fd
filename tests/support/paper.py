"""Reproductions of the paper with made-up regrets."""

import numpy as np

from livarot.studies.paper.experiment import CONTENDERS, FAMILIES, Cell, Curves, Reproduction


def made_up(exact, *, horizons=(4, 9), realised=None, n_episodes=5) -> Reproduction:
    """A result whose final regrets are `exact(family, contender, horizon)`, one number per seed."""
    curves = {}
    for family in FAMILIES:
        for contender in CONTENDERS:
            for horizon in horizons:
                final = np.asarray(exact(family, contender, horizon), dtype=np.float64)
                earned = final if realised is None else realised(family, contender, horizon)
                rise = np.arange(1, n_episodes + 1) / n_episodes
                cell = Cell(family.key, contender.key, horizon)
                curves[cell] = Curves(final[:, None] * rise, np.asarray(earned, float)[:, None] * rise)
    return Reproduction(len(final), n_episodes, tuple(horizons), curves)
