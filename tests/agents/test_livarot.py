"""LIVAROT: whole runs of the slow twin reproduced; what it is given; seeds, files and presets."""

import dataclasses
import math

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs
from livarot.agents import OFUMNLPP, BonusLivarot, LiteralExploration, Livarot
from livarot.planning.optimistic.rules import FrankWolfe, JointMaximum, PlugIn, SecondOrderBonus, VarianceBonus
from livarot.simulation.streams import environment_uniforms
from tests.support.episodes import assert_same_run, play_agent
from tests.support.models import random_model, same_bits, to_mdp, to_model
from tests.twins import agents as twin


def uniforms_of(mdp, n, seed=0):
    return environment_uniforms(seed, 0, n, mdp.problem.horizon)


# ---------------------------------------------------------------- the twin's runs
@pytest.mark.parametrize("bound", ["tight", None])
@pytest.mark.parametrize(("H", "d"), [(4, 2), (5, 2), (6, 3)])
def test_runs_on_the_hard_chain(H, d, bound):
    """Two outcomes: all but the projection is in closed form; 60 episodes of the printed experiment."""
    mdp = envs.hard_chain(H, gap=0.1, dim=d, seed=H, param_bound=bound)
    agent = Livarot(reg=10.0, step_size=20.0, beta_scale=0.01, printed_radius=True)
    log, _ = play_agent(mdp, agent, 60, seed=H)
    assert_same_run(mdp, log, twin.run_livarot(to_model(mdp), uniforms_of(mdp, 60, H)), plan_atol=1e-10)
    actions = np.array([e.actions[0] for e in log["episodes"]])
    assert np.ptp(actions[:, 0]) > 0  # it did try both


@pytest.mark.parametrize("step_size", [1.0, 20.0])
def test_runs_with_the_counted_radius(step_size):
    mdp = envs.hard_chain(5, gap=0.15, seed=1)
    agent = Livarot(reg=2.0, step_size=step_size, beta_scale=0.2)
    log, _ = play_agent(mdp, agent, 60)
    expected = twin.run_livarot(
        to_model(mdp), uniforms_of(mdp, 60), reg=2.0, step_size=step_size, beta_scale=0.2, paper_radius=False
    )
    assert_same_run(mdp, log, expected, plan_atol=1e-10)


@pytest.mark.parametrize("shared", [False, True], ids=["stages", "shared"])
@pytest.mark.parametrize("features", ["one-hot", "moves"])
def test_runs_on_river_swim(shared, features):
    """Three outcomes in the middle: the twin searches the maximum by brute force."""
    mdp = envs.river_swim(4, 6, features=features, shared_parameter=shared)
    agent, n = Livarot(reg=1.0, step_size=5.0, beta_scale=0.05), 15 if shared or features == "moves" else 50
    log, _ = play_agent(mdp, agent, n, seed=2)
    expected = twin.run_livarot(
        to_model(mdp),
        uniforms_of(mdp, n, 2),
        reg=1.0,
        step_size=5.0,
        beta_scale=0.05,
        paper_radius=False,
        shared=shared,
    )
    assert_same_run(mdp, log, expected)
    assert max(plan.inner_gap[0] for plan in log["plans"]) <= 1e-8


def test_runs_on_a_random_ragged_model():
    model = random_model(np.random.default_rng(3), H=3, S=4, A=2, d=3, U=3, offsets=True)
    mdp = to_mdp(model)
    agent = Livarot(reg=1.0, step_size=10.0, beta_scale=0.1)
    log, _ = play_agent(mdp, agent, 20, seed=4)
    expected = twin.run_livarot(
        to_model(mdp), uniforms_of(mdp, 20, 4), reg=1.0, step_size=10.0, beta_scale=0.1, paper_radius=False
    )
    assert_same_run(mdp, log, expected)


def test_runs_with_the_paper_s_solver():
    """Frank-Wolfe from the centre alone, 30 steps, is what the twin's option does."""
    model = random_model(np.random.default_rng(5), H=3, S=5, A=3, d=3, U=4)
    mdp = to_mdp(model)
    agent = Livarot(
        reg=5.0,
        step_size=20.0,
        beta_scale=0.05,
        printed_radius=True,
        rule=JointMaximum(FrankWolfe(30, n_starts=0)),
    )
    log, _ = play_agent(mdp, agent, 20, seed=6)
    expected = twin.run_livarot(
        to_model(mdp), uniforms_of(mdp, 20, 6), reg=5.0, beta_scale=0.05, optimism="frank_wolfe"
    )
    assert_same_run(mdp, log, expected)


def test_optimism_holds_when_the_sets_cover_the_parameter():
    mdp = to_mdp(random_model(np.random.default_rng(7), H=3, S=4, A=2, d=3, U=4))
    result = livarot.run(mdp, Livarot(step_size=1.0, reg=1.0, beta_scale=1.0), 30, seed=range(4))
    assert result.covered.all()
    certified = result.optimism_gap + result.optimism_loss
    assert certified.min() >= -1e-10
    assert result.optimism_gap.min() >= -1e-8


# ---------------------------------------------------------------- radii and presets
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_the_theory_s_radius_is_that_of_the_lemma_s_index(n):
    """The lemma's set number t is around theta_hat_t, and theta_hat_1 is the start: after n updates t = n + 1."""
    own, shared = envs.hard_chain(5).problem, envs.river_swim(4, 6, shared_parameter=True).problem
    for problem, updates in ((own, n), (shared, 6 * n)):
        d, H, bound = problem.dim, problem.horizon, problem.param_bound
        exact = math.sqrt(2 / 3 * d * math.log((updates + 1) * H / 0.05)) + 2 * bound * math.sqrt(144 * d)
        for agent in (Livarot.theory(100), BonusLivarot.theory()):
            assert agent.radius(problem, n) == pytest.approx(exact, rel=1e-14)
    bandit = envs.mnl_bandit().problem
    agent, d, bound = OFUMNLPP.theory(), bandit.dim, bandit.param_bound
    reg = agent.init(bandit).estimate.gram.max()
    exact = math.sqrt(2 / 3 * d * math.log((n + 1) / 0.05)) + 2 * bound * math.sqrt(reg)
    assert agent.radius(bandit, n) == pytest.approx(exact, rel=1e-14)
    late = Livarot.theory(100, n_explore=9)
    assert late.radius(own, n + 9, 9) == Livarot.theory(100).radius(own, n)


def test_the_radius_counts_updates_or_episodes():
    problem, shared = (
        envs.hard_chain(5, gap=0.1).problem,
        envs.river_swim(4, 6, shared_parameter=True).problem,
    )
    plain = Livarot(beta_scale=0.3, reg=10.0)
    printed = Livarot(beta_scale=0.3, reg=10.0, printed_radius=True)
    for episode in (0, 1, 10, 57):
        common = (5, 2, problem.param_bound, 10.0, 0.05)
        assert plain.radius(problem, episode) == pytest.approx(0.3 * twin.livarot_radius(episode, *common, False))
        assert printed.radius(problem, episode) == pytest.approx(0.3 * twin.livarot_radius(episode + 1, *common, True))
        count = 6 * episode  # one parameter: every stage is an update
        exact = 0.3 * twin.livarot_radius(count, 6, 6, shared.param_bound, 10.0, 0.05, False)
        assert plain.radius(shared, episode) == pytest.approx(exact)
    after = Livarot(n_explore=7)
    assert after.radius(problem, 17, 7) == Livarot().radius(problem, 10)
    assert Livarot.paper().radius(problem, 80, 80) == pytest.approx(
        0.01 * (math.sqrt(4 / 3 * math.log(81 / 0.05)) + 24 * problem.param_bound * math.sqrt(2))
    )


def test_presets():
    paper = Livarot.paper()
    assert (paper.n_explore, paper.reg_explore, paper.reg, paper.step_size) == (80, 1.0, 10.0, 20.0)
    assert (paper.beta_scale, paper.failure_level, paper.printed_radius) == (0.01, 0.05, True)
    assert (paper.intersect_ball, paper.start_at_mle, paper.warm_start) == (True, False, False)
    assert paper.exploration == LiteralExploration()
    assert paper.kappa is None
    theory = Livarot.theory(1000)
    assert (theory.step_size, theory.reg, theory.beta_scale, theory.n_explore) == (1.0, None, 1.0, 0)
    assert (theory.printed_radius, theory.reg_explore, theory.n_episodes) == (False, None, 1000)
    assert (Livarot().n_explore, Livarot().printed_radius) == (0, False)
    assert isinstance(Livarot().rule, JointMaximum)
    with pytest.raises(dataclasses.FrozenInstanceError):
        paper.reg = 1.0
    problem = envs.hard_chain(4, gap=0.1).problem
    gram = problem.rows.unpack(theory.init(problem).estimate.gram)
    np.testing.assert_array_equal(gram, np.stack([288.0 * np.eye(2)] * 4)[None])
    expected = math.sqrt(4 / 3 * math.log(10 * 4 / 0.05)) + 2 * problem.param_bound * math.sqrt(288)
    assert theory.radius(problem, 9) == pytest.approx(expected)


def test_the_lemma_s_exploration_is_cut_at_the_budget(caplog):
    mdp = envs.hard_chain(4, gap=0.1)
    with caplog.at_level("WARNING", logger="livarot"):
        state = Livarot.theory(12, n_explore=None).init(mdp.problem)
    assert state.log.pairs.shape == (1, 12, 4)
    assert "12 episodes" in caplog.text


def test_an_enormous_bound_does_not_break_the_lemma_s_exploration():
    mdp = envs.hard_chain(4, gap=0.1, param_bound=30.0)
    assert Livarot.theory(5, n_explore=None).init(mdp.problem).log.pairs.shape == (1, 5, 4)


# ---------------------------------------------------------------- what an agent is given
class Spy:
    """An agent that notes what it is given and asks another one."""

    name = "spy"

    def __init__(self, inner):
        self.inner, self.seen = inner, []

    def init(self, problem, n_replicas=1):
        self.seen.append((problem, n_replicas))
        return self.inner.init(problem, n_replicas)

    def plan(self, problem, state, rng):
        self.seen.append((problem, state, rng))
        return self.inner.plan(problem, state, rng)

    def update(self, problem, state, episodes):
        self.seen.append((problem, state, episodes))
        return self.inner.update(problem, state, episodes)


def arrays_in(thing, depth=0):
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from arrays_in(value, depth)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from arrays_in(value, depth)
    elif hasattr(thing, "__dict__") and depth < 6 and type(thing).__module__.startswith("livarot"):
        yield from arrays_in(vars(thing), depth + 1)


@pytest.mark.parametrize("agent", [Livarot(n_explore=3), agents.UCRLMNLOL(), agents.CertaintyEquivalent()])
def test_agents_never_get_the_true_parameter(agent):
    mdp = to_mdp(random_model(np.random.default_rng(8), H=3, S=4, A=2, d=3))
    spy = Spy(agent)
    livarot.run(mdp, spy, 6, seed=[0, 1])
    assert len(spy.seen) == 13
    truth = {float(x) for x in mdp.theta.reshape(-1)}
    for given in spy.seen:
        assert type(given[0]) is livarot.Problem
        for thing in given:
            assert not isinstance(thing, livarot.MNLMDP)
            for array in arrays_in(thing):
                assert not truth & set(array.reshape(-1).tolist())


def test_the_first_plan_does_not_depend_on_the_truth():
    chains = [envs.hard_chain(5, gap=0.2, seed=s) for s in range(4)]
    spies = [Spy(Livarot()) for _ in chains]
    for chain, spy in zip(chains, spies, strict=True):
        livarot.run(chain, spy, 1)
    plans = [Livarot().plan(*spy.seen[1]) for spy in spies]
    assert all(same_bits(tuple(plan)[:-1], tuple(plans[0])[:-1]) for plan in plans)


# ---------------------------------------------------------------- seeds, files, edges
@pytest.mark.parametrize("agent", [Livarot(), Livarot(n_explore=6, beta_scale=0.2), Livarot(rule=VarianceBonus())])
def test_a_run_is_determined_by_its_seed(agent):
    mdp = envs.river_swim(4, 5)
    one, same, other = (play_agent(mdp, agent, 20, seed=s)[1] for s in (3, 3, 4))
    assert same_bits(one, same)
    assert not same_bits(one, other)


@pytest.mark.parametrize(
    "agent",
    [Livarot(), Livarot(n_explore=4), Livarot(n_explore=10), Livarot(n_explore=14, intersect_ball=False),
     Livarot(n_explore=8, warm_start=True, start_at_mle=True), agents.UCRLMNLOL(),
     agents.CertaintyEquivalent(), agents.Uniform()],
    ids=lambda agent: f"{agent.name}-{getattr(agent, 'n_explore', 0)}",
)  # fmt: skip
def test_ten_and_ten_episodes_through_a_file_are_twenty(tmp_path, agent):
    mdp = envs.river_swim(4, 5)
    whole, state = play_agent(mdp, agent, 20, seed=5)
    _, half = play_agent(mdp, agent, 10, seed=5)
    path = tmp_path / "state.safetensors"
    livarot.save_state(path, agent, half)
    loaded = livarot.load_state(path, agent, mdp.problem)
    assert same_bits(loaded, half)
    assert type(loaded) is type(half)
    rest, again = play_agent(mdp, agent, 10, seed=5, state=loaded, first=10)
    assert same_bits(again, state)
    assert same_bits(tuple(rest["episodes"]), tuple(whole["episodes"][10:]))
    with pytest.raises(LivarotError) as caught:
        livarot.load_state(path, Livarot(beta_scale=0.77), mdp.problem)
    assert caught.value.argument == "agent"


def test_updates_leave_the_old_state_alone():
    mdp = envs.river_swim(4, 5)
    for agent in (Livarot(n_explore=5), Livarot(), agents.UCRLMNLOL()):
        log, _ = play_agent(mdp, agent, 12)
        again, _ = play_agent(mdp, agent, 12)
        assert same_bits(tuple(log["states"]), tuple(again["states"]))  # later episodes did not touch earlier ones
        assert log["states"][5].episode == 5


@pytest.mark.parametrize("rule", [PlugIn(), VarianceBonus(), SecondOrderBonus(), JointMaximum(FrankWolfe(5))])
def test_any_rule_can_be_given(rule):
    result = livarot.run(envs.river_swim(4, 5), Livarot(rule=rule), 5, seed=[0, 1])
    assert np.isfinite(result.regret).all()
    assert result.covered.mask.all() == isinstance(rule, PlugIn)


def test_learning_beats_not_learning():
    mdp = envs.hard_chain(5, gap=0.3, seed=2)
    learned, plain = (
        livarot.run(mdp, a, 400, seed=range(4)).cumulative_regret[:, -1] for a in (Livarot(), agents.Uniform())
    )
    assert learned.max() < 0.5 * plain.min()
