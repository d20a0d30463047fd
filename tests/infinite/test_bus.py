"""Rust's bus engines beside QuantEcon."""

import numpy as np
import pytest

import livarot
from livarot.infinite import bus_engine, solve, solve_average, solve_robust


def test_the_same_plan_and_values_as_quantecon():
    """Discount .9999: the same policy, values to 1e-8 relative, and within the bounds."""
    quantecon = pytest.importorskip("quantecon")
    mdp = bus_engine()
    found = solve(mdp)
    other = quantecon.markov.DiscreteDP(mdp.problem.reward, mdp.table, 0.9999).solve(method="policy_iteration")
    np.testing.assert_array_equal(found.policy, other.sigma)
    np.testing.assert_allclose(found.value, other.v, rtol=1e-8)
    assert ((found.upper - found.lower) <= 1e-9 * np.abs(found.value)).all()


def test_the_law_and_the_costs():
    mdp = bus_engine(6, increments=(0.3, 0.5, 0.2), maintenance=100.0, replacement=4.0, discount=0.9)
    np.testing.assert_allclose(mdp.table[1, 0], [0, 0.3, 0.5, 0.2, 0, 0], atol=1e-15)
    np.testing.assert_allclose(mdp.table[4, 0], [0, 0, 0, 0, 0.3, 0.7], atol=1e-15)
    np.testing.assert_allclose(mdp.table[5, 0], [0, 0, 0, 0, 0, 1.0], atol=1e-15)
    np.testing.assert_allclose(mdp.table[:, 1], np.tile([0.3, 0.5, 0.2, 0, 0, 0], (6, 1)), atol=1e-15)
    np.testing.assert_allclose(mdp.problem.reward, -np.column_stack((0.1 * np.arange(6), np.full(6, 4.0))))


def test_the_policy_is_a_threshold_that_moves_with_the_costs():
    def threshold(found):
        replaced = np.asarray(found.policy) == 1
        first = int(replaced.argmax())
        assert replaced[first:].all() and not replaced[:first].any()
        return first

    assert threshold(solve(bus_engine(replacement=2.0))) < threshold(solve(bus_engine()))
    robust = solve_robust(bus_engine(), radius=0.05)
    assert threshold(robust) > 0 and (robust.value <= solve(bus_engine()).value + 1e-6).all()
    assert solve_average(bus_engine()).gain == pytest.approx(1e-4 * solve(bus_engine()).value[0], rel=0.02)


def test_refusals():
    for given in ({"increments": (0.5, 0.6)}, {"increments": (1.0,)}, {"increments": (1.0, 0.0)}):
        with pytest.raises(livarot.LivarotError, match="increments"):
            bus_engine(**given)
    with pytest.raises(livarot.LivarotError, match="n_bins"):
        bus_engine(1)
