"""The parts of a state by name."""

from typing import NamedTuple

import numpy as np

from livarot.agents.leaves import leaves, mapped


class Inner(NamedTuple):
    counts: np.ndarray
    episode: int


class Outer(NamedTuple):
    first: Inner
    pair: tuple
    radius: float


STATE = Outer(Inner(np.arange(3), 7), (Inner(np.zeros(2), 1), 4.0), 0.5)


def test_names_are_dotted_and_in_order():
    names = ["first.counts", "first.episode", "pair.0.counts", "pair.0.episode", "pair.1", "radius"]
    assert list(leaves(STATE)) == names
    assert leaves(STATE)["first.counts"] is STATE.first.counts and leaves(STATE)["radius"] == 0.5
    assert leaves(()) == {}


def test_mapping_keeps_types_and_visits_leaves_in_the_same_order():
    seen = []

    def twice(name, leaf):
        seen.append(name)
        return 2 * leaf

    made = mapped(twice, STATE)
    assert seen == list(leaves(STATE))
    assert type(made) is Outer and type(made.first) is Inner and type(made.pair) is tuple
    assert made.first.counts.tolist() == [0, 2, 4] and made.pair[1] == 8.0 and made.radius == 1.0
