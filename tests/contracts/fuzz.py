"""Calls public functions with one argument replaced by a bad value, and reports how each call ended.

Run as ``python -m tests.contracts.fuzz first step`` in an empty folder: of all calls, number ``first``,
``first + step`` and so on are made, and one line of JSON is written before and after each.  A parent, :func:`survey`,
reads the lines, so that it knows which call ended the interpreter, and continues after it.
"""

import collections
import dataclasses
import importlib
import json
import logging
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
SECONDS = 1.0  # of processor time, for one call
PATIENCE = 30.0  # of real time, for compiled code that no signal reaches
STARTING = 900.0  # of real time, to compile everything that is called
SPACE = 3 << 30  # bytes that a call may ask for, beyond what the process has

NAN, INF = float("nan"), float("inf")
BAD = {
    "None": None, "True": True, "text": "x", "empty text": "", "bytes": b"x", "[]": [], "[1.0]": [1.0], "{}": {},
    "object": object(), "nan": NAN, "inf": INF, "-inf": -INF, "-1": -1, "-0.5": -0.5, "0": 0, "0.0": 0.0, "1": 1,
    "2.5": 2.5, "1e300": 1e300, "1e-320": 1e-320, "2**31": 2**31, "2**32": 2**32, "2**63": 2**63, "-2**63": -(2**63),
    "10**12": 10**12, "10**30": 10**30, "numpy nan": np.float64(NAN), "numpy 3": np.int32(3),
    "float32": np.float32(0.5), "no numbers": np.array([]), "two numbers": np.array([1.0, 2.0]),
    "array of nan": np.full((3, 3, 2), NAN), "texts": np.array(["a", "b"]), "matrix": np.eye(2),
    "objects": np.array([None, {}], dtype=object), "ragged": [[1.0], [1.0, 2.0]], "complex": 1 + 2j,
    "huge integers": [2**62, 2**62, 2**62], "function": len, "class": int,
    "masked": np.ma.masked_array([1.0, 2.0], mask=[False, True]),
}  # fmt: skip
FINE, REFUSED, FOREIGN, NOT_A_NUMBER, SLOW, CRASH = "fine", "refused", "foreign", "nan", "slow", "crash"


class TooSlow(BaseException):
    """A call has used up its time; not an Exception, so that nothing catches it."""


def holds_nan(thing, depth=0):
    """Is there a NaN in what a call returned?  What is masked does not count."""
    if isinstance(thing, float | np.floating):
        return math.isnan(thing)
    if isinstance(thing, np.ma.MaskedArray):
        thing = thing.compressed()
    if isinstance(thing, np.ndarray):
        return thing.dtype.kind == "f" and bool(np.isnan(thing).any())
    if depth > 4:
        return False
    if isinstance(thing, tuple | list):
        return any(holds_nan(one, depth + 1) for one in thing)
    if isinstance(thing, dict):
        return any(holds_nan(one, depth + 1) for one in thing.values())
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        kept = [field for field in dataclasses.fields(thing) if field.compare]  # not workspaces
        return any(holds_nan(getattr(thing, field.name), depth + 1) for field in kept)
    return False


def attempt(function, arguments, usual=0.0):
    """How a call ended: (verdict, what was raised); ``usual`` is how long a call with good arguments takes."""
    from livarot import LivarotError

    before = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS + usual)
    try:
        answer = function(**arguments)
        signal.setitimer(signal.ITIMER_PROF, 0)
        verdict = (NOT_A_NUMBER, "") if holds_nan(answer) else (FINE, "")
    except LivarotError as error:
        message = str(error)
        verdict = (REFUSED, "") if "\n" not in message and ": " in message else (FOREIGN, f"odd message {message!r}")
    except TooSlow:
        verdict = (SLOW, "")
    except BaseException as error:
        verdict = (FOREIGN, f"{type(error).__name__}: {str(error)[:120]}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return (SLOW, "") if time.process_time() - before > SECONDS + usual else verdict


def listed(calls):
    """(call, argument, name of the bad value), all of them."""
    pairs = [(call, name) for call, (_, arguments) in calls.items() for name in arguments]
    return [(*pair, value) for pair in pairs for value in BAD]


def work(first, step):
    """The calls number first, first + step, ..."""
    table = importlib.import_module(os.environ.get("LIVAROT_FUZZ_CALLS", "tests.contracts.calls"))
    warnings.simplefilter("ignore")
    logging.disable()
    calls = table.all_calls()
    usual = {}
    for name, (function, arguments) in calls.items():
        function(**arguments)  # the good arguments: what they need is compiled here, not below
        before = time.process_time()
        function(**arguments)
        usual[name] = time.process_time() - before

    def too_slow(number, frame):
        raise TooSlow

    signal.signal(signal.SIGPROF, too_slow)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPACE, used + SPACE))
    todo = listed(calls)
    say = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number in range(first, len(todo), step):
        name, argument, value = todo[number]
        print(json.dumps([number, len(todo), name, argument, value]), file=say)
        function, arguments = calls[name]
        verdict = attempt(function, arguments | {argument: BAD[value]}, usual[name])
        print(json.dumps(verdict), file=say)


def survey(folder, first=0, step=1):
    """Verdicts of the calls number first, first + step, ...: [(call, argument, value, verdict, detail)]."""
    found, number, total = [], first, first + 1
    while number < total:
        command = [sys.executable, "-m", "tests.contracts.fuzz", str(number), str(step)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        pipe = {"stdout": subprocess.PIPE, "bufsize": 0}  # unbuffered, so that select sees every line
        noise = Path(folder, "noise.txt")
        with (
            noise.open("wb") as errors,
            subprocess.Popen(command, cwd=folder, env=environment, stderr=errors, **pipe) as child,
        ):
            begun, patience, stuck = None, STARTING, False
            while True:
                if not select.select([child.stdout], [], [], patience)[0]:
                    child.kill()
                    stuck = True
                line = child.stdout.readline()
                if not line:
                    break
                said = json.loads(line)
                if len(said) == 5:
                    (number, total), begun, patience = said[:2], said[2:], PATIENCE
                else:
                    found.append((*begun, *said))
                    begun, number = None, number + step
            code = child.wait()
        if code and begun is None and number < total:
            raise RuntimeError(noise.read_text(errors="replace")[-2000:] or f"status {code}")
        if begun is not None:  # it ended in the middle of a call
            found.append((*begun, SLOW if stuck else CRASH, f"status {code}"))
            number += step
    return found


def count(found):
    """How often each verdict was given."""
    return collections.Counter(verdict for *_, verdict, _ in found)


if __name__ == "__main__":
    work(*map(int, sys.argv[1:]))
