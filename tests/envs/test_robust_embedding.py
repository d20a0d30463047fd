"""KL-robust MDPs in MNL form: kernels and values equal those of the robust planner, norms and B are as documented."""

import math
from itertools import pairwise

import numpy as np
import pytest

import livarot
from livarot.envs.robust_embedding import kl_robust, mnl_embedding, random_nominal
from livarot.errors import LivarotError
from livarot.model.probabilities import transition_kernel
from livarot.planning.robust.nominal import nominal_model
from livarot.planning.robust.plan import solve_robust
from tests.support.models import random_model, same_bits, to_mdp


def all_rows(problem, kernel):
    """Probabilities stage after stage, each in the order of its table."""
    n_pairs, starts = problem.n_states * problem.n_actions, problem.rows.row_start
    parts = []
    for h in range(problem.horizon):
        first, last = (starts[(problem.stage_table[h] + more) * n_pairs] for more in (0, 1))
        parts.append(kernel.prob[kernel.base[h] + first : kernel.base[h] + last])
    return np.concatenate(parts)


def assert_same(mdp, model, robust):
    found = all_rows(mdp.problem, transition_kernel(mdp))
    np.testing.assert_allclose(found, all_rows(model.problem, robust.kernel), rtol=0, atol=1e-12)
    best = livarot.solve(mdp)
    np.testing.assert_allclose(best.value, robust.value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(best.q, robust.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(best.variance, robust.variance, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(best.policy, robust.policy)


SIZES = [(20, 4, 5, 4, 10), (7, 2, 3, 2, 6), (12, 3, 2, 6, 5), (9, 1, 9, 3, 4), (30, 3, 8, 5, 12)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("eta", [0.0, 1e-6, 0.1, 1.0, 10.0, 100.0])
def test_a_constant_eta(size, eta):
    mdp = kl_robust(*size, robustness=eta, seed=3)
    model, psi = random_nominal(*size, 3)
    robust = solve_robust(model, penalty=eta, count_penalty=False)
    assert_same(mdp, model, robust)
    problem = mdp.problem
    n_states, n_actions, n_reachable, dim, horizon = size
    assert (problem.n_states, problem.n_actions, problem.dim, problem.horizon) == (n_states, n_actions, dim, horizon)
    assert (problem.rows.outcomes == n_reachable).all() and problem.rows.n_tables == 1
    assert problem.rows.norms().max() == pytest.approx(1.0, abs=1e-12)
    norms = np.linalg.norm(mdp.theta, axis=1)
    assert problem.param_bound == pytest.approx(norms.max(), rel=1e-14)
    # the parameter by hand: (L, -eta alpha), times the common scale of the features
    depth = -math.log(model.kernel.prob.min())
    original = mdp.original_theta
    np.testing.assert_allclose(original[:, 0], depth, rtol=1e-12)
    for h in range(horizon):
        v, fitted = robust.value[h + 1], psi @ original[h, 1:]
        np.testing.assert_allclose(fitted - fitted[0], -eta * (v - v[0]), rtol=0, atol=1e-11 * (1 + eta))
    np.testing.assert_allclose(original[-1, 1:], 0.0, atol=1e-12)  # V after the last stage is 0


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("radius", [0.0, 1e-8, 0.001, 0.05])
def test_the_ball(size, radius):
    mdp = kl_robust(*size, radius=radius, seed=5)
    model, _ = random_nominal(*size, 5)
    robust = solve_robust(model, radius=radius)
    assert_same(mdp, model, robust)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, abs=1e-12)
    if radius > 0:
        assert np.ptp(robust.dual[0]) > 0.01 * robust.dual[0].max()  # eta depends on the pair


def test_any_nominal_model_in_the_canonical_basis():
    rng = np.random.default_rng(2)
    mdp = to_mdp(random_model(rng, H=4, S=6, A=2, d=3, U=4, offsets=True, scale=2.0))
    etas = rng.random((4, 6, 2)) * 3
    for level in ({"penalty": 1.5}, {"penalty": etas}, {"radius": 0.01}):
        robust = solve_robust(mdp, **level, count_penalty=False)
        embedded = mnl_embedding(mdp, **level)
        assert embedded.problem.dim == 7
        assert_same(embedded, robust.nominal, robust)
    river = livarot.envs.river_swim(5, 8)
    assert_same(
        mnl_embedding(river, penalty=2.0),
        solve_robust(river, penalty=2.0).nominal,
        solve_robust(river, penalty=2.0, count_penalty=False),
    )


@pytest.mark.parametrize("level", [{"penalty": 0.02}, {"radius": 0.01}], ids=str)
def test_discount_mask_terminal_states_and_costs(level):
    rng, names = np.random.default_rng(9), {"states": ["a", "b", "c", "d"], "actions": ["x", "y", "z"]}
    table, mask = rng.dirichlet(np.ones(4), size=(4, 3)), rng.random((4, 3)) < 0.7
    mask[:, 1] = True
    cost = np.where(mask & (np.arange(4) != 2)[:, None], rng.uniform(-5.0, 50.0, (4, 3)), 0.0)
    terms = {"cost": cost, "discount": 0.8, "available": mask, "terminal": ["c"]}
    model = nominal_model(table, horizon=4, start="b", terminal_cost=rng.uniform(0.0, 9.0, 4), **terms, **names)
    robust = solve_robust(model, **level, count_penalty=False)
    embedded = mnl_embedding(model, **level)
    found = livarot.solve(embedded)
    np.testing.assert_allclose(found.value, robust.value, rtol=0, atol=1e-10)
    assert np.array_equal(found.policy, robust.policy) and found.action(0, "b") == robust.action(0, "b")
    rows = all_rows(embedded.problem, transition_kernel(embedded)), all_rows(model.problem, robust.kernel)
    np.testing.assert_allclose(*rows, rtol=0, atol=1e-12)
    with pytest.raises(LivarotError, match=r"nominal: its rewards depend on the next state.*give rewards r\(s, a\)"):
        mnl_embedding(nominal_model(table, rng.random((4, 3, 4)), 4), **level)


def test_values_depend_on_the_level_only_and_variance_falls_with_eta():
    level = np.arange(20) * 4 // 20
    spread = []
    for eta in (0.0, 1.0, 10.0, 100.0):
        mdp = kl_robust(robustness=eta)
        best = livarot.solve(mdp)
        for c in range(4):
            np.testing.assert_allclose(
                best.value[:, level == c], best.value[:, level == c][:, :1] @ np.ones((1, 5)), atol=1e-12
            )
        depth = -math.log(random_nominal(20, 4, 5, 4, 10, 0)[0].kernel.prob.min())
        if eta > 0:
            assert best.variance.max() <= (depth**2 + 2 * depth + 2) / eta**2  # E37
        spread.append(best.variance.max())
    assert all(a > b for a, b in pairwise(spread)) and spread[0] > 100 * spread[-1]


def test_the_generator_is_a_function_of_its_seed():
    one, same, other = kl_robust(seed=1), kl_robust(seed=1), kl_robust(seed=2)
    assert one.problem.same_as(same.problem) and same_bits((one.theta,), (same.theta,))
    assert not one.problem.same_as(other.problem)
    assert kl_robust(param_bound=50.0).problem.param_bound > 50.0  # in the units of the scaled features
    result = livarot.run(kl_robust(6, 2, 3, 2, 4), livarot.agents.Livarot(), 3, seed=0)
    assert np.isfinite(result.regret).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"robustness": -1.0}, ["robustness"]),
        ({"robustness": math.nan}, ["robustness"]),
        ({"radius": -0.1}, ["radius"]),
        ({"robustness": 1.0, "radius": 0.1}, ["robustness", "both given"]),
        ({"radius": 5.0}, ["radius", "minimisers", "first at index (0, 0, 0)", "below log"]),
        ({"n_reachable": 21}, ["n_reachable", "20 states"]),
        ({"n_reachable": 1}, ["n_reachable"]),
        ({"dim": 1}, ["dim"]),
        ({"n_states": 3}, ["n_states"]),
        ({"mixing": 1.0}, ["mixing"]),
        ({"horizon": 0}, ["horizon"]),
    ],
    ids=str,
)
def test_bad_input(options, words):
    with pytest.raises(LivarotError) as caught:
        kl_robust(**options)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_bad_bases():
    model = nominal_model(np.full((4, 1, 4), 0.25), np.array([[0.0], [0.1], [0.5], [1.0]]), 3)
    with pytest.raises(LivarotError, match=r"psi: V_\{h\+1\} is .* away from its span.*2 in all, first at index 0"):
        mnl_embedding(model, penalty=1.0, psi=[[0.0], [1.0], [0.0], [0.0]])
    with pytest.raises(LivarotError, match=r"psi: has shape \(3, 1\)"):
        mnl_embedding(model, penalty=1.0, psi=np.ones((3, 1)))
    with pytest.raises(LivarotError, match="exactly one"):
        mnl_embedding(model)
    problem, kernel = model
    prob = kernel.prob.copy()
    prob[4:8] = [0.0, 0.5, 0.5, 0.0]
    with pytest.raises(LivarotError, match=r"nominal: probability 0 .*2 in all, first at index \(0, 1, 0\)"):
        mnl_embedding((problem, kernel._replace(prob=prob)), penalty=1.0)
    assert livarot.solve(mnl_embedding(model, penalty=1.0, psi=[[0.0], [0.1], [0.5], [1.0]])).value[0, 3] > 0
