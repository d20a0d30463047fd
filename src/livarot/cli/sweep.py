"""``livarot run``, ``status``, ``export``, ``merge``, ``gc`` and ``schema``: experiments and their stores.

This module is imported by ``livarot --help``; a command imports what it needs when it runs.
Exit codes: 0 all runs are stored, 1 some failed, 2 refused, 128 + n stopped by signal n.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from livarot.experiments.sweep import Report, Snapshot

FAILED = 1
RESULTS = Path("results")


class Backend(StrEnum):
    """Where runs are computed."""

    loky = "loky"
    dask = "dask"
    ray = "ray"
    sequential = "sequential"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("run")(run)
    app.command("status")(status)
    app.command("export")(export)
    app.command("merge")(merge)
    app.command("gc")(gc)
    app.command("schema")(schema)


def run(
    spec: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment.")],
    store: Annotated[Path | None, typer.Option(help="Folder of the results (results/NAME-OF-FILE).")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (as many as processors).")] = None,
    backend: Annotated[Backend, typer.Option(help="Where to compute.")] = Backend.loky,
    address: Annotated[str | None, typer.Option(help="Scheduler of a Dask cluster, tcp://host:port.")] = None,
    shard: Annotated[str, typer.Option(metavar="I/N", help="The I-th of N parts, for Slurm arrays.")] = "1/1",
    group: Annotated[int, typer.Option(help="Seeds computed together, at most.")] = 64,
    checkpoint: Annotated[float, typer.Option(help="Seconds between checkpoints of long runs.")] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    imports: Annotated[
        list[str] | None, typer.Option("--import", help="Module that registers agents or environments of yours.")
    ] = None,
) -> None:
    """Run an experiment: what its store does not have yet.  The same command again resumes it."""
    from livarot.cli.app import _processors, one_line_errors

    with one_line_errors():
        import importlib

        from livarot.experiments.spec import Experiment
        from livarot.experiments.sweep import sweep

        if imports:
            sys.path.insert(0, os.getcwd())  # where `--import` looks first, also in the workers
        for name in imports or []:
            importlib.import_module(name)
        experiment = Experiment.load(spec)
        folder = RESULTS / spec.stem if store is None else store
        part = parse_shard(shard)
        if dry_run:
            describe(experiment, folder, part)
            return
        again = shlex.join(["livarot", *sys.argv[1:]])
        ending = last_words(folder, again)
        with progress_shown() as observer:
            report = sweep(
                experiment,
                folder,
                workers=_processors() if workers is None else workers,
                backend=backend.value,
                address=address,
                shard=part,
                group=group,
                checkpoint_seconds=checkpoint,
                imports=imports or [],
                observer=observer,
                last_words=ending,
            )
        ending(report)
    if report.signal is not None:
        raise typer.Exit(128 + report.signal)
    if report.failed:
        raise typer.Exit(FAILED)


def parse_shard(text: str) -> tuple[int, int]:
    """``i/n`` as two numbers.

    >>> parse_shard("3/20")
    (3, 20)
    """
    from livarot.errors import bad

    first, sign, last = text.partition("/")
    if not (sign and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= 1_000_000):
        raise bad("shard", f"{text!r} is no part", cure="write --shard 1/20 to 20/20")
    return int(first), int(last)


def describe(experiment: Any, folder: Path, part: tuple[int, int]) -> None:
    """What a sweep would do, on standard output."""
    from livarot.experiments.store import Store
    from livarot.experiments.sweep import plan

    planned = plan(experiment, part)
    done: set[str] = set()
    if (folder / "livarot-store.json").is_file():
        with Store(folder) as store:
            done = store.stored().keys() & {cell.run(seed).key for cell, seeds in planned for seed in seeds}
    rows = []
    for cell, seeds in planned:
        stored = sum(cell.run(seed).key in done for seed in seeds)
        rows.append((cell, len(seeds), stored))
    for cell, count, stored in rows:
        typer.echo(f"{cell_name(cell)}: {count} seeds, {count - stored} to run")
    total = sum(count for _, count, _ in rows)
    typer.echo(f"{total} runs, {len(done)} stored, {total - len(done)} to run; nothing was run (--dry-run)")


def cell_name(cell: Any, width: int = 160) -> str:
    """Environment, agent and episodes on one line; the settings that differ from the defaults."""
    env = _told(cell.environment_settings, _defaults("environment", cell.environment))
    agent = _told(cell.agent_settings, _defaults("agent", cell.agent))
    return f"{cell.environment}({env}) {cell.agent}({agent}) T={cell.episodes}"[:width]


def _told(settings: dict[str, Any], defaults: dict[str, Any]) -> str:
    shown = {key: value for key, value in settings.items() if key not in defaults or defaults[key] != value}
    texts = (f"{key}={value.get('name') if isinstance(value, dict) else value}" for key, value in shown.items())
    return ", ".join(texts)


def _defaults(kind: str, name: str) -> dict[str, Any]:
    """Settings of a registered thing when nothing is said; nothing if it is not registered here."""
    from livarot.errors import LivarotError
    from livarot.experiments.keys import agent_content, environment_content

    try:
        return environment_content(name, {}) if kind == "environment" else agent_content(name, {}, 1)
    except LivarotError:
        return {}


def last_words(folder: Path, again: str) -> Callable[[Report], None]:
    """What is said at the end, however it comes."""

    def say(report: Report) -> None:
        done = report.before + report.done
        typer.echo(f"{done} of {report.planned} runs in {folder}, {len(report.failed)} failed", err=True)
        for key, text in list(report.failed.items())[:5]:
            last = text.strip().splitlines()[-1] if text.strip() else "no message"
            typer.echo(f"failed: {key[:12]}: {last[:200]} (all of it in failed/{key[:12]}...json)", err=True)
        if report.signal is not None:
            typer.echo(f"stopped; resume with the same command: {again}", err=True)

    return say


@contextmanager
def progress_shown() -> Iterator[Callable[[Snapshot], None]]:
    """A bar on a terminal, lines elsewhere: at the beginning, every ten seconds and at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield progress_lines(lambda text: typer.echo(text, err=True))
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(now: Snapshot) -> None:
            bar.update(task, description=progress_text(now), completed=now.episodes, total=now.episodes_planned or None)

        yield show


def progress_lines(say: Callable[[str], None], every: float = 10.0) -> Callable[[Snapshot], None]:
    """An observer that says a line now and then."""
    last: list[float] = []

    def show(now: Snapshot) -> None:
        if not last or now.seconds - last[0] >= every or now.done + now.failed == now.planned:
            last[:] = [now.seconds]
            say(progress_text(now))

    return show


def progress_text(now: Snapshot) -> str:
    """Runs, failures, speed and what is left.

    >>> from livarot.experiments.sweep import Snapshot
    >>> progress_text(Snapshot(100, 50, 1, 5000, 10000, 2.0))
    '50 of 100 runs, 1 failed, 2500 episodes/s, 0:00:02 left'
    """
    parts = [f"{now.done} of {now.planned} runs"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.episodes and now.seconds > 0:
        speed = now.episodes / now.seconds
        clock = timedelta(seconds=int((now.episodes_planned - now.episodes) / speed))
        parts += [f"{speed:.0f} episodes/s", f"{clock} left"]
    return ", ".join(parts)


def status(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its SHA-256.")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="Show the tracebacks of failed runs.")] = False,
) -> None:
    """What a store has: runs planned, stored, failed and under way."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        from livarot.experiments import housekeeping
        from livarot.experiments.store import Store

        with Store(store) as opened:
            found = housekeeping.status(opened, verify=verify)
            notes = opened.failures() if failures else {}
        for line in found.cells:
            more = f", {line.failed} failed" if line.failed else ""
            typer.echo(f"{line.done:6d} of {line.planned:6d}{more}  {cell_name(line.cell)}")
        typer.echo(f"{found.done} of {found.planned} runs stored, {found.failed} failed, {found.damaged} damaged files")
        if found.drivers:
            typer.echo(f"{found.drivers} sweeps at work, {found.episodes_under_way} episodes under way")
        for key, note in notes.items():
            typer.echo(f"\n{key}, {note['attempts']} attempts\n{note['traceback']}")


def export(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[Path, typer.Argument(help="A .parquet or .csv file.")],
) -> None:
    """All runs as one table, a row per run and episode."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        from livarot.experiments import housekeeping
        from livarot.experiments.store import Store

        with Store(store) as opened:
            rows = housekeeping.export(opened, out)
        typer.echo(f"{rows} rows in {out}")


def merge(
    target: Annotated[Path, typer.Argument(help="Folder that takes the runs; made if it is not there.")],
    sources: Annotated[list[Path], typer.Argument(help="Folders to take runs from.")],
) -> None:
    """Copy into the first store the runs of the others."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        from livarot.experiments import housekeeping
        from livarot.experiments.store import Store

        opened = [Store(path) for path in sources]
        with Store(target, create=True) as into:
            copied = housekeeping.merge(into, opened)
        for one in opened:
            one.close()
        typer.echo(f"{copied} runs copied into {target}")


def gc(
    store: Annotated[Path, typer.Argument(help="Folder of the results.")],
    unplanned: Annotated[bool, typer.Option("--unplanned", help="Also runs that no experiment here asks for.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
) -> None:
    """Remove damaged files, old checkpoints and what crashes left."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        from livarot.experiments import housekeeping
        from livarot.experiments.store import Store

        with Store(store) as opened:
            found = housekeeping.collect(opened, unplanned=unplanned, dry_run=dry_run)
        verb = "would be removed" if dry_run else "removed"
        typer.echo(f"{found.files} files, {found.bytes} bytes {verb}")


def schema() -> None:
    """JSON Schema of an experiment file, for editors."""
    from livarot.cli.app import one_line_errors

    with one_line_errors():
        import json

        from livarot.experiments.spec import json_schema

        typer.echo(json.dumps(json_schema(), indent=1))
