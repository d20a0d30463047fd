"""Rewards, costs, masks, terminal states and names as users give them: what is read, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import livarot
from livarot import MNLMDP, LivarotError, Problem

H, S, A = 3, 3, 2
NAN = float("nan")
NAMES = {"states": ["new", "worn", "gone"], "actions": ["keep", "sell"]}


def features(h, s, a):
    return [0, 1, 2], [[0.1], [0.2 * a], [-0.3]]


def build(**changed):
    given = {"features": features, "reward": np.zeros((S, A)), "theta": [0.4]} | changed
    return MNLMDP.from_function(H, S, A, **{name: part for name, part in given.items() if part is not None})


def rewards_of(mdp):
    """r(h, s, a, s') in the user's units, NaN where it does not exist."""
    p = mdp.problem
    found = np.full((H, S, A, S), NAN)
    for h, s, a in np.argwhere(p.available):
        pair = p.pair(int(h), int(s), int(a))
        rows = slice(p.rows.row_start[pair], p.rows.row_start[pair + 1])
        more = 0.0 if p.next_reward is None else p.next_reward[rows]
        found[h, s, a, p.rows.next_state[rows]] = p.units.reward(p.reward[h, s, a] + more)
    return found


FULL = np.random.default_rng(0).normal(size=(H, S, A, S)) * 50.0 - 10.0
FORMS = {
    "(S, A)": (FULL[0, :, :, 0], np.broadcast_to(FULL[0, :, :, :1], FULL.shape)),
    "(H, S, A)": (FULL[:, :, :, 0], np.broadcast_to(FULL[:, :, :, :1], FULL.shape)),
    "(S, A, S)": (FULL[0], np.broadcast_to(FULL[0], FULL.shape)),
    "(H, S, A, S)": (FULL, FULL),
    "f(h, s, a)": (lambda h, s, a: FULL[h, s, a, 0], np.broadcast_to(FULL[:, :, :, :1], FULL.shape)),
    "f(h, s, a, s')": (lambda h, s, a, n: FULL[h, s, a, n], FULL),
    "lists": (FULL[0].tolist(), np.broadcast_to(FULL[0], FULL.shape)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["reward", "cost"])
def test_every_form_of_rewards(form, kind):
    given, expected = FORMS[form]
    mdp = build(**{"reward": None, kind: given})
    sign = 1.0 if kind == "reward" else -1.0
    np.testing.assert_allclose(rewards_of(mdp), sign * expected, rtol=1e-13, atol=1e-12)
    assert mdp.problem.units.cost == (kind == "cost")
    assert mdp.problem.reward.min() >= 0.0 and mdp.problem.reward.max() <= 1.0


def test_tables_with_names():
    by_pair = {(s, a): FULL[0, i, j, 0] for i, s in enumerate(NAMES["states"]) for j, a in enumerate(NAMES["actions"])}
    by_step = {
        (s, a, n): FULL[0, i, j, k]
        for i, s in enumerate(NAMES["states"])
        for j, a in enumerate(NAMES["actions"])
        for k, n in enumerate(NAMES["states"])
    }
    plain = build(reward=by_pair, **NAMES)
    np.testing.assert_allclose(rewards_of(plain)[0, :, :, 0], FULL[0, :, :, 0])
    np.testing.assert_allclose(rewards_of(build(reward=by_step, **NAMES)), np.broadcast_to(FULL[0], FULL.shape))
    numbered = {(i, j): FULL[0, i, j, 0] for i in range(S) for j in range(A)}
    assert build(reward=numbered).problem.same_as(build(reward=FULL[0, :, :, 0]).problem)
    series = pytest.importorskip("pandas").Series(by_pair)
    assert build(reward=series, **NAMES).problem.same_as(plain.problem)


def test_masks_and_lists_of_actions_say_the_same():
    mask = np.array([[True, True], [True, False], [False, True]])
    given = (
        mask,
        np.broadcast_to(mask, (H, S, A)),
        mask.tolist(),
        [[0, 1], [0], [1]],
        {0: [0, 1], 1: [0], 2: [1]},
    )
    first = build(available=mask).problem
    assert np.array_equal(first.available, np.broadcast_to(mask, (H, S, A)))
    assert first.rows.n_rows == 3 * mask.sum()  # impossible pairs have no row
    for other in given:
        assert build(available=other).problem.same_as(first)
    named = build(available={"new": ["keep", "sell"], "worn": ["keep"], "gone": ["sell"]}, **NAMES).problem
    assert named.same_as(first)
    asked = build(features=lambda h, s, a: features(h, s, a) if mask[s, a] else None).problem
    assert asked.same_as(first)
    ragged = build(available=[["keep", "sell"], ["keep"], ["sell"]], **NAMES).problem
    assert ragged.same_as(first)


def test_masks_of_a_stage_and_arrays():
    mask = np.ones((H, S, A), dtype=bool)
    mask[1, 0, 0] = False
    problem = build(available=mask).problem
    assert np.array_equal(problem.available, mask) and problem.rows.n_tables == 2
    arrays = {
        "outcomes": np.full((S, A), 3),
        "next_state": np.tile(np.arange(3), S * A),
        "features": np.concatenate([features(0, s, a)[1] for s in range(S) for a in range(A)]),
        "reward": np.zeros((S, A)),
        "theta": [0.4],
    }
    assert MNLMDP.from_arrays(H, S, A, available=mask, **arrays).problem.same_as(problem)
    assert MNLMDP.from_arrays(H, S, A, **arrays).problem.same_as(build().problem)
    ended = MNLMDP.from_arrays(H, S, A, terminal=[2], **arrays).problem
    assert ended.same_as(build(terminal=2).problem)


def test_functions_are_not_asked_about_what_does_not_exist():
    asked = []

    def paid(h, s, a):
        asked.append((h, s, a))
        return 1.0

    build(reward=paid, available=[[0], [1], [0]], terminal=[2])
    assert sorted(asked) == [(h, s, s) for h in range(H) for s in range(2)]


def test_numbers_at_pairs_that_do_not_exist_are_not_looked_at():
    reward = np.array([[1.0, 2.0], [3.0, NAN], [NAN, NAN]])
    mdp = build(reward=reward, available=[[0, 1], [0], []], terminal=[2])
    assert mdp.problem.units.reward(mdp.problem.reward[0, :2, 0]) == pytest.approx([1.0, 3.0])


@pytest.mark.parametrize("given", ["gone", ["gone"], np.array([False, False, True]), [False, False, True]])
def test_terminal_states_in_every_form(given):
    problem = build(terminal=given, **NAMES).problem
    assert np.array_equal(problem.terminal, [False, False, True])
    assert not problem.available[:, 2].any() and problem.available[:, :2].all()


def test_terminal_rewards_in_every_form():
    for given in ([0.0, 0.0, 5.0], {"gone": 5.0}):
        mdp = build(terminal_reward=given, **NAMES)
        assert livarot.solve(mdp).value[H] == pytest.approx([0.0, 0.0, 5.0])
    assert livarot.solve(build(terminal_cost=3.0)).value[H] == pytest.approx([-3.0] * 3)


def test_a_start_may_be_a_name():
    assert np.array_equal(build(start="worn", **NAMES).problem.start, [0.0, 1.0, 0.0])


BAD = {
    "both": ({"cost": np.zeros((S, A))}, "cost", None, "both given"),
    "neither": ({"reward": None}, "reward", None, "is missing"),
    "discount": ({"discount": 1.2}, "discount", None, "from 0 to 1"),
    "discount NaN": ({"discount": NAN}, "discount", None, "from 0 to 1"),
    "discount text": ({"discount": "0.9"}, "discount", None, "from 0 to 1"),
    "reward NaN": ({"reward": np.full((S, A, S), NAN)}, "reward", (0, 0, 0, 0), "NaN"),
    "cost NaN": ({"reward": None, "cost": np.full((S, A), NAN)}, "cost", (0, 0), "NaN"),
    "reward shape": ({"reward": np.zeros((S, A, 7))}, "reward", None, "shape"),
    "reward range": ({"reward": [[-1e308, 1e308]] * 3}, "reward", None, "range"),
    "no action": ({"available": [[0], [], [1]]}, "available", (0, 1), "no action"),
    "no action, answers": (
        {"features": lambda h, s, a: None if s == 1 else features(h, s, a)},
        "available",
        (0, 1),
        "no",
    ),
    "mask shape": ({"available": np.ones((A, S), dtype=bool)}, "available", None, "shape"),
    "mask of numbers": ({"available": np.ones((S, A))}, "available", None, "dtype"),
    "mask text": ({"available": "keep"}, "available", None, "shape"),
    "lists too few": ({"available": [[0], [1]]}, "available", None, "2 lists"),
    "unknown action": ({"available": [[0], [5], [1]]}, "available", None, "5"),
    "unknown state": ({"available": {"old": ["keep"]}, **NAMES}, "available", None, "'old'"),
    "not a list": ({"available": {0: 0}}, "available", (0,), "list"),
    "terminal unknown": ({"terminal": "old", **NAMES}, "terminal", None, "'old'"),
    "terminal number": ({"terminal": [7]}, "terminal", None, "7"),
    "terminal mask": ({"terminal": np.array([True, False])}, "terminal", None, "shape"),
    "reward of nothing": (
        {"reward": {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 1.0, (2, 0): 1.0, (2, 1): 1.0}, "available": [[0, 1], [0], [0]]},
        "reward",
        None,
        r"\(2, 1\) does not exist",
    ),
    "reward missing": ({"reward": {(0, 0): 1.0, (2, 1): 1.0}}, "reward", None, r"missing .* for \(0, 1\).*4 in all"),
    "reward keys": ({"reward": {"new": 1.0}}, "reward", None, "keys"),
    "reward of no transition": (
        {
            "features": lambda h, s, a: ([0, 1], [[0.0], [0.1]]),
            "reward": {(s, a, n): 1.0 for s in range(S) for a in range(A) for n in range(S)},
        },
        "reward",
        None,
        "not a transition",
    ),
    "terminal reward shape": ({"terminal_reward": [1.0, 2.0]}, "terminal_reward", None, "shape"),
    "terminal reward NaN": ({"terminal_cost": [1.0, NAN, 2.0]}, "terminal_cost", (1,), "NaN"),
    "terminal both": ({"terminal_cost": 1.0, "terminal_reward": 1.0}, "terminal_cost", None, "both"),
    "names repeated": ({"states": ["a", "b", "a"]}, "states", (2,), "twice"),
    "names missing": ({"actions": ["a", None]}, "actions", (1,), "not a name"),
    "names too few": ({"states": ["a", "b"]}, "states", None, "2 labels"),
    "start unknown": ({"start": "old", **NAMES}, "start", None, "old"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    change, argument, index, told = BAD[case]
    with pytest.raises(LivarotError, match=told) as caught:
        build(**change)
    assert caught.value.argument == argument
    assert caught.value.index == index
    assert "\n" not in str(caught.value)


def test_files_keep_everything(tmp_path):
    mdp = build(
        reward=None, cost=FULL, available=[[0, 1], [0], []], terminal=["gone"], terminal_cost={"gone": 3.0},
        discount=0.9, **NAMES,
    )  # fmt: skip
    mdp.save(tmp_path / "model.safetensors")
    back = MNLMDP.load(tmp_path / "model.safetensors")
    assert back.problem.same_as(mdp.problem) and back.problem.fingerprint == mdp.problem.fingerprint
    assert back.problem.units == mdp.problem.units and back.problem.discount == 0.9
    assert np.array_equal(livarot.solve(back).value, livarot.solve(mdp).value)
    other = build(reward=None, cost=FULL + 1.0, terminal=["gone"], **NAMES)
    assert not back.problem.same_as(other.problem) and back.problem.fingerprint != other.problem.fingerprint


def test_a_file_whose_terminal_states_go_on_is_refused(tmp_path):
    from dataclasses import replace

    mdp = build()
    wrong = replace(mdp, problem=replace(mdp.problem, terminal=np.array([False, False, True])))
    wrong.save(tmp_path / "model.safetensors")
    with pytest.raises(LivarotError, match="lead elsewhere"):
        MNLMDP.load(tmp_path / "model.safetensors")


def test_a_problem_has_the_same_constructors():
    problem = Problem.from_function(
        H, S, A, features=features, cost=FULL[0], param_bound=1.0, discount=0.5, shared_parameter=True
    )
    assert problem.same_as(build(reward=None, cost=FULL[0], param_bound=1.0, discount=0.5).problem)


def test_what_is_shown_is_short():
    mdp = build(reward=None, cost=FULL, available=[[0, 1], [0], []], terminal=["gone"], discount=0.9, **NAMES)
    for thing in (mdp, mdp.problem, livarot.solve(mdp), livarot.solve_robust(mdp, radius=0.1)):
        assert len(repr(thing).splitlines()) <= 12
        assert thing._repr_html_().startswith("<table>")
    assert "costs" in repr(mdp) and "gone" in repr(mdp) and "cost" in repr(livarot.solve(mdp))
