"""Packages that only a part of livarot needs, and the line that says how to get one that is missing.

``pip install livarot`` brings what modelling, planning, running and simulating need.  The rest is in extras, so that
``pip install 'livarot[data]'`` adds what reading tables and fitting need; ``livarot[all]`` is everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

EXTRAS = {  # of importable packages; pyproject.toml lists what each extra installs
    "pandas": "data",
    "pyarrow": "data",
    "sklearn": "data",
    "formulaic": "data",
    "matplotlib": "report",
    "plotly": "report",
    "joblib": "sweep",
    "pydantic": "sweep",
    "threadpoolctl": "sweep",
    "tomli_w": "sweep",
    "gymnasium": "gym",
    "dask": "cluster",
    "distributed": "cluster",
    "streamlit": "board",
}
WHOLE = {"livarot.sweeps": "sweep"}  # parts of livarot that need more of an extra than its first missing package


def extra_of(module: str) -> str | None:
    """The extra that all of a part needs; None: that of the package that is missing.

    >>> extra_of("livarot.sweeps.store.store"), extra_of("livarot.data.estimator")
    ('sweep', None)
    """
    return WHOLE.get(".".join(module.split(".")[:2]))


def all_there() -> bool:
    """Are the packages of all extras installed?  They are not imported."""
    try:
        return all(find_spec(package) for package in EXTRAS)
    except (ImportError, ValueError):
        return False


@contextmanager
def extras_explained(extra: str | None = None) -> Iterator[None]:
    """Say which extra to install if an import within fails for want of one; other failures stay what they are.

    ``extra`` is what the whole of it needs, where that is more than the first package that is missing.

    >>> with extras_explained():
    ...     raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
    Traceback (most recent call last):
        ...
    livarot.errors.MissingExtra: pandas is not installed; it comes with an extra: pip install 'livarot[data]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        from livarot.errors import MissingExtra  # not before: it imports NumPy, and the command line answers at once

        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        cure = f"pip install 'livarot[{extra or EXTRAS[package]}]'"
        message = f"{package} is not installed; it comes with an extra: {cure}"
        raise MissingExtra(message, argument=package, cure=cure) from error


def require_extra(package: str) -> None:
    """Refuse, before any work, what will need this package at its end, if the package is missing."""
    with extras_explained():
        import_module(package)
