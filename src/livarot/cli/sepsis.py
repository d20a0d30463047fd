"""``livarot sepsis``: learn to treat in a simulated hospital, show progress, print the table, write the files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from livarot.cli.progress import progress_shown
from livarot.extras import require_extra
from livarot.report.output import check_folder
from livarot.studies.sepsis import experiment, report


def command(*, quick: bool, out: Path, n_seeds: int | None, n_patients: int | None, workers: int) -> None:
    """See ``livarot sepsis --help``."""
    if n_seeds is None:
        n_seeds = experiment.QUICK_SEEDS if quick else experiment.N_SEEDS
    if n_patients is None:
        n_patients = experiment.QUICK_PATIENTS if quick else experiment.N_PATIENTS
    check_folder(out)
    require_extra("matplotlib")
    aside = Console(stderr=True)
    with progress_shown(aside, "sepsis", "plans") as progress:
        study = experiment.sepsis_study(n_seeds, n_patients, workers=workers, progress=progress)
    written = report.write_files(study, out)
    console = Console()
    plain = "utf" not in console.encoding.lower()
    console.print(rich_table(study, "+-" if plain else "±"))
    told = report.text(study)
    for line in (told.replace("±", "+-") if plain else told).splitlines():
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    console.print(f"\n{len(written)} files in {out}", highlight=False, markup=False, soft_wrap=True)


def rich_table(study: experiment.SepsisStudy, sign: str) -> Table:
    """Survival of each policy, and how many patients it loses that the optimal one saves."""
    table = Table(title="ICU-Sepsis, a made-up hospital (no medical advice)", title_justify="left", pad_edge=False)
    table.add_column("policy")
    table.add_column("survival", justify="right")
    table.add_column(f"lost of {study.n_patients} patients", justify="right")
    for line in report.rows(study):
        table.add_row(*(cell.replace("±", sign) for cell in line))
    return table
