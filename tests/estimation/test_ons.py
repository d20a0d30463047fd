"""Online Newton steps: the naive twin, the minimiser itself, projections, stage order."""

import numpy as np
import pytest

from livarot import envs
from livarot.estimation.omd import initial_estimate
from livarot.estimation.ons import add_design, ons_update, project_on_ball
from livarot.model.episodes import Episodes, Estimate
from tests.support.episodes import random_episodes
from tests.support.models import random_estimate, random_model, rows_of, same_bits, to_mdp
from tests.twins import core as ref
from tests.twins.field import informative, ons_step


@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_steps_are_the_twins(kind, shared):
    rng = np.random.default_rng(5)
    model = random_model(rng, H=4, S=4, A=2, d=4, U=4, kind=kind, offsets=True, one_table=shared)
    mdp = to_mdp(model, shared=shared)
    problem, rows = mdp.problem, rows_of(mdp)
    estimate, dense = random_estimate(rng, problem, 3)
    episodes = random_episodes(rng, mdp, 3)
    before = Estimate(*(part.copy() for part in estimate))
    new = ons_update(problem, estimate, episodes, 0.2, problem.param_bound)
    assert same_bits(before, estimate)
    for r in range(3):
        theta, gram = list(estimate.theta[r]), list(dense[r])
        for h in range(4):
            k = problem.stage_parameter[h]
            row = rows[h][episodes.states[r, h]][episodes.actions[r, h]]
            if informative(row):
                choice = episodes.choices[r, h]
                theta[k], gram[k] = ons_step(row, choice, theta[k], gram[k], 0.2, problem.param_bound)
        np.testing.assert_allclose(new.theta[r], theta, rtol=0, atol=1e-12)
        np.testing.assert_allclose(problem.rows.unpack(new.gram[r]), gram, rtol=1e-13, atol=1e-13)
    whitener = problem.rows.unpack(new.whiten)
    product = whitener.swapaxes(-1, -2) @ whitener @ problem.rows.unpack(new.gram)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(problem.dim), product.shape), rtol=0, atol=1e-10)


def test_a_step_minimises_its_objective():
    """<g, x> + |x - theta|^2_Sigma / 2 over the B-ball, against a numerical minimiser."""
    mdp = envs.hard_chain(3, gap=0.1, param_bound="tight")
    problem, rows = mdp.problem, rows_of(mdp)
    state = initial_estimate(problem, 1, 0.05)
    episodes = Episodes.from_states(problem, [[0, 1, 2, 3]], [[0, 1, 1]])
    new = ons_update(problem, state, episodes, 0.01, problem.param_bound)
    bound = ref.ball(2, problem.param_bound)
    for h in range(3):
        row = rows[h][h][int(episodes.actions[0, h])]
        g = ref.gradient(row, np.zeros(2), int(episodes.choices[0, h]))
        sigma = 0.05 * np.eye(2) + 0.01 * sum(np.outer(f, f) for f in row[1])
        found = ref.minimise_on(
            lambda x, g=g, s=sigma: g @ x + 0.5 * x @ s @ x,
            lambda x, g=g, s=sigma: g + s @ x,
            np.zeros(2),
            [bound],
            np.eye(2),
        )
        np.testing.assert_allclose(new.theta[0, h], found, rtol=0, atol=1e-6)
        assert np.linalg.norm(new.theta[0, h]) == pytest.approx(problem.param_bound, rel=1e-9)  # the constraint binds


def test_pairs_with_one_outcome_teach_nothing():
    mdp = envs.river_swim(4, 3)
    problem = mdp.problem
    episodes = Episodes.from_states(problem, [[0, 0, 0, 0]], [[0, 0, 0]])
    start = initial_estimate(problem, 1, 2.0)
    assert same_bits(ons_update(problem, start, episodes, 0.5, 3.0), start)


def test_the_design_adds_every_outcome():
    rng = np.random.default_rng(2)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=4, U=3, kind="partial", one_table=True), shared=True)
    problem, rows = mdp.problem, rows_of(mdp)
    estimate, dense = random_estimate(rng, problem, 2)
    episodes = random_episodes(rng, mdp, 2)
    gram, whiten = estimate.gram.copy(), estimate.whiten.copy()
    add_design(problem, gram, whiten, episodes)
    for r in range(2):
        expected = dense[r, 0].copy()
        for h in range(3):
            row = rows[h][episodes.states[r, h]][episodes.actions[r, h]]
            if informative(row):
                expected += sum(np.outer(f, f) for f in row[1])
        np.testing.assert_allclose(problem.rows.unpack(gram)[r, 0], expected, rtol=1e-13, atol=1e-13)
        w = problem.rows.unpack(whiten)[r, 0]
        np.testing.assert_allclose(w.T @ w @ expected, np.eye(4), rtol=0, atol=1e-11)


def test_projection_on_the_ball():
    rng = np.random.default_rng(4)
    mdp = to_mdp(random_model(rng, H=3, d=4, kind="block"))
    estimate, dense = random_estimate(rng, mdp.problem, 4)
    theta = 3 * rng.normal(size=estimate.theta.shape)
    moved = project_on_ball(mdp.problem, theta, estimate.gram, 0.7)
    for r, k in np.ndindex(4, 3):
        expected = ref.project_ball(theta[r, k], dense[r, k], 0.7)
        np.testing.assert_allclose(moved[r, k], expected, rtol=0, atol=1e-10)
    inside = 0.1 * theta / np.linalg.norm(theta, axis=-1, keepdims=True)
    np.testing.assert_array_equal(project_on_ball(mdp.problem, inside, estimate.gram, 0.7), inside)
