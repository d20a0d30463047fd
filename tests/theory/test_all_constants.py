"""All constants of a problem at once."""

import json
import math
import time

import numpy as np
import pytest

from livarot import MNLMDP, envs
from livarot.theory import constants as con
from livarot.theory.all_constants import Constants


def test_large_parameters_do_not_overflow_silently():
    mdp = envs.hard_chain(5, param_bound=500.0)
    assert con.kappa_bound(mdp) == math.inf and con.log_kappa_bound(mdp) == pytest.approx(2000 + math.log(4))
    found = con.kappa(mdp)
    assert found.log_upper == pytest.approx(500.0) and found.upper == pytest.approx(math.exp(500), rel=1e-9)
    text = json.dumps(Constants.of(mdp).to_json(), allow_nan=False)
    assert json.loads(text)["kappa_bound"] is None and json.loads(text)["log_kappa_bound"] > 2000
    huge = con.Bracket(1000.0, 1001.0)
    assert huge.upper == math.inf and huge.to_json()["upper"] is None and huge.to_json()["log_upper"] == 1001.0


def test_a_large_model_is_quick():
    """2000 states, 4 actions, 10 outcomes: all constants in seconds, measured well below the limit."""
    rng = np.random.default_rng(0)
    S, A, U, d, H = 2000, 4, 10, 6, 10
    nexts = (np.arange(S * A)[:, None] * 7 + np.arange(U) * 11) % S
    features = rng.normal(size=(S * A * U, d))
    features /= np.maximum(1, np.linalg.norm(features, axis=1))[:, None]
    mdp = MNLMDP.from_arrays(
        H, S, A, outcomes=np.full((S, A), U), next_state=nexts.reshape(-1), features=features,
        reward=rng.random((H, S, A)), theta=0.5 * rng.normal(size=(H, d)),
    )  # fmt: skip
    begin = time.perf_counter()
    found = Constants.of(mdp)
    assert time.perf_counter() - begin < 30
    assert found.kappa.log_upper - found.kappa.log_lower < 0.4
    assert math.exp(found.log_kappa_star) <= found.kappa.upper <= found.kappa_bound
