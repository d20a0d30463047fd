"""Value intervals: gradient against finite differences of a twin, both kinds against each other and the truth."""

from dataclasses import replace

import numpy as np
import pytest

import livarot
from livarot.data import bootstrap, value_interval
from livarot.data.use.intervals import as_probabilities, value_and_gradient
from livarot.model.probabilities import transition_kernel
from livarot.model.terms.units import Units
from tests.support.machine_logs import TRUTH, WEAR, everywhere, fitted, to_mdp
from tests.twins.plans import value as twin_value


def as_model(problem):
    """The problem for the twin."""
    rows = problem.rows

    def choices(h, s, a):
        pair = problem.pair(h, s, a)
        at = slice(int(rows.row_start[pair]), int(rows.row_start[pair + 1]))
        return rows.next_state[at].tolist(), rows.offset[at].tolist(), problem.features(h, s, a).tolist()

    return {
        "horizon": problem.horizon,
        "n_states": problem.n_states,
        "start": problem.start.tolist(),
        "reward": lambda h, s, a: float(problem.reward[h, s, a]),
        "choices": choices,
    }


@pytest.mark.parametrize("per_stage", [False, True])
def test_the_gradient_is_that_of_the_twin(per_stage):
    fit = fitted(homogeneous=False, stage="week") if per_stage else fitted()
    mdp = everywhere(fit, 3)
    problem = mdp.problem
    rng = np.random.default_rng(3)
    policy = rng.dirichlet(np.ones(problem.n_actions), size=(problem.horizon, problem.n_states))
    value, gradient, visits = value_and_gradient(problem, transition_kernel(mdp), policy)
    model, table = as_model(problem), policy.tolist()

    def at(theta):
        return twin_value(model, table, lambda h: theta[problem.stage_parameter[h]].tolist())

    assert value == pytest.approx(at(mdp.theta), abs=1e-12)
    assert visits.sum(axis=(1, 2)) == pytest.approx(np.ones(3), abs=1e-12)
    for k, j in np.ndindex(*gradient.shape):
        step = np.zeros_like(gradient)
        step[k, j] = 1e-5
        assert gradient[k, j] == pytest.approx((at(mdp.theta + step) - at(mdp.theta - step)) / 2e-5, abs=1e-8)
    assert np.abs(gradient).max() > 0.01


def test_the_gradient_with_a_discount_rewards_of_next_states_and_units():
    """By central differences of the library's own evaluation, which has twins of its own."""
    mdp = everywhere(fitted(), 3)
    rng = np.random.default_rng(4)
    more = rng.random(mdp.problem.rows.n_rows)
    end = rng.random(mdp.problem.n_states)
    problem = replace(
        mdp.problem,
        discount=0.8,
        next_reward=more,
        terminal_reward=end,
        units=Units(-2.0, 30.0, 1.0, 0.8),
        param_bound=9.0,
    )
    policy = rng.dirichlet(np.ones(2), size=(3, 4))
    value, gradient, _ = value_and_gradient(problem, transition_kernel(livarot.MNLMDP(problem, mdp.theta)), policy)

    def at(theta):
        return float(problem.start @ livarot.evaluate(livarot.MNLMDP(problem, theta), policy)[0])

    assert value == pytest.approx(at(mdp.theta), rel=1e-12)
    for k, j in np.ndindex(*gradient.shape):
        step = np.zeros_like(gradient)
        step[k, j] = 1e-5
        assert gradient[k, j] == pytest.approx((at(mdp.theta + step) - at(mdp.theta - step)) / 2e-5, abs=1e-6)
    assert np.abs(gradient).max() > 0.1


def test_delta_is_the_formula_and_in_the_units_of_the_columns():
    fit = fitted()
    mdp = to_mdp(fit)
    assert mdp.problem.feature_scale != 1.0
    found = value_interval(fit, mdp, level=0.9)
    policy = livarot.solve(mdp).policy

    def at(theta):
        moved = livarot.MNLMDP.from_arrays(
            mdp.problem.horizon, mdp.problem.n_states, 2,
            outcomes=mdp.problem.rows.outcomes, next_state=mdp.problem.rows.next_state,
            features=np.concatenate([mdp.problem.features(0, s, a) for s in range(4) for a in range(2)])
            * mdp.problem.feature_scale,
            reward=mdp.problem.reward, start=mdp.problem.start, theta=theta, normalise=True,
        )  # fmt: skip
        return float(moved.problem.start @ livarot.evaluate(moved, policy)[0])

    slope = [(at(fit.theta_ + e) - at(fit.theta_ - e)) / 2e-5 for e in 1e-5 * np.eye(2)]
    error = float(np.sqrt(slope @ fit.covariance_ @ slope))
    assert found.standard_error == pytest.approx(error, rel=1e-6)
    assert found.upper - found.value == pytest.approx(1.6448536269514722 * error, rel=1e-6)
    assert found.value == pytest.approx(at(fit.theta_), abs=1e-12)
    assert (
        "90 % interval" in str(found) and repr(found) == f"ValueInterval: {found}" and str(found) in found._repr_html_()
    )


def test_bootstrap_and_delta_agree_on_much_data():
    fit = fitted(3000)
    mdp = to_mdp(fit)
    delta = value_interval(fit, mdp)
    for resample in ("observed", "model"):
        found = value_interval(fit, mdp, kind="bootstrap", n_resamples=300, resample=resample)
        assert found.n_failed == 0
        # the standard deviation of 300 draws is known to 4 %
        assert found.standard_error == pytest.approx(delta.standard_error, rel=0.2)
        assert found.lower == pytest.approx(delta.lower, abs=0.4 * delta.standard_error)
        assert found.upper == pytest.approx(delta.upper, abs=0.4 * delta.standard_error)


@pytest.mark.statistical
def test_coverage_of_a_fixed_policy():
    """400 data sets: 95 % has a standard error of 1.1 points; 91 to 98.5 % is more than three of them."""
    big = everywhere(fitted(200))
    policy = as_probabilities(big.problem, np.zeros((6, 4), dtype=np.int32))
    hits = []
    truth = None
    for seed in range(400):
        fit = fitted(300, seed)
        mdp = everywhere(fit)
        if truth is None:
            theta = (np.array([TRUTH["mend"], TRUTH["run"]]) * mdp.problem.feature_scale).tolist()
            truth = twin_value(as_model(mdp.problem), policy.tolist(), lambda h, own=theta: own)
        found = value_interval(fit, mdp, policy)
        hits.append(found.lower <= truth <= found.upper)
    assert 0.91 <= np.mean(hits) <= 0.985


def test_a_sure_value_has_no_width():
    fit = fitted(200)
    mdp = fit.to_mdp({state: 1.0 for state in WEAR}, 4, "new", unseen="stay")
    found = value_interval(fit, mdp)
    assert (found.lower, found.value, found.upper) == pytest.approx((4.0, 4.0, 4.0), abs=1e-12)


def test_refusals():
    fit = fitted(300)
    mdp = to_mdp(fit)
    with pytest.raises(livarot.LivarotError, match="mdp: was not made from this fit"):
        value_interval(fitted(300, seed=1), mdp)
    with pytest.raises(livarot.LivarotError, match="kind: 'jackknife' is not known"):
        value_interval(fit, mdp, kind="jackknife")
    with pytest.raises(livarot.LivarotError, match="resample: 'rows' is not known"):
        bootstrap(fit, 10, resample="rows")
    with pytest.raises(livarot.LivarotError, match="policy: has shape"):
        value_interval(fit, mdp, np.zeros((2, 2), dtype=np.int32))
