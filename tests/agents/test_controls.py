"""The controls: the uniform policy does not learn, and the oracle has no regret."""

import subprocess
import sys

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.agents import Oracle, RareSwitching, Uniform


def test_uniform_is_a_distribution_and_does_not_learn():
    mdp = envs.river_swim(4, 6)
    plan = Uniform().plan(mdp.problem, Uniform().init(mdp.problem, 3), None)
    assert plan.policy.shape == (1, 6, 4, 2)
    assert np.all(plan.policy == 0.5)
    result = livarot.run(mdp, Uniform(), 30, seed=range(3))
    exact = livarot.solve(mdp).value[0, 0] - livarot.evaluate(mdp, np.full((6, 4, 2), 0.5))[0, 0]
    np.testing.assert_allclose(result.regret, exact, rtol=0, atol=1e-12)
    for name in ("optimism_gap", "optimism_loss", "inner_gap", "covered"):
        assert getattr(result, name).mask.all()


def test_the_oracle_has_no_regret():
    mdp = envs.river_swim(4, 6)
    result = livarot.run(mdp, Oracle(livarot.solve(mdp).policy), 20, seed=range(3))
    np.testing.assert_allclose(result.regret, 0.0, rtol=0, atol=1e-12)
    mixed = np.eye(2)[livarot.solve(mdp).policy]
    np.testing.assert_allclose(livarot.run(mdp, Oracle(mixed), 5).regret, 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_an_oracle_per_seed(workers):
    chains = [envs.hard_chain(5, gap=0.1, seed=s) for s in range(5)]
    policies = np.stack([livarot.solve(m).policy for m in chains])
    result = livarot.run(chains, Oracle(policies), 3, seed=range(5), workers=workers)
    np.testing.assert_allclose(result.regret, 0.0, rtol=0, atol=1e-12)


def test_too_few_policies_are_refused():
    """In a process of its own, which a compiled loop that reads outside an array may end."""
    script = """
import numpy as np, livarot
chains = [livarot.envs.hard_chain(5, gap=0.1, seed=s) for s in range(4)]
policies = np.stack([livarot.solve(m).policy for m in chains[:2]])
try:
    livarot.run(chains, livarot.agents.Oracle(policies), 3, seed=range(4))
except livarot.LivarotError as error:
    raise SystemExit(0 if error.argument == "policy" else f"refused {error.argument}")
raise SystemExit("not refused")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CHAIN = livarot.envs.hard_chain(5, gap=0.15)


def test_an_oracle_with_a_policy_per_replica():
    policies = np.stack([livarot.solve(CHAIN).policy] * 2)
    agent = RareSwitching(Oracle(policies))
    for workers in (1, 2):
        assert abs(livarot.run(CHAIN, agent, 5, seed=[0, 1], workers=workers).regret).max() < 1e-12
