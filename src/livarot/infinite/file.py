"""A stationary model in one file: the stage as in :mod:`livarot.model.file`, and the user's terms beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from livarot.errors import bad
from livarot.file_layout import Entry, Layout, Tensor
from livarot.infinite.problem import InfiniteMDP
from livarot.infinite.terms import Terms, require_actions, unit_of
from livarot.model.file import LAYOUT as STAGE
from livarot.model.file import model_in, tensors_of
from livarot.storage import load_tensors, reading, save_tensors

KIND = "infinite mdp"
LAYOUT = Layout(
    dict(STAGE.header) | {"discount": Entry(float, 0.0, 1.0, optional=True), "costs": Entry(bool)},
    dict(STAGE.tensors)
    | {
        "pair_reward": Tensor("float64", ("n_states", "n_actions")),
        "outcome_reward": Tensor("float64", ("rows",))._replace(optional=True),
        "ends": Tensor("bool", ("n_states",)),
        "end_reward": Tensor("float64", ("n_states",)),
    },
)


def save_infinite(path: str | Path, mdp: InfiniteMDP) -> None:
    """See :meth:`InfiniteMDP.save`."""
    terms = mdp.problem.terms
    tensors = tensors_of(mdp.stage) | {
        "pair_reward": terms.reward,
        "ends": terms.terminal,
        "end_reward": terms.terminal_reward,
    }
    if terms.outcome_reward is not None:
        tensors["outcome_reward"] = terms.outcome_reward
    header: dict[str, Any] = mdp.stage.problem._header() | {"costs": terms.costs}
    if terms.discount is not None:
        header["discount"] = terms.discount
    save_tensors(path, tensors, kind=KIND, header=header)


def load_infinite(path: str | Path) -> InfiniteMDP:
    """The model in a file, after the checks that a user's arrays go through."""
    tensors, header = load_tensors(path, kind=KIND, layout=LAYOUT)
    with reading(path):
        stage = model_in(tensors, header)
        terminal = tensors["ends"]
        discount = header.get("discount")
        pays = tensors["pair_reward"], tensors.get("outcome_reward")
        ended = terminal, tensors["end_reward"]
        discount = None if discount is None else float(discount)
        mdp = InfiniteMDP(stage, Terms(*pays, *ended, discount, header["costs"], unit_of(*pays, ended[1])))
        rows, first = mdp.problem.rows, np.arange(mdp.problem.n_states) * mdp.problem.n_actions
        require_actions(rows.outcomes, terminal, mdp.problem.names)
        ends = first[terminal]
        back = rows.next_state[np.minimum(rows.row_start[ends], max(rows.n_rows - 1, 0))] if rows.n_rows else ends[:0]
        own = rows.outcomes.reshape(mdp.problem.n_states, -1)[terminal]
        if (own[:, 0] != 1).any() or (own[:, 1:] != 0).any() or (back != np.flatnonzero(terminal)).any():
            raise bad("terminal", "a terminal state leads elsewhere")
        return mdp
