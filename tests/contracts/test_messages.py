"""Mistakes that people make, each answered by a LivarotError of one line that says what to do."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import livarot
from livarot import agents, envs, infinite, theory
from livarot.envs import park_two_state
from livarot.infinite.learning.ucmnlk import FixedState, InfinitePlan, Steps
from livarot.report.statistics import log_log_slope
from livarot.sweeps.experiment.spec import Experiment

MDP = envs.river_swim(4, 5)
PROBLEM = MDP.problem
ESTIMATE = agents.Livarot().init(PROBLEM, 2).estimate
ENDLESS = infinite.InfiniteMDP.from_mdp(park_two_state())
SMALL = livarot.solve(MDP)
LARGE = envs.river_swim(40, 60)
WORLD = '[[environments]]\nname = "hard-chain"\n'
LEARNER = '[[agents]]\nname = "livarot"\n'
COUNTS = "episodes = 3\nseeds = 1\n"


def spec(text):
    return lambda: Experiment.from_toml(text).cells()


CASES = {
    "an agent's class": (lambda: livarot.run(MDP, agents.Livarot, 10), "agent: Livarot is a class.*Livarot()"),
    "an agent's name": (lambda: livarot.run(MDP, "livarot", 10), "agent: .*livarot.agents.make"),
    "no agent": (lambda: livarot.run(MDP, None, 10), "agent: NoneType is not an agent: it has no init"),
    "an environment's name": (lambda: livarot.run("river-swim", agents.Livarot(), 10), "mdp: .*livarot.envs.make"),
    "a problem": (lambda: livarot.run(PROBLEM, agents.Livarot(), 10), "mdp: Problem is not an MNLMDP.*theta"),
    "a model's class": (lambda: livarot.run(livarot.MNLMDP, agents.Livarot(), 10), "mdp: MNLMDP is a class"),
    "a second problem": (lambda: livarot.run([MDP, PROBLEM], agents.Livarot(), 1, [0, 1]), "mdp: .*index 1"),
    "evaluate a problem": (lambda: livarot.evaluate(PROBLEM, SMALL.policy), "mdp: Problem is not an MNLMDP"),
    "solve a problem": (lambda: livarot.solve(PROBLEM), "mdp: Problem is not an MNLMDP"),
    "simulate a name": (lambda: livarot.simulate("river-swim", SMALL.policy, 3), "mdp: str is not an MNLMDP"),
    "evaluate a solution": (lambda: livarot.evaluate(MDP, SMALL), "policy: is not an array"),
    "simulate nothing": (lambda: livarot.simulate(MDP, None, 3), "policy: has shape"),
    "check a class": (lambda: livarot.check_agent(agents.Livarot), "agent: Livarot is a class"),
    "learn with a class": (lambda: livarot.Online(agents.Livarot, PROBLEM), "agent: Livarot is a class"),
    "learn in a model": (lambda: livarot.Online(agents.Livarot(), MDP), "problem: .*mdp.problem"),
    "not a rule": (lambda: livarot.optimistic_plan(PROBLEM, ESTIMATE, 1.0, object()), "rule: "),
    "not a radius": (lambda: livarot.optimistic_plan(PROBLEM, ESTIMATE, None), "radius: "),
    "an infinite radius": (lambda: livarot.optimistic_plan(PROBLEM, ESTIMATE, np.inf), "radius: .*finite"),
    "a negative radius": (lambda: livarot.optimistic_plan(PROBLEM, ESTIMATE, [1.0, -1.0]), "radius: .*index 1"),
    "three radii for two": (lambda: livarot.optimistic_plan(PROBLEM, ESTIMATE, np.ones(3)), "radius: .*2 numbers"),
    "an id of Gymnasium": (lambda: envs.from_gymnasium("FrozenLak-v1"), "env: Gymnasium cannot make 'FrozenLak-v1'"),
    "one pair of brackets": (spec(f'{COUNTS}{WORLD}[agents]\nname = "livarot"\n'), r"agents is not.*\[\[agents\]\]"),
    "no agents": (spec(COUNTS + WORLD), r"no agents; .*\[\[agents\]\]"),
    "no environments": (spec(COUNTS + LEARNER), r"no environments; .*\[\[environments\]\]"),
    "agents by name": (spec(f'{COUNTS}agents = ["livarot"]\n{WORLD}'), r"agents.0 is not a table.*\[\[agents\]\]"),
    "an agent without a name": (spec(f"{COUNTS}{WORLD}[[agents]]\n"), "agents.0.name is missing"),
    "no episodes": (spec(f"seeds = 1\n{WORLD}{LEARNER}"), "episodes is missing"),
    "an unknown agent": (spec(f'{COUNTS}{WORLD}[[agents]]\nname = "mine"\n'), "agent 1: .*no 'mine'.*--import MODULE"),
    "an unknown world": (spec(f'{COUNTS}[[environments]]\nname = "mine"\n{LEARNER}'), "no 'mine'.*--import MODULE"),
    "lists per size": (lambda: log_log_slope([5, 10], [[1.0, 2.0, 3.0], [1.0, 2.0]]), "values: .*paired=False"),
    "a row per size": (lambda: log_log_slope([5, 10], np.ones((2, 9))), r"values: .*paired=False.*\(seeds, sizes\)"),
    "a solution of another": (lambda: theory.sigma_bar_star(LARGE, solution=SMALL), "solution.value: has shape"),
    "actions that do not exist": (
        lambda: theory.sigma_bar_star(MDP, solution=SMALL._replace(policy=SMALL.policy + 10**6)),
        "policy: no action",
    ),
    "nu of another": (lambda: theory.nu_max(LARGE, solution=SMALL), "solution.value: has shape"),
    "not a solution": (lambda: theory.nu_max(MDP, solution=3), "solution: must be Solution or PlainSolution, got 3"),
    "outcomes in three axes": (
        lambda: livarot.inner_max(np.ones((1, 3, 2)), np.ones(3), livarot.Ellipsoid([0.0, 0.0], np.eye(2), 1.0)),
        "features: has shape",
    ),
    "an endless agent's class": (
        lambda: infinite.run_infinite(ENDLESS, infinite.UCMNLK, 3),
        "agent: the class UCMNLK is not",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mistakes_are_answered(case):
    work, told = CASES[case]
    with pytest.raises(livarot.LivarotError, match=told) as caught:
        work()
    assert "\n" not in str(caught.value)


def test_a_known_name_is_not_blamed_on_a_missing_module():
    with pytest.raises(livarot.LivarotError, match="takes no 'betta'") as caught:
        spec(f'{COUNTS}{WORLD}[[agents]]\nname = "livarot"\nsettings.betta = 1\n')()
    assert "--import" not in str(caught.value)


def test_a_gymnasium_id_will_do():
    mdp = envs.from_gymnasium("FrozenLake-v1")
    assert mdp.problem.horizon == 100
    assert float(livarot.solve(mdp).value[0, 0]) == pytest.approx(0.7442, abs=5e-5)


def test_whole_numbers_are_radii_and_nothing_is_compiled_for_them():
    expected = livarot.optimistic_plan(PROBLEM, ESTIMATE, 1.0)
    for radius in (1, np.int64(1), np.float32(1.0), np.array(1), [1, 1], np.ones(2, dtype=np.int8)):
        begin = time.process_time()
        plan = livarot.optimistic_plan(PROBLEM, ESTIMATE, radius)
        assert time.process_time() - begin < 0.5  # a compilation takes seconds
        assert plan.radius.dtype == np.float64
        assert np.array_equal(plan.value, expected.value)


class Endless:
    """Plays a plan that it was given."""

    name = "endless"

    def __init__(self, what):
        self.what = what

    def init(self, problem, n_replicas=1):
        return FixedState(np.zeros((1, problem.n_states), dtype=np.int32))

    def plan(self, problem, state):
        return self.what

    def update(self, problem, state, steps):
        return state


FINE, EPOCH = np.zeros((2, 2), dtype=np.int32), np.zeros(2, dtype=np.int64)
SETS = {
    "center": np.zeros((2, 1, ENDLESS.problem.dim)),
    "gram": np.tile(ENDLESS.problem.stage.rows.pack_identity(), (2, 1, 1)),
    "radius": np.ones(2),
}


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (None, "is NoneType, not an InfinitePlan"),
        (FINE, "is ndarray, not an InfinitePlan"),
        (InfinitePlan(FINE + 99, EPOCH), "policy: no action 99"),
        (InfinitePlan(FINE - 1, EPOCH), "policy: no action -1"),
        (InfinitePlan(FINE[:, :1], EPOCH), "policy: has shape"),
        (InfinitePlan(FINE[0], EPOCH), "policy: has shape"),
        (InfinitePlan(FINE * 0.5, EPOCH), "policy: has shape"),
        (InfinitePlan(FINE, None), "epoch: has shape"),
        (InfinitePlan(FINE, EPOCH, value=np.ones((2, 1)), discount=0.9), "value: has shape"),
        (InfinitePlan(FINE, EPOCH, **(SETS | {"gram": np.ones((2, 1, 1))})), "gram: has shape"),
        (InfinitePlan(FINE, EPOCH, **(SETS | {"center": np.ones((2, 1, 1))})), "center: has shape"),
        (InfinitePlan(FINE, EPOCH, **(SETS | {"radius": np.array([1.0, np.nan])})), "radius: NaN or infinite"),
    ],
)
def test_endless_plans_are_looked_at(plan, told):
    with pytest.raises(livarot.LivarotError, match=f"plan: agent 'endless', step 0: .*{told}"):
        infinite.run_infinite(ENDLESS, Endless(plan), 5, seed=[0, 1])


def test_an_endless_plan_that_changes_in_place_is_looked_at():
    class Worse(Endless):
        def update(self, problem, state, steps):
            self.what.policy[:] = 10**6
            return state

    with pytest.raises(livarot.LivarotError, match=r"step 1: .*policy: no action 1000000"):
        infinite.run_infinite(ENDLESS, Worse(InfinitePlan(FINE.copy(), EPOCH)), 5, seed=[0, 1])


@pytest.mark.parametrize("name", ["states", "actions", "choices"])
@pytest.mark.parametrize("number", [-1, 10**6])
def test_endless_agents_refuse_foreign_steps(name, number):
    agent, zero = infinite.UCMNLK(discount=0.9), np.zeros(2, dtype=np.int32)
    state = agent.init(ENDLESS.problem, 2)
    steps = Steps(zero, zero, zero, zero)._replace(**{name: zero + number})
    with pytest.raises(livarot.LivarotError, match="episodes: no transition of the problem"):
        agent.update(ENDLESS.problem, state, steps)
    larger = infinite.InfiniteMDP.from_mdp(envs.river_swim(30, 5, shared_parameter=True))
    with pytest.raises(livarot.LivarotError, match="estimate: "):
        agent.update(larger.problem, state, Steps(zero, zero, zero, zero))


def test_plans_are_looked_at_where_nothing_is_compiled():
    code = """
import numpy as np, livarot
from livarot.model.episodes import PlanCheck
mdp = livarot.envs.hard_chain(3, gap=0.1)
check = PlanCheck(mdp.problem, 1, "x")
fine = livarot.Plan(np.zeros((1, 3, mdp.problem.n_states), dtype=np.int32))
assert check(fine, 0).policy is fine.policy
try:
    check(livarot.Plan(fine.policy + 9), 0)
except livarot.LivarotError as error:
    print(error)
"""
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert "no action 9" in done.stdout
