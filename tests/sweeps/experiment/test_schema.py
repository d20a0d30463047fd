"""The JSON schema of an experiment file."""

import json

from livarot import agents
from livarot.sweeps.experiment.schema import json_schema


def test_the_schema_knows_names_and_settings():
    schema = json_schema()
    assert schema["$defs"]["AgentSpec"]["properties"]["name"]["enum"] == list(agents.registry)
    rules = {rule["if"]["properties"]["name"]["const"]: rule["then"] for rule in schema["$defs"]["AgentSpec"]["allOf"]}
    assert "beta_scale" in rules["livarot"]["properties"]["settings"]["propertyNames"]["enum"]
    assert schema["additionalProperties"] is False
    json.dumps(schema)
