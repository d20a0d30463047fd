"""Constants: against the twins, dense grids, closed forms, and what they cannot be."""

import math

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, envs
from livarot.errors import LivarotError
from livarot.theory import constants as con
from tests.support.models import random_model, to_mdp, to_model
from tests.twins import theory as twin

KINDS = ["dense", "block", "partial"]


def random_mdp(seed, bound=None, **sizes):
    model = random_model(np.random.default_rng(seed), offsets=True, **sizes)
    return to_mdp(model, param_bound=bound)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_against_the_twins(kind, seed):
    mdp = random_mdp(seed, H=4, S=5, A=3, d=4, U=4, kind=kind, scale=2.0)
    model = to_model(mdp)
    for everywhere in (False, True):
        assert con.rho(mdp, all_states=everywhere) == pytest.approx(twin.rho(model, everywhere), abs=1e-14)
        at_theta = twin.kappa_at(model, model["theta"], everywhere)
        assert con.kappa_star(mdp, all_states=everywhere) == pytest.approx(at_theta, rel=1e-12)
        assert con.nu_max(mdp, all_states=everywhere) == pytest.approx(twin.nu_max(model, everywhere), rel=1e-9)
    sizes = [len(row[0]) for _, row in twin.pairs(model)]
    assert con.max_reachable(mdp) == max(sizes)
    gap, smallest = twin.gaps(model)
    found = con.gaps(mdp)
    np.testing.assert_allclose(found.gap, gap, rtol=0, atol=1e-12)
    assert found.smallest == pytest.approx(smallest, abs=1e-12)


def test_states_that_cannot_be_reached_do_not_count():
    """State 2 has wild features and is never reached; the twin agrees, and all_states takes it in."""

    def features(h, s, a):
        return ([0, 1], [[0.0], [0.5]]) if s < 2 else ([0, 1, 2], [[-1.0], [0.0], [1.0]])

    mdp = MNLMDP.from_function(2, 3, 1, features=features, reward=np.zeros((3, 1)), theta=[1.0])
    assert con.max_reachable(mdp) == 2 and con.max_reachable(mdp, all_states=True) == 3
    assert con.rho(mdp) == 0.5 and con.rho(mdp, all_states=True) == 1.0
    exact = 0.5 + 2 * math.log1p(math.exp(-0.5))
    assert con.kappa(mdp).log_upper == pytest.approx(exact, abs=1e-15) and con.kappa(mdp).exact
    weights = [math.exp(-1), 1.0, math.exp(1)]
    assert con.kappa(mdp, all_states=True).upper == pytest.approx(sum(weights) ** 2 / (weights[0] * weights[1]))
    assert con.kappa_bound(mdp) == pytest.approx(4 * math.exp(4))
    assert con.kappa_bound(mdp, all_states=True) == pytest.approx(9 * math.exp(4))


# ---------------------------------------------------------------- kappa


def test_single_outcomes_ask_for_nothing():
    mdp = MNLMDP.from_function(3, 2, 1, features=lambda h, s, a: ([s], [[1.0]]), reward=np.zeros((2, 1)), theta=[2.0])
    assert con.kappa(mdp) == con.Bracket(0.0, 0.0)
    assert con.kappa(mdp).upper == con.kappa_star(mdp) == 1.0
    assert con.kappa_bound(mdp) == pytest.approx(math.exp(8))  # the paper's formula with U = 1
    assert con.nu_max(mdp) == 0.0 and con.gaps(mdp).smallest is None


# ---------------------------------------------------------------- diameters


def test_zero_outcomes():
    assert con.has_zero_outcomes(envs.hard_chain(5)) and con.has_zero_outcomes(envs.river_swim(4, 5))
    assert not con.has_zero_outcomes(random_mdp(0))


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda m: con.diameter(-1.0, m), "region"),
        (lambda m: con.diameter(math.nan, m), "region"),
        (lambda m: con.diameter(livarot.Ellipsoid.ball(5, 1.0), m), "region"),
        (lambda m: con.diameter((np.ones(3), 1.0), m), "region"),
        (lambda m: con.diameter(1.0, m, 7), "stage"),
        (lambda m: con.kappa(m, max_nodes=-1), "max_nodes"),
        (lambda m: con.kappa(m, tolerance=math.inf), "tolerance"),
        (lambda m: con.kappa_star(m.problem), "mdp"),
        (lambda m: con.nu_max(m.problem), "mdp"),
        (lambda m: con.kappa(3), "model"),
    ],
)
def test_bad_input(call, argument):
    with pytest.raises(LivarotError) as error:
        call(envs.hard_chain(5))
    assert error.value.argument == argument
