"""Online mirror descent: one step against the twins, on balls, ellipsoids and their intersection."""

import math

import numpy as np
import pytest

import livarot
from livarot.estimation.omd import (
    ball,
    initial_estimate,
    omd_update,
    whitened,
)
from livarot.model.episodes import Episodes
from tests.support.episodes import random_transitions
from tests.support.models import random_estimate, random_model, random_set, replica, rows_of, same_bits, to_mdp
from tests.twins import core as ref

KINDS = ["dense", "block", "partial"]
STEPS = [0.5, 1.0, 20.0]


def naive_update(mdp, theta, gram, episodes, r, step_size, regions, numeric=False):
    """The twin's steps of one replica, stage by stage: theta (K, d), gram (K, d, d); regions(k)."""
    rows, which = rows_of(mdp), mdp.problem.stage_parameter
    theta, gram = theta.copy(), gram.copy()
    for h in range(mdp.problem.horizon):
        k, row = which[h], rows[h][episodes.states[r, h]][episodes.actions[r, h]]
        choice = int(episodes.choices[r, h])
        theta[k], gram[k] = ref.omd_step(row, choice, theta[k], gram[k], step_size, regions(k), numeric)
    return theta, gram


def check(mdp, estimate, dense, episodes, step_size, within, regions, atol=1e-10, numeric=False):
    new = omd_update(mdp.problem, estimate, episodes, step_size, within)
    grams = mdp.problem.rows.unpack(new.gram)
    for r in range(len(estimate.theta)):
        theta, gram = naive_update(
            mdp, estimate.theta[r], dense[r], episodes, r, step_size, lambda k, r=r: regions(r, k), numeric
        )
        np.testing.assert_allclose(new.theta[r], theta, rtol=0, atol=atol)
        np.testing.assert_allclose(grams[r], gram, rtol=0, atol=atol * (1 + np.abs(gram).max()))
    check_whitener(mdp.problem, new)
    return new


def check_whitener(problem, estimate):
    """W'W gram = I, and W is lower triangular."""
    white, gram = problem.rows.unpack(estimate.whiten), problem.rows.unpack(estimate.gram)
    product = np.swapaxes(white, -1, -2) @ white @ gram
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(problem.dim), product.shape), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(gram, np.swapaxes(gram, -1, -2))


# ---------------------------------------------------------------- on the ball
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step_size", STEPS)
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_steps_on_the_ball(kind, step_size, shared):
    rng = np.random.default_rng(KINDS.index(kind))
    model = random_model(rng, H=4, S=5, A=3, d=5, U=5, kind=kind, offsets=True)
    mdp = to_mdp(model, shared=shared, param_bound=1.0)
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem, 3)
    active = 0
    for _ in range(4):
        episodes = random_transitions(rng, problem, 3)
        estimate = check(
            mdp,
            estimate,
            dense,
            episodes,
            step_size,
            ball(problem, 1.0, 3),
            lambda r, k: [ref.ball(problem.dim, 1.0)],
        )
        dense = problem.rows.unpack(estimate.gram)
        norms = np.linalg.norm(estimate.theta, axis=-1)
        assert norms.max() <= 1 + 1e-12
        active += int((norms > 1 - 1e-9).sum())
    assert active > 0 or step_size < 20 or kind == "block"


@pytest.mark.parametrize("step_size", STEPS)
def test_steps_against_a_numerical_minimiser(step_size):
    """The twin minimises the linearised objective itself, without the projection formula."""
    rng = np.random.default_rng(5)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=3, U=4, offsets=True, scale=0.5), param_bound=0.8)
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem, 2)
    episodes = random_transitions(rng, problem, 2)
    check(
        mdp, estimate, dense, episodes, step_size, ball(problem, 0.8, 2), lambda r, k: [ref.ball(3, 0.8)],
        atol=1e-6, numeric=True,
    )  # fmt: skip


def test_without_a_constraint_the_step_is_newton_like():
    rng = np.random.default_rng(6)
    mdp = to_mdp(random_model(rng, H=2, S=3, A=2, d=3, U=3), param_bound=9.0)
    estimate, dense = random_estimate(rng, mdp.problem, 2)
    episodes = random_transitions(rng, mdp.problem, 2)
    check(mdp, estimate, dense, episodes, 20.0, ball(mdp.problem, math.inf, 2), lambda r, k: [])


def test_by_hand():
    """One logit: p = 1/2, g = -1/2, Hs = 1/4; theta = eta / (2 (reg + eta/4))."""
    mdp = livarot.MNLMDP.from_function(
        1, 2, 1, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), reward=np.zeros((2, 1)), theta=[1.0],
        param_bound=50.0,
    )  # fmt: skip
    start = initial_estimate(mdp.problem, 1, 2.0)
    assert (start.theta.item(), start.gram.item()) == (0.0, 2.0)
    episodes = Episodes(*(np.array([x], dtype=np.int32) for x in ([0, 1], [0], [1])))
    new = omd_update(mdp.problem, start, episodes, 4.0, ball(mdp.problem, 50.0, 1))
    theta = 4.0 * 0.5 / (2.0 + 4.0 / 4)
    p = 1 / (1 + math.exp(-theta))
    assert new.theta.item() == pytest.approx(theta, rel=1e-14)
    assert new.gram.item() == pytest.approx(2.0 + p * (1 - p), rel=1e-14)
    small = omd_update(mdp.problem, start, episodes, 4.0, ball(mdp.problem, 0.25, 1))
    assert small.theta.item() == pytest.approx(0.25, rel=1e-12)


def test_a_certain_outcome_teaches_nothing():
    mdp = livarot.envs.river_swim(4, 3)
    estimate, _ = random_estimate(np.random.default_rng(7), mdp.problem, 2)
    episodes = Episodes(np.zeros((2, 4), np.int32), np.zeros((2, 3), np.int32), np.zeros((2, 3), np.int32))
    new = omd_update(mdp.problem, estimate, episodes, 20.0, ball(mdp.problem, 9.0, 2))
    assert same_bits(tuple(new), tuple(estimate))


def test_a_shared_parameter_is_updated_in_stage_order():
    """Reversing the episode changes the answer; the twin's order is the right one."""
    rng = np.random.default_rng(8)
    mdp = to_mdp(random_model(rng, H=5, S=4, A=2, d=3, U=4, one_table=True), shared=True, param_bound=1.0)
    estimate, dense = random_estimate(rng, mdp.problem, 1)
    episodes = random_transitions(rng, mdp.problem, 1)
    within = ball(mdp.problem, 1.0, 1)
    new = check(mdp, estimate, dense, episodes, 20.0, within, lambda r, k: [ref.ball(3, 1.0)])
    turned = Episodes(
        np.concatenate((episodes.states[:, -2::-1], episodes.states[:, -1:]), axis=1),
        episodes.actions[:, ::-1].copy(), episodes.choices[:, ::-1].copy(),
    )  # fmt: skip
    other = omd_update(mdp.problem, estimate, turned, 20.0, within)
    assert np.abs(other.theta - new.theta).max() > 1e-4


# ---------------------------------------------------------------- ellipsoids and intersections


def moved_inside(estimate, dense, regions):
    """The estimate projected on the set: a transition that says nothing leaves theta there, so it must start inside."""
    theta = estimate.theta.copy()
    for r, k in np.ndindex(*theta.shape[:2]):
        theta[r, k] = ref.project(theta[r, k], dense[r, k], regions(r, k))
    return estimate._replace(theta=theta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step_size", STEPS)
def test_steps_on_an_ellipsoid(kind, step_size):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    mdp = to_mdp(random_model(rng, H=3, S=5, A=3, d=4, U=5, kind=kind, offsets=True), param_bound=5.0)
    problem = mdp.problem
    estimate, dense = random_estimate(rng, problem, 3)
    within, regions = random_set(rng, problem, 3, math.inf, 0.4, 0.7)
    estimate = moved_inside(estimate, dense, regions)
    new = check(mdp, estimate, dense, random_transitions(rng, problem, 3), step_size, within, regions)
    tight = 0
    for r, k in np.ndindex(3, problem.n_parameters):
        center, matrix, radius = regions(r, k)[0]
        assert ref.inside(new.theta[r, k], (center, matrix, radius), 1e-9)
        tight += not ref.inside(new.theta[r, k], (center, matrix, radius * (1 - 1e-6)))
    assert tight > 0


@pytest.mark.parametrize("kind", ["dense", "block"])
@pytest.mark.parametrize("step_size", STEPS)
def test_steps_on_an_intersection(kind, step_size):
    """Ball alone, ellipsoid alone, and both active (alternating projections)."""
    rng = np.random.default_rng(20 + KINDS.index(kind))
    mdp = to_mdp(random_model(rng, H=3, S=5, A=3, d=4, U=5, kind=kind), param_bound=5.0)
    problem = mdp.problem
    both = 0
    for offset, radius in ((0.2, 1.5), (0.9, 0.3), (0.95, 0.5), (1.1, 0.4)):
        estimate, dense = random_estimate(rng, problem, 3)
        within, regions = random_set(rng, problem, 3, 1.0, radius, offset)
        estimate = moved_inside(estimate, dense, regions)
        new = check(mdp, estimate, dense, random_transitions(rng, problem, 3), step_size, within, regions, atol=1e-7)
        for r, k in np.ndindex(3, problem.n_parameters):
            center, matrix, size = regions(r, k)[0]
            on_ball = abs(np.linalg.norm(new.theta[r, k]) - 1) < 1e-6
            both += on_ball and abs(ref.norm_in(new.theta[r, k] - center, matrix) - size) < 1e-6
    assert both > 0


# ---------------------------------------------------------------- purity, replicas, extremes
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_left_alone(kind):
    rng = np.random.default_rng(40)
    mdp = to_mdp(random_model(rng, d=4, kind=kind))
    estimate, _ = random_estimate(rng, mdp.problem, 2)
    within, _ = random_set(rng, mdp.problem, 2, 1.0, 0.5, 0.5)
    episodes = random_transitions(rng, mdp.problem, 2)
    before = [tuple(np.copy(x) for x in part) for part in (estimate, within, episodes)]
    new = omd_update(mdp.problem, estimate, episodes, 20.0, within)
    assert same_bits((tuple(estimate), tuple(within), tuple(episodes)), tuple(before))
    assert not any(np.shares_memory(a, b) for a, b in zip(new, estimate, strict=True))
    assert same_bits(tuple(new), tuple(omd_update(mdp.problem, estimate, episodes, 20.0, within)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
def test_replicas_together_are_each_alone(kind, shared):
    rng = np.random.default_rng(41)
    mdp = to_mdp(random_model(rng, H=4, S=6, A=3, d=6, U=5, kind=kind, offsets=True), shared=shared, param_bound=1.0)
    problem, count = mdp.problem, 40  # 160 transitions: several batches of several shapes
    estimate, _ = random_estimate(rng, problem, count)
    episodes = random_transitions(rng, problem, count)
    together = omd_update(problem, estimate, episodes, 20.0, ball(problem, 1.0, count))
    for r in range(count):
        alone = omd_update(
            problem,
            replica(estimate, r),
            Episodes(*(x[r : r + 1] for x in episodes)),
            20.0,
            ball(problem, 1.0, 1),
        )
        assert same_bits(tuple(alone), tuple(part[r : r + 1] for part in together)), f"replica {r}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reg", [1e-12, 1e-6, 1e6])
def test_near_singular_grams_give_finite_results(kind, reg):
    rng = np.random.default_rng(42)
    mdp = to_mdp(random_model(rng, H=3, S=5, A=2, d=4, U=4, kind=kind), param_bound=2.0)
    estimate = initial_estimate(mdp.problem, 3, reg)
    for _ in range(12):
        estimate = omd_update(
            mdp.problem, estimate, random_transitions(rng, mdp.problem, 3), 20.0, ball(mdp.problem, 2.0, 3)
        )
        for part in estimate:
            assert np.isfinite(part).all()
        assert np.linalg.norm(estimate.theta, axis=-1).max() <= 2 + 1e-9


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_huge_logits_give_finite_results(size):
    rng = np.random.default_rng(43)
    mdp = to_mdp(random_model(rng, H=3, S=5, A=2, d=4, U=4, scale=size))
    problem = mdp.problem
    estimate = initial_estimate(problem, 3, 1.0)._replace(theta=np.stack([mdp.theta, -mdp.theta, 0.1 * mdp.theta]))
    for step_size in STEPS:
        for _ in range(5):
            estimate = omd_update(
                problem, estimate, random_transitions(rng, problem, 3), step_size, ball(problem, size, 3)
            )
            for part in estimate:
                assert np.isfinite(part).all()
            assert np.linalg.norm(estimate.theta, axis=-1).max() <= size * (1 + 1e-9)


def test_whitener_stays_with_its_gram_over_many_steps():
    """It is recomputed, never updated: no drift after 400 episodes of a real run."""
    mdp = livarot.envs.river_swim(5, 6)
    problem, rng = mdp.problem, np.random.default_rng(44)
    estimate = initial_estimate(problem, 2, 0.01)
    for _ in range(400):
        estimate = omd_update(problem, estimate, random_transitions(rng, problem, 2), 20.0, ball(problem, 6.0, 2))
    check_whitener(problem, estimate)
    again = whitened(problem, estimate.theta, estimate.gram)
    np.testing.assert_allclose(again.whiten, estimate.whiten, rtol=1e-12, atol=1e-15)


def test_many_steps_find_the_parameter():
    """With the data of the model itself the estimate approaches theta*."""
    mdp = livarot.envs.river_swim(4, 6, features="moves", shared_parameter=True)
    policy = np.ones((6, 4), dtype=np.int32)
    episodes = livarot.simulate(mdp, policy, 3000, seed=1)
    estimate = initial_estimate(mdp.problem, 1, 1.0)
    for t in range(3000):
        one = Episodes(*(x[t : t + 1] for x in episodes))
        estimate = omd_update(mdp.problem, estimate, one, 1.0, ball(mdp.problem, mdp.problem.param_bound, 1))
    assert np.linalg.norm(estimate.theta[0] - mdp.theta) < 0.25 < np.linalg.norm(mdp.theta)
