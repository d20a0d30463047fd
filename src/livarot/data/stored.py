"""A fitted model in one file: safetensors and JSON, labels included, no code inside.

What was fitted is stored whole: choice sets with counts, parameters, Hessians, labels.  A loaded model predicts, plans,
gives its summary and its confidence sets, and can be resampled.  Not stored are the tables handed over as
``reachable``, ``states`` and ``actions`` (their content is in the choice sets) and functions of ``Computed`` features:
to fit *again*, give them again.

Labels are text, numbers, truth values, None and tuples of these, and come back as what they were.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.ragged import FloatArray
from livarot.data.choices import Choices, ModelLabels
from livarot.data.features import Computed
from livarot.data.model import MNLTransition
from livarot.data.newton import Maximum
from livarot.data.table import Labels
from livarot.errors import LivarotError, bad
from livarot.storage import load_tensors, save_tensors

KIND = "mnl-transition"
SETTINGS = (
    "reg", "homogeneous", "state", "action", "next_state", "stage", "choice", "chosen", "count", "offset", "nominal",
    "covariance", "tol", "max_iter",
)  # fmt: skip
PER_SET, PER_ROW = ("stage", "state", "action"), ("offset", "next_state")
NUMBERS = ("log_likelihood", "null_log_likelihood", "decrement", "certificate", "n_iter", "converged")


@checked
def save_fit(path: str | Path, fit: MNLTransition) -> None:
    """Write a fitted model, complete or not at all; equal models give equal bytes."""
    if not hasattr(fit, "theta_"):
        raise bad("fit", "is not fitted", cure="call fit(table) first")
    choices, found = fit.choices_, fit.maxima_
    tensors: dict[str, NDArray[Any]] = {
        "start": choices.start,
        "features": choices.rows(slice(None)),
        "count": choices.count,
        "log_row": choices.log_row,
        "covariance": np.stack(fit._covariances()),
        "theta": np.stack([one.theta for one in found]),
        "gradient": np.stack([one.gradient for one in found]),
        "hessian": np.stack([one.hessian for one in found]),
        "numbers": np.array([[float(getattr(one, name)) for name in NUMBERS] for one in found]),
    }
    for name in (*PER_SET, *PER_ROW):
        part = getattr(choices, name)
        if part is not None:
            tensors[name] = part
    labels = choices.labels
    words = {
        "columns": list(choices.columns),
        "levels": [[name, _plain(list(values)), kept] for name, (values, kept) in choices.levels.items()],
        "labels": None if labels is None else [None if x is None else _plain(list(x)) for x in labels],
        "features": [x.name if isinstance(x, Computed) else str(x) for x in _listed(fit.features)],
    }
    tensors["words"] = _as_numbers(words)
    settings = {name: _setting(getattr(fit, name)) for name in SETTINGS}
    save_tensors(path, tensors, kind=KIND, header={"layout": choices.layout, "settings": settings})


@checked
def load_fit(path: str | Path) -> MNLTransition:
    """Read a model written by :func:`save_fit`."""
    tensors, header = load_tensors(path, kind=KIND)
    try:
        return _rebuilt(tensors, header)
    except (KeyError, TypeError, IndexError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, LivarotError) and error.argument == "path":
            raise
        problem = f"{str(path)!r} does not hold a complete model ({' '.join(str(error).split())[:120]})"
        raise bad("path", problem, cure="fit and save it again") from error


def _rebuilt(tensors: dict[str, NDArray[Any]], header: dict[str, Any]) -> MNLTransition:
    words = _from_numbers(tensors["words"])
    settings = {name: header["settings"][name] for name in SETTINGS}
    fit = MNLTransition(features=list(words["features"]), **settings)
    named = words["labels"]
    labels = None
    if named is not None:
        kept = [None if x is None else Labels([_label(y) for y in x], ordered=True) for x in named]
        if kept[0] is None or kept[1] is None:
            raise ValueError("labels are missing")
        labels = ModelLabels(kept[0], kept[1], kept[2])
    parts: dict[str, Any] = {name: tensors.get(name) for name in (*PER_SET, *PER_ROW)}
    choices = Choices(
        start=tensors["start"],
        features=tensors["features"],
        count=tensors["count"],
        columns=tuple(words["columns"]),
        labels=labels,
        log_row=tensors["log_row"],
        levels={name: (tuple(_label(y) for y in values), bool(flag)) for name, values, flag in words["levels"]},
        layout=str(header["layout"]),
        **parts,
    )
    _check(choices, tensors)
    maxima = []
    for k, numbers in enumerate(tensors["numbers"]):
        one = dict(zip(NUMBERS, numbers.tolist(), strict=True))
        one |= {"n_iter": int(one["n_iter"]), "converged": bool(one["converged"])}
        arrays = {name: tensors[name][k] for name in ("theta", "gradient", "hessian")}
        maxima.append(Maximum(**arrays, **one))
    return _fitted(fit, choices, maxima, tensors["covariance"])


def _fitted(fit: MNLTransition, choices: Choices, maxima: list[Maximum], covariances: FloatArray) -> MNLTransition:
    """The attributes that :meth:`MNLTransition.fit` leaves, from what was stored."""
    shared, labels = bool(fit.homogeneous), choices.labels
    n_parameters = 1 if shared else len(labels.stages) if labels and labels.stages is not None else 0
    if len(maxima) != n_parameters:
        raise ValueError(f"{len(maxima)} parameters, expected {n_parameters}")
    fit.theta_ = maxima[0].theta if shared else np.stack([one.theta for one in maxima])
    fit.covariance_ = covariances[0] if shared else covariances
    fit.maxima_ = maxima
    fit.columns_ = choices.columns
    fit.log_likelihood_ = float(sum(one.log_likelihood for one in maxima))
    fit.null_log_likelihood_ = float(sum(one.null_log_likelihood for one in maxima))
    fit.n_iter_ = max(one.n_iter for one in maxima)
    fit.converged_ = all(one.converged for one in maxima)
    fit.n_choices_ = choices.n_choices
    fit.choices_ = choices
    fit.states_ = labels.states if labels else Labels([])
    fit.actions_ = labels.actions if labels else Labels([])
    fit.stages_ = labels.stages if labels else None
    fit.classes_ = np.asarray(fit.states_.decode(np.arange(len(fit.states_))))
    return fit


def _check(choices: Choices, tensors: dict[str, NDArray[Any]]) -> None:
    """Shapes and indices fit together: nothing half-built is returned."""
    start, rows, d = choices.start, choices.n_rows, choices.dim
    labels = choices.labels
    n_parameters = len(tensors["theta"])
    good = [
        start.ndim == 1 and len(start) > 1 and start[0] == 0 and bool((np.diff(start) > 0).all()),
        tensors["features"].shape == (rows, d) and choices.count.shape == (rows,),
        tensors["theta"].shape == (n_parameters, d) and tensors["gradient"].shape == (n_parameters, d),
        tensors["hessian"].shape == tensors["covariance"].shape == (n_parameters, d, d),
        tensors["numbers"].shape == (n_parameters, len(NUMBERS)),
        _indices(choices.log_row, None, rows),
    ]
    if labels is not None:
        n_states, n_actions = len(labels.states), len(labels.actions)
        n_stages = len(labels.stages) if labels.stages is not None else 0
        good += [
            _indices(choices.state, choices.n_sets, n_states),
            _indices(choices.action, choices.n_sets, n_actions),
            _indices(choices.stage, choices.n_sets, n_stages),
            _indices(choices.next_state, rows, n_states),
        ]
    if not all(good):
        raise ValueError("its arrays do not fit together")


def _indices(part: NDArray[Any] | None, length: int | None, size: int) -> bool:
    if part is None:
        return True
    right = part.ndim == 1 and (length is None or len(part) == length)
    return right and bool((part >= 0).all() and (part < size).all())


def _listed(features: Any) -> list[Any]:
    if features is None:
        return []
    return [features] if isinstance(features, str | Computed) else list(features)


def _setting(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain(label: Any) -> Any:
    """A label as JSON: tuples as ``{"tuple": [...]}``, a list only at the top."""
    if isinstance(label, list):
        return [_plain(x) for x in label]
    if isinstance(label, tuple):
        return {"tuple": [_plain(x) for x in label]}
    value = label.item() if isinstance(label, np.generic) else label
    if value is None or isinstance(value, str | bool | int | float):
        return value
    problem = f"{label!r} ({type(label).__name__}) cannot be stored"
    raise bad("labels", problem, cure="use text, numbers or tuples of these as states, actions and categories")


def _label(stored: Any) -> Any:
    return tuple(_label(x) for x in stored["tuple"]) if isinstance(stored, dict) else stored


def _as_numbers(words: Any) -> NDArray[Any]:
    """JSON as the numbers of its bytes: a head has no room for the names of many states."""
    try:
        text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except ValueError as error:
        raise bad("labels", f"cannot be stored ({error})", cure="give infinite labels a name of their own") from error
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int32)


def _from_numbers(numbers: FloatArray | NDArray[Any]) -> Any:
    return json.loads(bytes(numbers.astype(np.uint8)).decode())
