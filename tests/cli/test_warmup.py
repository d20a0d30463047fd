"""``livarot warmup``: what it says, and that nothing is left to compile after it."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from livarot.cli.app import app

TOLD = re.compile(r"(\d+) functions compiled, (\d+) were in the cache; [\d.]+ CPU seconds\n")

KERNELS = """
import importlib, pkgutil, livarot
from numba.core.dispatcher import Dispatcher

def kernels():
    found = []
    for module in pkgutil.walk_packages(livarot.__path__, "livarot."):
        if not module.name.endswith("__main__"):
            parts = vars(importlib.import_module(module.name)).values()
            found += [x for x in parts if isinstance(x, Dispatcher) and x.py_func.__module__ == module.name]
    return [x for x in found if "no_cpython_wrapper" not in x.targetoptions]  # the others are parts of their callers
"""

WARM = """
from numba.core.caching import FunctionCache
from livarot.cli.warmup import warmup
warmup()
kept = [k for k in kernels() if isinstance(k._cache, FunctionCache)]  # others are parts of their callers
assert kept
idle = [k.py_func.__qualname__ for k in kept if not k.signatures]
assert not idle, idle
"""

USE = """
import numpy as np
from livarot import agents, envs
for mdp in (envs.hard_chain(4), envs.hard_chain(3, dim=3, gap=.05), envs.river_swim(3, 5),
            envs.river_swim(3, 5, features="moves", shared_parameter=True)):
    solution = livarot.solve(mdp)
    for agent in (agents.Livarot(), agents.Livarot.paper(), agents.Livarot.theory(5), agents.UCRLMNLOL(),
                  agents.UCRLMNLOL.theory(), agents.CertaintyEquivalent(), agents.Uniform(),
                  agents.Oracle(solution.policy), agents.Livarot(rule=livarot.VarianceBonus()),
                  agents.Livarot(n_explore=2, exploration=agents.StateAwareExploration(), warm_start=True)):
        livarot.run(mdp, agent, 85 if agent == agents.Livarot.paper() else 5, seed=range(4), workers=2)
    livarot.evaluate(mdp, solution.policy)
    livarot.simulate(mdp, solution.policy, 3)
livarot.inner_max(np.eye(3), [0.0, 1.0, 2.0], livarot.Ellipsoid.ball(3, 1.0))
fit = livarot.MNLTransition().fit(livarot.data.Choices.from_arrays([[[0.0], [1.0]]] * 4, chosen=[0, 1, 1, 1]))
fit.confidence_set()
compiled = [k.py_func.__qualname__ for k in kernels() if sum(k.stats.cache_misses.values())]
assert not compiled, compiled
from livarot.core.compiling.jit import counts
assert not counts["compiled"]  # nor functions of rules, which are called by address
"""


@pytest.mark.slow
def test_the_warm_up_compiles_every_kernel_and_later_processes_none(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for code in (KERNELS + WARM, KERNELS + USE):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_part_of_it_is_compiled_once(tmp_path):
    command = [sys.executable, "-m", "livarot", "warmup", "--only", "gymnasium"]
    counts = []
    for _ in range(2):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
        counts.append([int(number) for number in TOLD.fullmatch(done.stdout).groups()])
        assert done.stderr == "" or done.stderr.splitlines()[-1] == "warmup: 100 % of 1 steps"  # after half a minute
    (compiled, _), (again, loaded) = counts
    assert compiled > 0 == again
    assert loaded > 0


def test_a_part_that_does_not_exist_is_refused_before_any_work():
    result = CliRunner().invoke(app, ["warmup", "--only", "planning", "--only", "tea"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("livarot: only: there is no part 'tea'") and "planning" in result.stderr
    assert len(result.stderr.splitlines()) == 1
