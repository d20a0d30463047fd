"""LIVAROT's burn-in: the printed routine of the twin, the sound variant, and what each option does."""

import math
from dataclasses import replace

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import LiteralExploration, Livarot, StateAwareExploration
from livarot.agents.exploration import kappa_of, literal_design, rho
from livarot.simulation.streams import environment_uniforms
from tests.support.episodes import assert_same_run, play_agent
from tests.support.models import random_model, rows_of, same_bits, to_mdp, to_model
from tests.twins import agents as twin
from tests.twins import core as ref


def uniforms_of(mdp, n, seed=0):
    return environment_uniforms(seed, 0, n, mdp.problem.horizon)


def without_lone_features(model):
    """Rows with one outcome get the feature zero: they carry no data."""
    rows = [[[(n, f if len(n) > 1 else 0 * f, o) for n, f, o in state] for state in stage] for stage in model["rows"]]
    return model | {"rows": rows}


# ---------------------------------------------------------------- as printed
@pytest.mark.parametrize(("H", "d"), [(4, 2), (5, 3), (6, 2)])
def test_runs_of_the_printed_experiment(H, d):
    """Ten episodes of exploration, fifty of learning; with kappa = U^2 e^{4B} the sets contain the ball."""
    mdp = envs.hard_chain(H, gap=0.1, dim=d, seed=H)
    agent = Livarot(n_explore=10, reg_explore=1.0, reg=10.0, step_size=20.0, beta_scale=0.01, printed_radius=True)
    log, state = play_agent(mdp, agent, 60, seed=H)
    expected = twin.run_livarot(to_model(mdp), uniforms_of(mdp, 60, H), n_explore=10)
    assert_same_run(mdp, log, expected, first=10, plan_atol=1e-10)
    explored = expected["explored"]
    np.testing.assert_array_equal([e.actions[0] for e in log["episodes"][:10]], explored["actions"])
    assert np.linalg.norm(explored["center"], axis=1).max() < mdp.problem.param_bound  # the twin does not use the ball
    np.testing.assert_allclose(state.within.center[0], explored["center"], rtol=0, atol=1e-8)
    np.testing.assert_allclose(mdp.problem.rows.unpack(state.within.shape[0]), explored["matrix"], rtol=0, atol=1e-12)
    assert state.within.radius[0] == pytest.approx(explored["radius"], rel=1e-12)
    assert all(plan.start_value is None and plan.radius is None for plan in log["plans"][:10])
    assert not log["states"][10].estimate.theta.any()  # learning starts at zero, with gram = reg I: data discarded
    np.testing.assert_array_equal(
        mdp.problem.rows.unpack(log["states"][10].estimate.gram[0]), np.stack([10.0 * np.eye(d)] * H)
    )


@pytest.mark.parametrize("kappa", [1.5, 30.0])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_the_explored_set_against_the_twin(kind, kappa):
    """Any kappa: the design, the weighted estimate on the B-ball, the matrix and the radius."""
    model = without_lone_features(
        random_model(np.random.default_rng(1), H=3, S=4, A=2, d=4, U=4, kind=kind, offsets=True)
    )
    mdp = to_mdp(model, param_bound=1.0)
    model = to_model(mdp)
    agent, tau = Livarot(n_explore=12, kappa=kappa, reg_explore=0.5), 12
    log, state = play_agent(mdp, agent, tau, seed=3)
    explored = twin.explore(model, uniforms_of(mdp, tau, 3), reg_explore=0.5, kappa=kappa)
    np.testing.assert_array_equal([e.actions[0] for e in log["episodes"]], explored["actions"])
    np.testing.assert_array_equal([e.states[0] for e in log["episodes"]], explored["states"])
    within = state.within
    np.testing.assert_allclose(mdp.problem.rows.unpack(within.shape[0]), explored["matrix"], rtol=0, atol=1e-12)
    assert within.radius[0] == pytest.approx(explored["radius"], rel=1e-12)
    assert within.bound == 1.0
    design = literal_design(mdp.problem, tau, kappa)
    for h in range(3):
        samples, growing = [], np.eye(4)
        for t in range(tau):
            s, a, i = explored["triples"][t][h]
            row, real = (
                model["rows"][h][s][a],
                model["rows"][h][explored["states"][t][h]][explored["actions"][t][h]],
            )
            assert design.action[t, h] == a
            assert (design.pair[t, h], design.choice[t, h]) == (mdp.problem.pair(h, s, a), i)
            growing = growing + rho(mdp.problem) / kappa * np.outer(row[1][i], row[1][i])
            assert design.weight[t, h] == pytest.approx(ref.dual_norm(row[1][i], growing), rel=1e-10)
            samples += [(real, explored["choices"][t][h], 1.0), (row, i, design.weight[t, h])]
        exact = ref.mle(samples, 1.5, 4, 1.0)
        np.testing.assert_allclose(within.center[0, h], exact, rtol=0, atol=1e-6)


def test_the_centre_is_on_the_ball_when_the_data_ask_for_more():
    mdp = envs.hard_chain(4, gap=0.1, param_bound="tight")
    small = livarot.MNLMDP(replace(mdp.problem, param_bound=0.05), 0.04 * mdp.theta / 2)
    _, state = play_agent(small, Livarot(n_explore=15), 15)
    norms = np.linalg.norm(state.within.center[0], axis=1)
    assert norms.max() <= 0.05 * (1 + 1e-9)
    assert norms.max() == pytest.approx(0.05, rel=1e-9)


def test_rho_and_kappa():
    model = random_model(np.random.default_rng(2), H=3, S=4, A=2, d=3, U=4)
    mdp = to_mdp(model)
    assert rho(mdp.problem) == pytest.approx(twin.smallest_scale(model["rows"]), rel=1e-14)
    assert kappa_of(mdp.problem, None) == pytest.approx(16 * math.exp(4 * mdp.problem.param_bound), rel=1e-13)
    assert kappa_of(mdp.problem, 3.0) == 3.0


def odd_rooms(lone=1.0):
    """State 0: two outcomes, norms up to .5.  State 1: a certain one.  The others, never reached: nine, up to .9."""

    def features(h, s, a):
        if s == 0:
            return [0, 1], [[0.0, 0.0], [0.3, 0.4]]
        if s == 1:
            return [1], [[lone, 0.0]]
        return list(range(9)), [[0.0, 0.9 * i / 8] for i in range(9)]

    reward = np.zeros((9, 1))
    return livarot.MNLMDP.from_function(3, 9, 1, features=features, reward=reward, theta=[0.1, 0.2], param_bound=0.5)


def test_the_burn_in_s_constants_are_those_of_all_states():
    """The printed routine draws its pseudo samples from all of S, also where no trajectory ever comes."""
    problem = odd_rooms().problem
    assert not problem.reachable[:, 2:].any()
    assert rho(problem) == pytest.approx(0.9, rel=1e-15)
    assert kappa_of(problem, None) == pytest.approx(81 * math.exp(2.0), rel=1e-13)
    _, state = play_agent(odd_rooms(), Livarot(n_explore=7), 7)
    noise = 3.5 * math.sqrt(2 * math.log(8 * 3 / 0.05))
    bias = 9**0.25 * (81 * math.exp(2.0) / 0.9) ** 1.5 * 2 * math.log(1 + 8 / 2)
    assert state.within.radius[0] == pytest.approx((1 + 3 * math.sqrt(2)) * (noise + bias), rel=1e-12)


def test_what_the_design_cannot_choose_is_not_in_rho():
    """A certain outcome has no leverage, whatever its feature: the longest one that is chosen has norm .9, not 1."""
    problem = odd_rooms(lone=1.0).problem
    design = literal_design(problem, 6, 2.0)
    features = [problem.rows.features(int(design.pair[t, 0]))[design.choice[t, 0]] for t in range(6)]
    chosen = np.linalg.norm(features, axis=1)
    assert chosen.max() == pytest.approx(0.9)
    assert rho(problem) == livarot.theory.rho(problem, all_states=True) == pytest.approx(chosen.max())
    assert livarot.theory.rho(problem) == pytest.approx(0.5)  # of the states that can be reached
    assert rho(odd_rooms(lone=0.0).problem) == rho(problem)


# ---------------------------------------------------------------- the five choices
def explored_state(mdp, **options):
    options = {"n_explore": 12, "kappa": 1.2, "reg": 10.0} | options
    return play_agent(mdp, Livarot(**options), 12, seed=5)[1]


CHAIN = envs.hard_chain(4, gap=0.2, seed=7)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize(("kappa", "outside"), [(1.2, 0), (1e-4, 3), (1e-6, 4)])
def test_learning_starts_at_zero_projected_on_the_set(kappa, outside, warm):
    """With a small kappa the sets are narrow and most do not contain 0; the metric is the Gram matrix of the start."""
    state = explored_state(CHAIN, kappa=kappa, warm_start=warm)
    assert math.isfinite(state.within.radius[0])
    assert state.within.bound == CHAIN.problem.param_bound
    moved = 0
    for h in range(4):
        matrix, gram = (CHAIN.problem.rows.unpack(x[0, h]) for x in (state.within.shape, state.estimate.gram))
        center, radius = state.within.center[0, h], state.within.radius[0]
        regions = [(center, matrix, radius), ref.ball(2, state.within.bound)]
        exact = ref.project(np.zeros(2), gram, regions)
        np.testing.assert_allclose(state.estimate.theta[0, h], exact, rtol=0, atol=1e-7)
        assert ref.norm_in(state.estimate.theta[0, h] - center, matrix) <= radius * (1 + 1e-9)
        moved += ref.norm_in(center, matrix) > radius
        assert state.estimate.theta[0, h].any() == (ref.norm_in(center, matrix) > radius)
    assert moved == outside


def test_learning_may_start_at_the_estimate():
    state = explored_state(CHAIN, start_at_mle=True)
    np.testing.assert_allclose(state.estimate.theta, state.within.center, rtol=0, atol=1e-12)


def test_learning_may_keep_the_data():
    state = explored_state(CHAIN, warm_start=True)
    rows = rows_of(CHAIN)
    log = state.log
    for h in range(4):
        gram = 10.0 * np.eye(2)
        for t in range(12):
            table, rest = divmod(int(log.pairs[0, t, h]), 6 * 2)
            assert table == 0
            gram = gram + ref.hessian(rows[h][rest // 2][rest % 2], state.within.center[0, h])
        np.testing.assert_allclose(CHAIN.problem.rows.unpack(state.estimate.gram[0, h]), gram, rtol=0, atol=1e-10)
    cold = explored_state(CHAIN)
    np.testing.assert_array_equal(CHAIN.problem.rows.unpack(cold.estimate.gram[0, 0]), 10.0 * np.eye(2))


def test_the_set_may_go_without_the_ball():
    assert explored_state(CHAIN, intersect_ball=False).within.bound == math.inf


def test_the_theory_s_ridge():
    """reg_explore None is d log(tau H / delta); the objective's ridge is that plus one."""
    state = explored_state(CHAIN, reg_explore=None)
    same = explored_state(CHAIN, reg_explore=2 * math.log(12 * 4 / 0.05))
    assert same_bits(state.within, same.within)
    assert not same_bits(state.within.center, explored_state(CHAIN).within.center)


# ---------------------------------------------------------------- lengths
def test_no_exploration_begins_with_the_ball():
    state = Livarot().init(CHAIN.problem, 2)
    assert state.log.pairs.shape == (2, 0, 4)
    assert np.isinf(state.within.radius).all()
    plan = play_agent(CHAIN, Livarot(), 1)[0]["plans"][0]
    assert plan.start_value is not None


@pytest.mark.parametrize("n_explore", [0, 1, 5, 30])
def test_lengths_of_exploration(n_explore):
    """Masked while exploring; more exploration than episodes is exploration only."""
    result = livarot.run(CHAIN, Livarot(n_explore=n_explore), 20, seed=range(2))
    blind = min(n_explore, 20)
    for name in ("optimism_gap", "inner_gap", "covered", "optimism_loss"):
        mask = np.ma.getmaskarray(getattr(result, name))
        assert mask[:, :blind].all()
        assert not mask[:, blind:].any()
    assert np.isfinite(result.regret).all()


def test_exploring_plays_one_action_per_stage_whatever_the_state():
    log, _ = play_agent(CHAIN, Livarot(n_explore=6), 6)
    for plan in log["plans"]:
        assert plan.policy.shape == (1, 4, 6)
        assert np.all(plan.policy == plan.policy[:, :, :1])
    actions = np.array([plan.policy[0, :, 0] for plan in log["plans"]])
    np.testing.assert_array_equal(actions, [[0] * 4, [1] * 4] * 3)  # in turn: both have unit features


def test_features_that_are_all_zero_can_be_explored():
    mdp = livarot.MNLMDP.from_function(
        2,
        2,
        2,
        features=lambda h, s, a: ([0, 1], [[0.0], [0.0]]),
        reward=[[0.0, 0.5], [1.0, 0.0]],
        theta=[0.0],
    )
    result = livarot.run(mdp, Livarot(n_explore=2), 4)
    assert np.isfinite(result.regret).all()


# ---------------------------------------------------------------- the sound variant
def naive_state_aware(mdp, log, r, episode, kappa):
    """In each state the first action whose features have the largest leverage in the design of the data."""
    problem, rows = mdp.problem, rows_of(mdp)
    policy = np.zeros((problem.horizon, problem.n_states), dtype=int)
    for h in range(problem.horizon):
        design = np.eye(problem.dim)
        for t in range(episode):
            for g in range(problem.horizon):
                if problem.stage_parameter[g] == problem.stage_parameter[h]:
                    rest = int(log.pairs[r, t, g]) % (problem.n_states * problem.n_actions)
                    row = rows[g][rest // problem.n_actions][rest % problem.n_actions]
                    if len(row[0]) > 1:
                        design = design + row[1].T @ row[1] / kappa
        for s in np.flatnonzero(problem.reachable[h]):
            scores = [max(ref.dual_norm(f, design) for f in row[1]) if len(row[0]) > 1 else 0.0 for row in rows[h][s]]
            policy[h, s] = next(a for a in range(len(scores)) if scores[a] >= max(scores) * (1 - 1e-11))
    return policy


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("kind", ["dense", "partial"])
def test_state_aware_exploration_against_a_naive_one(kind, shared):
    model = random_model(np.random.default_rng(4), H=3, S=4, A=3, d=3, U=3, kind=kind)
    mdp = to_mdp(model, shared=shared)
    agent = Livarot(n_explore=8, kappa=2.0, exploration=StateAwareExploration())
    log, state = play_agent(mdp, agent, 8, seed=6)
    for t in range(8):
        expected = naive_state_aware(mdp, state.log, 0, t, 2.0)
        np.testing.assert_array_equal(log["plans"][t].policy[0], expected)
    assert len({tuple(p.policy.ravel()) for p in log["plans"]}) > 1


def test_state_aware_sets_contain_the_parameter():
    """An easy model with its true kappa = 1/min p p': theta* is in Theta_h for every stage and seed."""
    mdp = envs.hard_chain(4, gap=0.2, seed=8)
    p = [mdp.probabilities(h, h, a) for h in range(4) for a in range(2)]
    kappa = 1 / min(float(x[0] * x[1]) for x in p)
    agent = Livarot(n_explore=60, kappa=kappa, exploration=StateAwareExploration())
    for seed in range(5):
        _, state = play_agent(mdp, agent, 60, seed=seed)
        shape = mdp.problem.rows.unpack(state.within.shape[0])
        for h in range(4):
            away = ref.norm_in(mdp.theta[h] - state.within.center[0, h], shape[h])
            assert away <= state.within.radius[0]
            assert np.linalg.eigvalsh(shape[h])[0] > 1.2  # every direction was seen
    result = livarot.run(mdp, agent, 80, seed=range(2))
    assert np.isfinite(result.regret).all()


def test_replicas_explore_on_their_own():
    mdp = to_mdp(random_model(np.random.default_rng(9), H=3, S=4, A=3, d=3, U=3))
    for exploration in (StateAwareExploration(), LiteralExploration()):
        agent = Livarot(n_explore=6, kappa=2.0, exploration=exploration)
        together = livarot.run(mdp, agent, 12, seed=[3, 4, 5])
        for r, seed in enumerate((3, 4, 5)):
            alone = livarot.run(mdp, agent, 12, seed=seed)
            assert alone.regret.tobytes() == together.regret[r : r + 1].tobytes()
