"""No argument crashes the interpreter, hangs, or comes back as NaN; refusals are LivarotErrors, but for 1 % at most.

The calls are made in a process of their own (:mod:`tests.contracts.fuzz`), with a limit on time and memory.  A callable
that the user hands in may raise what it likes, and is not judged here.
"""

import os

import pytest

import livarot
from livarot import agents, data, envs, infinite, theory
from tests.contracts import fuzz
from tests.contracts.calls import CONTAINERS, all_calls

SAMPLE = 40  # one call in 40 is made: as there are 41 bad values, each argument meets the next one of them
LEAST = {1: 25_000, SAMPLE: 600}


def judged(found, n_calls):
    """The counts of verdicts, once it is clear that none of them is forbidden."""
    assert len(found) >= n_calls
    for verdict in (fuzz.CRASH, fuzz.SLOW, fuzz.NOT_A_NUMBER):
        assert [one for one in found if one[3] == verdict] == []
    foreign = [one for one in found if one[3] == fuzz.FOREIGN]
    assert len(foreign) <= 0.01 * len(found), foreign
    counts = fuzz.count(found)
    assert counts[fuzz.REFUSED] > counts[fuzz.FINE]  # most of the values are indeed bad
    return counts


def test_a_sample_of_bad_arguments(tmp_path):
    judged(fuzz.survey(tmp_path, 7, SAMPLE), LEAST[SAMPLE])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_bad_arguments(tmp_path):
    judged(fuzz.survey(tmp_path), LEAST[1])


def test_every_public_name_is_tried(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried = {name.split(" ")[0].split(".")[-1] for name in all_calls()}
    public = {
        name
        for module in (livarot, agents, envs, theory, data, infinite)
        for name in module.__all__
        if callable(getattr(module, name))
    }
    assert public - tried - CONTAINERS == set()
    assert CONTAINERS & tried == set()


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("import os; os._exit(3)", fuzz.CRASH),
        ("while True: pass", fuzz.SLOW),
        ("return float('nan')", fuzz.NOT_A_NUMBER),
        ("return {}['x']", fuzz.FOREIGN),
        ("import livarot.errors; raise livarot.errors.bad('x', 'no')", fuzz.REFUSED),
    ],
)
def test_the_survey_sees_it(tmp_path, monkeypatch, body, verdict):
    """The survey of one function that misbehaves, in place of the library's."""
    function = f"def f(x):\n    if isinstance(x, float) and x == 1.5:\n        return 0\n    {body}\n"
    table = "def all_calls():\n    return {'f': (f, {'x': 1.5})}\n"
    (tmp_path / "fake_calls.py").write_text(function + table)
    monkeypatch.setenv("LIVAROT_FUZZ_CALLS", "fake_calls")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    found = fuzz.survey(tmp_path, 0, 20)
    assert [one[3] for one in found] == [verdict] * len(found) and len(found) >= 2
