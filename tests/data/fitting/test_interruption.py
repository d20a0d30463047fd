"""Ctrl-C during a fit: what was reached is handed out, and the estimator is as it was."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import livarot
from livarot import data
from livarot.data.fitting import newton

rng = np.random.default_rng(5)
LOG = {
    "state": ["a"] * 400,
    "action": ["go"] * 400,
    "next_state": rng.choice(["a", "b", "c"], size=400, p=[0.6, 0.3, 0.1]).tolist(),
    "week": [1, 2] * 200,
}
LOG["far"] = [{"a": 0.0, "b": 1.0, "c": 3.0}[name] for name in LOG["next_state"]]
LOG["old"] = [{"a": 0.0, "b": 1.0, "c": 0.0}[name] for name in LOG["next_state"]]
MODEL = {"features": ["far", "old"], "reachable": "all"}


def stop_at(number):
    """A progress function that is interrupted at the step of this number."""
    seen = []

    def count(steps):
        seen.append(steps)
        if sum(seen) == number:
            raise KeyboardInterrupt

    return count


@pytest.mark.parametrize("number", [1, 2])
def test_the_last_newton_step_is_kept(number):
    """It is the theta of a fit that may make no more steps."""
    fit = data.MNLTransition(**MODEL)
    with pytest.raises(livarot.Interrupted, match=f"after {number} Newton step.* not converged") as stop:
        fit.fit(LOG, progress=stop_at(number))
    found = stop.value.result
    assert isinstance(stop.value, KeyboardInterrupt) and isinstance(found, data.UnfinishedFit)
    with pytest.warns(data.DataWarning, match="no convergence"):
        short = data.MNLTransition(**MODEL, max_iter=number).fit(LOG)
    np.testing.assert_array_equal(found.theta, [short.theta_])
    assert (found.columns, found.n_finished, found.n_steps) == (("far", "old"), 0, number)
    with pytest.raises(NotFittedError):
        fit.summary()


def test_stages_that_were_finished_come_first():
    stages = MODEL | {"homogeneous": False, "stage": "week"}
    whole = data.MNLTransition(**stages).fit(LOG)
    first = whole.maxima_[0].n_iter
    with pytest.raises(livarot.Interrupted) as stop:
        data.MNLTransition(**stages).fit(LOG, progress=stop_at(first + 1))
    found = stop.value.result
    assert found.theta.shape == (2, 2) and (found.n_finished, found.n_steps) == (1, first + 1)
    np.testing.assert_array_equal(found.theta[0], whole.theta_[0])
    assert 0.0 < abs(found.theta[1] - whole.theta_[1]).max() < 0.5


def test_coefficients_that_are_held_are_zero():
    """A stage where "old" has no information fits the other coefficient alone."""
    kept = [k for k in range(400) if LOG["week"][k] == 1 or LOG["next_state"][k] != "b"]
    log = {name: [column[k] for k in kept] for name, column in LOG.items()}
    reachable = {
        "week": [1, 1, 1, 2, 2],
        "state": ["a"] * 5,
        "action": ["go"] * 5,
        "next_state": ["a", "b", "c", "a", "c"],
        "far": [0.0, 1.0, 3.0, 0.0, 3.0],
        "old": [0.0, 1.0, 0.0, 0.0, 0.0],
    }
    stages = MODEL | {"homogeneous": False, "stage": "week", "reachable": pd.DataFrame(reachable)}
    with pytest.warns(data.DataWarning, match="held at 0"):
        whole = data.MNLTransition(**stages).fit(log)
    assert whole.held_.tolist() == [[False, False], [False, True]]
    with pytest.raises(livarot.Interrupted) as stop:
        data.MNLTransition(**stages).fit(log, progress=stop_at(whole.maxima_[0].n_iter + 1))
    assert stop.value.result.theta.shape == (2, 2) and stop.value.result.theta[1, 1] == 0.0


def test_before_the_first_step_there_is_nothing():
    fit = data.MNLTransition(**MODEL).fit(LOG)
    before = dict(vars(fit))
    with pytest.raises(livarot.Interrupted, match=r"before the first Newton step: \.result is None") as stop:
        fit.fit(LOG, progress=stop_at(0))
    assert stop.value.result is None and vars(fit) == before


def test_a_maximum_without_its_covariance_is_kept(monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    whole = data.MNLTransition(**MODEL).fit(LOG)
    monkeypatch.setattr("livarot.data.estimator.covariance", interrupted)
    with pytest.raises(livarot.Interrupted, match="without standard errors") as stop:
        data.MNLTransition(**MODEL).fit(LOG)
    np.testing.assert_array_equal(stop.value.result.theta, [whole.theta_])
    assert stop.value.result.n_finished == 1


def test_the_first_guess_from_a_sample_counts_as_no_step(monkeypatch):
    """Large data begin with steps on some of their blocks."""
    fit = data.MNLTransition(**MODEL).fit(LOG)
    monkeypatch.setattr(newton, "block_starts", lambda start: range(200))
    monkeypatch.setattr(newton, "_sample_start", lambda *given: 0.9 * fit.theta_)
    reached = []
    found = newton.maximise(fit.choices_, follow=lambda theta, steps: reached.append((theta, steps)))
    np.testing.assert_array_equal(reached[0][0], 0.9 * fit.theta_)
    assert [steps for _, steps in reached] == [0] + [1] * found.n_iter
    np.testing.assert_array_equal(reached[-1][0], found.theta)
