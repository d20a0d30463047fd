"""Pictures of states and actions."""

import numpy as np

from livarot import envs
from livarot.envs.gymnasium import render

P = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])


R = np.array([[0.0, 0.5], [1.0, 0.0]])


def from_tabular(**names):
    return envs.from_tabular(P, R, 3, rescale=True, **names)


def test_pixels_of_names_can_be_told_apart():
    """Every letter has a shape of its own, and any other character leaves a trace."""
    letters = [chr(ord("A") + i) for i in range(26)] + [str(i) for i in range(10)] + ["-", "é"]
    frames = [render.pixels(1, 5, [0], 0, [letter]).tobytes() for letter in letters]
    assert len(set(frames)) == len(letters)
    long = render.pixels(2, 5, [0], 0, ["a" * 50, "b"])
    assert long.shape == render.pixels(2, 5, [0], 0).shape
    named = envs.MNLEnv(from_tabular(states=["a", "b"]), render_mode="rgb_array")
    plain = envs.MNLEnv(from_tabular(), render_mode="rgb_array")
    named.reset(seed=0), plain.reset(seed=0)
    assert (named.render() != plain.render()).any()
