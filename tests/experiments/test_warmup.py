"""After the warm-up nothing is left to compile."""

import os
import subprocess
import sys

import pytest

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
from livarot.data.warmup import warmup as data_warmup
from livarot.experiments.warmup import warmup
warmup()
data_warmup()
idle = [k.py_func.__qualname__ for k in kernels() if not k.signatures]
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
compiled = [k.py_func.__qualname__ for k in kernels() if sum(k.stats.cache_misses.values())]
assert not compiled, compiled
"""


@pytest.mark.slow
def test_the_warm_up_compiles_every_kernel_and_later_processes_none(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for code in (KERNELS + WARM, KERNELS + USE):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
