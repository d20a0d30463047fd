"""``livarot theory`` and ``livarot variance``: what they print, as tables and as JSON, and how they refuse."""

import io
import json

import pytest
from rich.console import Console

from livarot import LivarotError, envs, theory
from livarot.cli import theory as cli_theory
from livarot.theory.bound_terms import TERMS

CHAIN = {"env": "hard-chain", "settings": ["horizon=4", "gap=0.1"], "n_episodes": 20, "n_seeds": 3}
KEYS = {
    "U", "rho", "kappa", "kappa_bound", "kappa_star", "sigma_bar_star", "nu_max", "terms", "upper", "lower",
}  # fmt: skip


def as_json(capsys, **options):
    cli_theory.command(**(CHAIN | options), as_json=True)
    return json.loads(capsys.readouterr().out)


def test_json_has_the_keys_and_the_library_s_numbers(capsys):
    found = as_json(capsys)
    assert found.keys() >= KEYS and "audit" not in found
    mdp = envs.hard_chain(4, gap=0.1)
    assert found["U"] == 2 and found["rho"] == theory.rho(mdp)
    assert found["kappa_bound"] == pytest.approx(theory.kappa_bound(mdp))
    assert found["kappa_star"] == pytest.approx(theory.kappa_star(mdp))
    assert found["kappa"]["upper"] == pytest.approx(theory.kappa(mdp).upper)
    assert found["nu_max"] == pytest.approx(theory.nu_max(mdp))
    assert tuple(found["terms"]) == TERMS
    assert found["upper"] == pytest.approx(sum(found["terms"].values()))
    assert found["lower"] > 0.0


@pytest.mark.parametrize("agent", ["livarot", "ucrl-mnl-ol", "uniform", "oracle"])
def test_json_with_a_run(capsys, agent):
    found = as_json(capsys, agent=agent, run_it=True)
    assert found["audit"]["agent"] == agent
    assert (found["audit"]["n_seeds"], found["audit"]["n_episodes"]) == (3, 20)
    if agent == "oracle":
        assert found["audit"]["regret"]["max"] == pytest.approx(0.0, abs=1e-12)


def test_tables(capsys):
    cli_theory.command(**CHAIN, run_it=True, agent_settings=["beta_scale=2.0"])
    printed = capsys.readouterr().out
    for word in (
        "kappa_star",
        "exploration",
        "upper",
        "lower",
        "UCRL-MNL-OL",
        "Audit of livarot: 3 seeds, 20",
        "holds",
    ):
        assert word in printed
    cli_theory.command(**CHAIN)
    assert "Audit" not in capsys.readouterr().out


def test_a_bracket_and_what_no_float_holds(capsys):
    """Eight outcomes: kappa is a bracket.  B = 400: its bound is a power of ten; JSON has null beside a logarithm."""
    wide = ["n_states=8", "n_actions=1", "n_reachable=8", "dim=7", "horizon=2"]
    cli_theory.command(env="random", settings=wide, n_episodes=10)
    assert "[" in capsys.readouterr().out
    huge = as_json(capsys, settings=["horizon=4", "gap=0.1", "param_bound=400"])
    assert huge["kappa_bound"] is None and huge["log_kappa_bound"] > 1600
    cli_theory.command(**(CHAIN | {"settings": ["horizon=4", "gap=0.1", "param_bound=400"]}))
    assert "10^" in capsys.readouterr().out


def test_conditions_that_fail_are_said(capsys):
    cli_theory.command(env="hard-chain", settings=["horizon=20", "gap=0.01"], n_episodes=3)
    assert "condition that fails: T = 3" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"env": "cheese"}, "cheese"),
        ({"agent": "cheese"}, "cheese"),
        ({"settings": ["horizon"]}, "key=value"),
        ({"settings": ["=3"]}, "key=value"),
        ({"settings": ["horizon=4", "horizon=5"]}, "twice"),
        ({"settings": ["horizon=abc"]}, "horizon"),
        ({"settings": ["horizon=NaN"]}, "horizon"),
        ({"settings": ["cheese=4", "horizon=4"]}, "cheese"),
        ({"agent_settings": ["beta_scale=-1"]}, "beta_scale"),
        ({"n_episodes": 0}, "episodes"),
        ({"n_seeds": 0}, "seeds"),
    ],
)
def test_bad_options_are_our_errors(options, match, capsys):
    with pytest.raises(LivarotError, match=match):
        cli_theory.command(**(CHAIN | options), run_it=True)
    assert capsys.readouterr().out == ""


def test_values_are_json_or_text():
    given = ["a=1", "b=0.5", "c=tight", "d=true", "e=null", "f=[1, 2]", "g=Infinity", "h="]
    found = cli_theory.parse_settings("set", given)
    assert found == {"a": 1, "b": 0.5, "c": "tight", "d": True, "e": None, "f": [1, 2], "g": "Infinity", "h": ""}


def test_the_audit_s_table_marks_failures():
    from tests.support.audits import by_hand
    from tests.theory.audits.test_auditing import THEORY

    checked = theory.audit(by_hand([[0.0]] * 50, None, agent=THEORY))
    console = Console(file=io.StringIO(), width=120)
    console.print(cli_theory.audit_table(checked))
    assert "fails" in console.file.getvalue()
