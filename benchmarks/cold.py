"""What the first call after an installation costs: ``python -m benchmarks.cold [--json] [--only run,solve]``.

Each call runs in a fresh process, once with an empty numba cache (cold) and once more (warm); a third process only
imports what the call needs.  Seconds are CPU seconds of the whole process, user and system.  ``told_seconds`` is the
number in the line "compiling, about N s" (``FIRST_RUN`` in ``livarot/core/compiling/jit.py``): it should be about the
extra time of a cold run over a warm one.  A target that is missed is printed as UNMET; a call that fails makes the exit
status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Row


class Call(NamedTuple):
    imports: str
    code: str
    must: float
    aim: float


FIT = "fit(data.Choices.from_arrays([[[0.0], [1.0]]] * 4, chosen=[0, 1, 1, 1]))"
CALLS = {
    "run": Call("from livarot import run, agents, envs", "run(envs.hard_chain(5), agents.Livarot(), 10)", 10.0, 5.0),
    "solve": Call("from livarot import solve, envs", "solve(envs.hard_chain(5))", 3.0, 2.0),
    "fit": Call("from livarot import MNLTransition, data", f"MNLTransition().{FIT}", 3.0, 2.0),
    "robust": Call("from livarot import solve_robust, envs", "solve_robust(envs.hard_chain(5), radius=0.1)", 3.0, 2.0),
    "warmup": Call("from livarot.cli.warmup import warmup", "warmup()", 40.0, 25.0),
}


def cpu_seconds(code: str, cache: str) -> tuple[float, str]:
    """CPU seconds of a process that runs the code, and what it wrote to standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{code} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def measure(name: str) -> Row:
    call, row = CALLS[name], Row(name)
    whole = f"{call.imports}; {call.code}"
    try:
        with tempfile.TemporaryDirectory() as cache:
            cold, told = cpu_seconds(whole, cache)
            warm, silent = cpu_seconds(whole, cache)
            row.set("cold_seconds", cold, most=call.must)
            row.set("warm_seconds", warm)
            row.set("import_seconds", cpu_seconds(call.imports, cache)[0])
            row.set("files", len(list(Path(cache).rglob("*.nbc"))))
    except RuntimeError as error:
        row.wrong.append(str(error))
        return row
    row.remarks.append(f"aim <= {call.aim:g}: {'holds' if cold <= call.aim else 'UNMET'}")
    line = re.search(r"about (\d+) s", told)
    if line is None or silent:
        row.wrong.append(f"a cold process said {told!r}, a warm one {silent!r}")
    elif name == "run":
        row.set("told_seconds", float(line.group(1)))
    return row


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    parser.add_argument("--only", default=",".join(CALLS), help="calls, separated by commas")
    options = parser.parse_args(arguments)
    out, rows = sys.stderr if options.json else sys.stdout, []
    for name in options.only.split(","):
        rows.append(measure(name))
        print("\n".join(rows[-1].lines()), file=out, flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=out)
    if options.json:
        print(json.dumps({row.name: row.as_json() for row in rows}, indent=2))
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
