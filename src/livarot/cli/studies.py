"""``livarot reproduce``, ``variance`` and ``sepsis``: run a study, show progress, print its tables, write its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from livarot.cli.progress import progress_shown
from livarot.cli.theory import wide_console
from livarot.extras import require_extra
from livarot.report.output import check_folder
from livarot.studies.paper import experiment as paper
from livarot.studies.sepsis import experiment as hospital
from livarot.studies.variance import experiment as families


def reproduce(*, quick: bool, out: Path, n_seeds: int | None, workers: int) -> None:
    """See ``livarot reproduce --help``."""
    if n_seeds is None:
        n_seeds = paper.QUICK_SEEDS if quick else paper.N_SEEDS
    horizons = paper.QUICK_HORIZONS if quick else paper.HORIZONS
    _check(out)
    from livarot.studies.paper import report

    aside = Console(stderr=True)
    with progress_shown(aside, "reproduce") as progress:
        result = paper.reproduce(n_seeds=n_seeds, horizons=horizons, workers=workers, progress=progress)
    aside.print("reproduce: drawing the figures", highlight=False)
    console = wide_console()
    tables = (paper_table(title, lines, plus_minus(console)) for title, lines in report.rows(result).items())
    _write(console, out, report, result, tables)


def variance(*, quick: bool, out: Path, n_seeds: int | None, workers: int) -> None:
    """See ``livarot variance --help``."""
    _check(out)
    from livarot.studies.variance import report

    aside = Console(stderr=True)
    with progress_shown(aside, "variance") as progress:
        study = families.run_study(quick=quick, n_seeds=n_seeds, workers=workers, progress=progress)
    aside.print("variance: drawing the figures", highlight=False)
    console = wide_console()
    found = report.rows(study).items()
    tables = (family_table(report.TITLE[family], lines, plus_minus(console)) for family, lines in found)
    _write(console, out, report, study, tables)


def sepsis(*, quick: bool, out: Path, n_seeds: int | None, n_patients: int | None, workers: int) -> None:
    """See ``livarot sepsis --help``."""
    if n_seeds is None:
        n_seeds = hospital.QUICK_SEEDS if quick else hospital.N_SEEDS
    if n_patients is None:
        n_patients = hospital.QUICK_PATIENTS if quick else hospital.N_PATIENTS
    _check(out)
    from livarot.studies.sepsis import report

    with progress_shown(Console(stderr=True), "sepsis", "plans") as progress:
        study = hospital.sepsis_study(n_seeds, n_patients, workers=workers, progress=progress)
    console = Console()
    _write(console, out, report, study, [survival_table(n_patients, report.rows(study), plus_minus(console))])


def _check(out: Path) -> None:
    """Before the work: can the files be written, and the figures drawn?"""
    check_folder(out)
    require_extra("matplotlib")


def _write(console: Console, out: Path, report: Any, study: Any, tables: Iterable[Table]) -> None:
    """Write the files of a study, then print its tables and its text."""
    written = report.write_files(study, out)
    for table in tables:
        console.print(table)
    text = report.text(study).replace("±", plus_minus(console))
    for line in (*text.splitlines(), "", f"{len(written)} files in {out}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def plus_minus(console: Console) -> str:
    return "±" if "utf" in console.encoding.lower() else "+-"


def paper_table(title: str, lines: list[list[str]], sign: str) -> Table:
    """Mean ± sd over seeds of Regret_T / H^1.5, and the share of locked-in seeds."""
    table = _table(
        f"Regret / H^1.5, {title}", "regret", "H", *(each.label for each in paper.CONTENDERS), "sign oracle", "C log T"
    )
    for line, following in zip(lines, [*lines[1:], [""]], strict=True):
        table.add_row(*(cell.replace("±", sign) for cell in line), end_section=following[0] != line[0])
    return table


def family_table(title: str, lines: list[list[str]], sign: str) -> Table:
    """Regret at both ends of a family, and how it grows with sigma_bar."""
    table = _table(title, "agent", "at least sigma_bar", "at largest", r"slope \[95 %]", "rank")
    for column in table.columns:
        column.no_wrap = not str(column.header).startswith("at")
    for line in lines:
        table.add_row(*(cell.replace("±", sign).replace("[", r"\[") for cell in line))
    return table


def survival_table(n_patients: int, lines: list[list[str]], sign: str) -> Table:
    """Survival of each policy, and how many patients it loses that the optimal one saves."""
    title = "ICU-Sepsis, a made-up hospital (not medical advice)"
    table = _table(title, "policy", "survival", f"lost of {n_patients} patients")
    for line in lines:
        table.add_row(*(cell.replace("±", sign) for cell in line))
    return table


def _table(title: str, first: str, *others: str) -> Table:
    """A table of numbers; the first column has names."""
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table
