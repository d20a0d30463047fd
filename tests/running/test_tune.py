"""Tuning: the scores are the run's, the choice is the least mean, seeds are kept apart, bad input is refused."""

import json
import time

import numpy as np
import pytest

import livarot
from livarot.agents import UCRLMNLOL, Livarot, Oracle, Uniform
from livarot.running.tune import RESERVED, TUNING_SEEDS, tune

MDP = livarot.envs.hard_chain(4, gap=0.15)
GRID = {"beta_scale": [0.01, 0.5], "reg": [1.0, 5.0, 50.0]}


def test_scores_are_those_of_the_runs():
    found = tune(MDP, Livarot, GRID, 40)
    assert found.scores.shape == (6, 5) and found.seeds == (1000, 1001, 1002, 1003, 1004)
    assert [tuple(p.values()) for p in found.points] == [(b, r) for b in GRID["beta_scale"] for r in GRID["reg"]]
    for index, point in enumerate(found.points):
        run = livarot.run(MDP, Livarot(**point), 40, seed=range(1000, 1005))
        np.testing.assert_array_equal(found.scores[index], run.regret.sum(axis=1))
        assert found.agents[index] == Livarot(**point)
    mean = found.scores.mean(axis=1)
    assert found.best_index == int(np.argmin(mean)) and found.best == Livarot(**found.best_settings)
    np.testing.assert_allclose(found.se, found.scores.std(axis=1, ddof=1) / np.sqrt(5), rtol=1e-15)


def test_an_agent_keeps_its_other_settings():
    base = Livarot(step_size=7.0)
    found = tune(MDP, base, {"beta_scale": [0.01]}, 5)
    assert found.best == Livarot(step_size=7.0, beta_scale=0.01)
    assert base == Livarot(step_size=7.0)
    assert tune(MDP, UCRLMNLOL(), {"step_size": [None, 1.0]}, 5).points[0] == {"step_size": None}


def test_same_question_same_answer_whatever_the_workers():
    one, two, three = (tune(MDP, Livarot, GRID, 20, workers=w) for w in (1, 1, 2))
    assert one.scores.tobytes() == two.scores.tobytes() == three.scores.tobytes()
    assert one.to_dict() == three.to_dict()


def test_ties_go_to_the_first_point():
    """The prior of the radius is never used with beta_scale 0: all points are the same run."""
    found = tune(MDP, Livarot(beta_scale=0.0), {"failure_level": [0.2, 0.05, 0.1]}, 20)
    assert np.ptp(found.mean) == 0.0
    assert found.best_index == 0 and found.best_settings == {"failure_level": 0.2}

    def almost(result):
        return np.full(
            5, {0.2: 1.0, 0.05: 1.0 - 1e-12, 0.1: 1.0}[float(result.settings.split("failure_level=")[1].split(",")[0])]
        )

    assert tune(MDP, Livarot(), {"failure_level": [0.2, 0.05, 0.1]}, 2, metric=almost).best_index == 0


def test_metrics():
    realised = tune(MDP, Livarot, {"reg": [1.0, 2.0]}, 10, metric="realised_regret")
    run = livarot.run(MDP, Livarot(reg=2.0), 10, seed=TUNING_SEEDS)
    np.testing.assert_array_equal(realised.scores[1], run.realised_regret.sum(axis=1))

    def last_half(result):
        return result.regret[:, 5:].sum(axis=1)

    own = tune(MDP, Livarot, {"reg": [1.0, 2.0]}, 10, metric=last_half)
    assert own.metric == "last_half"
    np.testing.assert_array_equal(own.scores[1], run.regret[:, 5:].sum(axis=1))
    for wrong in ("regrets", lambda result: 1.0, lambda result: np.full(5, np.nan)):
        with pytest.raises(livarot.LivarotError) as error:
            tune(MDP, Livarot, {"reg": [1.0]}, 2, metric=wrong)
        assert error.value.argument == "metric"


def test_table_and_dict():
    found = tune(MDP, Livarot, {"reg": [1.0, 2.0], "rule": [livarot.JointMaximum(), livarot.VarianceBonus()]}, 5)
    table = found.table
    assert list(table.columns) == ["reg", "rule", "mean", "se", "worst", "best"] and len(table) == 4
    assert table["best"].sum() == 1 and table["best"].to_numpy()[found.best_index]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["seeds"] == [1000, 1001, 1002, 1003, 1004] and len(plain["points"]) == 4
    assert plain["points"][1]["rule"] == "VarianceBonus()" and plain["points"][1]["mean"] == found.mean[1]
    one = tune(MDP, Livarot, {"reg": [1.0]}, 5, seeds=[2000])
    assert one.se.tolist() == [0.0]


def test_one_model_per_seed():
    chains = [livarot.envs.hard_chain(4, gap=0.15, seed=s) for s in range(3)]
    found = tune(chains, Livarot, {"reg": [1.0]}, 5, seeds=range(2000, 2003))
    np.testing.assert_array_equal(
        found.scores[0], livarot.run(chains, Livarot(reg=1.0), 5, seed=range(2000, 2003)).regret.sum(axis=1)
    )


def test_evaluation_seeds_are_kept_apart():
    assert not set(TUNING_SEEDS) & set(RESERVED)
    with pytest.raises(livarot.LivarotError, match="reserved") as error:
        tune(MDP, Livarot, {"reg": [1.0]}, 2, seeds=[1500, 3, 4])
    assert (error.value.argument, error.value.index, error.value.count) == ("seeds", (1,), 2)
    with pytest.raises(livarot.LivarotError, match="1001 is reserved"):
        tune(MDP, Livarot, {"reg": [1.0]}, 2, reserved=[1001])
    assert tune(MDP, Livarot, {"reg": [1.0]}, 2, seeds=[3], reserved=range(100, 120)).seeds == (3,)


@pytest.mark.parametrize(
    ("arguments", "argument", "text"),
    [
        ({"grid": {"beta_scal": [1.0]}}, "grid", "did you mean 'beta_scale'"),
        ({"grid": {}}, "grid", "empty"),
        ({"grid": {"reg": []}}, "grid", "no list"),
        ({"grid": {"reg": 1.0}}, "grid", "no list"),
        ({"grid": {"reg": "12"}}, "grid", "no list"),
        ({"grid": {"reg": [1.0, 2.0, 1.0]}}, "grid", "twice"),
        ({"grid": {"reg": [1.0, -1.0]}}, "grid", "refused"),
        (
            {"grid": {"reg": [1.0, 2.0, 3.0, 4.0, 5.0], "step_size": [1.0, 2.0, 3.0]}},
            "grid",
            "15 points, the budget is 12",
        ),
        ({"budget": 1}, "grid", "2 points, the budget is 1"),
        ({"budget": 0}, "budget", "integer"),
        ({"n_episodes": 0}, "n_episodes", "integer"),
        ({"seeds": []}, "seeds", "empty"),
        ({"seeds": [1001, 1001]}, "seeds", "different"),
        ({"agent": "livarot"}, "agent", "not an agent"),
        ({"agent": Oracle}, "agent", "needs settings"),
        ({"agent": Uniform}, "grid", "no settings"),
    ],
)
def test_refusals_come_before_any_work(arguments, argument, text):
    seen = []
    given = {"agent": Livarot, "grid": {"reg": [1.0, 2.0]}, "n_episodes": 3, "progress": lambda *n: seen.append(n)}
    with pytest.raises(livarot.LivarotError, match=text) as error:
        tune(MDP, **(given | arguments))
    assert error.value.argument == argument and seen == []


def test_progress_and_interruption():
    seen = []
    tune(MDP, Livarot, {"reg": [1.0, 2.0]}, 3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (30, 30) and seen[0] == (5, 30) and len(seen) == 6

    def stop(done, total):
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(MDP, Livarot, {"reg": [1.0, 2.0]}, 3, progress=stop)


def test_progress_is_called_by_one_thread_at_a_time():
    """Two threads share the seeds: a count that both write at once would be wrong."""
    mdp = livarot.envs.random_mdp(n_states=40, n_actions=4, horizon=10, seed=0)
    running, most, seen = 0, 0, []

    def progress(done, total):
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)
        seen.append((done, total))
        running -= 1

    tune(mdp, Livarot, {"reg": [1.0]}, 8, seeds=range(1000, 1008), workers=2, progress=progress)
    assert most == 1 and [done for done, _ in seen] == list(range(4, 65, 4)) and {total for _, total in seen} == {64}


def test_a_clear_difference_is_found():
    """A radius a hundred times too large never stops exploring the chain."""
    found = tune(MDP, Livarot, {"beta_scale": [5.0, 0.05]}, 200)
    assert found.best_settings == {"beta_scale": 0.05} and found.mean[1] < 0.7 * found.mean[0]


def test_ctrl_c_keeps_the_points_that_are_done():
    seen = []

    def stop(done, total):
        seen.append(done)
        if done > 1.5 * total / 3:
            raise KeyboardInterrupt

    mdp, grid = livarot.envs.hard_chain(4, gap=0.1), {"beta_scale": [0.01, 0.1, 1.0]}
    with pytest.raises(livarot.Interrupted, match="1 of 3 points") as found:
        livarot.tune(mdp, livarot.agents.Livarot, grid, 20, progress=stop)
    whole = livarot.tune(mdp, livarot.agents.Livarot, grid, 20)
    assert found.value.result.points == whole.points[:1]
    assert (found.value.result.scores == whole.scores[:1]).all()
