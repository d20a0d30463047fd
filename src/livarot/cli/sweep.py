"""``livarot run``, ``status``, ``export``, ``merge``, ``gc`` and ``schema``: experiments and their stores.

This module is imported by ``livarot --help``; a command imports what it needs when it runs.
Exit codes of ``run``: 0 all runs are stored, 1 some are not, 2 refused, 128 + n stopped by signal n.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from livarot.system.threads import processors

if TYPE_CHECKING:
    from livarot.sweeps.driver import Report

FAILED = 1
PANEL = "Experiments of many runs"  # as --help groups the commands
RESULTS = Path("results")
Imports = Annotated[
    list[str] | None,
    typer.Option("--import", metavar="MODULE", help="Module that registers agents or environments of yours; repeat."),
]


class Stale(StrEnum):
    """What to do with stored runs that other versions of a plugin's sources made."""

    keep = "keep"
    recompute = "recompute"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (run, status, export, merge, gc, schema):
        app.command(command.__name__, rich_help_panel=PANEL)(command)


def run(
    spec: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment.")],
    store: Annotated[str | None, typer.Option(metavar="DIR", help="Folder of results (results/NAME-OF-FILE).")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (as many as processors).")] = None,
    backend: Annotated[str, typer.Option(help="Where to compute.", metavar="[loky|dask|sequential]")] = "loky",
    address: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster, tcp://host:port.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="The I-th of N parts, for Slurm arrays.")] = "1/1",
    group: Annotated[int, typer.Option(help="Runs of a task, at most.")] = 128,
    checkpoint: Annotated[float, typer.Option(help="Seconds between checkpoints of long runs.")] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be run.")] = False,
    stale: Annotated[Stale, typer.Option(help="Stored runs that other versions of your module made.")] = Stale.keep,
    imports: Imports = None,
) -> None:
    """Run an experiment: what its store does not have yet.  The same command again resumes it."""
    from livarot.cli.app import one_line_errors

    again = shlex.join(["livarot", *sys.argv[1:]])
    with one_line_errors("sweep"), resumable(again, quiet=dry_run):
        from livarot.cli.progress import sweep_shown
        from livarot.cli.report import warnings_shown
        from livarot.errors import require_non_negative, require_positive_int
        from livarot.sweeps.driver import sweep
        from livarot.sweeps.engines import check_backend
        from livarot.sweeps.experiment.spec import Experiment
        from livarot.sweeps.experiment.validate import notes, usable_folder

        workers = require_positive_int("workers", processors() if workers is None else workers)
        require_positive_int("group", group)
        require_non_negative("checkpoint", checkpoint)
        check_backend(backend, address)
        part = parse_shard(shard)
        folder = usable_folder(RESULTS / spec.stem if store is None else store)
        import_modules(imports)
        experiment = Experiment.load(spec)
        for note in notes(experiment):
            typer.echo(f"note: {note}", err=True)
        if dry_run:
            describe(experiment, folder, part, stale.value)
            return
        ending = last_words(folder, again)
        with sweep_shown() as observer, warnings_shown("livarot.sweeps.stale"):
            report = sweep(
                experiment,
                folder,
                workers=workers,
                backend=backend,
                address=address,
                shard=part,
                group=group,
                checkpoint_seconds=checkpoint,
                imports=imports or [],
                stale=stale.value,
                observer=observer,
                last_words=ending,
            )
        if report.signal is not None:
            end_undisturbed()
        ending(report)
    if code := _exit_code(report):
        raise typer.Exit(code)


def _exit_code(report: Report) -> int:
    if report.signal is not None:
        return 128 + report.signal
    return 0 if report.complete else FAILED


def import_modules(names: Sequence[str] | None) -> None:
    """Import what ``--import`` names, and look up what installed packages offer: what is wrong with it is told now."""
    from livarot import agents, envs, registry

    registry.import_modules(names or ())
    agents.registry.names()
    envs.registry.names()


@contextmanager
def resumable(again: str, *, quiet: bool = False) -> Iterator[None]:
    """Ctrl-C at a moment when no sweep handles it, a second one for example, also prints how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        end_undisturbed()
        if quiet:
            raise
        typer.echo(resume_line(again), err=True)
        raise typer.Exit(128 + signal.SIGINT) from None


def end_undisturbed() -> None:
    """This process is ending already: another Ctrl-C must not cut off its last lines."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def resume_line(again: str) -> str:
    return f"stopped; resume with the same command: {again}"


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` as two numbers.

    >>> parse_shard("3/20")
    (3, 20)
    """
    from livarot.errors import bad

    first, sign, last = text.partition("/")
    if not (sign and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= 1_000_000):
        raise bad("shard", f"{text!r} is not a part", cure="write --shard 1/20 to 20/20")
    return int(first), int(last)


def describe(experiment: Any, folder: Path, part: tuple[int, int], stale: str) -> None:
    """What a sweep would do, on standard output; it refuses what the sweep would refuse."""
    from livarot.sweeps.experiment.names import cell_names, counted
    from livarot.sweeps.experiment.validate import check_cells
    from livarot.sweeps.stale import STALE, stale_files, stale_lines
    from livarot.sweeps.store.store import Store
    from livarot.sweeps.tasks import plan

    planned = plan(experiment, part)
    done: set[str] = set()
    if (folder / "livarot-store.json").is_file():
        with Store(folder) as store:
            done = store.stored().keys() & {run.key for share in planned for run in share.runs}
            others = stale_files(store, [run for share in planned for run in share.runs if run.key in done])
        for text in stale_lines([run.cell for run in others], STALE[stale]):
            typer.echo(f"note: {text}", err=True)
        done -= {run.key for run in others} if stale == "recompute" else set()
    rows = [(share.cell, len(share.seeds), sum(run.key in done for run in share.runs)) for share in planned]
    check_cells(cell for cell, count, stored in rows if stored < count)
    names = cell_names({cell.key: cell for cell, _, _ in rows}, [experiment])
    for cell, count, stored in rows:
        typer.echo(f"{names[cell.key]}: {counted(count, 'seed')}, {count - stored} to run")
    total = sum(count for _, count, _ in rows)
    runs = counted(total, "run")
    typer.echo(f"{runs}, {len(done)} stored, {total - len(done)} to run; nothing was run (--dry-run)")


def last_words(folder: Path, again: str) -> Callable[[Report], None]:
    """The lines at the end of a sweep, however it ended."""

    def say(report: Report) -> None:
        from livarot.sweeps.experiment.names import counted, reason

        done = report.before + report.done
        runs = counted(report.planned, "run")
        typer.echo(f"{done} of {runs} in {folder}, {len(report.failed)} failed", err=True)
        for key, text in list(report.failed.items())[:5]:
            typer.echo(f"failed: {key[:12]}: {reason(text)[:300]}", err=True)
        if report.failed:
            typer.echo(f"all that is known: livarot status {shlex.quote(str(folder))} --failures", err=True)
        if report.signal is not None:
            typer.echo(resume_line(again), err=True)

    return say


def status(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its SHA-256.")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="Show the tracebacks of failed runs.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit code 1 if anything is missing, failed, damaged or stale.")
    ] = False,
    imports: Imports = None,
) -> None:
    """What a store has: runs planned, stored, failed and under way.  Damaged files are moved to its corrupt/."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("sweep"):
        from livarot.sweeps.experiment.names import counted, escaped
        from livarot.sweeps.stale import status_lines
        from livarot.sweeps.store import housekeeping
        from livarot.sweeps.store.store import Store

        import_modules(imports)
        with Store(store) as opened:
            found = housekeeping.status(opened, verify=verify)
            notes = opened.failures() if failures else {}
        for line in found.cells:
            counts = ((line.failed, "failed"), (line.stale, "by other sources"))
            more = "".join(f", {count} {what}" for count, what in counts if count)
            typer.echo(f"{line.done:6d} of {line.planned:6d}{more}  {found.names[line.cell.key]}")
        runs, damaged = counted(found.planned, "run"), counted(found.damaged, "damaged file")
        typer.echo(f"{found.done} of {runs} stored, {found.failed} failed, {damaged}")
        for text in status_lines(found.stale, found.unknown_sources):
            typer.echo(text)
        for problem in found.unregistered:
            typer.echo(f"not counted: {problem}; name the module that registers it: --import MODULE", err=True)
        if found.drivers:
            under_way = counted(found.episodes_under_way, "episode")
            typer.echo(f"{counted(found.drivers, 'sweep')} at work, {under_way} under way")
        for key, note in notes.items():
            typer.echo(f"\n{key}, {counted(note['attempts'], 'attempt')}\n{escaped(note['traceback'])}")
        if check and (found.done < found.planned or found.failed or found.damaged or found.stale or found.unregistered):
            raise typer.Exit(FAILED)


def export(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[Path, typer.Argument(help="A .parquet or .csv file.")],
    tidy: Annotated[
        bool, typer.Option("--tidy", help="Labels, a column per setting and cumulative regret, for pandas or R.")
    ] = False,
    imports: Imports = None,
) -> None:
    """All runs as one table, a row per run and episode.  Exit code 1 if damaged runs had to be left out."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("sweep"):
        from livarot.sweeps.experiment.names import counted
        from livarot.sweeps.store import tables
        from livarot.sweeps.store.store import Store

        import_modules(imports)
        with Store(store) as opened:
            found = tables.export(opened, out, tidy=tidy)
        typer.echo(f"{counted(found.rows, 'row')} in {out}")
        for key in found.damaged:
            typer.echo(f"damaged and left out: run {key}; the same `livarot run` computes it again", err=True)
        if found.damaged:
            raise typer.Exit(FAILED)


def merge(
    target: Annotated[Path, typer.Argument(help="Folder that takes the runs; created if it is missing.")],
    sources: Annotated[list[Path], typer.Argument(help="Folders to take runs from.")],
) -> None:
    """Copy into the first store the runs of the others."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("sweep"):
        from livarot.sweeps.experiment.names import counted
        from livarot.sweeps.store import housekeeping
        from livarot.sweeps.store.store import Store

        opened = [Store(path) for path in sources]
        with Store(target, create=True) as into:
            copied = housekeeping.merge(into, opened)
        for one in opened:
            one.close()
        typer.echo(f"{counted(copied, 'run')} copied into {target}")


def gc(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    unplanned: Annotated[bool, typer.Option("--unplanned", help="Also runs that no experiment here asks for.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    imports: Imports = None,
) -> None:
    """Remove damaged files, old checkpoints and what crashes left."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("sweep"):
        from livarot.sweeps.experiment.names import counted
        from livarot.sweeps.store import housekeeping
        from livarot.sweeps.store.store import Store

        import_modules(imports)
        with Store(store) as opened:
            found = housekeeping.collect(opened, unplanned=unplanned, dry_run=dry_run)
        verb = "would be removed" if dry_run else "removed"
        typer.echo(f"{counted(found.files, 'file')}, {counted(found.bytes, 'byte')} {verb}")


def schema(imports: Imports = None) -> None:
    """JSON Schema of an experiment file, for editors."""
    from livarot.cli.app import one_line_errors

    with one_line_errors("sweep"):
        import json

        from livarot.sweeps.experiment.schema import json_schema

        import_modules(imports)
        typer.echo(json.dumps(json_schema(), indent=1))
