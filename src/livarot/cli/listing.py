"""``livarot list envs|agents [NAME]``: what is registered, the environments with numbers that say how hard they are,
the agents with what is promised about their confidence sets.

An environment is built with its defaults.  V* is the optimal value of the start, in the model's units (rewards in
[0, 1]); kappa* = 1 / min p(s') p(s'') at theta*, over what the start can reach; and
sigma_bar^2 = 1/H sum_h E[Var V*_{h+1}] / H^2 along the optimal policy.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

import typer

from livarot import agents, envs
from livarot.agents.base import Promise, presets_of, promise_of
from livarot.errors import LivarotError
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve
from livarot.theory.constants import kappa_star
from livarot.theory.variance import sigma_bar_star

EPISODES = 1000  # of presets that are made for a number of them
COMMENT = re.compile(r"^    (\w+): .*?  # (.+)$", re.MULTILINE)  # beside the field of a dataclass
SETS = """
sets: what is promised about theta* in the confidence sets with default settings, or with the preset that is named.
sound: the proof is written down and tested here; theory: a published theory says so; -: nothing, or it has no sets."""
COLUMNS = ("S", "A", "U", "d", "H", "B", "V*", "kappa*", "sigma_bar")


def command(kind: str, name: str | None = None, *, as_json: bool = False) -> None:
    """See ``livarot list --help``."""
    if name is not None:
        one = described(kind, name)
        typer.echo(json.dumps(one, indent=2) if as_json else "\n".join(description(one)))
        return
    rows = environments() if kind == "envs" else listed_agents()
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for line in lines(rows, COLUMNS if kind == "envs" else ("sets",)):
        typer.echo(line)
    if kind == "agents":
        typer.echo(SETS)


def described(kind: str, name: str) -> dict[str, Any]:
    """What one agent or environment is: where it comes from, its settings with their defaults, its presets."""
    registry: Any = agents.registry if kind == "agents" else envs.registry
    made = registry.factory(name)
    plain = made.func if isinstance(made, partial) else made
    comments = dict(COMMENT.findall(_source(plain)))
    settings = [
        {"name": each.name, "default": _default(each), "meaning": comments.get(each.name, "")}
        for each in inspect.signature(made).parameters.values()
    ]
    presets = list(presets_of(made)) if kind == "agents" else []
    about = " ".join(_text(kind, plain).split("\n\n")[0].split())
    return {
        "name": name,
        "summary": registry.summary(name),
        "made by": f"{plain.__module__}.{plain.__qualname__}",
        "about": about,
        "settings": settings,
        "presets": presets,
    }


def _text(kind: str, plain: Any) -> str:
    """The docstring: of livarot's own agents the module's, which names the paper; of all else its own comes first."""
    own = plain.__doc__ or ""
    if own.startswith(f"{plain.__name__}("):  # the signature, which dataclass puts where there is no docstring
        own = ""
    home = sys.modules[plain.__module__].__doc__ or ""
    ours = plain.__module__.partition(".")[0] == "livarot"
    return home or own if kind == "agents" and ours else own or home


def _source(plain: Any) -> str:
    try:
        return inspect.getsource(plain)
    except (OSError, TypeError):  # of what was compiled or typed at a prompt there is none
        return ""


def _default(parameter: inspect.Parameter) -> str | None:
    """As it would be typed; None if a value has to be given."""
    if parameter.default is parameter.empty:
        return None
    text = repr(parameter.default)
    return "(made anew)" if text.startswith("<") else text


def description(one: dict[str, Any]) -> list[str]:
    """The lines that describe one agent or environment."""
    out = [f"{one['name']}: {one['summary']}", *textwrap.wrap(one["about"], 110), f"made by {one['made by']}"]
    if one["presets"]:
        out.append(f"presets: {', '.join(one['presets'])}")
    pairs = [(f"{each['name']} = {each['default'] or '...'}", each["meaning"]) for each in one["settings"]]
    width = min(max((len(setting) for setting, _ in pairs), default=0), 40)
    out += ["settings:", *(f"  {setting:{width}}  {meaning}".rstrip() for setting, meaning in pairs)] if pairs else []
    return out


def listed_agents() -> list[dict[str, Any]]:
    """The registered agents by name, with what is promised about their sets."""
    names = agents.registry.loadable()
    return [{"name": name, "sets": sets(name), "summary": agents.registry.summary(name)} for name in names]


def sets(name: str) -> str | None:
    """The promise of an agent with its default settings, or else that of a preset; None: nothing is promised.

    >>> sets("sound-livarot"), sets("livarot"), sets("psrl")
    ('sound 95 %', 'theory 95 % (preset theory)', None)
    """
    made = {"": lambda _: agents.make(name)} | presets_of(agents.registry.factory(name))
    for preset, build in made.items():
        found = _promise(build)
        if found is not None:
            kind = "sound" if found.sound else "theory"
            return f"{kind} {100.0 * found.level:g} %" + (f" (preset {preset})" if preset else "")
    return None


def _promise(build: Callable[[int], Any]) -> Promise | None:
    try:
        return promise_of(build(EPISODES))
    except Exception:  # it needs a policy or another agent, or a plugin does not work
        return None


def environments() -> list[dict[str, Any]]:
    """The registered environments by name, with their sizes and constants."""
    names = envs.registry.loadable()
    return [{"name": name, **_numbers(name), "summary": envs.registry.summary(name)} for name in names]


def _numbers(name: str) -> dict[str, Any]:
    """Sizes and constants of an environment; None where its data are not installed, or a plugin cannot be built."""
    try:
        return numbers(envs.make(name))
    except Exception as error:
        ours = envs.registry._entry(name).registered_by.partition(".")[0] == "livarot"
        if ours and not (name in envs.LARGE and isinstance(error, LivarotError)):
            raise
        if not ours:
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            typer.echo(f"livarot: environment: {name!r} has no numbers, it fails with its defaults ({said})", err=True)
        return dict.fromkeys(COLUMNS)


def numbers(mdp: MNLMDP) -> dict[str, Any]:
    """S, A, U, d, H, B, V*, kappa* and sigma_bar of a model."""
    problem = mdp.problem
    solution = solve(mdp)
    return {
        "S": problem.n_states,
        "A": problem.n_actions,
        "U": problem.max_reachable,
        "d": problem.dim,
        "H": problem.horizon,
        "B": problem.param_bound,
        "V*": float(problem.start @ solution.value[0]),
        "kappa*": kappa_star(mdp),
        "sigma_bar": sigma_bar_star(mdp, solution=solution),
    }


def lines(rows: list[dict[str, Any]], columns: tuple[str, ...] = ()) -> list[str]:
    """One line per row: name, numbers, summary; a header if there are numbers.

    >>> lines([{"name": "a", "H": 5, "V*": 1.23456, "summary": "small"}], ("H", "V*"))
    ['name  H      V*', 'a     5  1.2346  small']
    """
    cells = [[row["name"], *(shown(column, row[column]) for column in columns)] for row in rows]
    if columns:
        cells.insert(0, ["name", *columns])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    side = "<" if columns == ("sets",) else ">"
    texts = [
        "  ".join(
            [f"{name:{widths[0]}}", *(f"{cell:{side}{width}}" for cell, width in zip(rest, widths[1:], strict=True))]
        )
        for name, *rest in cells
    ]
    summaries = [*([""] if columns else []), *(row["summary"] for row in rows)]
    return [f"{text}  {summary}".rstrip() for text, summary in zip(texts, summaries, strict=True)]


def shown(column: str, value: float | str | None) -> str:
    """A number as the table shows it.

    >>> shown("V*", 3.39726), shown("kappa*", 12345.6), shown("S", 6)
    ('3.3973', '1.23e+04', '6')
    """
    if value is None:
        return "-"
    if isinstance(value, int | str):
        return str(value)
    return f"{value:.4f}" if column in ("V*", "sigma_bar") else f"{value:.3g}"
