"""Rules of optimism written by users: compiled into the planner, on a par with those of the package."""

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import livarot
from livarot.errors import LivarotError
from livarot.lanes import dot, expectation, extremes, maximum, minimum, solver_room, sqrt, value_at_centre
from livarot.planning.optimistic import optimistic_plan
from tests.support.engines import engine
from tests.support.models import random_estimate, random_model, same_bits, to_mdp


class Slope(NamedTuple):
    factor: float = 1.0


@livarot.rule(settings=Slope(), clip="every Q")
def steep(choice, v, settings):
    """p.V + factor beta |g0|: the slope alone, which is not a rule of the package."""
    room = solver_room(choice)
    f = value_at_centre(choice, v, room.weight, room.g)
    return f + settings.factor * choice.beta * sqrt(dot(room.g, room.g))


def largest(choice, v, settings):
    _, high = extremes(v)
    return high


@livarot.rule(bound=largest)
def hopeful(choice, v, settings):
    """Half way up to the best outcome."""
    _, high = extremes(v)
    return 0.5 * (expectation(choice.p, v) + high)


def twin_of_steep(mdp, theta, gram, beta, factor):
    """The value of the start, computed loop by loop."""
    problem, horizon = mdp.problem, mdp.problem.horizon
    value = np.zeros((horizon + 1, problem.n_states))
    for h in range(horizon - 1, -1, -1):
        k = int(problem.stage_parameter[h])
        for s in np.flatnonzero(problem.reachable[h]):
            q = []
            for a in range(problem.n_actions):
                phi, v = problem.features(h, s, a), value[h + 1, problem.next_states(h, s, a)]
                pair = (int(problem.stage_table[h]) * problem.n_states + s) * problem.n_actions + a
                row = problem.rows.row_start[pair]
                z = phi @ theta[k] + problem.rows.offset[row : row + len(v)]
                p = np.exp(z - z.max())
                p /= p.sum()
                f = p @ v
                slope = (p * (v - f)) @ phi
                size = np.sqrt(max(slope @ np.linalg.solve(gram[k], slope), 0.0)) if len(v) > 1 else 0.0
                q.append(min(max(problem.reward[h, s, a] + f + factor * beta * size, 0.0), horizon))
            value[h, s] = max(q)
    return value


@pytest.mark.parametrize("by", ["pairs", "replicas"])
@pytest.mark.parametrize("kind", ["dense", "block", "partial"])
def test_a_rule_of_one_s_own_against_its_twin(kind, by):
    rng = np.random.default_rng(3)
    mdp = to_mdp(random_model(rng, kind=kind, H=3, S=4, A=2, U=4, offsets=True))
    estimate, dense = random_estimate(rng, mdp.problem, 3)
    for factor in (0.0, 1.0, 2.5):
        with engine(by):
            plan = optimistic_plan(mdp.problem, estimate, 0.4, steep.with_settings(factor=factor))
        assert plan.upper is None
        for r in range(3):
            twin = twin_of_steep(mdp, estimate.theta[r], dense[r], 0.4, factor)
            reach = mdp.problem.reachable[:-1]
            np.testing.assert_allclose(plan.value[r, :-1][reach], twin[:-1][reach], rtol=0, atol=1e-11)


def test_a_bound_gives_a_certified_plan():
    rng = np.random.default_rng(4)
    mdp = to_mdp(random_model(rng, H=4, S=4, A=2, d=3, U=4))
    estimate, _ = random_estimate(rng, mdp.problem, 2)
    plan = optimistic_plan(mdp.problem, estimate, 0.4, hopeful)
    assert np.all(plan.upper >= plan.start_value)
    with engine("replicas"):
        other = optimistic_plan(mdp.problem, estimate, 0.4, hopeful)
    assert same_bits((plan.value, plan.upper), (other.value, other.upper))


def test_an_agent_plays_by_it():
    mdp = livarot.envs.river_swim(4, 8)
    result = livarot.run(mdp, livarot.agents.Livarot(rule=steep), 30, seed=range(3))
    again = livarot.run(mdp, livarot.agents.Livarot(rule=steep), 30, seed=range(3), workers=2)
    assert np.array_equal(result.regret, again.regret)
    assert result.regret.shape == (3, 30)


def test_constants_that_a_rule_names_belong_to_its_compiled_code(tmp_path):
    """Two versions of a user's module, which differ in a constant, share a cache folder."""
    text = """
import numpy as np
import livarot
from livarot.lanes import expectation
SHARE = {share}
@livarot.rule
def lifted(choice, v, settings):
    return expectation(choice.p, v) + SHARE
problem = livarot.envs.river_swim(3, 4).problem
estimate = livarot.agents.Livarot().init(problem).estimate
print(repr(float(livarot.optimistic_plan(problem, estimate, 0.1, lifted).start_value[0])))
"""
    found = []
    for share in (0.0, 0.25, 0.0):
        file = tmp_path / "user.py"
        file.write_text(text.format(share=share))
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, file], env=environment, capture_output=True, text=True, check=True)
        found.append(float(done.stdout))
    assert found[0] == found[2]
    assert found[1] > found[0] + 0.1


def test_the_source_of_a_rule_runs_without_the_compiler():
    """NUMBA_DISABLE_JIT=1: the same bits, rule by rule."""
    code = """
import numpy as np, livarot
from livarot.planning.optimistic.rules import *
from tests.planning.optimistic.test_rule import steep
from tests.support.models import random_estimate, random_model, to_mdp
from tests.support.engines import engine
for rule in (JointMaximum(), JointMaximum(FrankWolfe(n_iter=5)), VarianceBonus(), SecondOrderBonus(), PlugIn(), steep):
    for by in ("pairs", "replicas", "screened"):
        if by == "screened" and not (isinstance(rule, JointMaximum) and isinstance(rule.solver, ShiftedPower)):
            continue
        rng = np.random.default_rng(3)
        mdp = to_mdp(random_model(rng, H=3, S=3, A=2, d=2, U=4, offsets=True))
        estimate, _ = random_estimate(rng, mdp.problem, 2)
        with engine(by):
            plan = livarot.optimistic_plan(mdp.problem, estimate, np.array([0.3, 3.0]), rule)
        print(plan.value.tobytes().hex(), plan.policy.tobytes().hex())
"""
    outputs = []
    for disabled in ("0", "1"):
        environment = os.environ | {"NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].split()) == 26


def lifting(numbers):
    """Rules whose code is the same and whose array is not."""

    @livarot.rule
    def lifted(choice, v, settings):
        return expectation(choice.p, v) + numbers[0]

    return lifted


def test_arrays_that_a_rule_names_belong_to_it():
    problem = livarot.envs.river_swim(3, 4).problem
    estimate = livarot.agents.Livarot().init(problem).estimate
    low, high, again = (
        optimistic_plan(problem, estimate, 0.1, lifting(np.array([more, 1.0]))).start_value[0]
        for more in (0.0, 0.25, 0.0)
    )
    assert low == again
    assert high > low + 0.1


COUNTED = """
import numpy as np, livarot
from livarot.core.compiling.jit import counts
from livarot.lanes import expectation
from livarot.planning.optimistic.rules import JointMaximum
def compiled_by(model, rule):
    problem, before = model.problem, counts["compiled"]
    livarot.optimistic_plan(problem, livarot.agents.Livarot().init(problem).estimate, 0.1, rule)
    return counts["compiled"] - before
@livarot.rule
def central(choice, v, settings):
    return expectation(choice.p, v)
@livarot.rule
def higher(choice, v, settings):
    return expectation(choice.p, v) + 0.5
chain, river = livarot.envs.hard_chain(3), livarot.envs.river_swim(3, 3)
for model in (chain, river):
    model.problem.reachable, livarot.agents.Livarot().init(model.problem)  # have kernels of their own
print(compiled_by(chain, JointMaximum()), compiled_by(river, JointMaximum()), compiled_by(river, central),
      compiled_by(river, higher), compiled_by(chain, higher))
"""


def test_loops_are_compiled_once_and_rules_when_they_are_needed(tmp_path):
    """Two outcomes need the loop alone; three also the solver and its bound; another rule its own function, once."""
    found = []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", COUNTED]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout.split())
    assert found[0] == ["1", "2", "1", "1", "0"]
    assert found[1] == ["0"] * 5  # all of it is in the cache on disk


def test_a_rule_says_what_it_is():
    assert repr(steep) == repr(steep.with_settings(factor=1.0))
    assert "steep" in repr(steep)
    assert " at 0x" not in repr(steep)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: livarot.rule(3), "rule"),
        (lambda: livarot.rule(lambda choice, v: v), "rule"),
        (lambda: livarot.rule(largest, bound=3), "rule"),
        (lambda: livarot.rule(largest, clip="all"), "clip"),
        (lambda: livarot.rule(largest, settings=(1.0,)), "settings"),
        (lambda: livarot.rule(largest, settings=Slope("steep")), "settings"),
        (lambda: livarot.rule(largest, settings=Slope(2**70)), "settings"),
        (lambda: livarot.rule(largest, screened=True), "screened"),
        (lambda: livarot.rule(largest, measured=3), "measured"),
        (lambda: steep.with_settings(slope=1.0), "settings"),
    ],
)
def test_what_is_not_a_rule_is_refused(make, name):
    with pytest.raises(LivarotError, match=name):
        make()


def test_a_rule_that_does_not_compile_or_gives_nonsense_is_refused():
    @livarot.rule
    def broken(choice, v, settings):
        return choice.no_such_thing

    @livarot.rule
    def undefined(choice, v, settings):
        return expectation(choice.p, v) * maximum(0.0, minimum(v[0], -1.0)) / 0.0

    problem = livarot.envs.river_swim(3, 4).problem
    estimate = livarot.agents.Livarot().init(problem).estimate
    with pytest.raises(LivarotError, match=r"rule.*no_such_thing"):
        optimistic_plan(problem, estimate, 0.1, broken)
    with pytest.raises(LivarotError, match=r"rule.*finite"):
        optimistic_plan(problem, estimate, 0.1, undefined)
