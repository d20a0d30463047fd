"""Constants: against the twins, dense grids, closed forms, and what they cannot be."""

import json
import math
import time

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, envs
from livarot.errors import LivarotError
from livarot.theory import constants as con
from livarot.theory import curvature as cur
from livarot.theory.all_constants import Constants
from livarot.theory.kernels.curvature import cap_bound, chord_of, look_at_pairs, refine
from tests.support.models import random_estimate, random_model, to_mdp, to_model
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


def f_ij(offset, y, theta, i, j):
    z = offset + y @ theta
    return 2 * math.log(np.exp(z - z.max()).sum()) + 2 * z.max() - z[i] - z[j]


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("dims", [2, 3, 5])
def test_the_bounds_on_caps_hold_and_close(dims, bound):
    """Both relaxations, at random points of random caps; on a small cap the bound is close to the value."""
    rng = np.random.default_rng(dims)
    for _ in range(40):
        n = int(rng.integers(3, 8))
        y, offset = rng.normal(size=(n, dims)) / 2, rng.normal(size=n)
        diameter = max(np.linalg.norm(a - b) for a in y for b in y)
        i, j = rng.choice(n, 2, replace=False)
        cap = cur._faces(dims)[int(rng.integers(2 * dims))]
        for depth in range(40):
            unit, chord = cap.cone()
            value, high = cap_bound(offset, y, diameter, i, j, bound, unit, chord)
            assert f_ij(offset, y, bound * unit, i, j) <= value + 1e-12
            for _ in range(4):
                point = np.insert(rng.uniform(cap.low, cap.high), cap.axis, cap.sign)
                assert f_ij(offset, y, bound * point / np.linalg.norm(point), i, j) <= high + 1e-11
            if depth < 39:
                cap = cap.halves()[int(rng.integers(2))]
        assert high <= f_ij(offset, y, bound * unit, i, j) + 20 * bound * chord + 1e-12


@pytest.mark.parametrize("bound", [0.1, 1.0, 7.0])
def test_the_bounds_on_the_ball_hold(bound):
    """Chords, the first look and the box, at random points of the ball and where they are largest."""
    rng = np.random.default_rng(0)
    for d, U in ((3, 4), (9, 8), (20, 6)):
        mdp = random_mdp(d, bound=bound, H=1, S=8, A=1, d=d, U=U, ragged=False, scale=0.1)
        graph, pairs = mdp.problem.rows.graph, con.visited_pairs(mdp.problem)
        low, high = np.empty(len(pairs)), np.empty(len(pairs))
        look_at_pairs(graph, pairs, bound, low, high)
        roots, limits = np.empty((1000, 3), dtype=np.int64), np.empty(1000)
        count, best, _ = refine(graph, pairs, high, bound, 0.0, roots, limits)
        for pair in pairs:
            phi, row = mdp.problem.rows.features(int(pair)), graph.row_start[pair]
            offset = graph.offset[row : row + U]
            for i in range(U):
                for j in range(i):
                    middle = (phi[i] + phi[j]) / 2
                    box = np.exp(offset - (offset[i] + offset[j]) / 2 + bound * np.linalg.norm(phi - middle, axis=1))
                    found = [limits[k] for k in range(count) if tuple(roots[k]) == (pair, i, j)]
                    assert found == [] or found[0] == pytest.approx(2 * math.log(box.sum()), abs=1e-6)
                    assert found or 2 * math.log(box.sum()) <= best + 1e-6
                    chord = chord_of(offset, phi, i, j, bound)
                    directions = [phi[k] - middle for k in range(U)] + [rng.normal(size=d) for _ in range(3)]
                    for x in directions:
                        theta = bound * x / max(np.linalg.norm(x), 1e-300)
                        value = f_ij(offset, phi, theta, i, j)
                        assert value <= min(chord, 2 * math.log(box.sum()), high[int(pair)]) + 1e-11
                        assert value <= best + 1e-11 or found


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


def test_single_outcomes_ask_for_nothing():
    mdp = MNLMDP.from_function(3, 2, 1, features=lambda h, s, a: ([s], [[1.0]]), reward=np.zeros((2, 1)), theta=[2.0])
    assert con.kappa(mdp) == con.Bracket(0.0, 0.0)
    assert con.kappa(mdp).upper == con.kappa_star(mdp) == 1.0
    assert con.kappa_bound(mdp) == pytest.approx(math.exp(8))  # the paper's formula with U = 1
    assert con.nu_max(mdp) == 0.0 and con.gaps(mdp).smallest is None


def test_large_parameters_do_not_overflow_silently():
    mdp = envs.hard_chain(5, param_bound=500.0)
    assert con.kappa_bound(mdp) == math.inf and con.log_kappa_bound(mdp) == pytest.approx(2000 + math.log(4))
    found = con.kappa(mdp)
    assert found.log_upper == pytest.approx(500.0) and found.upper == pytest.approx(math.exp(500), rel=1e-9)
    text = json.dumps(Constants.of(mdp).to_json(), allow_nan=False)
    assert json.loads(text)["kappa_bound"] is None and json.loads(text)["log_kappa_bound"] > 2000
    huge = con.Bracket(1000.0, 1001.0)
    assert huge.upper == math.inf and huge.to_json()["upper"] is None and huge.to_json()["log_upper"] == 1001.0


def test_kappa_is_kept_with_the_problem():
    mdp = random_mdp(1, H=2, S=6, A=2, d=3, U=5)
    assert con.kappa(mdp) is con.kappa(mdp.problem)


# ---------------------------------------------------------------- diameters
@pytest.mark.parametrize("kind", KINDS)
def test_diameter_against_the_twin(kind):
    rng = np.random.default_rng(3)
    mdp = random_mdp(3, H=3, S=4, A=2, d=4, U=3, kind=kind)
    model = to_model(mdp)
    estimate, dense = random_estimate(rng, mdp.problem)
    for h in range(3):
        ball = twin.diameter(model, np.eye(mdp.problem.dim), 0.7, h)
        assert con.diameter(0.7, mdp, h) == pytest.approx(ball, rel=1e-12)
        exact = twin.diameter(model, dense[0, h], 0.4, h)
        region = livarot.Ellipsoid(np.zeros(mdp.problem.dim), dense[0, h], 0.4)
        assert con.diameter(region, mdp, h) == pytest.approx(exact, rel=1e-10)
    whole = max(con.diameter(0.7, mdp, h) for h in range(3))
    assert con.diameter(0.7, mdp) == whole
    # a packed Gram matrix, as in a plan
    for h in range(3):
        exact = twin.diameter(model, dense[0, h], 0.4, h)
        assert con.diameter((estimate.gram[0, h], 0.4), mdp, h) == pytest.approx(exact, rel=1e-10)


def test_the_diameter_counts_pairs_with_one_outcome():
    """The widest feature is that of a certain transition, over coordinates of two blocks, in any form of the set."""
    wide = np.array([0.4, 0.5, 0.3, 0.6])
    blocks = ([2, 0], [1, 3])

    def features(h, s, a):
        return ([2], [wide]) if s == 2 else ([0, 1, 2], [*(0.2 * np.eye(4)[blocks[s]]), np.zeros(4)])

    mdp = MNLMDP.from_function(2, 3, 1, features=features, reward=np.zeros((3, 1)), theta=np.zeros(4))
    rows, matrix = mdp.problem.rows, np.zeros((4, 4))
    assert rows.n_blocks == 2
    matrix[np.ix_(blocks[0], blocks[0])] = [[2.0, 0.5], [0.5, 0.3]]
    matrix[np.ix_(blocks[1], blocks[1])] = [[0.05, 0.01], [0.01, 0.7]]
    for shape in (matrix, np.eye(4)):
        exact = 1.4 * math.sqrt(wide @ np.linalg.solve(shape, wide))
        assert exact > 1.4 * 0.2 * math.sqrt(np.linalg.inv(shape).diagonal().max())
        body = livarot.Ellipsoid(np.zeros(4), shape, 0.7)
        assert (body.support(wide) - body.support(-wide)) @ wide == pytest.approx(exact, rel=1e-12)
        for region in ((rows.pack(shape), 0.7), body):
            assert con.diameter(region, mdp, 1) == pytest.approx(exact, rel=1e-12)
    assert con.diameter(0.7, mdp, 1) == pytest.approx(1.4 * np.linalg.norm(wide), rel=1e-12)


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
