"""``livarot doctor``: is this machine ready, and what to do if not.  Exit code 1 if something needed is missing."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", rich_help_panel="This machine")(doctor)


def doctor(
    store: Annotated[str, typer.Option(metavar="DIR", help="Folder where results will be.")] = "results",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Versions, processors, BLAS threads, numba's cache, a writable store; what is missing and how to get it."""
    import json

    from livarot.cli.app import one_line_errors

    with one_line_errors():
        from livarot.errors import bad
        from livarot.sweeps.doctor import examine

        if not store.strip():
            raise bad("store", "its name is empty", cure="name a folder, such as --store results")
        checks = examine(store)
    if as_json:
        typer.echo(json.dumps([check._asdict() for check in checks], indent=1))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            sign = {True: "ok", False: "NO", None: "--"}[check.good]
            cure = f"; {check.cure}" if check.cure and check.good is not True else ""
            typer.echo(f"{sign}  {check.name:{width}}  {check.found}{cure}")
    if any(check.good is False for check in checks):
        raise typer.Exit(1)
