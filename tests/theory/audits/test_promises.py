"""Promises of the theory and the conditions they need."""

import json
import warnings

import pytest

from livarot import envs
from livarot.agents import Livarot, Uniform
from livarot.theory.audits.facts import problem_facts
from livarot.theory.audits.promises import constants_from, promises


class Own(Livarot):
    theory = "mine"


class Needy(Livarot):
    @classmethod
    def theory(cls, n_episodes, patience):
        raise NotImplementedError


@pytest.mark.parametrize("agent", [Own(beta_scale=1.0), Needy(beta_scale=1.0), Uniform()])
def test_agents_without_such_a_preset_promise_nothing(agent):
    assert agent.promised_coverage() is None


def test_promises_say_which_condition_fails():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = promises(constants_from(problem_facts([envs.hard_chain(20, gap=0.01)])), 5)
    assert any("T = 5" in condition for condition in found["failed"])
    json.dumps(found, allow_nan=False)
