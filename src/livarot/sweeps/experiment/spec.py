"""What to run: environments x agents x episodes x seeds, as a TOML file or as the same Python objects.

A list in ``settings`` makes a grid.  Only registered names can be chosen (``livarot list agents``); an unknown key is
refused, with the known ones and the one it resembles, if any.

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
import logging
import math
import reprlib
import tomllib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from livarot import agents, envs
from livarot.errors import LivarotError, bad
from livarot.running.result import COLUMNS
from livarot.storage import check_depth, parse_json, read_regular
from livarot.sweeps.experiment.keys import (
    Cell,
    Run,
    agent_content,
    canonical,
    digest,
    environment_content,
    resolved,
)
from livarot.sweeps.store.records import MAX_BYTES

logger = logging.getLogger(__name__)
MAX_FILE_BYTES = 1 << 20
MAX_STORED_BYTES = 1 << 25  # a million seeds, written out
MAX_RUNS = 1_000_000
MAX_CELLS = 100_000
MAX_SEED = (1 << 63) - 1

MAX_EPISODES = MAX_BYTES // (8 * len(COLUMNS) + 8)  # what a file can hold: the columns, a number and a word of bits


def whole(value: Any) -> Any:
    """NumPy's integers as Python's; anything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


Episodes = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_EPISODES)]
Seed = Annotated[int, BeforeValidator(whole), Field(ge=0, le=MAX_SEED)]
SeedCount = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_RUNS)]
Settings = dict[str, JsonValue]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class EnvironmentSpec(_Strict):
    """A registered environment and its settings; lists make a grid."""

    name: str = Field(description="a registered environment: livarot list envs")
    settings: Settings = Field(default_factory=dict, description="arguments; a list makes a grid")
    label: str | None = Field(default=None, max_length=200, description="a name for figures")


class AgentSpec(_Strict):
    """A registered agent, optionally a preset, and the settings that differ from it; lists make a grid."""

    name: str = Field(description="a registered agent: livarot list agents")
    preset: str | None = Field(default=None, description="published constants: paper, theory or single-phase")
    settings: Settings = Field(default_factory=dict, description="hyper-parameters; a list makes a grid")
    label: str | None = Field(default=None, max_length=200, description="a name for figures")


class SeedRange(_Strict):
    """The seeds first, first + 1, ..."""

    first: Seed = 0
    count: SeedCount

    @model_validator(mode="after")
    def _last_seed(self) -> SeedRange:
        if self.first + self.count - 1 > MAX_SEED:
            raise ValueError("the last seed, first + count - 1, is larger than 2^63 - 1")
        return self


class Combination(NamedTuple):
    """A cell and what was written for it: both specs, and the settings of each that were chosen from its grid."""

    cell: Cell
    world: EnvironmentSpec
    given: Settings
    learner: AgentSpec
    wished: Settings


class Experiment(_Strict):
    """A grid of runs."""

    name: str = Field(default="experiment", max_length=200)
    environments: list[EnvironmentSpec] = Field(min_length=1)
    agents: list[AgentSpec] = Field(min_length=1)
    episodes: Episodes | list[Episodes] = Field(description="episodes of a run; a list makes a grid")
    seeds: SeedCount | list[Seed] | SeedRange = Field(description="how many (0, 1, ...), a list, or {first, count}")

    def __init__(self, **given: Any) -> None:
        if "seeds" in given:
            given["seeds"] = _seeds(given["seeds"])
        if "episodes" in given:
            given["episodes"] = _episodes(given["episodes"])
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
            check_depth(text)
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
        return [one.cell for one in self.combinations()]

    def combinations(self) -> list[Combination]:
        """The same, each with what was written for it."""
        episodes = [self.episodes] if isinstance(self.episodes, int) else list(self.episodes)
        worlds = [(place, spec, one) for place, spec in enumerate(self.environments) for one in variants(spec.settings)]
        learners = [(place, spec, one) for place, spec in enumerate(self.agents) for one in variants(spec.settings)]
        size = len(worlds) * len(learners) * len(episodes) * len(self.seed_list())
        if size > MAX_RUNS:
            raise bad("spec", f"{size} runs", cure=f"split it: an experiment has at most {MAX_RUNS}")
        if size > MAX_CELLS * len(self.seed_list()):
            problem = f"{size // len(self.seed_list())} combinations of environment, agent and episodes"
            raise bad("spec", problem, cure=f"split it: an experiment has at most {MAX_CELLS}")
        given = [[_filled("environment", *world, count) for count in episodes] for world in worlds]
        wished = [[_filled("agent", *learner, count) for count in episodes] for learner in learners]
        found: dict[str, Combination] = {}
        for w, a, t in product(range(len(worlds)), range(len(learners)), range(len(episodes))):
            world, learner = worlds[w][1], learners[a][1]
            (here, settings, told), (this, fields, said) = given[w][t], wished[a][t]
            cell = Cell(world.name, settings, learner.name, fields, episodes[t]).with_texts(said, told)
            found.setdefault(cell.key, Combination(cell, world, here, learner, this))
        return list(found.values())

    def runs(self) -> list[Run]:
        """Every run, cell after cell."""
        return [cell.run(seed) for cell in self.cells() for seed in self.seed_list()]


def _filled(
    kind: str, place: int, spec: EnvironmentSpec | AgentSpec, chosen: Settings, episodes: int
) -> tuple[Settings, dict[str, Any], str]:
    """The settings chosen from a grid, the complete settings with these, and their text in a cell's content.

    A setting that is refused is named by its place in the file.
    """
    try:
        given = {name: resolved(value, episodes) for name, value in chosen.items()}
        settings = (
            agent_content(spec.name, given, episodes, spec.preset)
            if isinstance(spec, AgentSpec)
            else environment_content(spec.name, given)
        )
        return given, settings, canonical({"name": spec.name, "settings": settings})
    except LivarotError as error:
        known = spec.name in (agents.registry if isinstance(spec, AgentSpec) else envs.registry)
        hint = None if known else "if a module of yours registers it, name that module: --import MODULE"
        raise bad("spec", f"{kind} {place + 1}: {error}", cure=hint) from error


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
        choices = [list(_variants(inner, count)) for inner in value.values()]
        size = math.prod(map(len, choices))
        if size > MAX_CELLS:
            raise bad("settings", f"{size} combinations", cure=f"split them: an experiment has at most {MAX_CELLS}")
        for chosen in product(*choices):
            yield dict(zip(value, chosen, strict=True))
    else:
        count[0] += 1
        if count[0] > MAX_CELLS:
            raise bad("settings", f"more than {MAX_CELLS} values", cure="split the experiment")
        yield value


def read_stored(path: Path) -> Experiment | None:
    """The experiment in a file of a store, whose name is its key; None, with a warning, if it holds none."""
    try:
        experiment = Experiment(**parse_json(read_regular(path, MAX_STORED_BYTES)[0]))
        if experiment.key == path.stem:
            return experiment
        raise bad("store", "its content does not match its name")
    except (OSError, ValueError, TypeError) as error:
        logger.warning("%r is not used: %s", path.name, error)
        return None


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


_RANGE = f"0 to 2^63 - 1 ({MAX_SEED})"
_FORMS = "write a number of seeds, a list of them, or { first = 100, count = 20 }"


def _seeds(given: Any) -> Any:
    """Seeds in one of their three forms; anything else is refused with the forms in the message."""
    if isinstance(given, SeedRange):
        return given
    if isinstance(given, range) and given.step == 1 and len(given):
        given = {"first": given.start, "count": len(given)}
    if isinstance(given, Mapping):
        return _seed_range(given)
    given = _listed("seeds", given)
    if type(given) is int:
        if not 1 <= given <= MAX_RUNS:
            raise bad("seeds", f"{reprlib.repr(given)} is not a number of seeds", cure=f"give one from 1 to {MAX_RUNS}")
        return given
    if not isinstance(given, list):
        raise bad("seeds", f"{reprlib.repr(given)} is neither number, list nor table", cure=_FORMS)
    if not given:
        raise bad("seeds", "the list is empty", cure=_FORMS)
    seeds = [whole(one) for one in given]
    wrong = [place for place, one in enumerate(seeds) if type(one) is not int or not 0 <= one <= MAX_SEED]
    if wrong:
        problem = f"element {wrong[0] + 1} of the list is {reprlib.repr(seeds[wrong[0]])}"
        raise bad("seeds", problem, cure=f"a seed is a whole number from {_RANGE}")
    return seeds


def _listed(argument: str, given: Any) -> Any:
    """Tuples, ranges and arrays as lists, NumPy's integers as Python's."""
    if isinstance(given, range) and len(given) > MAX_RUNS:
        raise bad(argument, f"{given} has more than {MAX_RUNS} elements")
    if isinstance(given, range | tuple):
        return list(given)
    return given.tolist() if isinstance(given, np.ndarray) else whole(given)


def _seed_range(given: Mapping[str, Any]) -> SeedRange:
    first, count = whole(given.get("first", 0)), whole(given.get("count"))
    strange = [str(key) for key in given if key not in ("first", "count")]
    if strange:
        raise bad("seeds", f"unknown key {reprlib.repr(strange[0])}", cure="known: first, count")
    if count is None:
        raise bad("seeds", "count is missing", cure=f"write {{ first = {reprlib.repr(first)}, count = 20 }}")
    if type(count) is not int or not 1 <= count <= MAX_RUNS:
        raise bad("seeds", f"count is {reprlib.repr(count)}", cure=f"it is a whole number from 1 to {MAX_RUNS}")
    if type(first) is not int or not 0 <= first <= MAX_SEED:
        raise bad("seeds", f"first is {reprlib.repr(first)}", cure=f"a seed is a whole number from {_RANGE}")
    if first + count - 1 > MAX_SEED:
        raise bad("seeds", f"the last of them would be {first + count - 1}", cure=f"seeds are from {_RANGE}")
    return SeedRange(first=first, count=count)


def _episodes(given: Any) -> Any:
    """A number of episodes, or a list of them, each at least 1 and no more than a file can hold."""
    given = _listed("episodes", given)
    several = isinstance(given, list)
    counts = [whole(one) for one in (given if several else [given])]
    if not counts:
        raise bad("episodes", "the list is empty", cure="give at least one number")
    for place, one in enumerate(counts):
        here = f"element {place + 1} of the list is {reprlib.repr(one)}" if several else f"got {reprlib.repr(one)}"
        if type(one) is not int or one < 1:
            raise bad("episodes", here, cure="it must be a whole number >= 1")
        if one > MAX_EPISODES:
            raise bad("episodes", f"{here}, more than a file can hold", cure=f"at most {MAX_EPISODES}")
    return counts if several else counts[0]


_PARTS: dict[str, type[BaseModel]] = {"environments": EnvironmentSpec, "agents": AgentSpec, "seeds": SeedRange}


def _first_problem(error: ValidationError) -> LivarotError:
    """One line for the first problem, with the closest key where one is unknown."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    first = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in first["loc"] if not str(part).startswith(("function-", "list["))]
    where = ".".join(place[:6]) or "spec"
    if where in ("environments", "agents") and first["type"] in ("missing", "list_type"):
        problem = f"there are no {where}" if first["type"] == "missing" else f"{where} is not a list of tables"
        return bad("spec", problem, cure=f"begin each with [[{where}]], in double brackets, and its name")
    if first["type"] == "missing":
        return bad("spec", f"{where[:120]} is missing")
    if first["type"] == "model_type":
        return bad("spec", f"{where[:120]} is not a table", cure=f"write [[{place[0]}]] and below it name = ...")
    if first["type"] != "extra_forbidden":
        return bad("spec", f"{where[:120]}: {first['msg'][:200]}", count=None)
    known: Mapping[str, Any] = (
        _PARTS.get(place[0], Experiment).model_fields if len(place) > 1 else Experiment.model_fields
    )
    close = difflib.get_close_matches(place[-1][:100], known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? Known" if close else "known"
    return bad("spec", f"unknown key {where[:120]!r}", cure=f"{hint}: {', '.join(known)}")
