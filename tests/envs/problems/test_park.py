"""Park's two states: rows, optimal value and bounds by hand."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from tests.support.models import table_of


@pytest.mark.parametrize(("d", "delta", "gap", "seed"), [(4, 0.25, 0.01, None), (2, 0.1, 0.2, 3), (5, 0.6, 0.05, 8)])
def test_two_states(d, delta, gap, seed):
    H = 6
    mdp = envs.park_two_state(H, d, delta, gap, seed)
    P = table_of(mdp)
    np.testing.assert_allclose(P[1, :, 0], delta, rtol=1e-13)
    assert P[0, :, 1].max() == pytest.approx(delta + (d - 1) * gap, rel=1e-12)
    signs = np.sign(mdp.theta[0, :-1])
    best = int(((signs + 1) / 2) @ 2.0 ** np.arange(d - 2, -1, -1))  # actions count up in binary
    assert P[0, :, 1].argmax() == best and (seed is not None or best == 2 ** (d - 1) - 1)
    odds = math.log((1 - delta) * (delta + (d - 1) * gap) / (delta * (1 - delta - (d - 1) * gap)))
    for a in range(2 ** (d - 1)):
        action = np.array([1 if a >> bit & 1 else -1 for bit in range(d - 2, -1, -1)])
        exact = 1 / (1 + (1 / delta - 1) * math.exp(-odds / (d - 1) * float(signs @ action)))
        assert P[0, a, 1] == pytest.approx(exact, rel=1e-12)
    # V in closed form: the chance x_h of being up obeys x' = x (1 - delta) + (1 - x) p
    p, up, value = delta + (d - 1) * gap, 0.0, 0.0
    for _ in range(H):
        value += up
        up = up * (1 - delta) + (1 - up) * p
    assert livarot.solve(mdp).value[0, 0] == pytest.approx(value, abs=1e-12)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    assert mdp.problem.param_bound == pytest.approx(np.linalg.norm(mdp.theta[0]), rel=1e-14)


def test_two_states_with_a_bound_and_a_parameter_per_stage():
    mdp = envs.park_two_state(3, shared_parameter=False, param_bound=5.0)
    assert mdp.problem.param_bound == pytest.approx(5.0, rel=1e-15) and mdp.theta.shape == (3, 4)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: envs.park_two_state(0), "horizon"),
        (lambda: envs.park_two_state(dim=1), "dim"),
        (lambda: envs.park_two_state(base_probability=1.0), "base_probability"),
        (lambda: envs.park_two_state(gap=0.25), "gap"),
        (lambda: envs.park_two_state(gap=0.0), "gap"),
        (lambda: envs.park_two_state(param_bound=0.1), "theta"),
    ],
)
def test_bad_settings_of_two_states(make, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    assert caught.value.argument == argument
