"""``livarot list``: the registries, and the environments' numbers against the tables they come from."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from livarot import agents, envs
from livarot.cli import listing
from livarot.cli.app import app
from livarot.cli.listing import described, description
from livarot.errors import LivarotError
from tests.support.plugins import install
from tests.twins import envs as ref


def table_of(mdp):
    problem = mdp.problem
    P = np.zeros((problem.horizon, problem.n_states, problem.n_actions, problem.n_states))
    for h, s, a in np.ndindex(*P.shape[:3]):
        P[h, s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


@pytest.mark.parametrize(
    "mdp",
    [
        envs.river_swim(4, 6),
        envs.river_swim(4, 6, variant="strehl"),
        envs.hard_chain(5, gap=0.05),
        envs.machine_maintenance(5),
        envs.random_mdp(4, 2, 2, horizon=3),
    ],
    ids=["river", "strehl", "chain", "machine", "random"],
)
def test_numbers(mdp):
    problem, P = mdp.problem, table_of(mdp)
    seen = listing.numbers(mdp)
    value, _ = ref.solve_table(P, problem.reward, problem.horizon)
    assert seen["V*"] == pytest.approx(problem.start @ value[0], abs=1e-12)
    assert seen["sigma_bar"] == pytest.approx(ref.sigma_bar(P, problem.reward, problem.start), abs=1e-12)
    worst, reach = 1.0, problem.start > 0
    for h in range(problem.horizon):
        for s in np.flatnonzero(reach):
            for a in range(problem.n_actions):
                rarest = sorted(p for p in P[h, s, a] if p > 0)[:2]
                if len(rarest) == 2:
                    worst = max(worst, 1 / (rarest[0] * rarest[1]))
        reach = (P[h][reach].sum(axis=(0, 1))) > 0
    assert seen["kappa*"] == pytest.approx(worst, rel=1e-9)
    sizes = [problem.n_states, problem.n_actions, problem.max_reachable, problem.dim, problem.horizon]
    assert [seen[k] for k in ("S", "A", "U", "d", "H")] == sizes and seen["B"] == problem.param_bound


def test_the_table_has_a_line_for_every_environment():
    rows = listing.environments()
    assert [row["name"] for row in rows] == list(envs.registry)
    header, *lines = listing.lines(rows, listing.COLUMNS)
    assert header.split() == ["name", *listing.COLUMNS]
    assert [line.split()[0] for line in lines] == list(envs.registry)
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[7] == f"{row['V*']:.4f}" and line.rstrip().endswith(row["summary"])


@pytest.mark.parametrize(("kind", "registry"), [("agents", agents.registry), ("envs", envs.registry)])
def test_json(kind, registry, capsys):
    listing.command(kind, as_json=True)
    rows = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["summary"]) for row in rows] == [(name, registry.summary(name)) for name in registry]
    assert kind == "agents" or all(np.isfinite(row[column]) for row in rows for column in listing.COLUMNS)


def test_agents_are_names_promises_and_summaries(capsys):
    listing.command("agents")
    shown, _, note = capsys.readouterr().out.partition("\n\n")
    head, *lines = shown.splitlines()
    assert head.split() == ["name", "sets"] and "sound: the proof is written down and tested here" in note
    assert [line.split()[0] for line in lines] == list(agents.registry)
    assert all(line.endswith(agents.registry.summary(line.split()[0])) for line in lines)
    told = {line.split()[0]: line.split()[1] for line in lines}
    assert [name for name, sets in told.items() if sets == "sound"] == ["sound-livarot"]
    assert told["livarot"] == "theory" and told["adaptive-livarot"] == told["uniform"] == "-"


def test_environments_are_printed(capsys):
    listing.command("envs")
    assert capsys.readouterr().out.splitlines() == listing.lines(listing.environments(), listing.COLUMNS)


def test_one_agent_with_its_paper_settings_and_presets():
    one = described("agents", "livarot")
    assert "Boudart" in one["about"] and one["presets"] == ["paper", "theory", "single-phase"]
    settings = {each["name"]: each for each in one["settings"]}
    assert list(settings) == [field.name for field in dataclasses.fields(agents.Livarot)]
    assert settings["beta_scale"]["default"] == repr(agents.Livarot().beta_scale)
    assert settings["beta_scale"]["meaning"].startswith("multiplies the radius")
    assert any("beta_scale = " in line for line in description(one))


def test_every_agent_and_environment_can_be_described():
    for kind, registry in (("agents", agents.registry), ("envs", envs.registry)):
        for name in registry:
            one = described(kind, name)
            assert one["about"] and one["summary"] and description(one)[0].startswith(f"{name}: ")


def test_an_unknown_name_is_refused():
    with pytest.raises(LivarotError, match="no 'livaroth'; did you mean 'livarot'"):
        described("agents", "livaroth")


PLUGIN = """
'''The module of several agents.'''
from dataclasses import dataclass
from livarot.agents import Uniform

@dataclass(frozen=True)
class Told(Uniform):
    '''Plays dice.

    More of it.
    '''
    sides: int = 6  # of a die

@dataclass(frozen=True)
class Untold(Uniform):
    sides: int = 6

def no_defaults(n_states):
    raise AssertionError

def fails():
    raise OSError("no such river")
"""
POINTS = """
[livarot.agents]
broken-agent = nope:X
told-agent = listed_plugin:Told
untold-agent = listed_plugin:Untold

[livarot.envs]
river-swim = listed_plugin:fails
needy-river = listed_plugin:no_defaults
dry-river = listed_plugin:fails
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package of which much does not work."""
    install(tmp_path, "listed_plugin", PLUGIN, POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    for registry, group in ((agents.registry, "livarot.agents"), (envs.registry, "livarot.envs")):
        registry.names()
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_told", set())
        monkeypatch.setattr(registry, "_group", group)
    yield
    sys.modules.pop("listed_plugin", None)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_broken_plugin_hides_no_other_agent(plugin, more):
    found = CliRunner().invoke(app, ["list", "agents", *more])
    assert found.exit_code == 0
    if more:
        shown = [row["name"] for row in json.loads(found.stdout)]
    else:
        shown = [line.split()[0] for line in found.stdout.partition("\n\n")[0].splitlines()[1:]]
    assert set(agents.registry) - set(shown) == {"broken-agent"} and {"livarot", "told-agent"} <= set(shown)
    broken, taken = sorted(found.stderr.splitlines())
    assert broken.startswith("livarot: agent: 'broken-agent' (nope:X) cannot be loaded (ModuleNotFoundError: No module")
    assert "'river-swim' of the package listed-plugin is left out: it is registered already" in taken
    refused = CliRunner().invoke(app, ["list", "agents", "broken-agent"])
    assert refused.exit_code == 2 and "cannot be loaded" in refused.stderr and refused.stdout == ""


def test_environments_that_cannot_be_built_have_no_numbers(plugin, monkeypatch):
    monkeypatch.setattr(envs.registry, "_entries", {"river-swim": envs.registry._entries["river-swim"]})
    found = CliRunner().invoke(app, ["list", "envs"])
    rows = {line.split()[0]: line.split()[1] for line in found.stdout.splitlines()[1:]}
    assert found.exit_code == 0 and rows == {"dry-river": "-", "needy-river": "-", "river-swim": "6"}
    said = found.stderr.splitlines()
    assert sum("'river-swim' of the package" in line for line in said) == 1
    assert any("'dry-river' has no numbers" in line and "OSError: no such river" in line for line in said)
    assert any("'needy-river' has no numbers" in line and "needs n_states" in line for line in said)


def test_a_collision_is_told_by_every_command_that_names_things(plugin):
    found = CliRunner().invoke(app, ["theory", "river-swim", "--episodes", "10"])
    assert found.exit_code == 0 and found.stderr.count("'river-swim' of the package listed-plugin is left out") == 1


def test_a_plugin_is_described_by_its_own_words(plugin):
    assert described("agents", "told-agent")["about"] == "Plays dice."
    assert described("agents", "untold-agent")["about"] == "The module of several agents."
    assert [one["meaning"] for one in described("agents", "told-agent")["settings"]] == ["of a die"]
