"""What a run is: its content as canonical JSON, and the SHA-256 of that as its key.

The content has every setting of environment and agent, defaults and presets resolved, so a run whose defaults change
in a later version has another key, and ``reg = 3`` means the same as ``reg = 3.0`` or as leaving the default alone.
Names are looked up in registries and never imported.

>>> cell = Cell.of("hard-chain", {"horizon": 5, "gap": 0.1}, "livarot", {}, 100)
>>> cell.agent, cell.agent_settings["rule"]["name"]
('livarot', 'joint-maximum')
>>> len(cell.run(7).key)
64
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import inspect
import json
import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from livarot import agents, envs
from livarot.agents.base import Agent, declared_by, presets_of
from livarot.agents.exploration import LiteralExploration, StateAwareExploration
from livarot.agents.tabular.ucbvi import Bernstein, Hoeffding, Simple
from livarot.core.arrays import FloatArray
from livarot.errors import LivarotError, bad, require_positive_int
from livarot.model.problem import MNLMDP
from livarot.planning.exact import solve
from livarot.planning.optimistic.rules import (
    FrankWolfe,
    JointMaximum,
    MaxNormBonus,
    PlugIn,
    SecondOrderBonus,
    ShiftedPower,
    VarianceBonus,
)
from livarot.registry import Registry

RUN_SCHEMA = 1  # part of every key; raised when the same content means another run
EPISODES = "$episodes"  # a setting with this value is the run's number of episodes
SEED = "$seed"  # a setting of an environment with this value is the run's seed: a model of its own for every seed
MAX_INT = 1 << 63
PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}

components: Registry[Any] = Registry("component")
components.register("joint-maximum", JointMaximum, "rule: the maximum over the ellipsoid")
components.register("variance-bonus", VarianceBonus, "rule: the closed-form variance-aware bound")
components.register("second-order-bonus", SecondOrderBonus, "rule: first- and second-order bonus")
components.register("max-norm-bonus", MaxNormBonus, "rule: the largest feature norm as bonus")
components.register("plug-in", PlugIn, "rule: no optimism")
components.register("shifted-power", ShiftedPower, "solver of the joint maximum, to a certified gap")
components.register("frank-wolfe", FrankWolfe, "solver of the joint maximum, the paper's")
components.register("literal-exploration", LiteralExploration, "burn-in as printed")
components.register("state-aware-exploration", StateAwareExploration, "burn-in that looks at the state")
components.register("hoeffding-bonus", Hoeffding, "bonus of tabular agents, by the range")
components.register("bernstein-bonus", Bernstein, "bonus of tabular agents, by the variance")
components.register("simple-bonus", Simple, "bonus of tabular agents, a constant over the square root of the count")


@dataclass(frozen=True)
class Cell:
    """All runs that differ in their seed only."""

    environment: str
    environment_settings: dict[str, Any] = field(hash=False)
    agent: str
    agent_settings: dict[str, Any] = field(hash=False)
    episodes: int

    @classmethod
    def of(
        cls,
        environment: str,
        environment_settings: Mapping[str, Any],
        agent: str,
        agent_settings: Mapping[str, Any],
        episodes: int,
        preset: str | None = None,
    ) -> Cell:
        """The cell of given settings: names and types checked, the rest filled in."""
        require_positive_int("episodes", episodes)
        given = {name: resolved(value, episodes) for name, value in environment_settings.items()}
        wished = {name: resolved(value, episodes) for name, value in agent_settings.items()}
        return cls(
            environment,
            environment_content(environment, given),
            agent,
            agent_content(agent, wished, episodes, preset),
            episodes,
        )

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Cell:
        """The cell of a run's content, which is complete already."""
        env, agent = content["environment"], content["agent"]
        return cls(env["name"], env["settings"], agent["name"], agent["settings"], content["episodes"])

    def content(self, seed: int | None = None) -> dict[str, Any]:
        """What the key is computed from; without a seed, what the runs of the cell have in common."""
        found: dict[str, Any] = {
            "agent": {"name": self.agent, "settings": self.agent_settings},
            "environment": {"name": self.environment, "settings": self.environment_settings},
            "episodes": self.episodes,
            "schema": RUN_SCHEMA,
        }
        return found if seed is None else found | {"seed": seed}

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @cached_property
    def text(self) -> str:
        """`canonical` of the content; "seed" sorts last, so the text of every run of the cell begins like this."""
        return canonical(self.content())

    def with_texts(self, agent: str, environment: str) -> Cell:
        """This cell with the `canonical` texts of two parts of its content: many cells of a grid share these."""
        rest = f'"episodes":{self.episodes},"schema":{RUN_SCHEMA}'
        self.__dict__["text"] = f'{{"agent":{agent},"environment":{environment},{rest}}}'
        return self

    def run(self, seed: int) -> Run:
        return Run(self, seed)

    def key_of(self, seed: int) -> str:
        """The key of a run: the SHA-256 of its text."""
        found = self._keys.get(seed)
        if found is None:
            whole = self._beginning.copy()
            whole.update(f"{seed}}}".encode())
            found = self._keys[seed] = whole.hexdigest()
        return found

    @cached_property
    def _keys(self) -> dict[int, str]:
        return {}  # kept, since keys are needed often

    @cached_property
    def _beginning(self) -> Any:
        return hashlib.sha256(f'{self.text[:-1]},"seed":'.encode())  # of the text of every run of the cell

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}  # without what can be computed

    @property
    def fresh(self) -> bool:
        """Does every seed have a model of its own (a setting is "$seed")?"""
        return SEED in self.environment_settings.values()

    def model(self, seed: int = 0) -> MNLMDP:
        """The environment of a seed, built."""
        settings = {name: seed if value == SEED else value for name, value in self.environment_settings.items()}
        return envs.make(self.environment, **settings)

    def models(self, seeds: Sequence[int]) -> list[MNLMDP]:
        """One model for all seeds, or one each."""
        return [self.model(seed) for seed in seeds] if self.fresh else [self.model()]

    def learner(self, *models: MNLMDP) -> Agent[Any]:
        """The agent, built; one that plays a given policy gets the optimal one of each model."""
        if plays_given_policy(self.agent):
            policies = [solve(mdp).policy for mdp in models]
            return agents.make(self.agent, policy=policies[0] if len(policies) == 1 else np.stack(policies))
        return agents.make(self.agent, **{name: built(value) for name, value in self.agent_settings.items()})


@dataclass(frozen=True)
class Run:
    """One agent, one environment, one seed."""

    cell: Cell
    seed: int

    @property
    def key(self) -> str:
        return self.cell.key_of(self.seed)

    @property
    def text(self) -> str:
        """The text whose hash is the key: `canonical` of the content."""
        return f'{self.cell.text[:-1]},"seed":{self.seed}}}'


def unit_scales(cell: Cell, seeds: Sequence[int], known: dict[str, float | None] | None = None) -> FloatArray | None:
    """What turns normalised regret into the units of the environment's rewards, for each seed; None: not known here.

    It is 1 for livarot's own environments, whose rewards are in [0, 1]; others are built to be asked.  ``known`` keeps
    the answers, for callers with many cells.

    >>> unit_scales(Cell.of("hard-chain", {}, "livarot", {}, 50), [0, 7]).tolist()
    [1.0, 1.0]
    """
    found = {} if known is None else known
    text = canonical([cell.environment, cell.environment_settings])

    def scale(seed: int) -> float | None:
        where = f"{seed} {text}" if cell.fresh else text
        if where not in found:
            found[where] = _unit_scale(cell, seed)
        return found[where]

    scales = [scale(seed) for seed in seeds]
    return None if any(one is None for one in scales) else np.array(scales, dtype=np.float64)


def _unit_scale(cell: Cell, seed: int) -> float | None:
    if cell.environment not in envs.registry:
        return None
    factory = envs.registry._entry(cell.environment).factory
    home = getattr(factory.func if isinstance(factory, partial) else factory, "__module__", None) or ""
    if home.partition(".")[0] == "livarot":
        return 1.0
    try:
        return float(cell.model(seed).problem.units.scale)
    except (LivarotError, TypeError):  # registered, but not with these settings any more
        return None


def canonical(value: Any) -> str:
    """One text per content: sorted keys, no spaces, no NaN.

    >>> canonical({"b": 1.0, "a": [None, True]})
    '{"a":[null,true],"b":1.0}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def resolved(value: Any, episodes: int) -> Any:
    """A setting as a Python value: "none" is None, "$episodes" the number of episodes."""
    if isinstance(value, dict):
        return {name: resolved(inner, episodes) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, episodes) for inner in value]
    if isinstance(value, str):
        return None if value == "none" else episodes if value == EPISODES else value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise bad("settings", f"{value} is not finite", cure='write "none" for a missing value')
        return value + 0.0  # -0.0 becomes 0.0
    if isinstance(value, int) and not -MAX_INT <= value < MAX_INT:
        raise bad("settings", "an integer has more than 64 bits")
    return value


def environment_content(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument of the factory; ``module:name`` and the like are not registered names and are refused."""
    factory = _factory(envs.registry, name, settings)
    bound = inspect.signature(factory).bind(**settings)
    bound.apply_defaults()
    found = _typed(name, factory, bound.arguments, seeded=True)
    _check_plain(name, found)
    return found


def agent_content(name: str, settings: Mapping[str, Any], episodes: int, preset: str | None = None) -> dict[str, Any]:
    """Every field of the agent, components as tables with their name."""
    if plays_given_policy(name):
        if settings or preset:
            raise bad("agents", f"the {name} takes no settings: it plays the optimal policy")
        return {}
    factory = _factory(agents.registry, name, settings)
    chosen = _typed(name, factory, {key: built(value) for key, value in settings.items()})
    return _fields(
        agents.make(name, **chosen)
        if preset is None
        else dataclasses.replace(_preset(name, factory, preset, episodes), **chosen)
    )


def plays_given_policy(name: str) -> bool:
    """Does the agent of this name play a policy that it is given, such as the optimal one?"""
    return name in agents.registry and declared_by(agents.registry._entry(name).factory).plays_given_policy


def built(value: Any) -> Any:
    """A setting as an agent wants it: a table with a ``name`` becomes the component of that name."""
    if not isinstance(value, dict):
        return value
    if not isinstance(value.get("name"), str):
        raise bad("settings", "a table needs the name of a component", cure=f"one of: {', '.join(components)}")
    rest = {key: built(inner) for key, inner in value.items() if key != "name"}
    # an agent may be part of another one
    registry = agents.registry if value["name"] in agents.registry else components
    factory = _factory(registry, value["name"], rest)
    return registry.make(value["name"], **_typed(value["name"], factory, rest))


def _preset(name: str, factory: Any, preset: str, episodes: int) -> Any:
    known = presets_of(factory)
    if preset not in known:
        cure = f"its presets: {', '.join(known)}" if known else "it has none"
        raise bad("agents", f"{name!r} has no preset {preset!r}", cure=cure)
    return known[preset](episodes)


def _factory(registry: Registry[Any], name: str, settings: Mapping[str, Any]) -> Any:
    """The factory of a registered name, which takes these settings."""
    registry.check_keywords(name, settings)
    return registry._entry(name).factory


def _typed(name: str, factory: Any, settings: Mapping[str, Any], *, seeded: bool = False) -> dict[str, Any]:
    """Settings of the types that the factory declares; an integer where a float is meant becomes one.

    With ``seeded``, "$seed" may stand for an integer.
    """
    plain = factory.func if isinstance(factory, partial) else factory
    parameters = _parameters(plain) if settings else {}
    found = {}
    for key, value in settings.items():
        declared = parameters[key].annotation
        words = {word.strip() for word in str(getattr(declared, "__name__", declared)).split("|")}
        if type(value) is int and "float" in words and "int" not in words:
            value = float(value)
        if value == SEED and "int" in words and seeded:
            found[key] = value
            continue
        if words <= PLAIN.keys() and type(value) not in {PLAIN[word] for word in words}:
            wanted = " or ".join(sorted(words))
            raise bad("settings", f"{key!r} of {name!r} is {reprlib.repr(value)}", cure=f"it must be {wanted}")
        found[key] = value
    return found


@lru_cache(maxsize=256)
def _parameters(factory: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(factory).parameters  # slow, and needed for each cell of a grid


def _fields(thing: Any) -> dict[str, Any]:
    """The fields of an agent or a component, ready for JSON.

    Its ``later_fields`` are left out at their defaults: runs that were stored before they came keep their keys.
    """
    found: dict[str, Any] = {}
    later = getattr(type(thing), "later_fields", ())
    for one in dataclasses.fields(thing):
        value = getattr(thing, one.name)
        if one.name in later and value == one.default:
            continue
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {"name": _component_name(value)} | _fields(value)
        found[one.name] = value
    _check_plain(type(thing).__name__, found)
    return found


def _component_name(value: Any) -> str:
    for registry in (components, agents.registry):
        for name in registry.loadable():
            if registry._entry(name).factory is type(value):
                return name
    raise bad("settings", f"{type(value).__name__} is not registered", cure="register it in keys.components")


def _check_plain(name: str, settings: Mapping[str, Any]) -> None:
    with contextlib.suppress(TypeError, ValueError):
        canonical(settings)  # all at once, since this is done for each cell of a grid
        return
    for key, value in settings.items():
        try:
            canonical(value)
        except (TypeError, ValueError) as error:
            raise bad("settings", f"{key!r} of {name!r} is not text, a number or a truth value") from error
