"""Episodes: an agent's one by one, as the run plays them, with its plans and estimates on the way; and random ones."""

import numpy as np

from livarot.model.episodes import Episodes
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.running.judge import FINE, REFUSED, Judge, Record
from livarot.simulation.rollout import play
from livarot.simulation.streams import AgentRandom, action_uniforms, environment_uniforms


def play_agent(mdp, agent, n_episodes, seed=0, state=None, first=0):
    """``n_episodes`` episodes of one seed from ``first`` on: a dict of lists, and the state afterwards.

    What the agent is given is checked: a Problem, which has no theta.
    """
    problem, kernel = mdp.problem, transition_kernel(mdp)
    assert type(problem) is Problem
    assert not isinstance(problem, MNLMDP)
    assert not hasattr(problem, "theta")
    state = agent.init(problem, 1) if state is None else state
    env = environment_uniforms(seed, first, n_episodes, problem.horizon)
    act = action_uniforms(seed, first, n_episodes, problem.horizon)
    log = {"plans": [], "episodes": [], "states": []}
    for t in range(n_episodes):
        log["states"].append(state)
        plan = agent.plan(problem, state, AgentRandom([seed], first + t))
        episodes = play(problem, kernel.prob[None], kernel.base, plan.policy, env[t : t + 1], act[t : t + 1])
        state = agent.update(problem, state, episodes)
        log["plans"].append(plan)
        log["episodes"].append(episodes)
    log["states"].append(state)
    return log, state


def assert_same_run(mdp, log, twin_log, first=0, theta_atol=1e-9, plan_atol=1e-6):
    """The twin's states, actions, choices, estimates, radii, planned values; ``first`` skips exploration."""
    problem = mdp.problem
    for t in range(len(log["plans"])):
        episodes, plan = log["episodes"][t], log["plans"][t]
        assert episodes.states[0].tolist() == twin_log["states"][t], f"episode {t}"
        assert episodes.actions[0].tolist() == twin_log["actions"][t], f"episode {t}"
        assert episodes.choices[0].tolist() == twin_log["choices"][t], f"episode {t}"
        if t < first:
            continue
        reach = problem.reachable[:-1]
        twin_policy = np.array(twin_log["policies"][t])
        np.testing.assert_array_equal(plan.policy[0][reach], twin_policy[reach], err_msg=f"episode {t}")
        assert plan.radius[0] == max(twin_log["radius"][t]) or np.isclose(plan.radius[0], twin_log["radius"][t][0])
        np.testing.assert_allclose(
            plan.value[0, :-1][reach], np.array(twin_log["plans"][t])[:-1][reach], rtol=0, atol=plan_atol
        )
    for t in range(first, len(log["states"])):
        estimate = log["states"][t].estimate
        np.testing.assert_allclose(estimate.theta[0], twin_log["theta"][t], rtol=0, atol=theta_atol)
        gram = problem.rows.unpack(estimate.gram[0])
        np.testing.assert_allclose(gram, twin_log["gram"][t], rtol=0, atol=10 * theta_atol)


def judged(mdps, plan, replicas):
    """The record of one episode of a plan, all uniforms 1/2, and whether all distances were finite."""
    problem = mdps[0].problem
    words = -(-problem.n_parameters // 32)
    record = Record(*np.full((7, 1, replicas), np.nan), np.full((1, replicas, words), -1, dtype=np.int32))
    judge = Judge(mdps)
    env, luck = (np.full((1, replicas, n), 0.5) for n in (problem.horizon + 1, problem.horizon))
    judge.seat(record, env, lambda: luck)
    _, verdict = judge.episode(plan, 0)
    assert verdict != REFUSED
    return record, verdict == FINE


def equal(one, two):
    """Do both have the same numbers, however they are nested?"""
    if isinstance(one, tuple):
        return len(one) == len(two) and all(map(equal, one, two))
    return np.array_equal(np.asarray(one), np.asarray(two))


def random_transitions(rng, problem, n_replicas):
    """Any (state, action, choice) at each stage: they need not follow each other, since OMD takes them one by one."""
    states = rng.integers(problem.n_states, size=(n_replicas, problem.horizon + 1))
    actions = rng.integers(problem.n_actions, size=(n_replicas, problem.horizon))
    choices = np.zeros_like(actions)
    for r, h in np.ndindex(*actions.shape):
        choices[r, h] = rng.integers(len(problem.next_states(h, states[r, h], actions[r, h])))
    return Episodes(*(x.astype(np.int32) for x in (states, actions, choices)))


def random_episodes(rng, mdp, n_replicas):
    """Episodes of the uniform policy, drawn by hand."""
    problem = mdp.problem
    states = np.zeros((n_replicas, problem.horizon + 1), dtype=np.int64)
    actions = rng.integers(problem.n_actions, size=(n_replicas, problem.horizon))
    for r in range(n_replicas):
        states[r, 0] = rng.choice(problem.n_states, p=problem.start)
        for h in range(problem.horizon):
            states[r, h + 1] = rng.choice(problem.next_states(h, states[r, h], actions[r, h]))
    return Episodes.from_states(problem, states, actions)
