"""``livarot theory``: constants, bounds and audit of a problem."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from livarot import agents, envs
from livarot.agents.base import Agent, declared
from livarot.cli.progress import progress_shown
from livarot.errors import bad, require_positive_int
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve
from livarot.running.run import run
from livarot.sweeps.experiment.keys import plays_given_policy
from livarot.system.threads import Progress, Tally
from livarot.theory.all_constants import Constants
from livarot.theory.audits.auditing import audit
from livarot.theory.audits.facts import sigma_bar_worst
from livarot.theory.audits.lines import Audit, shown
from livarot.theory.audits.promises import promises

NAMES = {
    "U": "reachable states, at most",
    "rho": "least over stages of the largest feature norm",
    "kappa": "over the B-ball, exact or a bracket",
    "kappa_bound": "U^2 e^{4B}",
    "kappa_star": "at theta*",
    "sigma_bar_star": "under the optimal policy",
    "sigma_bar_worst": "of the worst trajectory: used in the bound",
    "nu_max": "variance per gap",
}


def command(
    *,
    env: str,
    agent: str = "livarot",
    n_episodes: int = 1000,
    n_seeds: int = 10,
    settings: list[str] | None = None,
    agent_settings: list[str] | None = None,
    run_it: bool = False,
    as_json: bool = False,
    workers: int = 1,
) -> None:
    """See ``livarot theory --help``."""
    require_positive_int("episodes", n_episodes)
    require_positive_int("seeds", n_seeds)
    mdp = envs.make(env, **parse_settings("set", settings))
    chosen = make_agent(agent, mdp, parse_settings("agent-set", agent_settings))
    found: dict[str, Any] = {"env": env, "agent": agent, "settings": repr(chosen), "n_episodes": n_episodes}
    found |= promised(mdp, chosen, n_episodes)
    checked: Audit | None = None
    if run_it:
        with progress_shown(Console(stderr=True), "theory") as progress:
            checked = _audited(mdp, chosen, n_episodes, n_seeds, workers, progress)
        found |= {"n_seeds": n_seeds, "audit": checked.to_dict()}
    console = wide_console()
    if as_json:
        console.print(json.dumps(found, indent=1, allow_nan=False), highlight=False, markup=False, soft_wrap=True)
        return
    for table in (constants_table(found), terms_table(found), rates_table(found)):
        console.print(table)
    for condition in found["failed"]:
        console.print(f"condition that fails: {condition}", highlight=False, markup=False, soft_wrap=True)
    if checked is not None:
        console.print(audit_table(checked))


def wide_console() -> Console:
    """A console as wide as the terminal, or wide enough for the tables in a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def promised(mdp: MNLMDP, agent: Agent[Any], n_episodes: int) -> dict[str, Any]:
    """Constants and bounds under the keys of the JSON output; sigma_bar is that of the worst trajectory."""
    constants = Constants.of(mdp)
    worst = sigma_bar_worst(mdp)
    own = declared(agent)
    level = own.facts().get("failure_level")
    bounds = promises(constants, n_episodes, sigma_bar=worst, failure_level=level, n_explore=own.burn_in)
    return constants.to_json() | {"sigma_bar_worst": worst} | bounds


def _audited(mdp: MNLMDP, agent: Agent[Any], n_episodes: int, n_seeds: int, workers: int, progress: Progress) -> Audit:
    tally = Tally(n_episodes * n_seeds, progress)
    tally.add(0)
    return audit(run(mdp, agent, n_episodes, seed=range(n_seeds), workers=workers, progress=tally.add), mdp)


def make_agent(name: str, mdp: MNLMDP, settings: dict[str, Any]) -> Agent[Any]:
    """A registered agent; one that plays a given policy gets the optimal one."""
    if plays_given_policy(name):
        settings = {"policy": solve(mdp).policy} | settings
    return agents.make(name, **settings)


def parse_settings(option: str, given: list[str] | None) -> dict[str, Any]:
    """``key=value`` each; a value is read as JSON (numbers, true, null, lists), and as text where it is not JSON.

    >>> parse_settings("set", ["horizon=10", "param_bound=tight"])
    {'horizon': 10, 'param_bound': 'tight'}
    """
    found: dict[str, Any] = {}
    for index, text in enumerate(given or []):
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise bad(option, f"{text!r} is not key=value", index=index, cure=f"write --{option} horizon=10")
        if key in found:
            raise bad(option, f"{key!r} is given twice", index=index)
        try:
            found[key] = json.loads(value, parse_constant=_no_constant)
        except ValueError:
            found[key] = value
    return found


def _no_constant(text: str) -> float:
    raise ValueError(text)  # NaN and Infinity are not JSON: they stay text, which the receiver refuses


def constants_table(found: dict[str, Any]) -> Table:
    table = Table(title=f"Constants of {found['env']}", title_justify="left", pad_edge=False)
    table.add_column("constant")
    table.add_column("value", justify="right")
    table.add_column("")
    for name, meaning in NAMES.items():
        value = found[name]
        if name == "kappa":
            text = shown(value["upper"], value["log_upper"])
            if not value["exact"]:
                text = f"[{shown(value['lower'], value['log_lower'])}, {text}]".replace("[", r"\[", 1)
        elif value is None:
            text = shown(None, found.get(f"log_{name}"))
        else:
            text = f"{value:.6g}"
        table.add_row(name, text, meaning)
    return table


def terms_table(found: dict[str, Any]) -> Table:
    """The upper bound term by term, then the totals and the lower bound."""
    title = f"Regret of LIVAROT after {found['n_episodes']} episodes, failure level {found['failure_level']:g}"
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("term")
    table.add_column("bound", justify="right")
    table.add_column("")
    for name, value in found["terms"].items():
        mark = "the largest" if name == found["dominant"] else ""
        table.add_row(name, shown(value, found["log_terms"][name]), mark)
    table.add_section()
    note = "more than H T: says nothing" if found["vacuous"] else ""
    table.add_row("upper", shown(found["upper"], found["log_upper"]), note)
    table.add_row("upper, as printed", shown(found["upper_printed"], found["log_upper_printed"]), "")
    table.add_row("upper, burn-in as run", shown(found["upper_as_run"], found["log_upper_as_run"]), "not proved")
    table.add_row("lower", f"{found['lower']:.4g}", "mean over hard chains of this d, H, T")
    start = found["leading_from"]
    if found["log_leading_from"] is not None:
        table.add_row("variance leads from T =", shown(start, found["log_leading_from"]), found["reason"])
    else:
        table.add_row("variance never leads", "", found["reason"])
    return table


def rates_table(found: dict[str, Any]) -> Table:
    table = Table(title="Published rates, without constants and logarithms", title_justify="left", pad_edge=False)
    for name in ("method", "kind", "rate", "formula"):
        table.add_column(name, justify="right" if name == "rate" else "left")
    for row in found["rates"]:
        value = "too large" if row["rate"] is None else f"{row['rate']:.4g}"
        table.add_row(row["name"], row["kind"], value, row["formula"])
    return table


def audit_table(checked: Audit) -> Table:
    title = f"Audit of {checked.agent}: {checked.n_seeds} seeds, {checked.n_episodes} episodes"
    table = Table(title=title, title_justify="left", pad_edge=False)
    for name in ("section", "quantity", "measured", "promised", "verdict"):
        table.add_column(name, justify="right" if name in ("measured", "promised") else "left")
    last = ""
    for line in checked.lines:
        if last and line.section != last:
            table.add_section()
        style = {"holds": "green", "fails": "bold red"}.get(line.verdict)
        section = line.section if line.section != last else ""
        table.add_row(section, line.quantity, line.measured, line.promised, line.verdict, style=style)
        last = line.section
    return table
