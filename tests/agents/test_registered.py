"""Agents by name."""

from livarot import agents


def test_agents_by_name():
    assert {"livarot", "ucrl-mnl-ol", "certainty-equivalent", "uniform", "oracle"} <= set(agents.registry.names())
    assert agents.make("livarot", beta_scale=0.3) == agents.Livarot(beta_scale=0.3)
    assert agents.make("ucrl-mnl-ol") == agents.UCRLMNLOL()
    assert agents.make("uniform") == agents.Uniform()
    for name in agents.registry:
        assert agents.registry.summary(name)
        assert name == "oracle" or agents.make(name).name == name
