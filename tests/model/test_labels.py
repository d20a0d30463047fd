"""Names of states and actions: set by users, checked, saved, shown; no result depends on them."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot import MNLMDP, LivarotError, envs
from livarot.data import Labels, labels_of, policy_table
from livarot.file_layout import to_numbers
from livarot.infinite import InfiniteMDP
from livarot.storage import load_tensors, save_tensors
from tests.support.machine_logs import ONLY_NEW, fitted

P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
R = np.array([[0.0, 0.5], [1.0, 0.0]])
STATES, ACTIONS = ["home", ("far", 2)], ["rest", "go"]


def features(h, s, a):
    return [0, 1], [[0.0], [1.0 if a else -1.0]]


def from_function(**names):
    return MNLMDP.from_function(3, 2, 2, features=features, reward=R, theta=[0.5], **names)


def from_arrays(**names):
    given = {"outcomes": [[2, 2], [2, 2]], "next_state": [0, 1] * 4, "features": [[0.0], [1.0]] * 4}
    return MNLMDP.from_arrays(3, 2, 2, **given, reward=R, theta=[0.5], **names)


def from_tabular(**names):
    return envs.from_tabular(P, R, 3, rescale=True, **names)


def with_labels(**names):
    return from_tabular().with_labels(**names)


MAKERS = [from_function, from_arrays, from_tabular, with_labels]


@pytest.mark.parametrize("make", MAKERS)
def test_names_are_fields_of_the_model(make):
    mdp = make(states=STATES, actions=np.array(ACTIONS))
    assert list(mdp.problem.states) == STATES and list(mdp.problem.actions) == ACTIONS
    assert mdp.problem.states.index(("far", 2)) == 1
    assert (
        labels_of(mdp) == labels_of(mdp.problem) == (Labels(STATES, ordered=True), Labels(ACTIONS, ordered=True), None)
    )


@pytest.mark.parametrize("make", MAKERS)
def test_one_of_them_may_have_names(make):
    mdp = make(states=(name for name in STATES))
    assert list(mdp.problem.states) == STATES and mdp.problem.actions is None
    assert list(labels_of(mdp).actions) == [0, 1]


@pytest.mark.parametrize(
    "given", [["a", "b"], ("a", "b"), np.array(["a", "b"]), pd.Index(["a", "b"]), Labels(["a", "b"])]
)
def test_any_list_will_do(given):
    assert list(from_tabular(states=given).problem.states) == ["a", "b"]


def test_names_of_arrays_are_numbers_of_python():
    assert {type(name) for name in from_tabular(states=np.array([10, 20])).problem.states} == {int}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a"], "has 1 labels, the model has 2 {}; list 2 names"),
        ([], "has 0 labels, the model has 2 {}"),
        (["a", "b", "c"], "has more than 2 labels, the model has 2 {}"),
        (["a", "a"], "'a' occurs twice (1 in all, first at index 1); use text, numbers or tuples"),
        ([1, True], "True occurs twice (1 in all, first at index 1)"),
        (["a", None], "None is not a name (1 in all, first at index 1)"),
        ([np.nan, "a"], "nan is not a name (1 in all, first at index 0)"),
        ([["a"], ["b"]], "['a'] cannot be a label (2 in all, first at index 0)"),
        ([pd.NA, "a"], "cannot be a label (1 in all, first at index 0)"),
        (np.array([[1, 2], [3, 4]]), "[1, 2] cannot be a label"),
        ("ab", "is not a list of labels"),
        ({"a", "b"}, "is not a list of labels"),
        ({"a": 0, "b": 1}, "is not a list of labels"),
        (7, "7"),
    ],
)
def test_other_names_are_refused(make, given, said):
    for argument in ("states", "actions"):
        with pytest.raises(LivarotError) as caught:
            make(**{argument: given})
        assert caught.value.argument == argument
        assert "\n" not in str(caught.value)
        text = re.sub(r" \((str|set|dict|list|ndarray)\)", "", str(caught.value))
        assert said.format(argument) in text, text


def test_a_refusal_changes_nothing():
    mdp = from_tabular(states=STATES)
    with pytest.raises(LivarotError, match="actions"):
        mdp.with_labels(states=["x", "y"], actions=["x"])
    assert list(mdp.problem.states) == STATES and mdp.problem.actions is None


def test_with_labels_leaves_the_rest_as_it_is():
    mdp = envs.from_tabular(P, 3 * R, 3, rescale=True, states=STATES)
    other = mdp.with_labels(actions=ACTIONS)
    assert type(other) is type(mdp) and other.reward_scale == mdp.reward_scale
    assert list(other.problem.states) == STATES
    assert list(other.with_labels(states=["a", "b"]).problem.actions) == ACTIONS
    assert replace(other.problem, states=None).states is None


def test_no_result_depends_on_names():
    plain, named = from_tabular(), from_tabular(states=STATES, actions=ACTIONS)
    assert plain.problem.same_as(named.problem) and plain.problem.fingerprint == named.problem.fingerprint
    one, two = (livarot.run(mdp, livarot.agents.Livarot(n_explore=0), 5) for mdp in (plain, named))
    np.testing.assert_array_equal(one.regret, two.regret)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    "names",
    [
        {"states": STATES, "actions": ACTIONS},
        {"states": [2.5, False]},
        {"actions": [-1, "ä\n"]},
        {},
    ],
)
def test_they_are_saved_with_the_model(tmp_path, names):
    mdp = from_tabular(**names)
    mdp.save(tmp_path / "model")
    for again in (MNLMDP.load(tmp_path / "model"), envs.TabularMDP.load(tmp_path / "model")):
        assert (again.problem.states, again.problem.actions) == (mdp.problem.states, mdp.problem.actions)
        assert [type(name) for name in again.problem.states or ()] == [type(name) for name in names.get("states", ())]
    livarot.MNLMDP.load(tmp_path / "model").save(tmp_path / "again")
    assert "labels" in load_tensors(tmp_path / "again", kind="mnlmdp")[0] or not names


def test_names_that_no_file_can_hold_are_refused_before_it_is_written(tmp_path):
    mdp = from_tabular(states=["a", frozenset({1})])
    with pytest.raises(LivarotError, match=r"frozenset.*cannot be stored"):
        mdp.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_files_of_earlier_versions_are_read(tmp_path):
    """They name states, actions and the stages of the data (the model may have more or fewer stages), or nothing."""
    from_tabular().save(tmp_path / "plain")
    tensors, header = load_tensors(tmp_path / "plain", kind="mnlmdp")
    assert "labels" not in tensors
    for stages, kept in ((None, None), (["mon", "tue", "wed"], ["mon", "tue", "wed"]), (["mon", "tue"], None)):
        words = [["home", {"tuple": ["far", 2]}], ACTIONS, stages]
        save_tensors(tmp_path / "old", tensors | {"labels": to_numbers(words)}, kind="mnlmdp", header=header)
        found = labels_of(MNLMDP.load(tmp_path / "old"))
        assert (list(found.states), list(found.actions)) == (STATES, ACTIONS)
        assert (found.stages and list(found.stages)) == kept


@pytest.mark.parametrize(
    "words", [[["a"], ACTIONS, None], [["a", "a"], ACTIONS, None], [STATES[:1]], 7, [None, [[], []], None]]
)
def test_files_with_other_names_are_refused(tmp_path, words):
    from_tabular().save(tmp_path / "model")
    tensors, header = load_tensors(tmp_path / "model", kind="mnlmdp")
    numbers = np.frombuffer(json.dumps(words).encode(), dtype=np.uint8).astype(np.int32)
    save_tensors(tmp_path / "model", tensors | {"labels": numbers}, kind="mnlmdp", header=header)
    with pytest.raises(LivarotError, match="model"):
        MNLMDP.load(tmp_path / "model")


def test_a_fitted_model_has_the_names_of_its_data(tmp_path):
    fit = fitted(200)
    mdp = fit.to_mdp(ONLY_NEW, 4, "new", terminal="broken")
    assert (mdp.problem.states, mdp.problem.actions) == (fit.states_, fit.actions_)
    mdp.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        *(policy_table(m, livarot.solve(m).policy) for m in (mdp, MNLMDP.load(tmp_path / "model")))
    )


# ---------------------------------------------------------------- what shows them


def test_a_policy_table_has_names_or_numbers():
    mdp = from_tabular(states=STATES, actions=ACTIONS)
    policy = livarot.solve(mdp).policy
    named, plain = policy_table(mdp, policy), policy_table(from_tabular(), policy)
    assert list(named["state"]) == [STATES[s] for s in plain["state"]]
    assert list(named["action"]) == [ACTIONS[a] for a in plain["action"]]


def test_a_repr_has_names_and_no_arrays():
    mdp = from_tabular(states=STATES)
    assert "states     home, ('far', 2)" in repr(mdp) and "actions  " not in repr(mdp)
    assert len(repr(envs.river_swim(400, 400).problem)) < 300


def test_pictures_have_names():
    mdp = from_tabular(states=STATES, actions=ACTIONS)
    env = envs.MNLEnv(mdp, render_mode="ansi")
    first, _ = env.reset(seed=0)
    second = env.step(1)[0]
    told = env.render().splitlines()
    assert f"state {STATES[second]}" in told[0] and "home" in told[1]
    assert told[2] == f"{STATES[first]} -go-> {STATES[second]}"
    vector = envs.MNLVectorEnv(mdp, 2, render_mode="ansi")
    vector.reset(seed=0)
    assert all("home" in text for text in vector.render())


# ---------------------------------------------------------------- models made from others


def test_a_model_without_stages_keeps_them():
    mdp = InfiniteMDP.from_mdp(from_tabular(states=STATES, actions=ACTIONS))
    assert list(mdp.stage.problem.states) == STATES and list(mdp.stage.problem.actions) == ACTIONS
    own = InfiniteMDP.from_function(
        2, 2, features=lambda s, a: features(0, s, a), reward=R, theta=[0.5], states=STATES, actions=ACTIONS
    )
    assert list(own.stage.problem.states) == STATES and list(own.stage.problem.actions) == ACTIONS


def test_environments_with_natural_names():
    machine, arms, sea = envs.machine_maintenance(4), envs.six_arms(4), envs.deep_sea(3)
    assert machine.problem.states[-1] == "broken" and machine.problem.actions[2] == "service"
    assert arms.problem.states[0] == "hub" and len(arms.problem.actions) == 6
    assert list(sea.problem.states) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert list(envs.river_swim(4, 4).problem.actions) == ["left", "right"]


def test_the_additional_state_of_a_gymnasium_environment_has_a_name():
    class Corridor:
        """State 1 is entered with and without an end."""

        P = {  # noqa: RUF012
            0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 0.0, False)]},
            1: {0: [(1.0, 0, 0.0, False)]},
        }
        start = 0

    mdp = envs.from_gymnasium(Corridor(), 3, states=["in", "out"])
    assert list(mdp.problem.states) == ["in", "out", "(ended)"]
    with pytest.raises(LivarotError, match="states: has 1 labels, the model has 2 states"):
        envs.from_gymnasium(Corridor(), 3, states=["in"])
