"""Inner functions are for compiled functions only."""

import pytest

from livarot.core.lanes import exp


def test_an_inner_function_is_for_compiled_functions_only():
    with pytest.raises((KeyError, TypeError)):
        exp(-1.0)
