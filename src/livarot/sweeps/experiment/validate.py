"""What a sweep would refuse, found before any work: environments and agents are built, nothing is played."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from livarot.errors import LivarotError, bad
from livarot.model.problem import MNLMDP
from livarot.running.result import COLUMNS, WORD
from livarot.sweeps.experiment.keys import Cell, canonical
from livarot.sweeps.experiment.names import listed, printable, unusual_settings
from livarot.sweeps.experiment.spec import AgentSpec, Experiment
from livarot.sweeps.store.folders import FOLDERS, MARKER, OURS
from livarot.sweeps.store.records import MAX_BYTES

logger = logging.getLogger(__name__)


def check_cells(cells: Iterable[Cell]) -> None:
    """Every environment can be built, every agent can begin in it, and a file can hold the run.

    Each environment is built once, and each agent begins in it once, whatever the number of episodes.  An error
    that is not a `LivarotError` is a defect of an agent or environment: its runs will be noted as failed.

    >>> check_cells([Cell.of("hard-chain", {"gap": 0.1}, "oful-mlogb", {}, 10)])
    Traceback (most recent call last):
        ...
    livarot.errors.LivarotError: agent 'oful-mlogb' in environment 'hard-chain': with gap=0.1: problem: ...
    """
    worlds: dict[tuple[str, str], dict[tuple[str, str], Cell]] = {}
    for cell in cells:
        world = worlds.setdefault((cell.environment, canonical(cell.environment_settings)), {})
        agent = (cell.agent, canonical(cell.agent_settings))
        if agent not in world or world[agent].episodes < cell.episodes:
            world[agent] = cell
    for members in worlds.values():
        _check_world(list(members.values()))


def _check_world(cells: list[Cell]) -> None:
    name, settings = cells[0].environment, unusual_settings(cells[0])[0]
    try:
        mdp = cells[0].model()
    except LivarotError as error:
        raise _named(f"environment {name!r}", settings, error) from error
    except Exception:
        logger.warning("environment %s cannot be built; its runs will be noted as failed", name, exc_info=True)
        return
    for cell in cells:
        _check_size(cell, mdp)
        try:
            cell.learner(mdp).init(mdp.problem)
        except LivarotError as error:
            raise _named(
                f"agent {cell.agent!r} in environment {name!r}", settings | unusual_settings(cell)[1], error
            ) from error
        except Exception:
            logger.warning("agent %s cannot begin; its runs will be noted as failed", cell.agent, exc_info=True)


def _named(place: str, settings: dict[str, Any], error: LivarotError) -> LivarotError:
    told = f"with {printable(listed(settings))}: " if settings else ""
    return LivarotError(f"{place}: {told}{error}", argument=error.argument, cure=error.cure)


def _check_size(cell: Cell, mdp: MNLMDP) -> None:
    """The columns of a run and its words of coverage bits fit into a file."""
    row = 4 + 8 * len(COLUMNS) + 4 * -(-mdp.problem.n_parameters // WORD)
    if cell.episodes * row > MAX_BYTES:
        problem = f"{cell.episodes} episodes in environment {cell.environment!r} are more than a file can hold"
        raise bad("episodes", problem, cure=f"at most {MAX_BYTES // row} here")


def notes(experiment: Experiment) -> list[str]:
    """Hints at what is allowed but rarely intended: a problem made for another number of episodes than the runs have.

    >>> notes(Experiment(episodes=10, seeds=1, environments=[{"name": "hard-chain"}], agents=[{"name": "uniform"}]))
    ['hard-chain is made for n_episodes = 1000, its default; the runs have 10: ...']
    """
    found: dict[str, tuple[int, list[int]]] = {}
    without_agents = experiment.model_copy(update={"agents": [AgentSpec(name="uniform")]})  # of which there may be many
    for one in without_agents.combinations():
        cell, made_for = one.cell, one.cell.environment_settings.get("n_episodes")
        fixed = cell.environment_settings.get("gap") is not None  # then nothing depends on n_episodes
        if "n_episodes" not in one.given and type(made_for) is int and made_for != cell.episodes and not fixed:
            counts = found.setdefault(cell.environment, (made_for, []))[1]
            if cell.episodes not in counts:
                counts.append(cell.episodes)
    return [
        f"{name} is made for n_episodes = {made_for}, its default; the runs have {', '.join(map(str, counts))}: "
        'write settings.n_episodes = "$episodes" to make it for theirs, or give a gap'
        for name, (made_for, counts) in found.items()
    ]


def usable_folder(given: str | Path) -> Path:
    """Where a store is or can be made: a folder that is one, is empty, or is not there yet.

    A sweep that begins at the same time may have made the store's folders and not yet its marker.
    """
    if not str(given).strip():
        raise bad("store", "its name is empty", cure="name a folder, such as --store results/mine")
    folder = Path(given)
    if folder.exists() and not folder.is_dir():
        raise bad("store", f"{str(folder)!r} is not a folder", cure="choose another --store")
    try:
        names = os.listdir(folder) if folder.is_dir() else []
    except OSError as error:
        raise bad("store", f"cannot read {str(folder)!r}: {error.strerror or error}") from error
    strange = [name for name in names if name not in FOLDERS and not name.startswith(OURS)]
    if MARKER not in names and strange:
        raise bad("store", f"{str(folder)!r} is not empty and not a store of livarot", cure="choose another --store")
    return folder
