"""The commands of a sweep as a program of their own: ``python -m tests.faults.driver run FILE.toml ...``."""

import typer

from livarot.cli import doctor, sweep

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
sweep.register(app)
doctor.register(app)

if __name__ == "__main__":
    app(prog_name="livarot")
