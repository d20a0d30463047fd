"""What a run gives back: coverage per stage against a loop over sets, facts, and files old and new."""

import json

import numpy as np
import pytest

import livarot
from livarot import LivarotError, envs
from livarot.agents import CertaintyEquivalent, Livarot, Oracle, Uniform
from livarot.running.result import RunResult
from livarot.storage import load_tensors, save_tensors
from tests.support.episodes import judged, play_agent
from tests.support.models import random_estimate, random_model, to_mdp
from tests.twins import core as ref

RAGGED = to_mdp(random_model(np.random.default_rng(1), H=4, S=5, A=3, d=3, U=4, offsets=True))
SHARED = to_mdp(random_model(np.random.default_rng(2), H=4, S=4, A=2, d=3, U=3, one_table=True), shared=True)
LONG = envs.hard_chain(70, gap=0.005)
MEASURED = {"ragged": RAGGED, "shared": SHARED, "long": LONG, "river": envs.river_swim(4, 6)}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("scale", [0.05, 0.4, 3.0])
def test_each_set_is_looked_at_on_its_own(name, scale):
    """Stage by stage |theta* - center|_gram <= radius, written out; with 70 stages in three words."""
    mdp = MEASURED[name]
    agent = Livarot(beta_scale=scale, reg=1.0)
    log, _ = play_agent(mdp, agent, 6, seed=3)
    result = livarot.run(mdp, agent, 6, seed=3)
    assert result.stage_bits.shape == (1, 6, -(-mdp.problem.n_parameters // 32))
    assert result.n_parameters == mdp.problem.n_parameters
    for t, plan in enumerate(log["plans"]):
        gram = mdp.problem.rows.unpack(plan.gram[0])
        inside = [ref.norm_in(mdp.theta[k] - plan.center[0, k], gram[k]) <= plan.radius[0] for k in range(len(gram))]
        assert [bool(result.stage_covered(k)[0, t]) for k in range(len(gram))] == inside
        assert bool(result.covered[0, t]) == all(inside)


def test_some_sets_hold_the_truth_and_others_do_not():
    """Radii at the edge of each set, to nine digits."""
    rng = np.random.default_rng(3)
    for mdp in (RAGGED, SHARED, LONG):
        estimate, dense = random_estimate(rng, mdp.problem, 3)
        n = mdp.problem.n_parameters
        center = mdp.theta[None] + rng.normal(size=estimate.theta.shape)
        away = np.array([[ref.norm_in(mdp.theta[k] - center[r, k], dense[r, k]) for k in range(n)] for r in range(3)])
        for sign in (1e-9, -1e-9):
            radius = np.median(away, axis=1) * (1 + sign)
            policy = np.zeros((1, mdp.problem.horizon, mdp.problem.n_states), np.int32)
            plan = livarot.Plan(policy, center=center, gram=estimate.gram, radius=radius)
            record, numbers = judged([mdp], plan, 3)
            out, bits = record.covered[0], record.bits[0]
            assert numbers
            found = np.array(
                [[(int(bits[r, k // 32]) >> (k % 32)) & 1 for k in range(n)] for r in range(3)], dtype=bool
            )
            assert np.array_equal(found, away <= radius[:, None])
            assert np.array_equal(out == 1.0, found.all(axis=1))


def test_before_the_first_set_and_without_sets():
    result = livarot.run(LONG, Livarot(n_explore=3), 5, seed=[1, 2])
    for k in (0, 31, 32, 69):
        assert np.ma.getmaskarray(result.stage_covered(k)).tolist() == [[True, True, True, False, False]] * 2
    for agent in (Uniform(), Oracle(livarot.solve(LONG).policy)):
        result = livarot.run(LONG, agent, 3)
        assert result.stage_bits is None
        assert np.ma.getmaskarray(result.stage_covered(0)).all()


@pytest.mark.parametrize("parameter", [-1, 4, 100])
def test_a_parameter_that_is_not_there(parameter):
    with pytest.raises(LivarotError, match="parameter"):
        livarot.run(RAGGED, CertaintyEquivalent(), 2).stage_covered(parameter)


def test_workers_do_not_change_bits_or_facts():
    one, two = (livarot.run(RAGGED, Livarot(beta_scale=0.3), 8, seed=range(5), workers=w) for w in (1, 3))
    assert np.array_equal(one.stage_bits, two.stage_bits)
    assert one.facts == two.facts


def test_facts_of_one_model_and_of_many():
    result = livarot.run(RAGGED, Livarot(), 2)
    json.dumps(result.facts, allow_nan=False)
    problem, truth = result.facts["problem"], result.facts["truth"]
    assert (problem["horizon"], problem["n_states"], problem["n_actions"], problem["dim"]) == (4, 5, 3, 3)
    assert problem["param_bound"] == RAGGED.problem.param_bound
    best = float(RAGGED.problem.start @ livarot.solve(RAGGED).value[0])
    assert truth["optimum"] == {"min": best, "mean": best, "max": best}
    assert result.facts["agent"]["beta_scale"] == 0.05
    chains = [envs.hard_chain(5, gap=0.1, seed=s) for s in range(4)]
    many = livarot.run(chains, Uniform(), 2, seed=range(4)).facts
    assert many["problem"]["n_models"] == 4
    assert many["agent"] == {"promised_coverage": None}


def test_a_file_keeps_everything(tmp_path):
    result = livarot.run(LONG, Livarot(beta_scale=0.5, n_explore=2), 6, seed=[4, 5])
    result.save(tmp_path / "run")
    again = RunResult.load(tmp_path / "run")
    assert again.facts == result.facts
    assert np.array_equal(again.stage_bits, result.stage_bits)
    assert again.stage_bits.dtype == np.int32
    for k in range(70):
        assert np.ma.allequal(again.stage_covered(k), result.stage_covered(k))


def test_a_file_of_an_earlier_version_loads(tmp_path):
    """Files without facts and without coverage per stage."""
    result = livarot.run(RAGGED, Livarot(), 3)
    result.save(tmp_path / "new")
    tensors, header = load_tensors(tmp_path / "new", kind="run-result")
    del tensors["stage_bits"], header["facts"]
    save_tensors(tmp_path / "old", tensors, kind="run-result", header=header)
    old = RunResult.load(tmp_path / "old")
    assert old.facts == {} and old.stage_bits is None
    assert old.n_parameters == 4
    assert np.ma.getmaskarray(old.stage_covered(0)).all()
    assert np.array_equal(old.regret, result.regret)


def test_coverage_is_what_was_promised_and_what_was_seen():
    mdp, seeds = livarot.envs.hard_chain(4, gap=0.1), range(5)
    sound = livarot.run(mdp, livarot.agents.SoundLivarot(), 40, seed=seeds).coverage()
    assert (sound.promised, sound.sound, sound.always, sound.episodes) == (0.95, True, 1.0, 1.0)
    tuned = livarot.run(mdp, livarot.agents.SoundLivarot(beta_scale=0.3), 40, seed=seeds)
    found = tuned.coverage()
    assert (found.promised, found.sound) == (None, False) and "nothing promised" in str(found)
    assert found.episodes == pytest.approx(float(tuned.covered.mean()))
    assert found.always == pytest.approx(float(tuned.covered.all(axis=1).mean()))
    assert found.per_stage.tolist() == [float(tuned.stage_covered(k).all(axis=1).mean()) for k in range(4)]
    theory = livarot.run(mdp, livarot.agents.Livarot.theory(40), 40, seed=seeds).coverage()
    assert theory.promised == 0.95 and not theory.sound
    assert str(livarot.run(mdp, livarot.agents.Uniform(), 3).coverage()) == "no confidence sets"


def test_a_band_is_never_below_zero():
    """A quantile of exact regret is some regret; mean - sd of skewed curves is not."""
    from matplotlib.figure import Figure

    result = livarot.run(livarot.envs.hard_chain(5, gap=0.1), livarot.agents.Livarot(), 60, seed=range(6))
    axes = result.plot(Figure().subplots())
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() >= 0.0 and heights.max() <= result.cumulative_regret.max()
    assert np.allclose(axes.lines[0].get_ydata(), result.cumulative_regret.mean(axis=0))
