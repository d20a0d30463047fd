"""The command that repeats the paper's experiment."""

import io

from rich.console import Console

from livarot.cli import reproduce as cli_reproduce


def test_reproduce_from_end_to_end(tmp_path, capsys):
    cli_reproduce.command(quick=True, out=tmp_path / "out", n_seeds=2, workers=2, n_episodes=20)
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "reproduce: compiling what is not compiled yet"
    assert "reproduce: 100 % of 960 episodes" in printed.err
    assert "uniform policy" in printed.out and "locked in" in printed.out
    assert (tmp_path / "out" / "README.txt").read_text() in printed.out
    assert f"{len(list((tmp_path / 'out').iterdir()))} files in" in printed.out.splitlines()[-1]


def test_the_table_without_unicode():
    console = Console(file=io.StringIO(), width=80)
    lines = [["exact", "5", "1.00 ± 0.10", "1", "1", "1"], ["realised", "5", "1.00 ± 0.10", "1", "1", "1"]]
    console.print(cli_reproduce.rich_table("gap", lines, "+-"))
    assert "1.00 +- 0.10" in console.file.getvalue()
