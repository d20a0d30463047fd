"""A fitted model in one file: safetensors and JSON, labels included, no code inside.

What was fitted is stored whole: choice sets with counts, parameters, Hessians, labels.  A loaded model predicts, plans,
gives its summary and its confidence sets, and can be resampled.  Not stored are the tables handed over as
``reachable``, ``states`` and ``actions`` (their content is in the choice sets) and functions of ``Computed`` features:
to fit *again*, give them again.

Labels are text, numbers, truth values, None and tuples of these, and come back as what they were.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.data.estimator import MNLTransition
from livarot.data.fitting.newton import Maximum
from livarot.data.fitting.sandwich import KINDS, observation_weights
from livarot.data.formulas.expressions import check_memory
from livarot.data.formulas.formula import Computed
from livarot.data.formulas.wilkinson import check_formula
from livarot.data.reading.choices import Choices
from livarot.data.use.design_files import PER_ROW, PER_SET, TENSORS, design_tensors, design_words, read_design
from livarot.errors import bad
from livarot.file_layout import (
    LARGEST,
    TEXT,
    Entry,
    Layout,
    Misfit,
    Tensor,
    check_range,
    from_numbers,
    plain_label,
    read_labels,
    to_numbers,
)
from livarot.model.labels import Labels, ModelLabels
from livarot.storage import load_tensors, reading, save_tensors

KIND = "mnl-transition"
SETTINGS = (
    {"reg": Entry(float, 0.0), "homogeneous": Entry(bool), "covariance": Entry(str), "tol": Entry(float, 0.0)}
    | {"max_iter": Entry(int, 1)}
    | dict.fromkeys(("state", "next_state", "choice", "chosen"), Entry(str))
    | dict.fromkeys(("action", "stage", "count", "offset", "nominal"), Entry(str, optional=True))
    | dict.fromkeys(("formula", "weights", "cluster", "collinear"), Entry(str, optional=True))
)
WORDS = (
    dict.fromkeys(("columns", "levels", "features"), Entry(list))
    | dict.fromkeys(("labels", "terms", "dropped"), Entry(list, optional=True))
    | dict.fromkeys(("memory", "covariates"), Entry(dict, optional=True))
)
NUMBERS = {  # of a maximum: smallest and largest value, and whether it is a whole number
    "log_likelihood": (-LARGEST, 1e-6, False),
    "null_log_likelihood": (-LARGEST, 1e-6, False),
    "decrement": (0.0, LARGEST, False),
    "certificate": (0.0, math.inf, False),
    "n_iter": (0.0, 2.0**31, True),
    "converged": (0.0, 1.0, True),
}
LAYOUT = Layout(
    {"layout": Entry(str), "settings": Entry(dict)},
    {
        "start": Tensor("int64", ("sets+1",), low=0),
        "features": Tensor("float64", ("rows", "d")),
        "count": Tensor("float64", ("rows",), low=0.0),
        "log_row": Tensor("int64", ("observations",), "rows"),
        "theta": Tensor("float64", ("parameters", "d")),
        "gradient": Tensor("float64", ("parameters", "d")),
        "hessian": Tensor("float64", ("parameters", "d", "d")),
        "covariance": Tensor("float64", ("parameters", "d", "d")),
        "numbers": Tensor("float64", ("parameters", len(NUMBERS)), finite=False),
        "words": TEXT,
        "offset": Tensor("float64", ("rows",), optional=True),
        "next_state": Tensor("int64", ("rows",), optional=True),
        "log_count": Tensor("float64", ("observations",), low=0.0, optional=True),
        "log_weight": Tensor("float64", ("observations",), low=0.0, optional=True),
        "cluster": Tensor("int64", ("observations",), low=0, high=2.0**40, optional=True),
    }
    | dict.fromkeys(PER_SET, Tensor("int64", ("sets",), optional=True))
    | TENSORS,
)
PER_OBSERVATION = ("log_count", "log_weight", "cluster")


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
    for name in (*PER_SET, *PER_ROW, *PER_OBSERVATION):
        part = getattr(choices, name)
        if part is not None:
            tensors[name] = part
    tensors |= design_tensors(choices)
    labels = choices.labels
    words = {
        "columns": list(choices.columns),
        "levels": [[name, plain_label(list(values)), kept] for name, (values, kept) in choices.levels.items()],
        "labels": None if labels is None else [None if x is None else plain_label(list(x)) for x in labels],
        "features": [x.name if isinstance(x, Computed) else str(x) for x in _listed(fit.features)],
        "terms": list(choices.terms),
        "dropped": list(fit.dropped_),
        "memory": choices.memory,
        "covariates": design_words(choices),
    }
    tensors["words"] = to_numbers(words)
    settings = {name: _setting(getattr(fit, name)) for name in SETTINGS}
    settings |= {"homogeneous": bool(fit.homogeneous), "covariance": fit.covariance_kind_}
    save_tensors(path, tensors, kind=KIND, header={"layout": choices.layout, "settings": settings})


@checked
def load_fit(path: str | Path) -> MNLTransition:
    """Read a model written by :func:`save_fit`; a file that does not hold all of one is refused."""
    tensors, header = load_tensors(path, kind=KIND, layout=LAYOUT)
    with reading(path):
        return _rebuilt(tensors, header)


def _rebuilt(tensors: dict[str, NDArray[Any]], header: dict[str, Any]) -> MNLTransition:
    words = from_numbers(tensors["words"])
    for table, values in ((WORDS, words), (SETTINGS, header["settings"])):
        Layout(table, {}).check_head({k: v for k, v in values.items() if v is not None or not table[k].optional}, {})
    settings = dict.fromkeys(SETTINGS) | header["settings"]
    settings["collinear"] = settings["collinear"] or "refuse"
    if settings["formula"] is not None:
        check_formula(settings["formula"])
    features = _texts(words["features"])
    fit = MNLTransition(features=features if settings["formula"] is None else None, **settings)
    labels = None
    if words.get("labels") is not None:
        states, actions, stages = (None if x is None else Labels(read_labels(x), ordered=True) for x in words["labels"])
        if states is None or actions is None:
            raise Misfit("labels are missing")
        labels = ModelLabels(states, actions, stages)
    parts: dict[str, Any] = {name: tensors.get(name) for name in (*PER_SET, *PER_ROW, *PER_OBSERVATION)}
    choices = Choices(
        start=tensors["start"],
        features=tensors["features"],
        count=tensors["count"],
        columns=tuple(_texts(words["columns"])),
        labels=labels,
        log_row=tensors["log_row"],
        levels={name: (read_labels(values), flag) for name, values, flag in words["levels"]},
        memory=check_memory(words.get("memory") or {}),
        term_of=tuple(_texts(words.get("terms") or words["columns"])),
        layout=header["layout"],
        **parts,
    )
    _check(choices, tensors, fit)
    if words.get("covariates") is not None:
        design, profile = read_design(tensors, words["covariates"], choices)
        choices = replace(choices, design=design, profile=profile)
    maxima = []
    for k, numbers in enumerate(tensors["numbers"]):
        one = dict(zip(NUMBERS, numbers.tolist(), strict=True))
        one |= {"n_iter": int(one["n_iter"]), "converged": bool(one["converged"])}
        arrays = {name: tensors[name][k] for name in ("theta", "gradient", "hessian")}
        maxima.append(Maximum(**arrays, **one))
    dropped = tuple(_texts(words.get("dropped") or []))
    return _fitted(fit, choices, maxima, tensors["covariance"], dropped)


def _fitted(
    fit: MNLTransition, choices: Choices, maxima: list[Maximum], covariances: FloatArray, dropped: tuple[str, ...]
) -> MNLTransition:
    labels = choices.labels
    n_parameters = 1 if fit.homogeneous else len(labels.stages) if labels and labels.stages is not None else 0
    if len(maxima) != n_parameters:
        raise ValueError(f"{len(maxima)} parameters, expected {n_parameters}")
    return fit._fitted(choices, maxima, list(covariances), fit.covariance, dropped)


def _check(choices: Choices, tensors: dict[str, NDArray[Any]], fit: MNLTransition) -> None:
    """Sets, indices, labels and settings fit together: nothing half-built is returned."""
    start, labels = choices.start, choices.labels
    if not (len(start) > 1 and start[0] == 0 and start[-1] == len(choices.count) and (np.diff(start) > 0).all()):
        raise Misfit("its choice sets are not a partition of the rows")
    if len(choices.terms) != len(choices.columns):
        raise Misfit("its columns do not have terms")
    if len(choices.columns) != tensors["theta"].shape[1] or len(set(choices.columns)) < len(choices.columns):
        raise Misfit("its columns do not have names that are all different")
    if choices.log_count is not None or choices.log_weight is not None or choices.cluster is not None:
        weight = observation_weights(choices)
        total = np.bincount(choices.log_row, weights=weight, minlength=choices.n_rows)
        if not np.allclose(total, choices.count, rtol=1e-9, atol=1e-12):
            raise Misfit("its counts are not those of its log")
    chosen = np.bincount(choices.log_row, minlength=choices.n_rows)
    if len(choices.log_row) and choices.count[chosen == 0].any():
        raise Misfit("it counts rows that its log never chose")
    sizes = {"state": labels and labels.states, "action": labels and labels.actions, "stage": labels and labels.stages}
    sizes["next_state"] = sizes["state"]
    for name, known in sizes.items():
        codes = getattr(choices, name)
        if codes is not None:
            check_range(f"tensor {name!r}", codes, 0, len(known or ()) - 1)
    named = [choices.state is None, choices.action is None, choices.next_state is None]
    if any(named) and not all(named):
        raise Misfit("some of state, action and next state are missing")
    if choices.layout not in ("alternatives", "transitions") or (choices.layout == "transitions" and any(named)):
        raise Misfit(f"its layout is {choices.layout!r}")
    if fit.covariance not in KINDS or (fit.covariance == "cluster" and choices.cluster is None):
        raise Misfit(f"its covariance is {fit.covariance!r}")
    if fit.collinear not in ("refuse", "drop"):
        raise Misfit(f"its collinear is {fit.collinear!r}")
    if not fit.homogeneous and (choices.stage is None or fit.stage is None):
        raise Misfit("it has a parameter per stage and no stages")
    for name in ("hessian", "covariance"):
        matrix = tensors[name]
        diagonal = np.diagonal(matrix, axis1=1, axis2=2)
        scale = np.abs(matrix).max(initial=0.0)
        if (diagonal < 0.0).any() or np.abs(matrix - matrix.transpose(0, 2, 1)).max(initial=0.0) > 1e-6 * scale:
            raise Misfit(f"tensor {name!r} is not symmetric, or has a negative diagonal")
    for values, name in zip(tensors["numbers"].T, NUMBERS, strict=True):
        low, high, whole = NUMBERS[name]
        check_range(name, values, low, high, finite=False)
        if whole and (values != np.rint(values)).any():
            raise Misfit(f"{name} is not a whole number")


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(x, str) for x in values):
        raise Misfit("a name is not text")
    return values


def _listed(features: Any) -> list[Any]:
    if features is None:
        return []
    return [features] if isinstance(features, str | Computed) else list(features)


def _setting(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
