"""What an installation costs: ``python -m benchmarks.install [--extras data,report] [--json]``.

Installs this checkout with pip into a fresh virtual environment (the network, or pip's own configuration, provides the
dependencies), without and with extras, and measures the bytes of its site-packages without pip and setuptools, the
seconds of ``import livarot``, and those of the first result: solving a model and a run of ten episodes, both with an
empty numba cache and once more.  Seconds are CPU seconds of a whole process.  A target that is missed is UNMET.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = 450.0  # megabytes of the core
MEGABYTE = 1 << 20  # as du -m counts
OWN = ("pip", "setuptools", "wheel")  # came with the environment
FIRST = "import livarot; livarot.solve(livarot.envs.river_swim())"
RUN = "import livarot; livarot.run(livarot.envs.hard_chain(5), livarot.agents.Livarot(), 10)"


def size_of(folder: Path) -> int:
    """Bytes on disk of what was installed there."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(
        path.stat().st_blocks * 512 for path in files if path.relative_to(folder).parts[0].split("-")[0] not in OWN
    )


def seconds(python: Path, code: str, cache: Path) -> float:
    """CPU seconds of a process that runs this code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python, "-c", code], check=True, cwd=cache, env=environment | {"NUMBA_CACHE_DIR": str(cache)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(extras: str) -> dict[str, float]:
    """An installation with these extras, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv/bin/python"
        what = f"{ROOT}[{extras}]" if extras else str(ROOT)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        site = next((folder / "venv/lib").glob("python3*/site-packages"))
        found: dict[str, float] = {"megabytes": size_of(site) / MEGABYTE}
        (cache := folder / "cache").mkdir()
        found["import_seconds"] = seconds(python, "import livarot", cache) - seconds(python, "pass", cache)
        for label, code in (("solve", FIRST), ("run", RUN)):
            found[f"{label}_cold_seconds"] = seconds(python, code, cache)
            found[f"{label}_warm_seconds"] = seconds(python, code, cache)
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--extras", action="append", default=[], help="a second installation with these; repeat")
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the table on stderr")
    given = parser.parse_args()
    results = {extras or "core": measure(extras) for extras in ["", *given.extras]}
    out = sys.stderr if given.json else sys.stdout
    for name, found in results.items():
        for key, value in found.items():
            verdict = ""
            if (name, key) == ("core", "megabytes"):
                verdict = f"  <= {MOST:.0f}  {'holds' if value <= MOST else 'UNMET'}"
            print(f"{name:12} {key:20} {value:8.3g}{verdict}", file=out)
    if given.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
