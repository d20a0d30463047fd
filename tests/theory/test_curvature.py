"""Kappa: closed forms, dense grids, and a bracket that holds."""

import math

import numpy as np
import pytest

from livarot import MNLMDP, envs
from livarot.theory import constants as con
from livarot.theory import curvature as cur
from tests.support.models import random_model, to_mdp, to_model
from tests.twins import theory as twin


def random_mdp(seed, bound=None, **sizes):
    model = random_model(np.random.default_rng(seed), offsets=True, **sizes)
    return to_mdp(model, param_bound=bound)


@pytest.mark.parametrize("H", [3, 5, 10, 20, 30])
def test_kappa_of_the_hard_chain_in_closed_form(H):
    """One feature of norm 1 against zero: the logit is at most B, and kappa = (1 + e^B)(1 + e^-B)."""
    mdp = envs.hard_chain(H, param_bound="tight")
    found, bound = con.kappa(mdp), mdp.problem.param_bound
    assert found.exact and found.log_lower == found.log_upper
    assert found.upper == pytest.approx((1 + math.exp(bound)) * (1 + math.exp(-bound)), rel=1e-12)
    # rounded values: kappa over the ball; up to H = 10 kappa at theta* rounds to the same
    printed = {3: 4.5, 5: 6.3, 10: 11.3, 20: 21.9, 30: 32.7}[H]
    assert found.upper == pytest.approx(printed, abs=0.05)
    assert con.kappa_star(mdp) <= found.upper <= con.kappa_bound(mdp)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("U", [2, 3, 5])
@pytest.mark.parametrize("bound", [0.3, 2.0, 8.0])
def test_kappa_against_a_dense_grid(d, U, bound):
    mdp = random_mdp(10 * d + U, bound=bound, H=2, S=6, A=1, d=d, U=U, ragged=False, scale=0.2)
    model = to_model(mdp)
    grid = twin.kappa_grid(model, bound, n=720)
    found = con.kappa(mdp)
    assert found.log_upper - found.log_lower < 1e-7
    assert math.log(grid) <= found.log_upper + 1e-12
    # F is Lipschitz: |gradient| <= 4, and the grid's neighbours are bound * pi/720 away
    assert found.log_upper <= math.log(grid) + 4 * bound * (math.pi / 720 if d == 2 else 2 / 720)


@pytest.mark.parametrize(("d", "U"), [(3, 3), (9, 3), (3, 4), (8, 4), (4, 5), (3, 8), (12, 8), (20, 6)])
@pytest.mark.parametrize("bound", [0.2, 1.0, 6.0])
def test_the_bracket_holds(d, U, bound):
    """Random points of the sphere stay below; the lower end is attained; three outcomes are settled whatever d is."""
    rng = np.random.default_rng(d * U)
    mdp = random_mdp(d + U, bound=bound, H=1, S=10, A=2, d=d, U=U, ragged=False, scale=0.1)
    found = con.kappa(mdp)
    some = math.log(twin.kappa_random(to_model(mdp), bound, rng, n=30))
    assert some <= found.log_upper
    assert con.log_kappa_star(mdp) <= found.log_upper <= con.log_kappa_bound(mdp) + 1e-9
    assert found.log_lower <= found.log_upper <= found.log_lower + 2 * math.log(U)
    if U <= 4:
        assert found.exact
    # the same without any search of caps: wider on both sides or equal
    rough = con.kappa(mdp, max_nodes=0)
    assert rough.log_lower <= found.log_lower + 1e-12 and found.log_upper <= rough.log_upper + 1e-12


def test_the_two_rarest_outcomes():
    z = np.array([0.3, -2.0, 700.0, -1.0])
    p = np.exp(z - 700.0) / np.exp(z - 700.0).sum()
    assert cur._two_rarest(z) == pytest.approx(-math.log(p[1]) - math.log(p[3]), rel=1e-14)
    assert cur._two_rarest(np.zeros(2)) == pytest.approx(math.log(4.0))


@pytest.mark.parametrize("seed", range(2))
def test_features_on_a_line_of_several_coordinates(seed):
    """Multiples of one unit vector: kappa is that of the model with the multiples as its only coordinate."""
    rng = np.random.default_rng(seed)
    along, offset = rng.uniform(-1.0, 1.0, (6, 5)), rng.normal(0.0, 2.0, (6, 5))
    unit = rng.normal(size=3)
    unit /= np.linalg.norm(unit)
    found = [
        con.kappa(
            MNLMDP.from_function(
                1, 6, 1, reward=np.zeros((6, 1)), theta=np.zeros(len(axis)), param_bound=2.0,
                features=lambda h, s, a, axis=axis: (np.arange(5), along[s][:, None] * axis),
                offset=lambda h, s, a: offset[s],
            ),
            all_states=True,
        )
        for axis in (np.ones(1), unit)
    ]  # fmt: skip
    assert all(one.exact for one in found)
    assert found[1].log_upper == pytest.approx(found[0].log_upper, rel=1e-9)


def test_the_lower_end_is_attained():
    """Ascent by scipy from many starts finds no more than the bracket's upper end, and as much as its lower end."""
    from scipy.optimize import minimize

    mdp = random_mdp(4, bound=3.0, H=1, S=5, A=1, d=3, U=5, ragged=False, scale=1.0)
    model, rng, best = to_model(mdp), np.random.default_rng(0), 0.0
    for _ in range(12):
        start = rng.normal(size=3)

        def loss(x):
            theta = 3.0 * x / np.linalg.norm(x)
            return -math.log(twin.kappa_at(model, [theta]))

        best = max(best, -minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}).fun)
    found = con.kappa(mdp)
    assert best == pytest.approx(found.log_lower, abs=1e-7)
    assert best <= found.log_upper + 1e-12


def test_caps_cover_the_sphere():
    rng = np.random.default_rng(0)
    cap = cur.Cap(1, -1.0, (-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))
    for _ in range(6):
        left, right = cap.halves()
        cap = left if rng.random() < 0.5 else right
        unit, chord = cap.cone()
        for _ in range(50):
            inner = rng.uniform(cap.low, cap.high)
            point = np.insert(inner, cap.axis, cap.sign)
            assert np.linalg.norm(point / np.linalg.norm(point) - unit) <= chord


def test_kappa_with_offsets_and_its_bound():
    """U^2 e^{4B} ignores offsets: with offsets 0 and 9 and no features kappa is e^9 + 2 + e^-9, not 4."""
    mdp = MNLMDP.from_function(
        1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [0.0]]), reward=np.zeros((2, 1)), theta=[0.0],
        offset=lambda h, s, a: [0.0, 9.0],
    )  # fmt: skip
    exact = math.exp(9) + 2 + math.exp(-9)
    assert con.kappa(mdp).upper == pytest.approx(exact) and con.kappa_bound(mdp) == pytest.approx(exact)
    assert con.kappa_star(mdp) == pytest.approx(exact)
    for seed in range(5):
        mdp = random_mdp(seed, H=2, S=6, A=2, d=3, U=5, scale=1.5)
        assert con.kappa_star(mdp) <= con.kappa(mdp).upper <= con.kappa_bound(mdp) * (1 + 1e-9)


def test_kappa_is_kept_with_the_problem():
    mdp = random_mdp(1, H=2, S=6, A=2, d=3, U=5)
    assert con.kappa(mdp) is con.kappa(mdp.problem)
