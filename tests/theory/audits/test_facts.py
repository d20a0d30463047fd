"""Facts of a problem: those of the theory's functions, and the worst trajectory."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import Livarot, Uniform
from livarot.theory.audits.facts import problem_facts, sigma_bar_worst
from livarot.theory.audits.promises import constants_from
from livarot.theory.constants import kappa, kappa_bound, kappa_star, nu_max, rho
from livarot.theory.variance import hard_chain_sigma_bar, sigma_bar_star
from tests.support.models import random_model, to_mdp

RAGGED = to_mdp(random_model(np.random.default_rng(1), H=4, S=5, A=3, d=3, U=4))


def test_facts_are_those_of_the_functions():
    facts = problem_facts([RAGGED])
    problem, truth = facts["problem"], facts["truth"]
    assert problem["rho"] == rho(RAGGED)
    assert np.exp(problem["log_kappa_bound"]) == pytest.approx(kappa_bound(RAGGED))
    assert truth["nu_max"]["max"] == nu_max(RAGGED)
    assert np.exp(truth["log_kappa_star"]["max"]) == pytest.approx(kappa_star(RAGGED))
    known = constants_from(facts)
    assert known.kappa.lower <= kappa(RAGGED).upper <= known.kappa.upper
    assert Livarot().facts() == Livarot().facts() and "rule" not in Livarot().facts()


def test_the_worst_trajectory():
    """The hard chain's is the one that never falls; no trajectory of a random model has more."""
    chain = envs.hard_chain(12, gap=0.04)
    assert sigma_bar_worst(chain) == pytest.approx(hard_chain_sigma_bar(12, 1 / 12 + 0.04, never_falls=True), rel=1e-12)
    result = livarot.run(RAGGED, Uniform(), 200, seed=range(20))
    worst = sigma_bar_worst(RAGGED)
    assert np.sqrt(result.variance.max()) <= worst + 1e-12
    assert sigma_bar_star(RAGGED) <= worst
