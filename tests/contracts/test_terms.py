"""Invalid terms are refused by both constructors: the argument, the first bad entry, how many there are, a cure."""

import numpy as np
import pytest

import livarot
from livarot.errors import LivarotError
from livarot.infinite import InfiniteMDP, solve, solve_optimistic

ROWS = [[[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [1.0, 0.0]]]


def with_stages(**terms):
    plain = {"reward": np.zeros((2, 2)), "theta": [0.0]}
    return livarot.MNLMDP.from_function(2, 2, 2, features=lambda h, s, a: ([0, 1], [[0.0], [1.0]]), **plain | terms)


def without_end(**terms):
    return InfiniteMDP.from_transitions(ROWS, **{"reward": np.zeros((2, 2)), "discount": 0.9} | terms)


@pytest.mark.parametrize("build", [with_stages, without_end])
@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"discount": 1.1}, r"^discount: .*1\.1"),
        ({"discount": -0.1}, r"^discount: .*-0\.1"),
        ({"discount": np.nan}, r"^discount: .*nan"),
        ({"available": [[0], []]}, r"^available: .* no action .* index .*; give it an action"),
        ({"available": np.array([[True, True], [False, False]])}, r"^available: .* no action .*terminal="),
        ({"reward": [[0, np.nan], [0, 0]]}, r"^reward: NaN or infinite \(1 in all, first at index \(0, 1\)\)"),
        ({"reward": {(0, 0): 1.0}}, r"^reward: .*missing .*\(0, 1\).*3 in all.*; give one"),
        (
            {"available": {0: [0], 1: [0, 1]}, "reward": dict.fromkeys([(0, 0), (0, 1), (1, 0), (1, 1)], 1.0)},
            r"^reward: \(0, 1\) does not exist \(1 in all.*; ",
        ),
        (
            {"available": {0: [0], 1: [0, 1]}, "reward": [[1.0, 7.0], [2.0, 3.0]]},
            r"^reward: an action that does not exist has 7 at \(s, a\) \(1 in all, first at index \(0, 1\)\); leave",
        ),
        ({"terminal": [1], "reward": [[1.0, 7.0], [2.0, 0.0]]}, r"^reward: .* has 2 .*terminal_reward="),
        ({"states": ["a", "a"]}, r"^states: 'a' occurs twice \(1 in all, first at index 1\)"),
        ({"states": ["a"]}, r"^states: has 1 labels, .*; list 2 names"),
        ({"actions": ["x", None]}, r"^actions: None is not a name \(1 in all, first at index 1\)"),
        ({"cost": np.zeros((2, 2))}, "both given; give "),
        ({"terminal": [5]}, r"^terminal: 5 .* is not among 0\.\.1"),
    ],
)
def test_refusals(build, terms, message):
    with pytest.raises(LivarotError, match=message):
        build(**terms)


def test_a_discount_of_one_without_an_end_needs_one_average():
    """Two states that never meet, with different rewards."""
    apart = InfiniteMDP.from_transitions(np.eye(2)[:, None, :], reward=[0.0, 1.0], discount=1.0)
    with pytest.raises(LivarotError):
        solve(apart)


def test_an_average_where_everything_ends_is_refused():
    ends = InfiniteMDP.from_transitions(ROWS, reward={(0, 0): 1.0, (0, 1): 2.0}, terminal={1: 50.0})
    told = (
        r"^discount: is not given, and there are terminal states.*1 in all, first at index 1.*; give a discount below 1"
    )
    for call in (lambda: solve(ends), lambda: solve_optimistic(ends, [[1.0]])):
        with pytest.raises(LivarotError, match=told):
            call()


def test_functions_that_answer_nan_are_told_where():
    for build, reward, index in (
        (with_stages, lambda h, s, a: np.nan if (h, s, a) == (1, 0, 1) else 0.0, (1, 0, 1)),
        (without_end, lambda s, a: np.nan if (s, a) == (1, 0) else 0.0, (1, 0)),
    ):
        with pytest.raises(LivarotError, match=r"reward: NaN or infinite .*; let the function return finite") as caught:
            build(reward=reward)
        assert caught.value.index == index and caught.value.count == 1
