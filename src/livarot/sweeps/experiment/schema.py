"""The form of an experiment's file, as JSON Schema for editors."""

from __future__ import annotations

from typing import Any

from livarot import agents, envs
from livarot.agents.base import PRESETS
from livarot.sweeps.experiment.keys import components, plays_given_policy
from livarot.sweeps.experiment.spec import Experiment


def json_schema() -> dict[str, Any]:
    """JSON Schema of a spec, for editors; it knows the registered names and the settings of each.

    >>> json_schema()["properties"]["agents"]["items"]["$ref"]
    '#/$defs/AgentSpec'
    """
    import inspect

    schema = Experiment.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    for kind, registry in (("EnvironmentSpec", envs.registry), ("AgentSpec", agents.registry)):
        part, names = schema["$defs"][kind], registry.loadable()
        part["properties"]["name"]["enum"] = list(names)
        part["allOf"] = [
            {
                "if": {"properties": {"name": {"const": name}}},
                "then": {"properties": {"settings": {"propertyNames": {"enum": _settings(registry, name, inspect)}}}},
            }
            for name in names
        ]
    preset = schema["$defs"]["AgentSpec"]["properties"]["preset"]
    preset["enum"] = [*PRESETS, None]
    schema["$comment"] = f"components, as tables with a name: {', '.join(components)}"
    return schema


def _settings(registry: Any, name: str, inspect: Any) -> list[str]:
    known = inspect.signature(registry._entry(name).factory).parameters
    return [] if plays_given_policy(name) else list(known)
