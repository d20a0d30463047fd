"""``livarot plan``: a stored model and rewards in, a policy table out.

The CSV goes to ``--out``, or to standard output; what is known about the plan goes to standard error, so that a pipe
carries the table alone.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

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
from livarot.data.reading.table import FILES, read_table
from livarot.data.use.policy_table import as_csv
from livarot.errors import bad, require_non_negative, require_positive_int
from livarot.model.labels import Labels
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve

AUTO = "auto"


def command(
    *,
    model: Path,
    reward: str,
    horizon: int | None = None,
    start: str | None = None,
    robust: str | None = None,
    optimistic: float | None = None,
    pessimistic: float | None = None,
    unseen: str = "error",
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
        raise bad(chosen[0], f"and {chosen[1]} are both given", cure="choose one of them")
    radius = None if robust in (None, AUTO) else _number("robust", str(robust))
    require_positive_int("resamples", resamples)
    with notes(Console(stderr=True)):
        fit = fitted_or_loaded(model, **{"features": None, "formula": None} | model_options)
    first = None if start is None else labelled("start", fit.states_, start)
    mdp = fit.to_mdp(parse_reward(fit, reward), horizon, first, at=parse_profile(fit, at), unseen=unseen)
    if pessimistic is not None:
        worst = plan_pessimistic(fit, mdp, pessimistic)
        policy, value, told = worst.policy, worst.value, [f"pessimistic plan: {worst}"]
    else:
        policy, value, told = _planned(fit, mdp, robust, radius, optimistic, level, resamples, seed)
    told += _trust(fit, mdp, policy, level)
    table = policy_table(mdp, policy, value=value, fit=fit)
    if out is None:
        Console(soft_wrap=True).print(as_csv(table), end="", highlight=False, markup=False)
    else:
        write_policy(out, table)
        told.append(f"{len(table)} rows in {out}")
    aside = Console(stderr=True)
    for line in told:
        aside.print(line, highlight=False, markup=False, soft_wrap=True)


def _planned(
    fit: MNLTransition,
    mdp: MNLMDP,
    robust: str | None,
    radius: float | None,
    optimistic: float | None,
    level: float,
    resamples: int,
    seed: int,
) -> tuple[Any, Any, list[str]]:
    """The policy, its values (as planned) and what to say about them."""
    begin = mdp.problem.start
    value: Any
    if robust is not None:
        radii: Any = radius
        told = [f"robust plan, KL radius {radius:g}" if radius is not None else ""]
        if radius is None:
            radii = robust_radius(fit, mdp, level, n_resamples=resamples, seed=seed)
            share = f"{100 * level:g} % of {resamples} refits"
            told = [f"robust plan, KL radii {radii.min():.3g} to {radii.max():.3g} ({share})"]
        found = plan_robust(fit, mdp, radii)
        policy, value = found.policy, found.value
        told.append(f"worst-case value {float(begin @ value[0]):.4f}")
    elif optimistic is not None:
        plan = plan_optimistic(fit, mdp, optimistic)
        policy, value = plan.policy[0], plan.value[0] if plan.value is not None else None
        told = [f"optimistic plan over the {100 * optimistic:g} % confidence set"]
        if plan.start_value is not None:
            told.append(f"best-case value {float(plan.start_value[0]):.4f}")
    else:
        best = solve(mdp)
        policy, value, told = best.policy, best.value, ["nominal plan"]
    told.append(str(coverage_coefficients(fit, mdp, policy)))
    return policy, value, told


def _trust(fit: MNLTransition, mdp: MNLMDP, policy: Any, level: float) -> list[str]:
    """What to say about the data that a policy rests on."""
    told = [f"under the fit: {value_interval(fit, mdp, policy, level=level)}"]
    thin = support_check(fit, mdp, policy)
    if len(thin):
        pairs = ", ".join(map(repr, list(thin.index)[:3]))
        return [*told, f"no data for {100 * thin.attrs['share']:.1f} % of the steps: {pairs}"]
    return [*told, "every step rests on data"]


def parse_reward(fit: MNLTransition, given: str) -> dict[Any, float]:
    """A table with the columns state, (action,) and reward, of every state; or ``state=number,...``, 0 elsewhere."""
    if given.lower().endswith(FILES):
        table = read_table(given)
        states = list(table.raw(fit.state if fit.state in table else "state", "reward"))
        numbers = np.asarray(table.numbers("reward", "reward"), dtype=np.float64)
        name = next((x for x in (fit.action, "action") if x in table), None)
        actions = [None] * len(states) if name is None else list(table.raw(name))
        keys = [_key(fit, s, a) for s, a in zip(states, actions, strict=True)]
        values = numbers.tolist()
        _require_all(fit, keys, by_action=name is not None)
    else:
        pairs = [text.rpartition("=") for text in given.split(",")]
        wrong = next((i for i, (key, sign, _) in enumerate(pairs) if not sign or not key), None)
        if wrong is not None:
            cure = "give a .csv or .parquet file with the columns state, (action,) reward, or state=number,..."
            raise bad("reward", f"{given!r} is neither a file nor state=number,...", index=wrong, cure=cure)
        keys = [_key(fit, key.strip(), None) for key, _, _ in pairs]
        values = [_number("reward", text, signed=True) for _, _, text in pairs]
    found: dict[Any, float] = {}
    for i, (key, value) in enumerate(zip(keys, values, strict=True)):
        if key in found:
            raise bad("reward", f"{key!r} is given twice", index=i)
        found[key] = float(value)
    return found


def _require_all(fit: MNLTransition, keys: list[Any], *, by_action: bool) -> None:
    """A file has the reward of every state, or of every (state, action): a missing line does not mean 0."""
    wanted = product(fit.states_, fit.actions_) if by_action else iter(fit.states_)
    known = set(keys)
    lost = [key for key in wanted if key not in known]
    if lost:
        problem = f"{len(lost)} of the model's {'(state, action)' if by_action else 'states'} are not in the file"
        raise bad(
            "reward", f"{problem}, such as {lost[0]!r}", count=len(lost), cure="give each its reward, 0 if it is 0"
        )


def _key(fit: MNLTransition, state: Any, action: Any) -> Any:
    known = labelled("reward", fit.states_, state)
    return known if action is None else (known, labelled("reward", fit.actions_, action))


def labelled(argument: str, labels: Labels, given: Any) -> Any:
    """The label that was meant: the one given, or the one that prints as the text given.

    >>> labelled("start", Labels([1, 2, 3]), "2")
    2
    """
    if given in labels:
        return given
    found = [label for label in labels if str(label) == str(given)]
    if len(found) != 1:
        raise bad(
            argument, f"{given!r} is not known" if not found else f"{given!r} has two meanings", cure=f"{labels!r}"
        )
    return found[0]


def _number(argument: str, text: str, *, signed: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        raise bad(
            argument, f"{text!r} is not a number", cure=f"or {AUTO!r}" if argument == "robust" else None
        ) from None
    return number if signed else require_non_negative(argument, number)
