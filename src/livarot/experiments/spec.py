"""What to run: environments x agents x episodes x seeds, as a TOML file or as the same Python objects.

A list in ``settings`` makes a grid.  Only registered names can be chosen (``livarot list agents``), and every unknown
key is refused with the closest known one.

>>> experiment = Experiment(
...     environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [5, 10], "gap": 0.1})],
...     agents=[AgentSpec(name="livarot", settings={"beta_scale": [0.01, 0.05]}), AgentSpec(name="uniform")],
...     episodes=100,
...     seeds=40,
... )
>>> len(experiment.cells()), len(experiment.runs())
(6, 240)
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from livarot import agents, envs
from livarot.errors import LivarotError, bad
from livarot.experiments.keys import PRESETS, Cell, Run, components, digest

MAX_FILE_BYTES = 1 << 20
MAX_RUNS = 1_000_000
MAX_SEED = (1 << 63) - 1

Episodes = Annotated[int, Field(ge=1, le=10**9)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Settings = dict[str, JsonValue]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class EnvironmentSpec(_Strict):
    """A registered environment and its settings; lists make a grid."""

    name: str = Field(description="a registered environment: livarot list envs")
    settings: Settings = Field(default_factory=dict, description="arguments; a list makes a grid")
    label: str | None = Field(default=None, max_length=200, description="a name for figures")


class AgentSpec(_Strict):
    """A registered agent, a preset if wished, and what differs from it; lists make a grid."""

    name: str = Field(description="a registered agent: livarot list agents")
    preset: str | None = Field(default=None, description="published constants: paper, theory or single-phase")
    settings: Settings = Field(default_factory=dict, description="hyper-parameters; a list makes a grid")
    label: str | None = Field(default=None, max_length=200, description="a name for figures")


class SeedRange(_Strict):
    """The seeds first, first + 1, ..."""

    first: Seed = 0
    count: int = Field(ge=1, le=MAX_RUNS)


class Experiment(_Strict):
    """A grid of runs."""

    name: str = Field(default="experiment", max_length=200)
    environments: list[EnvironmentSpec] = Field(min_length=1)
    agents: list[AgentSpec] = Field(min_length=1)
    episodes: Episodes | list[Episodes] = Field(description="episodes of a run; a list makes a grid")
    seeds: Annotated[int, Field(ge=1, le=MAX_RUNS)] | list[Seed] | SeedRange = Field(
        description="how many (0, 1, ...), a list, or {first, count}"
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _first_problem(error) from None

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """Read a TOML file."""
        return cls.from_toml(_text(Path(path)))

    @classmethod
    def from_toml(cls, text: str) -> Experiment:
        try:
            found = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
            raise bad("spec", f"not TOML: {str(error)[:200] or type(error).__name__}") from error
        try:
            return cls(**found)
        except RecursionError as error:
            raise bad("spec", "tables or lists are nested too deeply") from error

    def to_toml(self) -> str:
        """The experiment as text that :meth:`from_toml` reads back."""
        import tomli_w

        return tomli_w.dumps(_without_none(self.model_dump(mode="json", exclude_defaults=True)))

    @property
    def key(self) -> str:
        """SHA-256 of the spec itself."""
        return digest(self.model_dump(mode="json"))

    def seed_list(self) -> list[int]:
        if isinstance(self.seeds, int):
            return list(range(self.seeds))
        if isinstance(self.seeds, SeedRange):
            return list(range(self.seeds.first, self.seeds.first + self.seeds.count))
        return list(dict.fromkeys(self.seeds))

    def cells(self) -> list[Cell]:
        """All combinations without their seeds, each once, names and settings checked."""
        episodes = [self.episodes] if isinstance(self.episodes, int) else list(self.episodes)
        if not episodes or not self.seed_list():
            raise bad("episodes" if not episodes else "seeds", "the list is empty")
        worlds = [(index, spec, one) for index, spec in enumerate(self.environments) for one in variants(spec.settings)]
        learners = [(index, spec, one) for index, spec in enumerate(self.agents) for one in variants(spec.settings)]
        size = len(worlds) * len(learners) * len(episodes) * len(self.seed_list())
        if size > MAX_RUNS:
            raise bad("spec", f"{size} runs", cure=f"split it: an experiment has at most {MAX_RUNS}")
        found: dict[str, Cell] = {}
        for (e, world, given), (a, learner, wished), count in product(worlds, learners, episodes):
            try:
                cell = Cell.of(world.name, given, learner.name, wished, count, learner.preset)
            except LivarotError as error:
                raise bad("spec", f"environment {e + 1} with agent {a + 1}: {error}") from error
            found.setdefault(cell.key, cell)
        return list(found.values())

    def runs(self) -> list[Run]:
        """Every run, cell after cell."""
        return [cell.run(seed) for cell in self.cells() for seed in self.seed_list()]


def variants(value: Any) -> list[Any]:
    """The grid of a setting: each entry of a list is an alternative, a table is the product of its entries.

    >>> variants({"a": [1, 2], "b": {"name": "x", "n": [3, 4]}})[1]
    {'a': 1, 'b': {'name': 'x', 'n': 4}}
    """
    return list(_variants(value, [0]))


def _variants(value: Any, count: list[int]) -> Iterator[Any]:
    if isinstance(value, list):
        if not value:
            raise bad("settings", "an empty list leaves nothing to run", cure="leave the setting out")
        for inner in value:
            yield from _variants(inner, count)
    elif isinstance(value, dict):
        names = list(value)
        size = math.prod(len(inner) if isinstance(inner, list) else 1 for inner in value.values())
        if size > MAX_RUNS:
            raise bad("settings", f"{size} combinations", cure=f"an experiment has at most {MAX_RUNS} runs")
        for chosen in product(*(list(_variants(value[name], count)) for name in names)):
            yield dict(zip(names, chosen, strict=True))
    else:
        count[0] += 1
        if count[0] > MAX_RUNS:
            raise bad("settings", f"more than {MAX_RUNS} values")
        yield value


def json_schema() -> dict[str, Any]:
    """JSON Schema of a spec, for editors; it knows the registered names and the settings of each.

    >>> json_schema()["properties"]["agents"]["items"]["$ref"]
    '#/$defs/AgentSpec'
    """
    import inspect

    schema = Experiment.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for kind, registry in (("EnvironmentSpec", envs.registry), ("AgentSpec", agents.registry)):
        part = schema["$defs"][kind]
        part["properties"]["name"]["enum"] = list(registry)
        part["allOf"] = [
            {
                "if": {"properties": {"name": {"const": name}}},
                "then": {"properties": {"settings": {"propertyNames": {"enum": _settings(registry, name, inspect)}}}},
            }
            for name in registry
        ]
    preset = schema["$defs"]["AgentSpec"]["properties"]["preset"]
    preset["enum"] = [*PRESETS, None]
    schema["$comment"] = f"components, as tables with a name: {', '.join(components)}"
    return schema


def _settings(registry: Any, name: str, inspect: Any) -> list[str]:
    known = inspect.signature(registry._entry(name).factory).parameters
    return [] if name == "oracle" else list(known)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise bad("spec", f"cannot read {str(path)!r}: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise bad("spec", f"{str(path)!r} has more than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise bad("spec", f"{str(path)!r} is not UTF-8 text") from error


def _without_none(value: Any) -> Any:
    """TOML has no null: in settings it is written "none"; elsewhere it is a default and left out."""
    if isinstance(value, dict):
        return {key: "none" if inner is None else _without_none(inner) for key, inner in value.items()}
    return [_without_none(inner) for inner in value] if isinstance(value, list) else value


_PARTS: dict[str, type[BaseModel]] = {"environments": EnvironmentSpec, "agents": AgentSpec, "seeds": SeedRange}


def _first_problem(error: ValidationError) -> LivarotError:
    """One line for the first problem, with the closest key where one is unknown."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in first["loc"] if not str(part).startswith(("function-", "list["))]
    where = ".".join(place[:6]) or "spec"
    if first["type"] != "extra_forbidden":
        return bad("spec", f"{where[:120]}: {first['msg'][:200]}", count=None)
    known: Mapping[str, Any] = (
        _PARTS.get(place[0], Experiment).model_fields if len(place) > 1 else Experiment.model_fields
    )
    close = difflib.get_close_matches(place[-1][:100], known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return bad("spec", f"unknown key {where[:120]!r}", cure=f"{hint}Known: {', '.join(known)}")
