"""Counts of updates, the lemma's index, and the constant kappa that agents share."""

import math

import pytest

from livarot import LivarotError, agents, envs
from livarot.agents.parts import finite_kappa, lemma_index, outcomes, transitions, updates

SHARED, APART = envs.river_swim(3, 4, shared_parameter=True), envs.hard_chain(4, gap=0.1)


def test_a_shared_parameter_is_updated_at_every_stage():
    assert SHARED.problem.shared_parameter and not APART.problem.shared_parameter
    assert (updates(SHARED.problem, 5), updates(APART.problem, 5)) == (20, 5)
    assert (transitions(SHARED.problem, 5), transitions(APART.problem, 5)) == (24, 6)


def test_the_lemma_counts_one_more_with_its_own_ridge_only():
    assert (lemma_index(7, None), lemma_index(7, 1.0)) == (8, 7)


def test_a_problem_with_one_outcome_counts_two():
    assert outcomes(envs.deep_sea(3, slip=0.0).problem) == 2
    assert outcomes(SHARED.problem) == SHARED.problem.max_reachable == 3


def test_kappa_is_the_bound_unless_given_and_finite():
    problem = SHARED.problem
    assert finite_kappa(problem, 5.0) == 5.0
    assert finite_kappa(problem, None) == pytest.approx(9.0 * math.exp(4.0 * problem.param_bound), rel=1e-12)
    with pytest.raises(LivarotError, match="overflows at B = 200"):
        finite_kappa(envs.hard_chain(4, gap=0.1, param_bound=200.0).problem, None)


def test_what_the_sets_do_not_depend_on_keeps_the_promise():
    theory = agents.Livarot.theory(10)
    assert theory.promised_coverage() == 1.0 - theory.failure_level
    assert agents.UCRLMNLOL.theory().promised_coverage() is not None
    for change in ({"beta_scale": theory.beta_scale / 2}, {"step_size": theory.step_size * 2}, {"reg": 3.0}):
        assert agents.Livarot(**(vars(theory) | change)).promised_coverage() is None
    wider = agents.Livarot(**(vars(theory) | {"beta_scale": 2 * theory.beta_scale, "failure_level": 0.2}))
    assert wider.promised_coverage() == 0.8
