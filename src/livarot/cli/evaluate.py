"""``livarot evaluate``: logged episodes and a policy in, estimates of its value out.

With a model (``livarot fit``) and its rewards, the model-based and the doubly robust estimate stand beside importance
sampling.  The table goes to standard output, warnings about the log go to standard error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from livarot.cli.fit import fitted_or_loaded, notes, parse_profile
from livarot.cli.plan import parse_pay
from livarot.data import MNLTransition, evaluate_policy, read_episodes
from livarot.data.reading.table import Table, read_table
from livarot.errors import bad, require_probability
from livarot.model.problem import MNLMDP


def command(
    *,
    log: Path,
    policy: Path,
    model: Path | None = None,
    reward: str | None = None,
    episode: str = "episode",
    step: str = "step",
    probability: str | None = None,
    behaviour: str = "counts",
    cross_fit: int = 0,
    unseen: str = "unavailable",
    level: float = 0.95,
    seed: int = 0,
    at: str | None = None,
    as_json: bool = False,
    **model_options: Any,
) -> None:
    """See ``livarot evaluate --help``; ``model_options`` are those of a model that is fitted to the log."""
    require_probability("level", level)
    table, plan = read_table(log), read_table(policy)
    options = {"features": None, "formula": None} | model_options
    fits = options["features"] is not None or options["formula"] is not None
    if fits and model is not None:
        raise bad("model", "a model and a formula (or features) are both given", cure="choose one of them")
    with notes(Console(stderr=True)):
        fit = fitted_or_loaded(log if model is None else model, **options) if fits or model is not None else None
    if (fit is None) != (reward is None):
        raise bad("reward", "goes with a model", cure="give --reward and --model (or --formula), or neither")
    names: dict[str, Any] = {"episode": episode, "step": step, "probability": probability}
    if fit is not None:
        names |= {"state": fit.state, "action": fit.action, "next_state": fit.next_state}
    with notes(Console(stderr=True)):
        mdp = (
            None
            if fit is None or reward is None
            else _model_of(fit, table, plan, reward, names, {"unseen": unseen, "at": parse_profile(fit, at)})
        )
        episodes = read_episodes(table, mdp, **names)
        found = evaluate_policy(
            episodes, policy, fit, mdp, behaviour=behaviour, level=level, cross_fit=cross_fit, seed=seed
        )
    console = Console()
    if as_json:
        rows = {name: one._asdict() for name, one in found.estimates.items()}
        facts = {"n_episodes": found.n_episodes, "effective": found.effective.tolist(), "behaviour": found.behaviour}
        pairs = [[str(x) for x in pair] for pair in found.no_overlap.index]
        console.print_json(
            json.dumps({"estimates": rows, "level": level, "no_overlap": pairs} | facts, allow_nan=False)
        )
    else:
        console.print(repr(found), highlight=False, markup=False, soft_wrap=True)


def _model_of(
    fit: MNLTransition, table: Table, plan: Table, reward: str, names: dict[str, Any], options: dict[str, Any]
) -> MNLMDP:
    """The fitted model with as many stages as the policy and the first states of the logged episodes."""
    columns = {name: names[name] for name in ("episode", "step", "state", "action", "next_state")}
    seen = read_episodes(table.with_column("reward", [0.0] * table.n_rows), **columns)
    first = seen.labels.states.decode(seen.state[:, 0])
    start = {label: float((first == label).mean()) for label in dict.fromkeys(first)}
    pays = parse_pay(fit, "reward", reward)
    mdp: MNLMDP = fit.to_mdp(pays, len(set(plan.raw("stage", "policy"))), start, **options)
    return mdp
