"""A model that is accepted, changes of it, and the line that a user reads when it is refused."""

import numpy as np
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


H, S, A = 3, 3, 2


def base():
    """A model that is accepted, as arguments of from_function."""
    return {
        "features": lambda h, s, a: ([s, (s + 1) % S], [[0.0, 0.0], [0.6, 0.8]]),
        "reward": np.full((H, S, A), 0.5),
        "theta": np.tile([0.3, 0.4], (H, 1)),
        "start": np.array([0.25, 0.25, 0.5]),
    }


def arrays():
    """The same model, one table, as arguments of from_arrays."""
    return {
        "outcomes": np.full((S, A), 2),
        "next_state": np.array([[s, (s + 1) % S] for s in range(S) for _ in range(A)]).reshape(-1),
        "features": np.tile([[0.0, 0.0], [0.6, 0.8]], (S * A, 1)),
        "reward": np.full((S, A), 0.5),
        "theta": np.array([0.3, 0.4]),
    }


def altered(wrong, *places):
    """The features of the base model with another answer at some (h, s, a)."""
    plain = base()["features"]
    return lambda h, s, a: wrong if (h, s, a) in places else plain(h, s, a)
