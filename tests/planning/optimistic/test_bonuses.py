"""The additive bonuses as rules: max-norm, and the second-order one with V clipped instead of Q."""

import numpy as np
import pytest

from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import MaxNormBonus, SecondOrderBonus
from tests.support.engines import engine
from tests.support.models import random_estimate, random_model, same_bits, to_mdp, to_model
from tests.twins.field import backward, cho_bonus, max_norm_bonus

KINDS = {
    "dense": {"d": 3, "A": 2},
    "block": {"d": 4, "A": 2},
    "partial": {"A": 2},
    "packed": {"kind": "dense", "d": 2, "A": 12, "ragged": False, "U": 3},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta", [0.01, 0.6])
def test_plans_are_the_twins(kind, beta):
    rng = np.random.default_rng(7)
    model = random_model(rng, **({"kind": kind, "H": 3, "S": 4, "U": 4, "offsets": True} | KINDS[kind]))
    mdp = to_mdp(model)
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem, 3)
    reach = problem.reachable[:-1]
    cases = (
        (MaxNormBonus(), max_norm_bonus, {"low": 0.0}),
        (SecondOrderBonus(3.0, clip_value=True), cho_bonus, {"clip_value": True}),
        (SecondOrderBonus(3.0), cho_bonus, {"low": 0.0}),
    )
    for rule, bonus, how in cases:
        plan = optimistic_plan(problem, estimate, beta, rule)
        for r in range(3):
            memory = {"theta": estimate.theta[r], "gram": dense[r]}
            policy, value = backward(
                to_model(mdp), False, memory, lambda h, row, th, g, b=bonus: b(row, th, g, beta, 3), **how
            )
            np.testing.assert_allclose(plan.value[r, :-1][reach], value[:-1][reach], rtol=0, atol=1e-11)
            np.testing.assert_array_equal(plan.policy[r][reach], policy[reach])
        assert plan.upper is None
        assert plan.inner_gap is None


def test_clipping_q_or_v_gives_the_same_values_and_other_actions():
    """Where several actions exceed H, clipped ones tie and the first is played; unclipped ones stay ranked."""
    rng = np.random.default_rng(1)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=4, d=3, U=4, ragged=False))
    estimate, _ = random_estimate(rng, mdp.problem)
    clipped = optimistic_plan(mdp.problem, estimate, 5.0, SecondOrderBonus(3.0))
    ranked = optimistic_plan(mdp.problem, estimate, 5.0, SecondOrderBonus(3.0, clip_value=True))
    np.testing.assert_array_equal(clipped.value, ranked.value)
    assert np.all(clipped.policy == 0)
    assert np.any(ranked.policy > 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", [MaxNormBonus(), SecondOrderBonus(), SecondOrderBonus(3.0, clip_value=True)])
def test_both_ways_of_filling_lanes_give_the_same_bits(kind, rule):
    rng = np.random.default_rng(2)
    mdp = to_mdp(random_model(rng, **({"kind": kind, "H": 4, "S": 4, "U": 4} | KINDS[kind])))
    estimate, _ = random_estimate(rng, mdp.problem, 9)
    plans = []
    for name in ("replicas", "pairs"):
        with engine(name):
            plans.append(optimistic_plan(mdp.problem, estimate, 0.1, rule))
    assert same_bits(*((made.value, made.policy) for made in plans))
