"""Terminal states and available actions: masks, numbers and names mean the same."""

import numpy as np
import pytest

from livarot import LivarotError
from livarot.model.labels import Labels
from livarot.model.terms.existing import check_available, check_terminal, number_named

NAMES = Labels(["ill", "well", "dead"], ordered=True)


@pytest.mark.parametrize("given", ["dead", ["dead"], np.array([False, False, True]), [False, False, True]])
def test_terminal_states_in_many_forms(given):
    np.testing.assert_array_equal(check_terminal(given, NAMES, 3), [False, False, True])


def test_no_terminal_state_is_none():
    assert check_terminal(None, None, 3) is None
    assert check_terminal([], None, 3) is None
    assert check_terminal(np.zeros(3, dtype=bool), None, 3) is None


@pytest.mark.parametrize("wrong", [3, -1, True, 1.0, "ill"])
def test_numbers_are_whole_and_below_the_size(wrong):
    assert number_named("terminal", np.int64(2), None, 3) == 2
    with pytest.raises(LivarotError, match="terminal"):
        number_named("terminal", wrong, None, 3)


def test_actions_as_masks_and_as_lists():
    mask = np.array([[True, False], [True, True], [False, True]])
    np.testing.assert_array_equal(check_available(mask, (2, 3, 2), None, None), mask)
    np.testing.assert_array_equal(check_available(mask.tolist(), (2, 3, 2), None, None), mask)
    np.testing.assert_array_equal(check_available([[0], [0, 1], [1]], (2, 3, 2), None, None), mask)
    for wrong in (np.ones((3, 2)), mask[:2], [[0], [1]]):
        with pytest.raises(LivarotError, match="available"):
            check_available(wrong, (2, 3, 2), None, None)
