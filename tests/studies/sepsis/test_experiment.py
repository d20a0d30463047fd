"""The sepsis demonstration: deterministic, honest lines, files complete; learning itself is marked slow."""

from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

import livarot
from livarot import agents, envs
from livarot.model.probabilities import transition_kernel
from livarot.studies.sepsis import experiment
from livarot.studies.sepsis.experiment import Curve, replan_times, sepsis_study, treat

installed = pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")


def test_replan_times():
    assert replan_times(1).tolist() == [0, 1]
    assert replan_times(2).tolist() == [0, 1, 2]
    times = replan_times(1000)
    assert times[0] == 0
    assert times[-1] == 1000
    assert len(times) == 21
    assert (np.diff(times) >= 1).all()
    assert (times[5:] <= np.ceil(1.5 * times[4:-1])).all()


def test_lost_patients_by_hand():
    curve = Curve(4, np.array([0, 1, 3]), np.array([[0.5, 0.6, 0.9]]), np.zeros((1, 3)), np.zeros((1, 4)))
    assert curve.lost(0.8) == pytest.approx([0.3 + 2 * 0.2])  # one patient with the first plan, two with the second


class Recorder(agents.Uniform):
    """Draws its actions, and keeps what it saw."""

    seen: ClassVar[list] = []

    def update(self, problem, state, episodes):
        self.seen.append(tuple(np.array(x) for x in episodes))
        return state


def test_treating_anybody_with_a_plan_each_is_a_run():
    """Where every patient has a new plan, any agent does what it does in ``livarot.run``."""
    mdp, times, seeds = envs.hard_chain(4, gap=0.1), np.arange(21), [3, 5]
    optimum = mdp.problem.start @ livarot.solve(mdp).value[0]
    for agent in (agents.AdaptiveLivarot(), agents.ThompsonLivarot(), agents.Uniform()):
        alive, _, _ = treat(mdp, transition_kernel(mdp), agent, seeds, times, lambda _: None)
        regret = livarot.run(mdp, agent, 20, seed=seeds).regret
        np.testing.assert_allclose(optimum - alive[:, :-1], regret, atol=1e-12)


def test_policies_that_draw_their_actions_draw_those_of_the_seed():
    mdp, agent = envs.river_swim(5, 4), Recorder()
    policy = agents.Uniform().init(mdp.problem).policy[0]
    treat(mdp, transition_kernel(mdp), agent, [7], np.array([0, 2, 9]), lambda _: None)
    expected = livarot.simulate(mdp, policy, 9, seed=7)
    for seen, told in zip(zip(*agent.seen, strict=True), expected, strict=True):
        np.testing.assert_array_equal(np.concatenate(seen), told)


@installed
def test_the_study(study):
    found, calls = study
    assert calls[0] == (0, 20)
    assert calls[-1] == (20, 20)
    assert found.seeds == (0, 1)
    assert [curve.dim for curve in found.curves] == [4, 5]
    for curve in found.curves:
        assert curve.patients.tolist() == [0, 1, 2, 3, 4]
        assert curve.survival.shape == (2, 5)
        assert (curve.survival <= found.optimum + 1e-12).all()
        assert (curve.survival > 0).all()
        assert np.ptp(curve.survival[:, 0]) == 0.0  # all seeds begin with the same plan
        assert (curve.belief[:, 0] >= found.optimum - 0.2).all()
    assert found.random < found.nominal < found.optimum
    assert all(value <= found.optimum + 1e-12 for _, value in found.robust)


@installed
def test_workers_and_grouping_change_nothing(study, monkeypatch):
    monkeypatch.setattr(experiment, "RADII", ())
    again = sepsis_study(1, 4, horizon=3, first_seed=1, workers=2)
    both = sepsis_study(2, 4, horizon=3, workers=2)
    for one, two, whole in zip(again.curves, both.curves, study[0].curves, strict=True):
        assert np.array_equal(one.survival[0], whole.survival[1])
        assert np.array_equal(two.survival, whole.survival)
        assert np.array_equal(two.theta, whole.theta)


def test_bad_input():
    for options in ({"n_seeds": 0}, {"n_patients": 0}, {"workers": 0}, {"first_seed": -1}):
        with pytest.raises(livarot.LivarotError, match=next(iter(options))):
            sepsis_study(**options)


@installed
@pytest.mark.slow
def test_livarot_closes_the_gap():
    found = sepsis_study(2, 128, first_seed=50)
    last = found.curves[0].survival[:, -1]
    assert (last > found.nominal + 0.8 * (found.optimum - found.nominal)).all()
