"""UCMNLK: the twin's runs, its constants, and each defect of the public code that it must not have."""

import math
from itertools import pairwise

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.infinite import UCMNLK, InfiniteMDP, Steps
from livarot.infinite.learning.run import _step_uniforms, run_infinite
from livarot.simulation.streams import stream
from tests.support.models import random_model, rows_of, same_bits, to_mdp
from tests.twins import core as ref
from tests.twins import infinite as twin


def park(**options):
    return InfiniteMDP.from_mdp(envs.park_two_state(**options))


def river(features="moves"):
    return InfiniteMDP.from_mdp(envs.river_swim(4, variant="park", shared_parameter=True, features=features))


def random_endless(seed):
    drawn = random_model(np.random.default_rng(seed), H=1, S=4, A=2, d=3, U=3, one_table=True, ragged=False)
    return InfiniteMDP.from_mdp(to_mdp(drawn, shared=True))


def states_of(mdp, agent, n, seed=0):
    """The agent's states along one trajectory, and the steps taken."""
    problem = mdp.problem
    state, log, taken = agent.init(problem, 1), [], []
    uniforms = _step_uniforms([seed], 0, n)[:, 0]
    s = int(np.searchsorted(np.cumsum(problem.start), stream(seed, "infinite start").random(), side="right"))
    for u in uniforms:
        log.append(state)
        a = int(agent.plan(problem, state).policy[0, s])
        p = mdp.probabilities(s, a)
        choice = min(int(np.searchsorted(np.cumsum(p), u, side="right")), len(p) - 1)
        nxt = int(problem.next_states(s, a)[choice])
        taken.append((s, a, choice, nxt))
        one = Steps(*(np.array([x], dtype=np.int32) for x in taken[-1]))
        state = agent.update(problem, state, one)
        s = nxt
    return [*log, state], taken


@pytest.mark.parametrize(
    ("mdp", "settings"),
    [
        (park(), {"discount": 0.95, "beta_scale": 0.002, "reg": 2.0}),
        (park(gap=0.1), {"discount": 0.98, "beta_scale": 0.01, "reg": 1.0, "step_size": 4.0}),
        (river(), {"discount": 0.97, "beta_scale": 0.02, "reg": 1.0}),
        (river("one-hot"), {"discount": 0.9, "beta_scale": 0.1, "reg": 1.0, "width_constant": 1.0}),
        (random_endless(4), {"discount": 0.9, "beta_scale": 0.004, "reg": 0.5}),
    ],
    ids=["park", "park wide gap", "river moves", "river one-hot", "random"],
)
def test_runs_are_the_twin_s(mdp, settings):
    n, seed = 250, 3
    agent = UCMNLK(**settings)
    problem = mdp.problem
    result = run_infinite(mdp, agent, n, seed=[7, seed])
    expected = twin.run_ucmnlk(
        rows_of(mdp.stage)[0],
        mdp.theta,
        problem.reward,
        int(result.states[1, 0]),
        _step_uniforms([seed], 0, n)[:, 0],
        gamma=settings["discount"],
        reg=settings["reg"],
        step_size=settings.get("step_size", 0.5 * math.log(problem.max_reachable) + problem.param_bound + 1),
        beta_scale=settings["beta_scale"],
        bound=problem.param_bound,
        constant=settings.get("width_constant", 2.0),
    )
    assert result.states[1].tolist() == expected["states"]
    assert result.epoch[1].tolist() == expected["epoch"]
    assert len(set(expected["states"])) > 1 and expected["epoch"][-1] >= 4  # not a trivial trajectory
    log, _ = states_of(mdp, agent, n, seed)
    for t in range(n + 1):
        np.testing.assert_allclose(log[t].estimate.theta[0, 0], expected["theta"][t], rtol=0, atol=1e-9)
        gram = problem.rows.unpack(log[t].estimate.gram[0, 0])
        np.testing.assert_allclose(gram, expected["gram"][t], rtol=0, atol=1e-8)
    np.testing.assert_allclose(log[n - 1].value[0], expected["values"][-1], rtol=0, atol=1e-7)


# ---------------------------------------------------------------- defects of the public code
def test_lambda_is_in_the_gram_matrix():
    """Their lambda never enters; our matrix begins at lam I and adds the Hessians at the new points."""
    mdp, agent = park(), UCMNLK(discount=0.9, reg=7.0)
    log, taken = states_of(mdp, agent, 60)
    rows = rows_of(mdp.stage)[0]
    np.testing.assert_array_equal(log[0].estimate.gram[0, 0].reshape(4, 4), 7.0 * np.eye(4))
    total = np.zeros((4, 4))
    for t, (s, a, _, _) in enumerate(taken):
        total += ref.hessian(rows[s][a], log[t + 1].estimate.theta[0, 0])
    gram = log[-1].estimate.gram[0, 0].reshape(4, 4)
    np.testing.assert_allclose(gram - total, 7.0 * np.eye(4), rtol=0, atol=1e-10)


def test_the_step_is_in_the_norm_of_the_gram_matrix_not_of_its_inverse():
    mdp, agent = park(), UCMNLK(discount=0.9, reg=7.0, step_size=2.0)
    log, taken = states_of(mdp, agent, 40)
    rows = rows_of(mdp.stage)[0]
    for t in (5, 39):
        s, a, choice, _ = taken[t]
        theta, gram = log[t].estimate.theta[0, 0], log[t].estimate.gram[0, 0].reshape(4, 4)
        g = ref.gradient(rows[s][a], theta, choice)
        metric = gram + 2.0 * ref.hessian(rows[s][a], theta)
        right = theta - 2.0 * np.linalg.solve(metric, g)
        swapped = theta - 2.0 * metric @ g
        new = log[t + 1].estimate.theta[0, 0]
        np.testing.assert_allclose(new, right, rtol=0, atol=1e-12)
        assert np.linalg.norm(new - swapped) > 0.1


def test_the_gradient_is_that_of_the_last_transition_alone():
    """Two histories that end in the same estimate take the same step; an averaged gradient would not."""
    mdp, agent = park(), UCMNLK(discount=0.9, reg=7.0)
    log, taken = states_of(mdp, agent, 30)
    fresh = agent.init(mdp.problem, 1)._replace(estimate=log[20].estimate)
    one = Steps(*(np.array([x], dtype=np.int32) for x in taken[20]))
    again = agent.update(mdp.problem, fresh, one)
    assert same_bits(tuple(again.estimate), tuple(log[21].estimate))


def test_the_inverse_belongs_to_its_matrix():
    """W'W = gram^-1 after many steps: it is recomputed, not updated by rank one."""
    mdp, agent = park(gap=0.1), UCMNLK(discount=0.9, reg=1e-3)
    state = states_of(mdp, agent, 1500)[0][-1]
    gram = state.estimate.gram[0, 0].reshape(4, 4)
    white = np.tril(state.estimate.whiten[0, 0].reshape(4, 4))
    assert np.linalg.cond(gram) > 20
    np.testing.assert_allclose(white.T @ white @ gram, np.eye(4), rtol=0, atol=1e-10)


def test_the_estimate_converges():
    """With the sign of the gradient reversed, as in other public code, it would run to the boundary."""
    mdp = park(gap=0.1)
    state = states_of(mdp, UCMNLK(discount=0.9, reg=1.0, step_size=1.0), 4000)[0][-1]
    away = np.linalg.norm(state.estimate.theta[0, 0] - mdp.theta)
    assert away < 0.4 * np.linalg.norm(mdp.theta)


# ---------------------------------------------------------------- constants and epochs
def test_epochs_begin_when_the_determinant_has_doubled():
    mdp, agent = park(), UCMNLK(discount=0.9, reg=0.5)
    log, _ = states_of(mdp, agent, 300)
    last = np.linalg.slogdet(log[0].estimate.gram[0, 0].reshape(4, 4))[1]
    assert log[0].epoch[0] == 0
    for before, after in pairwise(log):
        now = np.linalg.slogdet(after.estimate.gram[0, 0].reshape(4, 4))[1]
        begins = now > last + math.log(2)
        assert after.epoch[0] == before.epoch[0] + begins
        if begins:
            last = now
        else:
            assert after.policy.tobytes() == before.policy.tobytes()
    # each epoch multiplies the determinant, and the trace grows by at most 1/2 a step
    assert log[-1].epoch[0] <= 4 * math.log2((0.5 + 300 / 8) / 0.5) + 1


def test_constants():
    problem = park().problem
    bound = problem.param_bound
    eta = 0.5 * math.log(2) + bound + 1
    paper = UCMNLK.paper(5000, 4.0, 4)
    gamma = 1 - math.sqrt(4 / (4.0 * 5000))
    assert paper.gamma(problem) == pytest.approx(gamma, rel=1e-15)
    assert paper.n_rounds == max(20, math.ceil(math.sqrt(5000) * math.log(math.sqrt(5000) / 16)))
    start = paper.init(problem)
    reg = 82 * math.sqrt(2) * (bound + 4) * eta
    np.testing.assert_allclose(start.estimate.gram[0, 0].reshape(4, 4), reg * np.eye(4), rtol=1e-14)
    assert paper.radius(problem, 99) == pytest.approx(5 * 2 * math.log(2 * 100 / (1 - gamma)) ** 2, rel=1e-14)
    theory = UCMNLK.theory(5000, 4.0)
    level, growth = math.log(2 * math.sqrt(3) / 0.05), 3 * math.log(3) + bound + 2
    total = growth * (17 / 16 * reg + 2 * math.sqrt(reg) * level + 16 * level**2) + 2
    total += 7 * math.sqrt(6) / 6 * 4 * eta * math.log(1 + 2 / (2 * reg))
    assert theory.radius(problem, 0) == pytest.approx(math.sqrt(2 * eta * total + 4 * reg * bound**2), rel=1e-12)


def test_the_theory_covers_and_is_optimistic():
    mdp = park()
    result = run_infinite(mdp, UCMNLK.theory(300, 4.0), 300, seed=range(3))
    assert result.covered.all() and not np.ma.getmaskarray(result.covered).any()
    assert result.optimism_gap.min() >= -1e-9


def test_an_update_leaves_the_old_state_alone():
    mdp, agent = park(), UCMNLK(discount=0.9)
    log, taken = states_of(mdp, agent, 3)
    copy = [np.array(x, copy=True) for part in log[1] for x in (part if isinstance(part, tuple) else (part,))]
    agent.update(mdp.problem, log[1], Steps(*(np.array([x], dtype=np.int32) for x in taken[1])))
    now = [np.asarray(x) for part in log[1] for x in (part if isinstance(part, tuple) else (part,))]
    assert all(a.tobytes() == b.tobytes() for a, b in zip(copy, now, strict=True))


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({}, "n_steps"),
        ({"n_steps": 100}, "diameter"),
        ({"discount": 1.0}, "discount"),
        ({"discount": 0.9, "reg": 0.0}, "reg"),
        ({"discount": 0.9, "beta_scale": -1.0}, "beta_scale"),
        ({"discount": 0.9, "growth": 1.0}, "growth"),
        ({"discount": 0.9, "tol": 0.0}, "tol"),
        ({"discount": 0.9, "n_rounds": 0}, "n_rounds"),
        ({"discount": 0.9, "failure_level": 1.0}, "failure_level"),
        ({"discount": 0.9, "width_constant": -1.0}, "width_constant"),
    ],
)
def test_bad_settings_are_refused(settings, argument):
    with pytest.raises(livarot.LivarotError) as error:
        UCMNLK(**settings)
    assert error.value.argument == argument


def test_a_horizon_too_short_for_its_discount_is_refused():
    with pytest.raises(livarot.LivarotError, match="raise n_steps"):
        UCMNLK.average(1, 2.0).init(park().problem)
