"""The JSON files of a store: why runs failed, and the experiments that were run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livarot.errors import bad
from livarot.storage import parse_json, read_regular, write_atomic
from livarot.sweeps.experiment.keys import Cell, Run, canonical
from livarot.sweeps.store.folders import names_in, own_folder

if TYPE_CHECKING:
    from livarot.sweeps.experiment.spec import Experiment

logger = logging.getLogger(__name__)
MAX_NOTE = 1 << 20  # bytes of a note of a failed run


class Notes:
    """The folders ``failed/`` and ``specs/`` of the store at ``path``."""

    path: Path

    def fail(self, run: Run, *, attempts: int, traceback: str) -> None:
        """Note that a run did not succeed."""
        note = {
            "attempts": attempts,
            "content": run.cell.content(run.seed),
            "time": time.time(),
            "traceback": traceback,
        }
        write_atomic(own_folder(self.path / "failed") / f"{run.key}.json", canonical(note).encode())

    def clear_failures(self, keys: Iterable[str]) -> None:
        """Remove the notes of these runs, which succeeded after all."""
        for name in {f"{key}.json" for key in keys}.intersection(names_in(self.path / "failed")):
            (self.path / "failed" / name).unlink(missing_ok=True)

    def failures(self) -> dict[str, dict[str, Any]]:
        """Notes of failed runs by key: content, attempts, traceback; a file that is not such a note is left out."""
        found = {}
        for path in self._json_files("failed"):
            try:
                note = parse_json(read_regular(path, MAX_NOTE)[0])
                if Cell.from_content(note["content"]).run(note["content"]["seed"]).key == path.stem:
                    known = {"attempts": int(note["attempts"]), "traceback": str(note["traceback"])}
                    found[path.stem] = note | known
            except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
                logger.warning("%r is not used: %s", path.name, error)
        return found

    def _json_files(self, folder: str) -> list[Path]:
        return [self.path / folder / name for name in names_in(self.path / folder) if name.endswith(".json")]

    def add_spec(self, experiment: Experiment) -> None:
        path = own_folder(self.path / "specs") / f"{experiment.key}.json"
        if not path.is_file():
            write_atomic(path, experiment.model_dump_json(exclude_defaults=True).encode())

    def specs(self) -> list[Experiment]:
        """The experiments that were run here; a damaged file is left out, with a warning."""
        return [experiment for _, experiment in self._read_specs() if experiment is not None]

    def require_specs(self) -> list[Experiment]:
        """All experiments that were run here, refused if one of their files is damaged."""
        for path, experiment in (read := self._read_specs()):
            if experiment is None:
                text = f"{str(path)!r} is damaged: what it asked for is not known"
                raise bad("store", text, cure="run its experiment again, or delete the file")
        return [experiment for _, experiment in read if experiment is not None]

    def _read_specs(self) -> list[tuple[Path, Experiment | None]]:
        from livarot.sweeps.experiment.spec import read_stored  # and with it pydantic, which workers do not need

        return [(path, read_stored(path)) for path in self._json_files("specs")]
