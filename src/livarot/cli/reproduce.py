"""``livarot reproduce``: run, show progress, print the table and the finding, write the files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from livarot.cli.progress import progress_shown
from livarot.extras import require_extra
from livarot.report.output import check_folder
from livarot.studies.paper import experiment, report


def command(
    *, quick: bool, out: Path, n_seeds: int | None, workers: int, n_episodes: int = experiment.N_EPISODES
) -> None:
    """See ``livarot reproduce --help``."""
    if n_seeds is None:
        n_seeds = experiment.QUICK_SEEDS if quick else experiment.N_SEEDS
    horizons = experiment.QUICK_HORIZONS if quick else experiment.HORIZONS
    check_folder(out)
    require_extra("matplotlib")
    aside = Console(stderr=True)
    with progress_shown(aside, "reproduce") as progress:
        result = experiment.reproduce(
            n_seeds=n_seeds, n_episodes=n_episodes, horizons=horizons, workers=workers, progress=progress
        )
    aside.print("reproduce: drawing the figures", highlight=False)
    written = report.write_files(result, out)
    console = Console()
    for title, lines in report.rows(result).items():
        console.print(rich_table(title, lines, "±" if "utf" in console.encoding.lower() else "+-"))
    for line in (*report.text(result).splitlines(), "", f"{len(written)} files in {out}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def rich_table(title: str, lines: list[list[str]], sign: str) -> Table:
    """Mean ± sd over seeds of Regret_T / H^1.5, and the share of locked-in seeds."""
    table = Table(title=f"Regret / H^1.5, {title}", title_justify="left", pad_edge=False)
    table.add_column("regret")
    table.add_column("H", justify="right")
    for contender in experiment.CONTENDERS:
        table.add_column(contender.label, justify="right")
    for line, following in zip(lines, [*lines[1:], [""]], strict=True):
        table.add_row(*(cell.replace("±", sign) for cell in line), end_section=following[0] != line[0])
    return table
