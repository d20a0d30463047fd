"""The content of a run and its key: defaults filled in, numbers in one form, a known key."""

import json

from livarot import agents, envs
from livarot.sweeps.experiment.keys import Cell, canonical, digest
from livarot.sweeps.experiment.spec import AgentSpec, Experiment


def test_the_key_is_the_content():
    def key(**settings):
        return Cell.of("hard-chain", {"gap": 0.1}, "livarot", settings, 10).run(0).key

    default = agents.Livarot()
    assert key() == key(step_size=default.step_size) == key(step_size=int(default.step_size)) == key(n_explore=0)
    assert key() == key(rule={"name": "joint-maximum"}) == key(kappa="none")
    assert key() != key(step_size=default.step_size + 1)
    paper = Cell.of("hard-chain", {"gap": 0.1}, "livarot", {}, 10, preset="paper")
    assert paper.learner(paper.model()) == agents.Livarot.paper()
    theory = Cell.of("hard-chain", {"gap": 0.1}, "livarot", {}, 77, preset="theory")
    assert theory.learner(theory.model()) == agents.Livarot.theory(77)
    cell = Cell.of("hard-chain", {"gap": 0.1}, "livarot", {}, 10)
    assert len({cell.run(0).key, cell.run(1).key, paper.run(0).key, theory.run(0).key}) == 4
    assert Cell.from_content(json.loads(canonical(cell.content(3)))).run(3).key == cell.run(3).key


def test_a_known_key():
    """The text behind a key must not change without a new RUN_SCHEMA."""
    cell = Cell.of("hard-chain", {"horizon": 4, "gap": 0.1}, "uniform", {}, 10)
    assert canonical(cell.content(2)) == (
        '{"agent":{"name":"uniform","settings":{}},"environment":{"name":"hard-chain","settings":{"dim":2,"gap":0.1,'
        '"horizon":4,"n_episodes":1000,"param_bound":null,"seed":0}},"episodes":10,"schema":1,"seed":2}'
    )


def test_a_setting_that_came_later_leaves_the_keys_of_stored_runs_alone():
    def cell(**settings):
        return Cell.of("hard-chain", {"gap": 0.1}, "adaptive-livarot", settings, 10)

    plain, fading = cell(), cell(prior_fade=0.5)
    assert "prior_fade" not in plain.text and plain.key == cell(prior_fade=0.0).key == cell(prior_fade=0).key
    assert '"prior_fade":0.5' in fading.text
    for one, agent in ((plain, agents.AdaptiveLivarot()), (fading, agents.AdaptiveLivarot(prior_fade=0.5))):
        again = Cell.from_content(json.loads(canonical(one.content(3))))
        assert again.key == one.key and again.learner(again.model()) == agent


def test_every_registered_name_has_a_content_and_comes_back():
    for name in agents.registry:
        cell = Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, name, {}, 10)
        mdp = cell.model()
        again = Cell.from_content(json.loads(canonical(cell.content())))
        assert again.key == cell.key
        for seed in (0, 7, 2**63 - 1):
            assert cell.run(seed).text == canonical(cell.content(seed))
            assert cell.run(seed).key == digest(cell.content(seed))
        if name != "oracle":
            assert again.learner(mdp) == agents.make(name)
    for name in envs.registry:
        assert Cell.of(name, {}, "uniform", {}, 10).environment_settings is not None


PARTS = {"environments": [{"name": "hard-chain"}], "agents": [{"name": "uniform"}]}


def test_minus_zero_is_zero():
    spec = AgentSpec(name="livarot", settings={"beta_scale": [0.0, -0.0]})
    parts = PARTS | {"agents": [spec], "environments": [{"name": "hard-chain", "settings": {"gap": [0.1, 0.1]}}]}
    experiment = Experiment(episodes=5, seeds=1, **parts)
    assert len(experiment.cells()) == 1
    assert canonical(experiment.cells()[0].agent_settings["beta_scale"]) == "0.0"
