"""What is kept with a problem: computed once, right for that problem and no other, shared by threads."""

import copy
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

import livarot
from livarot import agents, envs, theory
from livarot.model.derived import derived


def planned(problem):
    """The value of an optimistic plan with a set of one point, theta = 0."""
    agent = agents.CertaintyEquivalent()
    result = agent.plan(problem, agent.init(problem), None)
    return result.start_value[0]


def test_it_is_computed_once_per_problem():
    asked = []

    @derived
    def size(problem):
        asked.append(problem)
        return problem.n_states

    one, two = (envs.river_swim(n, 5).problem for n in (4, 5))
    assert [size(p) for p in (one, two, one, two)] == [4, 5, 4, 5]
    assert asked == [one, two]


def test_what_fails_is_not_kept():
    @derived
    def wrong(problem):
        raise ZeroDivisionError

    problem = envs.river_swim(4, 5).problem
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            wrong(problem)


def test_a_replaced_problem_does_not_see_what_was_derived_from_the_first():
    """Its rewards, start and bound are its own, even after a plan and a kappa were computed for the first one."""
    first = envs.river_swim(4, 12, shared_parameter=True).problem
    value, kappa = planned(first), theory.kappa(first)
    second = replace(first, reward=first.reward / 2, param_bound=first.param_bound / 2)
    assert planned(second) == pytest.approx(value / 2, rel=1e-12)
    assert theory.kappa(second).upper < kappa.upper
    assert planned(first) == value and theory.kappa(first) == kappa
    run = livarot.run(livarot.MNLMDP(second, np.zeros(second.theta_shape)), agents.PSRL(known_support=True), 30)
    fresh = replace(first, reward=first.reward / 2, param_bound=first.param_bound / 2)
    again = livarot.run(livarot.MNLMDP(fresh, np.zeros(fresh.theta_shape)), agents.PSRL(known_support=True), 30)
    np.testing.assert_array_equal(run.regret, again.regret)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda problem: pickle.loads(pickle.dumps(problem))],  # noqa: S301
)
def test_copies_and_pickles_are_the_same_problem(copied):
    problem = envs.machine_maintenance(6).problem
    value = planned(problem)
    other = copied(problem)
    assert other.same_as(problem) and other.fingerprint == problem.fingerprint
    assert planned(other) == value


def test_a_pickle_does_not_grow_with_what_was_derived():
    problem = envs.machine_maintenance(6).problem
    problem.nodes, problem.max_reachable, problem.theta_shape  # noqa: B018
    size = len(pickle.dumps(problem))

    @derived
    def large(problem):
        return np.zeros(10_000)

    large(problem)
    assert len(pickle.dumps(problem)) == size


def test_threads_get_the_same_object():
    problem, together, found = envs.river_swim(4, 5).problem, threading.Barrier(4), []

    @derived
    def layout(problem):
        together.wait(10)  # all four threads are here before the first one is done
        return object()

    threads = [threading.Thread(target=lambda: found.append(layout(problem))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1
