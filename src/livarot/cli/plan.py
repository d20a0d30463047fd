"""``livarot plan``: a stored model and rewards in, a policy table out.

The CSV goes to ``--out``, or to standard output; what is known about the plan goes to standard error, so that a pipe
carries the table alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from livarot import infinite
from livarot.cli.fit import fitted_or_loaded, notes, parse_profile
from livarot.data import (
    MNLTransition,
    coverage_coefficients,
    plan_optimistic,
    plan_pessimistic,
    plan_robust,
    policy_table,
    robust_radius,
    support_check,
    value_interval,
    write_policy,
)
from livarot.data.reading.columns import Columns
from livarot.data.reading.table import FILES, read_table
from livarot.data.use.pays import meant, table_of_pay
from livarot.data.use.policy_table import as_csv
from livarot.errors import bad, require_non_negative, require_positive_int
from livarot.infinite.problem import InfiniteMDP
from livarot.model.labels import ModelLabels
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve

AUTO = "auto"


def command(
    *,
    model: Path,
    reward: str | None = None,
    cost: str | None = None,
    horizon: int | None = None,
    discount: float | None = None,
    terminal: str | None = None,
    terminal_reward: str | None = None,
    terminal_cost: str | None = None,
    start: str | None = None,
    robust: str | None = None,
    optimistic: float | None = None,
    pessimistic: float | None = None,
    unseen: str = "unavailable",
    level: float = 0.95,
    resamples: int = 200,
    seed: int = 0,
    at: str | None = None,
    out: Path | None = None,
    **model_options: Any,
) -> None:
    """See ``livarot plan --help``; ``model_options`` are those of a model that is fitted first."""
    kinds = {"robust": robust, "optimistic": optimistic, "pessimistic": pessimistic}
    chosen = [name for name, value in kinds.items() if value is not None]
    if len(chosen) > 1:
        raise bad(chosen[0], f"{chosen[0]} and {chosen[1]} are both given", cure="choose one of them")
    radius = None if robust in (None, AUTO) else _number("robust", str(robust))
    require_positive_int("resamples", resamples)
    with notes(Console(stderr=True)):
        fit = fitted_or_loaded(model, **{"features": None, "formula": None} | model_options)
    first = None if start is None else meant("start", fit.states_, start)
    pays = {"reward": reward, "cost": cost, "terminal_reward": terminal_reward, "terminal_cost": terminal_cost}
    terms: dict[str, Any] = {name: parse_pay(fit, name, given) for name, given in pays.items() if given is not None}
    terms["terminal"] = parse_terminal(fit, terminal, "reward" if cost is None else "cost")
    profile = parse_profile(fit, at)
    mdp = fit.to_mdp(**terms, horizon=horizon, start=first, discount=discount, at=profile, unseen=unseen)
    if isinstance(mdp, InfiniteMDP) and (discount is None or discount == 1.0):
        message = "is not given, and neither is a discount below 1"
        raise bad("horizon", message, cure="say how many steps an episode has, or give a discount if it never ends")
    if pessimistic is not None:
        worst = plan_pessimistic(fit, mdp, pessimistic)
        policy, value, lines = worst.policy, worst.value, [f"pessimistic plan: {worst}"]
    else:
        policy, value, lines = _planned(fit, mdp, robust, radius, optimistic, level, resamples, seed)
    lines += _trust(fit, mdp, policy, level)
    table = policy_table(mdp, policy, value=value, fit=fit)
    if out is None:
        Console(soft_wrap=True).print(as_csv(table), end="", highlight=False, markup=False)
    else:
        write_policy(out, table)
        lines.append(f"{len(table)} rows in {out}")
    aside = Console(stderr=True)
    for line in lines:
        aside.print(line, highlight=False, markup=False, soft_wrap=True)


def _planned(
    fit: MNLTransition,
    mdp: MNLMDP | InfiniteMDP,
    robust: str | None,
    radius: float | None,
    optimistic: float | None,
    level: float,
    resamples: int,
    seed: int,
) -> tuple[Any, Any, list[str]]:
    """The policy, its values (as planned) and what to say about them."""
    value: Any
    if robust is not None:
        radii: Any = radius
        lines = [f"robust plan, KL radius {radius:g}" if radius is not None else ""]
        if radius is None:
            radii = robust_radius(fit, mdp, level, n_resamples=resamples, seed=seed)
            share = f"{100 * level:g} % of {resamples} refits"
            lines = [f"robust plan, KL radii {radii.min():.3g} to {radii.max():.3g} ({share})"]
        found = plan_robust(fit, mdp, radii)
        policy, value = found.policy, found.value
        lines.append(f"worst-case {_at_start(mdp, value)}")
    elif optimistic is not None:
        plan = plan_optimistic(fit, mdp, optimistic)
        policy, value = (plan.policy, plan.value) if isinstance(mdp, InfiniteMDP) else (plan.policy[0], plan.value[0])
        lines = [f"optimistic plan over the {100 * optimistic:g} % confidence set"]
        lines.append(f"best-case {_at_start(mdp, value)}")
    else:
        best: Any = infinite.solve(mdp) if isinstance(mdp, InfiniteMDP) else solve(mdp)
        policy, value, lines = best.policy, best.value, ["nominal plan"]
    lines.append(str(coverage_coefficients(fit, mdp, policy)))
    return policy, value, lines


def _at_start(mdp: MNLMDP | InfiniteMDP, value: Any) -> str:
    """The value, or the cost, at the start, as text."""
    if isinstance(mdp, InfiniteMDP):
        number, costs = float(mdp.problem.start @ value), mdp.problem.terms.costs
    else:
        number, costs = float(mdp.problem.start @ value[0]), mdp.problem.units.cost
    return f"cost {0.0 - number:.4f}" if costs else f"value {number:.4f}"


def _trust(fit: MNLTransition, mdp: MNLMDP | InfiniteMDP, policy: Any, level: float) -> list[str]:
    """What to say about the data that a policy rests on."""
    lines = [f"under the fit: {value_interval(fit, mdp, policy, level=level)}"]
    thin = support_check(fit, mdp, policy)
    if len(thin):
        pairs = ", ".join(map(repr, list(thin.index)[:3]))
        return [*lines, f"no data for {100 * thin.attrs['share']:.1f} % of the steps: {pairs}"]
    return [*lines, "every step rests on data"]


def parse_pay(fit: MNLTransition, argument: str, given: str) -> dict[Any, float]:
    """A table with the columns state, (action, (next_state,)) and one called reward or cost; or state=number,..."""
    if given.lower().endswith(FILES):
        return table_of_pay(argument, given, Columns.of(fit), ModelLabels(fit.states_, fit.actions_))
    pairs = [text.rpartition("=") for text in given.split(",")]
    wrong = next((i for i, (key, sign, _) in enumerate(pairs) if not sign or not key), None)
    if wrong is not None:
        cure = f"give a .csv or .parquet file with the columns state, (action,) {argument}, or state=number,..."
        raise bad(argument, f"{given!r} is neither a file nor state=number,...", index=wrong, cure=cure)
    found: dict[Any, float] = {}
    for i, (key, _, text) in enumerate(pairs):
        state = meant(argument, fit.states_, key.strip())
        if state in found:
            raise bad(argument, f"{state!r} is given twice", index=i)
        found[state] = _number(argument, text, signed=True)
    return found


def parse_terminal(fit: MNLTransition, given: str | None, pay: str) -> Any:
    """Terminal states: state,...; or state=number,...; or a table with a column of states (and one of numbers)."""
    if given is None:
        return None
    if given.lower().endswith(FILES):
        table = read_table(given)
        if any(name in table for name in (pay, f"terminal_{pay}")):
            return parse_pay(fit, f"terminal_{pay}", given)
        named = [str(x) for x in table.raw(fit.state if fit.state in table else "state", "terminal")]
    elif "=" in given:
        return parse_pay(fit, "terminal", given)
    else:
        named = given.split(",")
    return [meant("terminal", fit.states_, name.strip()) for name in named]


def _number(argument: str, text: str, *, signed: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        raise bad(
            argument, f"{text!r} is not a number", cure=f"or {AUTO!r}" if argument == "robust" else None
        ) from None
    return number if signed else require_non_negative(argument, number)
