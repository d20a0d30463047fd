"""Is this machine ready?  Versions, processors, threads, numba's cache, a writable store, what is missing.

>>> {check.name for check in examine()} >= {"python", "livarot", "processors", "numba cache", "store"}
True
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from livarot.errors import LivarotError
from livarot.storage import write_atomic
from livarot.system.threads import processors

REQUIRED = ("numpy", "scipy", "numba", "safetensors", "typer", "rich")
OPTIONAL = {
    "pandas": ("tables", "pip install 'livarot[data]'"),
    "scikit-learn": ("models from data", "pip install 'livarot[data]'"),
    "pyarrow": ("sweeps, tables in files", "pip install 'livarot[sweep]'"),
    "pydantic": ("experiments in TOML files", "pip install 'livarot[sweep]'"),
    "joblib": ("processes of sweeps", "pip install 'livarot[sweep]'"),
    "gymnasium": ("Gymnasium environments", "pip install 'livarot[gym]'"),
    "matplotlib": ("figures", "pip install 'livarot[report]'"),
    "plotly": ("interactive reports", "pip install 'livarot[report]'"),
    "distributed": ("clusters (--backend dask)", "pip install 'livarot[cluster]'"),
    "streamlit": ("the live board", "pip install 'livarot[board]'"),
    "icu-sepsis": ("the sepsis environment", "pip install --no-deps icu-sepsis"),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ENOUGH = 1 << 30  # bytes of free disk


class Check(NamedTuple):
    """One line; ``good`` is None for what is only a fact or an optional extra."""

    name: str
    good: bool | None
    found: str
    cure: str = ""


def examine(store: str | Path = ".") -> list[Check]:
    """Every check; ``store`` is the folder where results will be."""
    return [*_versions(), *_machine(), *_threads(), _numba_cache(), *_disk(Path(store)), *_extras()]


def _versions() -> list[Check]:
    recent = sys.version_info >= (3, 11)
    found = [Check("python", recent, platform.python_version(), "livarot needs Python 3.11 or later")]
    for name in ("livarot", *REQUIRED):
        try:
            found.append(Check(name, True, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Check(name, False, "not installed", f"pip install {name}"))
    return found


def _machine() -> list[Check]:
    found = [
        Check("system", None, f"{platform.system()} {platform.machine()}"),
        Check("processors", None, f"{processors()} usable of {os.cpu_count()}"),
    ]
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
        name = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
        flags = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
        wide = [flag for flag in ("avx2", "avx512f") if flags and flag in flags.group(1).split()]
        found.append(Check("CPU", None, f"{name.group(1) if name else 'unknown'} ({', '.join(wide) or 'no AVX2'})"))
    except OSError:
        found.append(Check("CPU", None, platform.processor() or "unknown"))
    return found


def _threads() -> list[Check]:
    """Threads of linear algebra; workers of a sweep use one each, whatever is reported here."""
    import numpy as np  # so that its BLAS is loaded and can be asked

    try:
        import threadpoolctl  # type: ignore[import-untyped, unused-ignore]

        pools = [f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpoolctl.threadpool_info()]
    except ImportError:
        return [Check("BLAS threads", None, "unknown without threadpoolctl", "pip install 'livarot[sweep]'")]
    set_here = ", ".join(name for name in THREADS if name in os.environ) or "no variable set"
    return [Check("BLAS threads", None, f"{', '.join(pools) or 'none'} (numpy {np.__version__}; {set_here})")]


def _numba_cache() -> Check:
    """Where compiled kernels are kept: without such a place each process compiles for minutes."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1])  # each package has its own kernels
    kept = sum(1 for _ in folder.rglob("*.nbi")) if folder.is_dir() else 0
    where = "NUMBA_CACHE_DIR" if os.environ.get("NUMBA_CACHE_DIR") else "beside the package"
    problem = _unwritable(folder if folder.is_dir() else folder.parent)
    if problem:
        return Check("numba cache", False, f"{where}: {problem}", "set NUMBA_CACHE_DIR to a folder you may write")
    cure = "" if kept else "livarot warmup compiles everything once"
    return Check("numba cache", True if kept else None, f"{where}: {kept} compiled functions", cure)


def _disk(store: Path) -> list[Check]:
    folder = store.absolute()
    while not os.path.lexists(folder):  # the root exists
        folder = folder.parent
    problem = _unwritable(folder) if folder.is_dir() else f"{folder.name!r} is not a folder"
    if problem:
        return [Check("store", False, problem, "choose another folder with --store")]
    free = shutil.disk_usage(folder).free
    return [
        Check("store", True, "can be written"),
        Check("free disk", free >= ENOUGH, f"{free / 1e9:.1f} GB", "free some space"),
    ]


def _unwritable(folder: Path) -> str:
    """Why nothing can be written there; empty if it can."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".livarot-doctor-") as inner:
            write_atomic(Path(inner) / "probe", b"probe")
    except (OSError, LivarotError) as error:
        return f"cannot be written ({getattr(error, 'strerror', None) or error})"
    return ""


def _extras() -> list[Check]:
    found = []
    for name, (purpose, cure) in OPTIONAL.items():
        try:
            found.append(Check(name, None, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            found.append(Check(name, None, f"not installed; it is for {purpose}", cure))
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    missing = "" if browser else "apt-get install chromium"
    found.append(Check("chromium", None, "there" if browser else "not installed: reports are not tested", missing))
    return found
