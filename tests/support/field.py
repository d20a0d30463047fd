"""What every MNL agent of the field is tested for; tests/agents/test_<agent>.py say with which settings."""

import dataclasses
import itertools
import math
from functools import cache

import numpy as np

import livarot
from livarot import agents, envs
from livarot.simulation.streams import AgentRandom, environment_uniforms
from tests.support.episodes import play_agent
from tests.support.models import random_model, same_bits, to_mdp, to_model
from tests.twins import core as ref
from tests.twins.field import run_field


def assert_follows_twin(agent, mdp, n_episodes, seed=0, normals=None, plan_atol=1e-9, **options):
    """Assert that episodes, policies, values, radii and estimates are the naive twin's.

    ``normals`` is the shape of what a plan draws.
    """
    problem = mdp.problem
    log, _ = play_agent(mdp, agent, n_episodes, seed=seed)
    drawn = None if normals is None else [AgentRandom([seed], t).normal(normals)[0] for t in range(n_episodes)]
    uniforms = environment_uniforms(seed, 0, n_episodes, problem.horizon)
    twin = run_field(agent.name, to_model(mdp), uniforms, drawn, shared=problem.shared_parameter, **options)
    reach = problem.reachable[:-1]
    for t in range(n_episodes):
        plan, episodes = log["plans"][t], log["episodes"][t]
        np.testing.assert_array_equal(plan.policy[0][reach], np.array(twin["policies"][t])[reach], err_msg=f"{t}")
        value = np.array(twin["plans"][t])[:-1]
        np.testing.assert_allclose(plan.value[0, :-1][reach], value[reach], rtol=0, atol=plan_atol, err_msg=f"{t}")
        np.testing.assert_allclose(plan.start_value[0], problem.start @ value[0], rtol=0, atol=plan_atol)
        if plan.radius is not None:
            np.testing.assert_allclose(plan.radius[0], twin["radius"][t][0], rtol=1e-9)
        assert episodes.states[0].tolist() == twin["states"][t], f"episode {t}"
        assert episodes.choices[0].tolist() == twin["choices"][t], f"episode {t}"
    for t in range(n_episodes + 1):
        estimate = log["states"][t].estimate
        np.testing.assert_allclose(estimate.theta[0], twin["theta"][t], rtol=0, atol=1e-9, err_msg=f"{t}")
        gram = problem.rows.unpack(estimate.gram[0])
        np.testing.assert_allclose(gram, twin["gram"][t], rtol=1e-9, atol=1e-9, err_msg=f"{t}")
    return log


def ragged(shared=False, seed=3, **options):
    """A random ragged model with offsets; some pairs have one outcome and a feature that is not zero."""
    sizes = {"H": 4, "S": 4, "A": 3, "d": 3, "U": 4, "offsets": True} | options
    model = random_model(np.random.default_rng(seed), one_table=shared, **sizes)
    return to_mdp(model, shared=shared)


def tiny():
    """S = A = H = d = 1."""
    return livarot.MNLMDP.from_function(
        1, 1, 1, features=lambda h, s, a: ([0], [[1.0]]), reward=[[0.5]], theta=[0.3], start=0
    )


def assert_tiny(agent):
    result = livarot.run(tiny(), agent, 5, seed=range(2))
    np.testing.assert_allclose(result.regret, 0.0, rtol=0, atol=1e-12)


def assert_resumes(agent, path, mdp=None):
    """10 + 10 episodes through a file are 20, bit for bit."""
    mdp = envs.river_swim(4, 5) if mdp is None else mdp
    whole, end = play_agent(mdp, agent, 20, seed=5)
    _, half = play_agent(mdp, agent, 10, seed=5)
    livarot.save_state(path / "state", agent, half)
    back = livarot.load_state(path / "state", agent, mdp.problem)
    assert same_bits(back, half)
    rest, again = play_agent(mdp, agent, 10, seed=5, state=back, first=10)
    assert same_bits(end, again)
    for late, one in zip(whole["episodes"][10:], rest["episodes"], strict=True):
        assert same_bits(late, one)


def assert_pure(agent, mdp):
    """Replicas do not depend on their neighbours; plan and update do not change their arguments."""
    alone = [livarot.run(mdp, agent, 12, seed=s).regret[0] for s in (0, 1, 2)]
    together = livarot.run(mdp, agent, 12, seed=range(3)).regret
    np.testing.assert_array_equal(together, np.stack(alone))
    log, state = play_agent(mdp, agent, 6, seed=1)
    before = _copied(state)
    for _ in range(2):
        agent.plan(mdp.problem, state, AgentRandom([1], 6))
        once = agent.update(mdp.problem, state, log["episodes"][-1])
        assert same_bits(once, agent.update(mdp.problem, state, log["episodes"][-1]))
    assert same_bits(before, state)


def _copied(state):
    return tuple(_copied(x) if isinstance(x, tuple) else np.array(x) for x in state)


@cache
def uniform_regret():
    return float(livarot.run(envs.hard_chain(5, gap=0.1), agents.Uniform(), 300).cumulative_regret[0, -1])


def assert_learns(agent, most=0.6):
    """hard_chain(5, gap=.1), T = 300, seeds 0..7: mean regret below ``most`` of the uniform policy's."""
    regret = livarot.run(envs.hard_chain(5, gap=0.1), agent, 300, seed=range(8)).cumulative_regret[:, -1]
    assert regret.mean() < most * uniform_regret(), regret


def assert_value(agent):
    """Frozen, comparable, hashable, and registered under its name."""
    assert agent == dataclasses.replace(agent)
    assert hash(agent) == hash(dataclasses.replace(agent))
    assert type(agents.make(agent.name)) is type(agent)


def box_maximum(row, theta, gram, values, beta):
    """The best of all corners: raise or lower each utility by beta |phi|_{gram^-1}."""
    best = -math.inf
    z, widths = ref.logits(row, theta), [beta * ref.dual_norm(phi, gram) for phi in row[1]]
    for signs in itertools.product((-1, 1), repeat=len(z)):
        moved = [a + s * b for a, s, b in zip(z, signs, widths, strict=True)]
        top = max(moved)
        weight = [math.exp(x - top) for x in moved]
        best = max(best, ref.dot(weight, values) / math.fsum(weight))
    return best
