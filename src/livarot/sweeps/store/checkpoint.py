"""Checkpoints: replicas in the middle of a run as one file, and back, bit for bit.

A file (safetensors, JSON header, SHA-256: :mod:`livarot.storage`) has the agent's state, the columns so far, the seeds
and the episode.  It serves any subset of its seeds, so a task may be cut differently after a crash.  A file made by
other sources is not used: a run is computed by one version from its first episode to its last.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.agents.states import check_state, flat, layout_of, rebuilt
from livarot.errors import LivarotError, bad
from livarot.file_layout import Entry, Layout, Tensor
from livarot.running.loop import Replicas
from livarot.storage import JSON, load_tensors, open_regular, reading, save_tensors
from livarot.sweeps.experiment.keys import Cell, digest
from livarot.sweeps.store.folders import names_in, own_folder
from livarot.sweeps.store.provenance import provenance

logger = logging.getLogger(__name__)
KIND = "checkpoint"
SUFFIX = ".safetensors"
HEADER = {"cell": Entry(str), "source": Entry(str), "episode": Entry(int, 0)}


def path_of(folder: Path, cell: Cell, seeds: Sequence[int]) -> Path:
    """Where the checkpoint of these seeds is written."""
    return folder / f"{cell.key[:32]}-{digest(list(seeds))[:16]}{SUFFIX}"


def save(folder: Path, cell: Cell, replicas: Replicas, source: str = "") -> bool:
    """Write the replicas as they are now; False, with a warning, if the agent's state cannot be stored.

    ``source`` is the hash of sources besides livarot's own (:mod:`livarot.sweeps.experiment.sources`).
    """
    done = replicas.episode
    tensors = {f"state.{name}": array for name, array in flat(replicas.state).items()}
    tensors |= {f"column.{name}": np.ascontiguousarray(column[:done]) for name, column in replicas.columns.items()}
    tensors |= {"bits": np.ascontiguousarray(replicas.bits[:done]), "seeds": np.asarray(replicas.seeds, dtype=np.int64)}
    if any(array.dtype.name not in ("float64", "int32", "int64", "bool") for array in tensors.values()):
        logger.warning("the state of %s cannot be stored: its runs start again after a crash", cell.agent)
        return False
    header: dict[str, JSON] = {"cell": cell.key, "episode": done, "source": f"{provenance()['source']} {source}"}
    try:
        save_tensors(path_of(own_folder(folder), cell, replicas.seeds), tensors, kind=KIND, header=header)
    except LivarotError:
        if folder.is_dir():
            raise
        # somebody removed the folder while the file was being written: once more
        save_tensors(path_of(own_folder(folder), cell, replicas.seeds), tensors, kind=KIND, header=header)
    return True


def _of_cell(folder: Path, cell: Cell) -> list[Path]:
    """The checkpoints of a cell; every task needs them, and `Path.glob` would take ten times as long."""
    beginning = f"{cell.key[:32]}-"
    return [folder / name for name in names_in(folder) if name.startswith(beginning) and name.endswith(SUFFIX)]


def restore(folder: Path, cell: Cell, replicas: Replicas, source: str = "") -> int:
    """Put the replicas where the best checkpoint has them; returns the episode they go on from, 0 if there is none.

    A damaged checkpoint, or one whose state is not one of the agent's, is deleted and costs the episodes since the
    start, nothing else.
    """
    found: tuple[int, dict[str, NDArray[Any]], Any] | None = None
    for path in _of_cell(folder, cell):

        def layout(header: dict[str, Any], path: Path = path) -> Layout:
            with reading(path):
                Layout(HEADER, {}).check_head(header, {})
            if header["cell"] != cell.key or header["source"] != f"{provenance()['source']} {source}":
                raise _OfOthersError
            return _layout(replicas)

        try:
            os.close(open_regular(path))  # a link is not followed
            try:
                tensors, header = load_tensors(path, kind=KIND, layout=layout)
            except _OfOthersError:
                load_tensors(path, kind=KIND)  # raises if it is damaged, which may be why it seems foreign
                continue
            if not set(replicas.seeds) <= set(tensors["seeds"].tolist()) or (found and header["episode"] <= found[0]):
                continue
            with reading(path):
                found = header["episode"], tensors, _state(replicas, tensors)
        except (LivarotError, OSError) as error:
            logger.warning("%r is not used (%s): starting again", path.name, error)
            with contextlib.suppress(OSError):
                path.unlink()
    if found is None:
        return 0
    done, tensors, replicas.state = found
    chosen = _places(replicas, tensors)
    for name, column in replicas.columns.items():
        column[:done] = tensors[f"column.{name}"][:, chosen]
    replicas.bits[:done] = tensors["bits"][:, chosen]
    replicas.episode = done
    return done


class _OfOthersError(Exception):
    """A checkpoint of another cell, or made by other sources: it is not used."""


def _layout(replicas: Replicas) -> Layout:
    """What a checkpoint of such replicas holds."""
    columns = {f"column.{name}": Tensor("float64", ("episode", "R"), finite=False) for name in replicas.columns}
    own = columns | {
        "bits": Tensor("int32", ("episode", "R", replicas.bits.shape[2])),
        "seeds": Tensor("int64", ("R",), low=0),
    }
    header = HEADER | {"episode": Entry(int, 0, replicas.n_episodes)}
    state = layout_of(replicas.agent, replicas.problem, same_problem=True).tensors
    return Layout(header, own | {f"state.{name}": tensor for name, tensor in state.items()})


def _places(replicas: Replicas, tensors: dict[str, NDArray[Any]]) -> NDArray[np.intp]:
    place = {seed: index for index, seed in enumerate(tensors["seeds"].tolist())}
    return np.array([place[seed] for seed in replicas.seeds])


def _state(replicas: Replicas, tensors: dict[str, NDArray[Any]]) -> Any:
    """The agent's state of the seeds that are wanted."""
    chosen, stored = _places(replicas, tensors), len(tensors["seeds"])
    state = {name[6:]: array for name, array in tensors.items() if name.startswith("state.")}
    if not np.array_equal(chosen, np.arange(stored)):
        state = {name: select(array, stored, chosen) for name, array in state.items()}
    built = rebuilt(replicas.state, state)
    check_state(replicas.problem, built)
    return built


def select(array: NDArray[Any], replicas: int, chosen: NDArray[Any]) -> NDArray[Any]:
    """Some replicas of an array of a state; scalars, empty arrays and those of length 1 are shared by all.

    That an array of a state has one of these forms is part of the contract of agents
    (:func:`livarot.running.check_agent.check_agent`).
    """
    if array.ndim == 0 or len(array) == 0 or len(array) == 1 != replicas:
        return array
    if len(array) != replicas:
        raise bad("agent", f"its state has an array of shape {array.shape} for {replicas} replicas")
    return np.ascontiguousarray(array[chosen])
