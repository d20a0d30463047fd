"""LIVAROT over likelihood-ratio sets: a run recomputed by the twin, coverage, optimism, what every agent must do."""

import math
from dataclasses import replace

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import SoundLivarot
from livarot.errors import LivarotError
from livarot.planning.optimistic.rules import VarianceBonus
from tests.support import field
from tests.support.episodes import play_agent
from tests.support.models import rows_of
from tests.twins import core as ref
from tests.twins import level_set as twin

LEVELS = ("prequential", "mixture", "published")


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_run_recomputed_from_its_log(level, shared):
    agent, mdp = SoundLivarot(level=level, reg=0.3), field.ragged(shared)
    problem, rows = mdp.problem, rows_of(mdp)
    bound, surprise = problem.param_bound, math.log(problem.n_parameters / 0.05)
    log, end = play_agent(mdp, agent, 12, seed=2)
    data = [{} for _ in range(problem.n_parameters)]
    predicted = np.zeros(problem.n_parameters)
    for t in range(12):
        episodes, before = log["episodes"][t], log["states"][t].estimate.theta[0]
        for h in range(problem.horizon):
            s, a, choice = (int(x[0, h]) for x in episodes)
            row, k = rows[h][s][a], problem.stage_parameter[h]
            if len(row[1]) > 1:
                counts = data[k].setdefault(problem.pair(h, s, a), (row, np.zeros(len(row[1]))))[1]
                counts[choice] += 1
                predicted[k] += ref.loss(row, before[k], choice)
    for k in range(problem.n_parameters):
        own, hat = list(data[k].values()), end.estimate.theta[0, k]
        cost = {
            "prequential": predicted[k] - twin.loss(own, hat),
            "published": twin.published_cost(own, problem.dim, bound),
            "mixture": min(twin.mixture_cost(own, hat, bound), twin.published_cost(own, problem.dim, bound)),
        }[level]
        radius = twin.radius(own, hat, surprise + cost, bound, 0.3)
        assert end.radius[0, k] == pytest.approx(radius, rel=1e-7)
        gram = twin.gram(own, hat, radius, bound, 0.3)
        np.testing.assert_allclose(problem.rows.unpack(end.estimate.gram)[0, k], gram, atol=1e-6)
    plan = agent.plan(problem, end, None)
    np.testing.assert_allclose(plan.gram * end.radius[:, :, None] ** 2, end.estimate.gram, rtol=1e-12)
    assert plan.radius[0] == 1.0


@pytest.mark.parametrize("level", LEVELS)
def test_it_covers_and_is_optimistic(level):
    for mdp in (envs.hard_chain(4, gap=0.1), field.ragged(True), envs.river_swim(4, 6)):
        result = livarot.run(mdp, SoundLivarot(level=level), 60, seed=range(4))
        assert result.covered.all()
        assert (result.optimism_gap + result.optimism_loss).min() >= -1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("level", LEVELS)
def test_coverage_of_all_stages_and_episodes_at_once(level):
    """200 seeds, 300 episodes of the chain with a tight bound (theta* on the boundary of the ball)."""
    seeds = range(200)
    models = [envs.hard_chain(5, gap=0.1, seed=seed, param_bound="tight") for seed in seeds]
    result = livarot.run(models, SoundLivarot(level=level), 300, seed=seeds)
    assert result.covered.all(axis=1).mean() >= 0.95


@pytest.mark.parametrize("mdp", [envs.hard_chain(4, gap=0.1), envs.make("park-two-state")], ids=["chain", "park"])
def test_the_level_set_itself_is_optimistic_and_smaller_than_the_ellipsoid(mdp):
    around, itself = SoundLivarot(), SoundLivarot(optimism="level set")
    result = livarot.run(mdp, itself, 80, seed=range(4))
    assert result.covered.all()
    assert (result.optimism_gap + result.optimism_loss).min() >= -1e-12
    state, problem = itself.init(mdp.problem, 2), mdp.problem
    uniform = np.full((problem.horizon, problem.n_states, problem.n_actions), 1.0 / problem.n_actions)
    for t in range(60):
        state = itself.update(problem, state, livarot.simulate(mdp, uniform, 2, seed=t))
    wide, narrow = (agent.plan(problem, state, None).start_value for agent in (around, itself))
    assert (narrow < wide).all()
    assert (narrow >= problem.start @ livarot.solve(mdp).normalised.value[0]).all()
    shrunk = replace(itself, beta_scale=1e-6).plan(problem, state, None).start_value
    centre = livarot.solve(livarot.MNLMDP(problem, state.estimate.theta[0])).normalised.value[0]
    assert shrunk[0] == pytest.approx(problem.start @ centre, abs=1e-4)


def test_the_level_set_itself_needs_two_outcomes():
    with pytest.raises(LivarotError, match="outcomes"):
        livarot.run(envs.make("random"), SoundLivarot(optimism="level set"), 2)


def test_a_wrong_set_does_not_cover():
    """The sets are not so wide that anything would do: at a tenth of the radius they fail."""
    models = [envs.hard_chain(5, gap=0.1, seed=seed) for seed in range(20)]
    result = livarot.run(models, SoundLivarot(beta_scale=0.1), 200, seed=range(20))
    assert result.covered.all(axis=1).mean() < 0.5


def test_promises():
    assert SoundLivarot().promised_coverage() == 0.95
    assert SoundLivarot(failure_level=0.2, reg=3.0, rule=VarianceBonus(), beta_scale=2.0).promised_coverage() == 0.8
    assert SoundLivarot(beta_scale=0.99).promised_coverage() is None


def test_it_learns():
    regret = livarot.run(envs.hard_chain(4, gap=0.2), SoundLivarot(), 2000, seed=range(4)).regret.mean(axis=0)
    assert regret[-400:].mean() < 0.25 * regret[:400].mean()


def test_any_rule_of_optimism():
    mdp = envs.hard_chain(4, gap=0.1)
    joint, bonus = (livarot.run(mdp, agent, 30) for agent in (SoundLivarot(), SoundLivarot(rule=VarianceBonus())))
    assert (bonus.optimism_gap[0, :10] >= joint.optimism_gap[0, :10] - 1e-9).all()


def test_what_every_agent_must_do(tmp_path):
    field.assert_value(SoundLivarot())
    field.assert_tiny(SoundLivarot())
    field.assert_resumes(SoundLivarot(), tmp_path)
    field.assert_pure(SoundLivarot(), field.ragged())


@pytest.mark.parametrize(
    ("settings", "argument"), [({"level": "other"}, "level"), ({"reg": 0.0}, "reg"), ({"optimism": "x"}, "optimism")]
)
def test_bad_settings(settings, argument):
    with pytest.raises(LivarotError) as caught:
        SoundLivarot(**settings)
    assert caught.value.argument == argument


def three_contrasts(small):
    """Contrasts (1, 0), (0, small) and (.5, small); theta* on the boundary of the ball, where the small one points."""
    rows = [[1.0, 0.0], [0.0, small], [0.5, small]]
    bound = 3.0 / small
    reward = np.zeros((2, 3, 3))
    reward[1, 1] = 1.0
    return livarot.MNLMDP.from_function(
        2,
        3,
        3,
        features=lambda h, s, a: (
            ([1, 2], [np.array(rows[a]) / 2, -np.array(rows[a]) / 2]) if s == 0 else ([s], [[0.0, 0.0]])
        ),
        reward=reward,
        theta=[[0.0, bound], [0.0, 0.0]],
        param_bound=bound,
    )


@pytest.mark.parametrize("small", [1e-4, 1e-7, 1e-10])
def test_optimistic_whatever_the_units_of_the_features(small):
    """Only the first action was played: what is known of its direction says nothing about a small feature's."""
    mdp, agent = three_contrasts(small), SoundLivarot()
    problem, state = mdp.problem, agent.init(mdp.problem)
    for t in range(300):
        played = livarot.simulate(mdp, np.zeros((2, 3), dtype=int), 1, seed=t)
        state = agent.update(problem, state, played)
    away = mdp.theta[0] - state.estimate.theta[0, 0]
    gram = problem.rows.unpack(state.estimate.gram)[0, 0]
    assert away @ gram @ away <= state.radius[0, 0] ** 2
    assert agent.plan(problem, state, None).upper[0] >= problem.start @ livarot.solve(mdp).value[0]
    scaled = gram * np.outer([1.0, 1.0 / small], [1.0, 1.0 / small])
    whiten = problem.rows.unpack(state.estimate.whiten)[0, 0] * np.array([1.0, small])
    np.testing.assert_allclose(whiten.T @ whiten, np.linalg.inv(scaled), rtol=1e-6)


def known_three_ways():
    """A pair of known law with three outcomes, beside one with two."""

    def features(h, s, a):
        if s == 0:
            return ([1, 2, 3], np.zeros((3, 2))) if a == 0 else ([1, 3], [[0.5, 0.0], [0.0, 0.5]])
        return [s], [[0.0, 0.0]]

    reward = np.zeros((2, 4, 2))
    reward[1, 2] = 1.0
    return livarot.MNLMDP.from_function(
        2, 4, 2, features=features, reward=reward, theta=[[0.0, 0.0], [0.0, 0.0]], param_bound=1.0
    )


def test_the_set_itself_is_for_two_outcomes_even_where_the_law_is_known():
    with pytest.raises(LivarotError, match="has 3 outcomes"):
        livarot.run(known_three_ways(), SoundLivarot(optimism="level set"), 3)
    assert (livarot.run(known_three_ways(), SoundLivarot(), 20).optimism_gap >= -1e-9).all()


def test_the_set_itself_where_nothing_is_unknown():
    mdp = livarot.MNLMDP.from_function(
        2, 2, 1, features=lambda h, s, a: ([1 - s], [[1.0]]), reward=np.ones((2, 2, 1)), theta=[[0.0], [0.0]]
    )
    assert (livarot.run(mdp, SoundLivarot(optimism="level set"), 3).regret == 0).all()


@pytest.mark.parametrize("level", LEVELS)
def test_a_state_may_go_on_with_another_level(level):
    """The losses of the predictions are kept whatever the level is, and a plan over the set has its own ridge."""
    mdp = envs.hard_chain(4, gap=0.1)
    first = SoundLivarot(level=level)
    _, state = play_agent(mdp, first, 15, seed=1)
    _, usual = play_agent(mdp, SoundLivarot(), 15, seed=1)
    if level != "prequential":  # then policies differ, and so do the data
        assert (state.predicted > 0).all()
    else:
        np.testing.assert_array_equal(state.predicted, usual.predicted)
    other = SoundLivarot(optimism="level set", reg=2.0)
    plan = other.plan(mdp.problem, state, None)
    renewed = other._state(mdp.problem, state.estimate.theta, state.history, state.predicted, state.episode)
    np.testing.assert_array_equal(plan.value, other.plan(mdp.problem, renewed, None).value)
