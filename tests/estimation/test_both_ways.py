"""Estimates with and without the compiler, what is compiled when, and problems that are copied."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from livarot.estimation.omd import ball, initial_estimate, omd_update
from tests.estimation import update_kernels
from tests.support.episodes import random_transitions
from tests.support.models import random_model, to_mdp

ROOT = Path(__file__).parents[2]

ONLY_WHAT_IS_USED = """
import numpy as np
import livarot
from livarot.estimation.omd import ball, initial_estimate, omd_update, project_parameters
mdp = livarot.envs.hard_chain(3)
episode = livarot.simulate(mdp, np.zeros((3, mdp.problem.n_states), dtype=np.int32), 4)
start = initial_estimate(mdp.problem, 4, 1.0)
for bound, compiled in ((9.0, 0), (1e-3, 1)):
    moved = omd_update(mdp.problem, start, episode, 1.0, ball(mdp.problem, bound, 4)).theta
    assert 0 < np.linalg.norm(moved, axis=2).max() <= bound * (1 + 1e-9)
    assert len(project_parameters.signatures) == compiled
"""


def in_a_process(*command, **environment):
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": paths} | environment
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=250)


def test_the_same_numbers_without_the_compiler():
    done = in_a_process("-m", "tests.estimation.update_kernels", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    plain = {name: np.array([float.fromhex(x) for x in numbers]) for name, numbers in json.loads(done.stdout).items()}
    found = update_kernels.estimates()
    assert set(plain) == set(found)
    for name, array in found.items():
        if name.endswith(("fit", "ball")):  # logarithms differ in the last digit
            np.testing.assert_allclose(array.ravel(), plain[name], rtol=0, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(array.ravel(), plain[name], err_msg=name)


def test_projections_are_compiled_when_one_is_needed():
    done = in_a_process("-c", ONLY_WHAT_IS_USED)
    assert done.returncode == 0, done.stderr


def test_a_copied_problem_does_not_read_the_memory_of_the_first():
    """What kernels keep of a problem are addresses: a copy must have its own."""
    rng = np.random.default_rng(1)
    mdp = to_mdp(random_model(rng, H=3, S=4, A=2, d=3, U=4), param_bound=2.0)
    episodes = random_transitions(rng, mdp.problem, 2)

    def learned(problem):
        return omd_update(problem, initial_estimate(problem, 2, 1.0), episodes, 1.0, ball(problem, 2.0, 2))

    before = learned(mdp.problem)
    other = copy.deepcopy(mdp.problem)
    mdp.problem.rows.feat[:] = np.nan  # reading these from now on shows in the results
    after = learned(other)
    for one, two in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, two)
