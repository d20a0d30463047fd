"""A model in one file: what the file holds, how it is written and how it is read.

:data:`LAYOUT` says what each tensor is; how they fit together is checked by :meth:`livarot.model.ragged.Rows.validate`
and by the checks that a model built from a user's arrays goes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.tolerances import NORM_SLACK
from livarot.errors import bad
from livarot.file_layout import TEXT, Entry, Layout, Tensor, from_numbers, plain_label, read_labels, to_numbers
from livarot.model.building.validation import check_stage_table, check_start
from livarot.model.labels import Labels
from livarot.model.problem import MNLMDP, Problem
from livarot.model.ragged import STORED, Rows
from livarot.model.terms.existing import require_actions
from livarot.model.terms.units import PLAIN, units_of
from livarot.storage import load_tensors, reading, save_tensors

KIND = "mnlmdp"
_MOST = 2.0**31 - 1.0  # states are int32
ROUNDING = 1e-9  # of rewards that were mapped into [0, 1]

LAYOUT = Layout(
    {
        "horizon": Entry(int, 1, _MOST),
        "n_states": Entry(int, 1, _MOST),
        "n_actions": Entry(int, 1, _MOST),
        "dim": Entry(int, 1, _MOST),
        "param_bound": Entry(float, 0.0),
        "shared_parameter": Entry(bool),
        "feature_scale": Entry(float, 1e-300),
        "reward_scale": Entry(list, optional=True),  # only in files of livarot.envs.TabularMDP
        "units": Entry(list, optional=True),  # where rewards were mapped into [0, 1], or discounted
    },
    {
        "row_start": Tensor("int64", ("pairs+1",), low=0),
        "next_state": Tensor("int32", ("rows",), "n_states"),
        "offset": Tensor("float64", ("rows",)),
        "block_start": Tensor("int64", ("blocks+1",), low=0),
        "block_coords": Tensor("int32", ("dim",), "dim"),
        "gram_start": Tensor("int64", ("blocks+1",), low=0),
        "pair_block": Tensor("int32", ("pairs",), "blocks", low=-1),
        "col_start": Tensor("int64", ("pairs",), low=0),
        "col_count": Tensor("int32", ("pairs",), low=0),
        "cols": Tensor("int32", ("columns",), "dim"),
        "feat_start": Tensor("int64", ("pairs",), low=0),
        "feat": Tensor("float64", ("entries",)),
        "stage_table": Tensor("int32", ("horizon",), low=0),
        "reward": Tensor("float64", ("horizon", "n_states", "n_actions"), low=0.0, high=1.0),
        "start": Tensor("float64", ("n_states",), low=0.0, high=1.0),
        "theta": Tensor("float64", ("parameters", "dim")),
        "next_reward": Tensor("float64", ("rows",), low=0.0, high=1.0 + ROUNDING, optional=True),
        "terminal_reward": Tensor("float64", ("n_states",), low=0.0, optional=True),
        "terminal": Tensor("bool", ("n_states",), optional=True),
        "labels": TEXT._replace(optional=True),
    },
)


def save_model(path: str | Path, mdp: MNLMDP, more: Mapping[str, Any]) -> None:
    """See :meth:`MNLMDP.save`; ``more`` goes into the header."""
    save_tensors(path, tensors_of(mdp), kind=KIND, header=mdp.problem._header() | dict(more))


def tensors_of(mdp: MNLMDP) -> dict[str, NDArray[Any]]:
    """The arrays of a model's file."""
    tensors = mdp.problem._tensors() | {"theta": mdp.theta}
    labels = mdp.problem.states, mdp.problem.actions, mdp.problem.stages
    if any(part is not None for part in labels):
        tensors["labels"] = to_numbers([None if part is None else plain_label(list(part)) for part in labels])
    return tensors


def load_model(path: str | Path) -> tuple[MNLMDP, dict[str, Any]]:
    """The model in a file, and the file's header."""
    tensors, header = load_tensors(path, kind=KIND, layout=LAYOUT)
    with reading(path):
        return model_in(tensors, header), header


def model_in(tensors: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> MNLMDP:
    """The model of a file's arrays, refused unless they fit together."""
    stored: dict[str, Any] = {k: header[k] for k in ("n_states", "n_actions", "dim")}
    rows = Rows(**stored | {k: tensors[k] for k in STORED})
    rows.validate()
    if float(rows.norms().max(initial=0.0)) > 1.0 + NORM_SLACK:
        raise bad("features", "have a norm above 1")
    table, terminal = tensors["stage_table"], tensors.get("terminal")
    check_stage_table(table, rows.n_tables, header["horizon"])
    require_actions(rows.outcomes.reshape(-1, rows.n_states, rows.n_actions), table, None)
    if terminal is not None:
        _check_terminal(rows, terminal)
    check_start(tensors["start"], rows.n_states)
    more: dict[str, Any] = _labels(tensors["labels"], header["horizon"]) if "labels" in tensors else {}
    units = units_of(header["units"]) if "units" in header else PLAIN
    problem = Problem(
        horizon=header["horizon"],
        rows=rows,
        stage_table=table,
        reward=tensors["reward"],
        start=tensors["start"],
        param_bound=float(header["param_bound"]),
        shared_parameter=header["shared_parameter"],
        feature_scale=float(header["feature_scale"]),
        next_reward=tensors.get("next_reward"),
        terminal_reward=tensors.get("terminal_reward"),
        terminal=terminal,
        discount=units.discount,
        units=units,
        **more,
    )
    return MNLMDP(problem, tensors["theta"])


def _check_terminal(rows: Rows, terminal: NDArray[np.bool_]) -> None:
    """Refuse terminal states that lead elsewhere."""
    counts = rows.outcomes.reshape(-1, rows.n_states, rows.n_actions)[:, terminal]
    first = rows.row_start[:-1].reshape(-1, rows.n_states, rows.n_actions)[:, terminal, 0]
    sound = (counts[:, :, 0] == 1).all() and not counts[:, :, 1:].any()
    if not (sound and (rows.next_state[first] == np.flatnonzero(terminal)).all()):
        raise bad("terminal", "states lead elsewhere")


def _labels(numbers: NDArray[Any], horizon: int) -> dict[str, Labels | None]:
    """Names of states, actions and stages (None where they have none)."""
    states, actions, stages = (
        None if part is None else Labels(read_labels(part), ordered=True) for part in from_numbers(numbers)
    )
    if stages is not None and len(stages) != horizon:  # earlier versions wrote the stages of the data, not of the model
        stages = None
    return {"states": states, "actions": actions, "stages": stages}
