"""Functions that are called by address are found by all that decides their machine code."""

import math

import numpy as np

from livarot.core.compiling.native import digest_of

FACTOR = 2.0


def made(by):
    return lambda x: by * x


def with_a_global(x):
    return FACTOR * x


def twice(x):
    return helper(x) + helper(x)


def helper(x):
    return x + 1


def test_functions_of_one_factory_differ_in_what_they_close_over():
    assert digest_of(made(1.0)) == digest_of(made(1.0))
    assert digest_of(made(1.0)) != digest_of(made(2.0))
    assert digest_of(made(np.zeros(2))) == digest_of(made(np.zeros(2)))
    assert len({digest_of(made(x)) for x in (np.zeros(2), np.ones(2), np.zeros(2, np.float32), np.zeros((1, 2)))}) == 4
    assert digest_of(made((1, 2))) != digest_of(made((2, 1)))
    assert digest_of(made(made(1.0))) != digest_of(made(made(2.0)))


def test_globals_and_functions_that_are_named_count(monkeypatch):
    constant, calls = digest_of(with_a_global), digest_of(twice)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert digest_of(with_a_global) != constant
    monkeypatch.setitem(globals(), "helper", lambda x: x + 2)
    assert digest_of(twice) != calls


def test_modules_builtins_and_functions_that_name_themselves():
    def round_trip(n):
        return n if n <= 0 else round_trip(n - 1)

    assert digest_of(round_trip) == digest_of(round_trip)
    assert digest_of(made(math)) == digest_of(made(math)) != digest_of(made(np))
    assert digest_of(made(len)) != digest_of(made(max))


def test_what_cannot_be_compared_is_never_mistaken_for_another():
    thing = object()
    assert digest_of(made(thing)) != digest_of(made(thing))
