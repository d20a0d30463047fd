"""Covariates in the file of a fit: how they enter the features, and the values that were met."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.data.formulas.expressions import check_memory, parsed
from livarot.data.formulas.formula import Factor
from livarot.data.reading.choices import Choices
from livarot.data.reading.covariates import Design
from livarot.file_layout import Entry, Layout, Misfit, Tensor, check_range, plain_label, read_labels

PER_SET, PER_ROW = ("stage", "state", "action"), ("offset", "next_state")
NAME, CATEGORY, EXPRESSION = "name", "category", "expression"
ENTRIES = dict.fromkeys(("factors", "uses", "profile"), Entry(list))
TENSORS = (
    {
        "base_start": Tensor("int64", ("base_sets+1",), low=0, optional=True),
        "base_features": Tensor("float64", ("base_rows", "d"), optional=True),
        "base_offset": Tensor("float64", ("base_rows",), optional=True),
        "base_next_state": Tensor("int64", ("base_rows",), low=0, optional=True),
        "profile": Tensor("float64", ("sets", "covariates"), optional=True),
    }
    | {f"base_{name}": Tensor("int64", ("base_sets",), low=0, optional=True) for name in PER_SET}
)  # fmt: skip


def design_tensors(choices: Choices) -> dict[str, NDArray[Any]]:
    """The arrays that a file keeps of the covariates."""
    design = choices.design
    if design is None:
        return {}
    own = design.sets
    found: dict[str, NDArray[Any]] = {"base_start": own.start, "base_features": own.rows(slice(None))}
    for name in (*PER_SET, *PER_ROW):
        part = getattr(own, name)
        if part is not None:
            found[f"base_{name}"] = part
    columns = [_coded(choices, name)[0] for name in design.names]
    found["profile"] = np.stack(columns, axis=1) if columns else np.empty((choices.n_sets, 0))
    return found


def _coded(choices: Choices, name: str) -> tuple[NDArray[Any], list[Any] | None]:
    values = choices.profile[name]
    if values.dtype != object:
        return np.asarray(values, dtype=np.float64), None
    labels = list(dict.fromkeys(values.tolist()))
    place = {label: k for k, label in enumerate(labels)}
    return np.array([place[label] for label in values.tolist()], dtype=np.float64), labels


def design_words(choices: Choices) -> dict[str, Any] | None:
    """The JSON part that a file keeps of the covariates."""
    design = choices.design
    if design is None:
        return None
    kinds = [EXPRESSION if f.expression else CATEGORY if f.category else NAME for f in design.factors]
    labels = [(name, _coded(choices, name)[1]) for name in design.names]
    return {
        "factors": [[f.text, kind, f.name or ""] for f, kind in zip(design.factors, kinds, strict=True)],
        "uses": [[list(key) for key in use] for use in design.uses],
        "profile": [[name, None if own is None else plain_label(own)] for name, own in labels],
    }


def read_design(tensors: dict[str, NDArray[Any]], words: Any, choices: Choices) -> tuple[Design, dict[str, Any]]:
    """The design and the profile of a file, refused unless they fit together and to the choices."""
    if not isinstance(words, dict) or any(f"base_{name}" not in tensors for name in ("start", "features", "state")):
        raise Misfit("its covariates are incomplete")
    Layout(ENTRIES, {}).check_head(words, {})
    factors = tuple(_factor(*entry) for entry in words["factors"])
    widths = {factor.text: _width(factor, choices) for factor in factors}
    uses = tuple(tuple((str(text), int(k)) for text, k in use) for use in words["uses"])
    if len(uses) != choices.dim or any(not 0 <= k < widths.get(text, 0) for use in uses for text, k in use):
        raise Misfit("its columns use covariates that it does not have")
    parts: dict[str, Any] = {name: tensors.get(f"base_{name}") for name in (*PER_SET, *PER_ROW)}
    sets = Choices(
        start=tensors["base_start"],
        features=tensors["base_features"],
        count=np.zeros(len(tensors["base_features"])),
        columns=choices.columns,
        term_of=choices.term_of,
        labels=choices.labels,
        levels=choices.levels,
        memory=choices.memory,
        layout="transitions",
        **parts,
    )
    _check_sets(sets, choices)
    design = Design(sets, factors, uses)
    return design, _profile(tensors, words["profile"], design, choices)


def _factor(text: str, kind: str, name: str) -> Factor:
    if not all(isinstance(x, str) for x in (text, kind, name)) or kind not in (NAME, CATEGORY, EXPRESSION):
        raise Misfit("a factor of its covariates is not a covariate")
    if kind == EXPRESSION:
        return Factor(text, "next", None, False, parsed(text))
    return Factor(text, "next", name, kind == CATEGORY)


def _width(factor: Factor, choices: Choices) -> int:
    """How many columns a factor has."""
    if factor.category:
        return len(choices.levels[factor.text][0])
    own = check_memory(choices.memory).get(factor.text.replace(" ", ""), [])
    known = [value for key, value in choices.memory.items() if key.replace(" ", "") == factor.text.replace(" ", "")]
    constants = known[0] if known else own
    return (len(constants) - 1) // 2 if factor.text.startswith("poly") and constants else 1


def _check_sets(sets: Choices, choices: Choices) -> None:
    start, labels = sets.start, choices.labels
    if not (len(start) > 1 and start[0] == 0 and start[-1] == len(sets.count) and (np.diff(start) > 0).all()):
        raise Misfit("the sets of its covariates are not a partition of the rows")
    if labels is None or sets.action is None or sets.next_state is None or sets.state is None:
        raise Misfit("the sets of its covariates have no states and actions")
    known = {"state": labels.states, "action": labels.actions, "next_state": labels.states, "stage": labels.stages}
    for name, own in known.items():
        codes = getattr(sets, name)
        if codes is not None:
            check_range(f"tensor 'base_{name}'", codes, 0, len(own or ()) - 1)
    if (sets.stage is None) != (choices.stage is None) or (sets.offset is None) != (choices.offset is None):
        raise Misfit("the sets of its covariates have other parts than its choices")
    assert choices.state is not None  # noqa: S101 (read before)
    assert choices.action is not None  # noqa: S101
    if (sets.locate(choices.state, choices.action, choices.stage) < 0).any():
        raise Misfit("a choice has a state and action without a set")


def _profile(tensors: dict[str, Any], words: Any, design: Design, choices: Choices) -> dict[str, Any]:
    numbers = tensors.get("profile")
    if numbers is None or numbers.shape != (choices.n_sets, len(design.names)) or len(words) != len(design.names):
        raise Misfit("the values of its covariates are missing")
    found: dict[str, Any] = {}
    for k, (name, stored) in enumerate(words):
        if name != design.names[k] or (stored is None) == design.is_category(name):
            raise Misfit("the values of its covariates have other names")
        if stored is None:
            found[name] = np.ascontiguousarray(numbers[:, k])
            continue
        labels = np.empty(len(stored), dtype=object)
        labels[:] = read_labels(stored)
        check_range(f"profile of {name!r}", numbers[:, k], 0, len(labels) - 1)
        if (numbers[:, k] != np.rint(numbers[:, k])).any():
            raise Misfit(f"the profile of {name!r} has codes that are not whole numbers")
        found[name] = labels[numbers[:, k].astype(np.int64)]
    return found
