"""Refusals: the line that a user reads."""

import pytest

from livarot import LivarotError


def refusal(make):
    with pytest.raises(LivarotError) as caught:
        make()
    error = caught.value
    assert isinstance(error, ValueError)
    assert str(error).startswith(f"{error.argument}: ")
    assert "\n" not in str(error)
    if error.cure is not None:
        assert error.cure in str(error)
    return error
