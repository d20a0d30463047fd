"""Checkpoints: replicas in the middle of a run as one file, and back, bit for bit.

A file (safetensors, JSON header, SHA-256: :mod:`livarot.storage`) has the agent's state, the columns so far, the seeds
and the episode.  It serves any subset of its seeds, so a task may be cut otherwise after a crash.  A file made by other
sources is not used: a run is computed by one version from its first episode to its last.
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

from livarot.errors import LivarotError, bad
from livarot.experiments.keys import Cell, digest
from livarot.experiments.loop import Replicas
from livarot.experiments.records import provenance
from livarot.storage import JSON, load_tensors, save_tensors

logger = logging.getLogger(__name__)
KIND = "checkpoint"
SUFFIX = ".safetensors"


def path_of(folder: Path, cell: Cell, seeds: Sequence[int]) -> Path:
    """Where the checkpoint of these seeds is written."""
    return folder / f"{cell.key[:32]}-{digest(list(seeds))[:16]}{SUFFIX}"


def save(folder: Path, cell: Cell, replicas: Replicas, source: str = "") -> bool:
    """Write the replicas as they are now; False, with a warning, if the agent's state cannot be stored.

    ``source`` is the hash of sources beside livarot's own (:mod:`livarot.experiments.sources`).
    """
    done = replicas.episode
    tensors = {f"state.{name}": array for name, array in flat(replicas.state).items()}
    tensors |= {f"column.{name}": np.ascontiguousarray(column[:done]) for name, column in replicas.columns.items()}
    tensors |= {"bits": np.ascontiguousarray(replicas.bits[:done]), "seeds": np.asarray(replicas.seeds, dtype=np.int64)}
    if any(array.dtype.name not in ("float64", "int32", "int64", "bool") for array in tensors.values()):
        logger.warning("the state of %s cannot be stored: its runs start again after a crash", cell.agent)
        return False
    header: dict[str, JSON] = {"cell": cell.key, "episode": done, "source": f"{provenance()['source']} {source}"}
    save_tensors(path_of(folder, cell, replicas.seeds), tensors, kind=KIND, header=header)
    return True


def _of_cell(folder: Path, cell: Cell) -> list[Path]:
    """The checkpoints of a cell; asked for by every task, and `Path.glob` takes ten times as long."""
    with contextlib.suppress(FileNotFoundError):
        beginning = f"{cell.key[:32]}-"
        names = [name for name in os.listdir(folder) if name.startswith(beginning) and name.endswith(SUFFIX)]
        return [folder / name for name in sorted(names)]
    return []


def restore(folder: Path, cell: Cell, replicas: Replicas, source: str = "") -> int:
    """Put the replicas where the best checkpoint has them; the episode they go on from, 0 if there is none.

    A damaged checkpoint is deleted and costs the episodes since the start, nothing else.
    """
    found: tuple[int, dict[str, NDArray[Any]]] | None = None
    for path in _of_cell(folder, cell):
        try:
            tensors, header = load_tensors(path, kind=KIND)
        except LivarotError as error:
            logger.warning("%s: starting again", error)
            path.unlink(missing_ok=True)
            continue
        if header["cell"] != cell.key or header["source"] != f"{provenance()['source']} {source}":
            continue
        if set(replicas.seeds) <= set(tensors["seeds"].tolist()) and (found is None or header["episode"] > found[0]):
            found = header["episode"], tensors
    if found is None:
        return 0
    done, tensors = found
    place = {seed: index for index, seed in enumerate(tensors["seeds"].tolist())}
    chosen = np.array([place[seed] for seed in replicas.seeds])
    state = {name[6:]: array for name, array in tensors.items() if name.startswith("state.")}
    if not np.array_equal(chosen, np.arange(len(place))):
        state = {name: select(array, len(place), chosen) for name, array in state.items()}
    replicas.state = rebuilt(replicas.state, state)
    for name, column in replicas.columns.items():
        column[:done] = tensors[f"column.{name}"][:, chosen]
    replicas.bits[:done] = tensors["bits"][:, chosen]
    replicas.episode = done
    return done


def select(array: NDArray[Any], replicas: int, chosen: NDArray[Any]) -> NDArray[Any]:
    """Some replicas of an array of a state; scalars, empty arrays and those of length 1 are shared by all.

    That an array of a state has one of these forms is part of the contract of agents
    (:func:`livarot.experiments.check_agent.check_agent`).
    """
    if array.ndim == 0 or len(array) == 0 or len(array) == 1 != replicas:
        return array
    if len(array) != replicas:
        raise bad("agent", f"its state has an array of shape {array.shape} for {replicas} replicas")
    return np.ascontiguousarray(array[chosen])


def flat(state: tuple[Any, ...], prefix: str = "") -> dict[str, NDArray[Any]]:
    """The arrays of a state (NamedTuples, nested or not) by their dotted names.

    >>> from livarot.agents.base import NoState
    >>> flat(NoState(np.zeros(2)))
    {'policy': array([0., 0.])}
    """
    found: dict[str, NDArray[Any]] = {}
    for name, part in zip(state._fields, state, strict=True):  # type: ignore[attr-defined]
        if isinstance(part, tuple):
            found |= flat(part, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = np.asarray(part)
    return found


def rebuilt(pattern: Any, arrays: dict[str, NDArray[Any]], prefix: str = "") -> Any:
    """A state of the pattern's type: scalars come back as scalars, arrays as arrays."""
    parts = []
    for name, part in zip(pattern._fields, pattern, strict=True):
        if isinstance(part, tuple):
            parts.append(rebuilt(part, arrays, f"{prefix}{name}."))
        else:
            array = arrays[f"{prefix}{name}"]
            parts.append(array if isinstance(part, np.ndarray) else array.item())
    return type(pattern)(*parts)
