"""Runs in models that drift: every episode is played in, and judged by, the model of its time."""

import numpy as np
import pytest

import livarot
from livarot import LivarotError
from livarot.agents import UCBVI, Livarot, Oracle, Uniform
from livarot.envs import Drifting
from livarot.running.result import COLUMNS
from tests.support.models import same_bits

RIVER = livarot.envs.river_swim(4, 6)
DRIFT = Drifting.abrupt(RIVER, every=7, n_pieces=3, seed=2)


def assert_same_run(one, other):
    for name in COLUMNS:
        assert same_bits(one.columns[name].filled(0.0), other.columns[name].filled(0.0)), name
        assert np.array_equal(np.ma.getmaskarray(one.columns[name]), np.ma.getmaskarray(other.columns[name]))


@pytest.mark.parametrize("agent", [Livarot(), Uniform(), UCBVI()], ids=lambda a: a.name)
def test_without_a_change_it_is_the_model(agent):
    still = Drifting(RIVER.problem, RIVER.theta[None], np.zeros(1))
    twice = Drifting(RIVER.problem, np.stack([RIVER.theta] * 2), np.array([0, 9]))
    plain = livarot.run(RIVER, agent, 20, seed=[1, 2])
    assert_same_run(livarot.run(still, agent, 20, seed=[1, 2]), plain)
    assert_same_run(livarot.run(twice, agent, 20, seed=[1, 2]), plain)


def test_regret_is_against_the_moving_optimum():
    policy = livarot.solve(RIVER).policy
    regret = livarot.run(DRIFT, Oracle(policy), 25, seed=[0, 1]).regret
    for t in range(25):
        mdp = DRIFT.at(t)
        best, own = livarot.solve(mdp).value[0, 0], livarot.evaluate(mdp, policy)[0, 0]
        np.testing.assert_allclose(regret[:, t], best - own, rtol=0, atol=1e-12)
    assert np.abs(regret[:, :7]).max() < 1e-12 and regret[:, 7:].max() > 0.01


def test_every_other_number_is_of_its_time_too():
    """The first piece is the first model's run; after the change, coverage and variance are those of the new theta."""
    agent = Livarot(beta_scale=1e-3)
    result = livarot.run(DRIFT, agent, 12, seed=[5])
    before = livarot.run(RIVER, agent, 7, seed=[5])
    for name in COLUMNS:
        assert same_bits(result.columns[name][:, :7].filled(0.0), before.columns[name].filled(0.0)), name
    still = livarot.run(DRIFT.at(7), Oracle(livarot.solve(RIVER).policy), 12, seed=[5])
    moved = livarot.run(DRIFT, Oracle(livarot.solve(RIVER).policy), 12, seed=[5])
    assert same_bits(still.realised_regret[:, 7:], moved.realised_regret[:, 7:])
    assert same_bits(still.variance[:, 7:], moved.variance[:, 7:])


def test_one_drift_per_seed():
    other = Drifting.abrupt(RIVER, every=4, n_pieces=2, seed=8)
    together = livarot.run([DRIFT, other, RIVER], Livarot(), 15, seed=[3, 4, 5])
    for index, truth in enumerate([DRIFT, other, RIVER]):
        alone = livarot.run(truth, Livarot(), 15, seed=[3 + index])
        assert same_bits(together.regret[index], alone.regret[0])
    assert_same_run(livarot.run([DRIFT, other, RIVER], Livarot(), 15, seed=[3, 4, 5], workers=2), together)


def test_saved_with_the_facts_of_all_pieces(tmp_path):
    result = livarot.run(DRIFT, Uniform(), 10, seed=[0])
    assert result.facts["problem"]["n_models"] == 2  # the third piece was not played
    truth = result.facts["truth"]["optimum"]
    optima = [livarot.solve(DRIFT.at(t)).value[0, 0] for t in (0, 7)]
    assert truth["min"] == pytest.approx(min(optima)) and truth["max"] == pytest.approx(max(optima))
    result.save(tmp_path / "run")
    assert_same_run(livarot.RunResult.load(tmp_path / "run"), result)


def test_refused():
    elsewhere = Drifting.abrupt(livarot.envs.river_swim(5, 6), every=4, n_pieces=2)
    with pytest.raises(LivarotError, match="another Problem"):
        livarot.run([DRIFT, elsewhere], Uniform(), 5, seed=[0, 1])
    with pytest.raises(LivarotError, match="is not an MNLMDP"):
        livarot.run([DRIFT, "river"], Uniform(), 5, seed=[0, 1])


def test_no_promise_where_theta_changes():
    """Sets are proved to hold one theta*; a model that does not change within the run is one."""
    agent = livarot.agents.SoundLivarot()
    changed, early = (livarot.run(DRIFT, agent, n, seed=0).coverage() for n in (10, 5))
    assert (changed.promised, changed.sound) == (None, False)
    assert (early.promised, early.sound) == (0.95, True)
