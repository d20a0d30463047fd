"""Estimates of small problems of every kind, for test_both_ways.py; run as a script, the module prints them."""

import json
import math
import sys

import numpy as np

from livarot.estimation.history import empty_history, fit_history, record
from livarot.estimation.mle import fit_mle
from livarot.estimation.omd import ParameterSet, ball, initial_estimate, omd_update
from livarot.estimation.ons import ons_update
from tests.support.episodes import random_transitions
from tests.support.models import random_model, to_mdp

KINDS = [("dense", False, 9), ("block", False, 4), ("partial", True, 4)]


def estimates():
    """By name: OMD with and without projections, ONS, the fit of a history and of choices in a ball."""
    found = {}
    for kind, shared, d in KINDS:
        rng = np.random.default_rng(3)
        model = random_model(rng, H=3, S=5, A=2, d=d, U=4, kind=kind, offsets=True, one_table=shared)
        problem = to_mdp(model, shared=shared, param_bound=2.0).problem
        episodes = [random_transitions(rng, problem, 3) for _ in range(2)]
        start = initial_estimate(problem, 3, 0.5)
        apart = np.full(start.theta.shape, 0.1)
        sets = {
            "free": ball(problem, math.inf, 3),
            "ball": ball(problem, 0.3, 3),
            "both": ParameterSet(0.4, apart, start.gram.copy(), np.full(3, 0.15)),
        }
        for name, within in sets.items():
            estimate = start
            for episode in episodes:
                estimate = omd_update(problem, estimate, episode, 3.0, within)
            found |= {f"{kind} {name} {part}": x for part, x in zip(estimate._fields, estimate, strict=True)}
        for episode in episodes:
            start = ons_update(problem, start, episode, 0.2, 0.3)
        found |= {f"{kind} ons {part}": x for part, x in zip(start._fields, start, strict=True)}
        history = record(problem, record(problem, empty_history(problem, 3), episodes[0]), episodes[1])
        found[f"{kind} fit"] = fit_history(problem, np.zeros_like(start.theta), history, 0.5).theta
        pairs, n = history.pairs[0, 0], history.used[0, 0]
        found[f"{kind} in a ball"] = fit_mle(problem, pairs[:n], np.zeros(n, np.int32), reg=0.1, bound=0.3).theta
    return found


if __name__ == "__main__":
    sys.stdout.write(
        json.dumps({name: [float(x).hex() for x in np.ravel(array)] for name, array in estimates().items()})
    )
