"""What an agent returns is checked before compiled code uses it: plans, policies, episodes, states."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import livarot
from livarot import agents
from livarot.agents.base import NoState
from livarot.envs.gymnasium.env import MNLEnv
from livarot.model.episodes import Plan
from livarot.running.loop import Replicas
from livarot.sweeps.driver import sweep
from livarot.sweeps.experiment.spec import Experiment

MDP = livarot.envs.river_swim(4, 5)
R, H, S, A = 2, 5, 4, 2
SEEDS = (0, 1)


def actions(change=None, shape=(R, H, S), dtype=np.int32):
    table = np.zeros(shape, dtype=dtype)
    for place, number in (change or {}).items():
        table[place] = number
    return table


def laws(change=None, shape=(R, H, S, A)):
    table = np.full(shape, 0.5)
    for place, number in (change or {}).items():
        table[place] = number
    return table


@dataclass(frozen=True)
class Given:
    """Plays a plan that it was given, from some episode on."""

    name: ClassVar[str] = "given"

    what: Any = field(repr=False)  # the plan
    since: int = 0  # the first episode that has it

    def init(self, problem, n_replicas=1):
        return NoState(np.zeros((n_replicas, 1), dtype=np.int64))

    def plan(self, problem, state, rng):
        fine = Plan(np.zeros((1, problem.horizon, problem.n_states), dtype=np.int32))
        return self.what if state.policy[0, 0] >= self.since else fine

    def update(self, problem, state, episodes):
        return NoState(state.policy + 1)


def sets(**changed):
    """A plan with beliefs of the right shapes, some of them changed."""
    problem = MDP.problem
    parts = {
        "start_value": np.ones(R),
        "upper": np.ones(R),
        "inner_gap": np.zeros(R),
        "center": np.zeros((R, problem.n_parameters, problem.dim)),
        "gram": np.tile(problem.rows.pack_identity(), (R, problem.n_parameters, 1)),
        "radius": np.ones(R),
    }
    return Plan(actions(), **(parts | changed))


def with_nan(name):
    part = getattr(sets(), name).copy()
    part.reshape(-1)[0] = np.nan
    return sets(**{name: part})


BAD = {
    "an action too large": (Plan(actions({(1, 2, 3): A})), (1, 2, 3), "no action 2"),
    "a huge action": (Plan(actions({(0, 0, 0): 2**30})), (0, 0, 0), "no action"),
    "a negative action": (Plan(actions({(0, 4, 1): -1})), (0, 4, 1), "no action -1"),
    "a long action": (Plan(actions({(0, 0, 2): 2**40}, dtype=np.int64)), (0, 0, 2), "no action"),
    "one policy for all": (Plan(actions({(0, 1, 1): 9}, shape=(1, H, S))), (0, 1, 1), "no action 9"),
    "rows above one": (Plan(laws({(1, 0, 2): 0.9})), (1, 0, 2), "distribution"),
    "a negative law": (Plan(laws({(0, 3, 0): (1.5, -0.5)})), (0, 3, 0), "distribution"),
    "a NaN law": (Plan(laws({(0, 3, 0): np.nan})), (0, 3, 0), "distribution"),
    "too few states": (Plan(actions(shape=(R, H, S - 1))), None, "shape"),
    "too few stages": (Plan(actions(shape=(R, H - 1, S))), None, "shape"),
    "too many replicas": (Plan(actions(shape=(R + 1, H, S))), None, "shape"),
    "no replicas": (Plan(actions(shape=(0, H, S))), None, "shape"),
    "too few actions": (Plan(laws(shape=(R, H, S, A - 1))), None, "shape"),
    "no replica axis": (Plan(actions(shape=(H, S))), None, "shape"),
    "booleans": (Plan(actions().astype(bool)), None, "bool"),
    "floats as actions": (Plan(actions().astype(float)), None, "float64"),
    "objects": (Plan(actions().astype(object)), None, "object"),
    "a ragged list": (Plan([[1], [1, 2]]), None, "not an array"),
    "a mask": (Plan(np.ma.MaskedArray(actions(), mask=actions() == 0)), None, "mask"),
    "no policy": (Plan(None), None, "shape"),
    "an array": (actions(), None, "is ndarray, not a Plan"),
    "nothing": (None, None, "is NoneType, not a Plan"),
    "a tuple": ((actions(),), None, "is tuple, not a Plan"),
    "short center": (sets(center=np.zeros((R, 1, 1))), None, "center"),
    "short gram": (sets(gram=np.ones((R, 1, 1))), None, "gram"),
    "short radius": (sets(radius=np.ones(1)), None, "radius"),
    "negative radius": (sets(radius=np.array([1.0, -1.0])), (1,), "radius: is negative"),
    "infinite radius": (sets(radius=np.array([1.0, np.inf])), (1,), "radius: NaN or infinite"),
    "a radius alone": (sets(gram=None), None, "without center and gram"),
    "texts": (sets(radius=np.array(["a", "b"])), None, "radius"),
    "long start values": (sets(start_value=np.ones((R, 1))), None, "start_value"),
} | {
    f"NaN in {name}": (with_nan(name), None, f"{name}: NaN or infinite")
    for name in ("start_value", "upper", "inner_gap", "center", "gram", "radius")
}


@pytest.mark.parametrize("since", [0, 3])
@pytest.mark.parametrize("case", BAD)
def test_a_bad_plan_is_refused(case, since):
    plan, index, told = BAD[case]
    with pytest.raises(livarot.LivarotError, match=f"agent 'given', episode {since}: .*{told}") as caught:
        livarot.run(MDP, Given(plan, since), 6, seed=SEEDS)
    assert caught.value.argument == "plan"
    if index is not None:
        assert caught.value.index == index
        assert caught.value.count == 1


def test_nothing_was_learned_from_a_bad_plan():
    replicas = Replicas([MDP], Given(Plan(actions({(1, 2, 3): A})), since=2), 6, SEEDS)
    with pytest.raises(livarot.LivarotError, match="episode 2"):
        replicas.advance(6)
    assert replicas.episode == 2
    assert replicas.state.policy[0, 0] == 2


@pytest.mark.parametrize(
    "same",
    [
        actions(dtype=np.int64),
        actions(dtype=np.uint8),
        actions().tolist(),
        np.asfortranarray(actions()),
        actions(shape=(2 * R, H, S))[::2],
        np.broadcast_to(actions(shape=(1, H, S)), (R, H, S)),
        np.ma.MaskedArray(actions()),
    ],
    ids=["int64", "uint8", "list", "fortran", "strided", "broadcast", "mask of nothing"],
)
def test_other_types_mean_the_same(same):
    expected = livarot.run(MDP, Given(Plan(actions())), 4, seed=SEEDS).regret
    assert np.array_equal(livarot.run(MDP, Given(Plan(same)), 4, seed=SEEDS).regret, expected)


def test_beliefs_of_other_types_mean_the_same():
    expected = livarot.run(MDP, Given(sets()), 4, seed=SEEDS)
    other = sets(radius=np.ones(R, dtype=np.int64), start_value=[1, 1], upper=np.ones(2 * R)[::2])
    found = livarot.run(MDP, Given(other), 4, seed=SEEDS)
    for name, column in expected.columns.items():
        assert np.array_equal(column.filled(-1.0), found.columns[name].filled(-1.0)), name


def test_values_that_nothing_is_computed_from_may_be_anything():
    livarot.run(MDP, Given(Plan(actions(), value=np.full(3, np.nan))), 2, seed=SEEDS)


def test_sets_that_cover_nothing_are_not_refused():
    far = sets(center=np.full_like(sets().center, 1e200))  # the distance of theta* overflows, and is outside
    assert not livarot.run(MDP, Given(far), 2, seed=SEEDS).covered.any()


@pytest.mark.parametrize("case", ["a negative action", "rows above one", "nothing", "too few stages"])
def test_learning_in_an_environment_refuses_them_too(case):
    plan, _, told = BAD[case]
    one = plan if plan is None else Plan(plan.policy[:1] if case != "rows above one" else plan.policy[1:])
    online = livarot.Online(Given(one, since=0), MDP.problem)
    with pytest.raises(livarot.LivarotError, match=f"agent 'given', episode 0: .*{told}"):
        online.act(0, 0)
    env = MNLEnv(MDP)
    with pytest.raises(livarot.LivarotError, match=f"episode 1: .*{told}"):
        livarot.learn(env, Given(one, since=1), n_episodes=3)


@dataclass(frozen=True)
class Wild:
    """Plays an action that is not there."""

    name: ClassVar[str] = "wild"

    above: int = 0  # how far above the last action, or below the first one

    def init(self, problem, n_replicas=1):
        return NoState(np.zeros((n_replicas, 1), dtype=np.int64))

    def plan(self, problem, state, rng):
        action = problem.n_actions - 1 + self.above if self.above > 0 else self.above
        return Plan(np.full((1, problem.horizon, problem.n_states), action, dtype=np.int32))

    def update(self, problem, state, episodes):
        return state


@pytest.mark.parametrize("above", [-1, 1, 10**6])
def test_check_agent_says_so(above):
    with pytest.raises(livarot.LivarotError, match=r"wild breaks the rule 'shapes': .*no action"):
        livarot.check_agent(Wild(above))


def test_a_sweep_stores_nothing_of_them(monkeypatch, tmp_path):
    monkeypatch.setattr(agents.registry, "_entries", dict(agents.registry._entries))
    agents.registry.register("wild", Wild, "plays what is not there")
    experiment = Experiment(
        environments=[{"name": "hard-chain", "settings": {"gap": 0.1}}],
        agents=[{"name": "wild", "settings": {"above": [1, -1]}}, {"name": "uniform"}],
        episodes=3,
        seeds=1,
    )
    report = sweep(experiment, tmp_path / "store", backend="sequential")
    assert report.done == 1
    assert len(report.failed) == 2
    assert all("no action" in told for told in report.failed.values())


@dataclass(frozen=True)
class InPlace(Given):
    """Plays one array for ever, and changes its actions from some episode on."""

    name: ClassVar[str] = "in place"

    def plan(self, problem, state, rng):
        self.what[:] = state.policy[0, 0] >= self.since
        return Plan(self.what)


def test_a_policy_that_is_changed_in_place_is_judged_anew():
    found = livarot.run(MDP, InPlace(actions(), since=3), 6, seed=SEEDS)
    left, right = (livarot.run(MDP, Given(Plan(actions() + a)), 6, seed=SEEDS) for a in (0, 1))
    assert not np.array_equal(left.regret, right.regret)
    np.testing.assert_array_equal(found.regret[:, :3], left.regret[:, :3])
    np.testing.assert_array_equal(found.regret[:, 3:], right.regret[:, 3:])


def test_policies_of_one_table_and_of_many_and_laws_may_take_turns():
    tables = [actions(), actions()[:1] + 1, actions() + 1, laws(), actions() + 1, laws()[:1], actions()[:1], actions()]

    @dataclass(frozen=True)
    class Turns(Given):
        def plan(self, problem, state, rng):
            return Plan(tables[state.policy[0, 0]])

    found = livarot.run(MDP, Turns(None), len(tables), seed=SEEDS)
    for t, table in enumerate(tables):
        alone = livarot.run(MDP, Given(Plan(table)), t + 1, seed=SEEDS)
        for name in ("regret", "realised_regret", "variance"):
            np.testing.assert_array_equal(found.columns[name][:, t], alone.columns[name][:, t], err_msg=f"{t} {name}")


def test_numbers_that_are_not_aligned_are_moved():
    rows = np.zeros(R * H * S * 4 + 1, dtype=np.int8)[1:].view(np.int32).reshape(R, H, S)
    assert not rows.flags.aligned
    found, plain = (livarot.run(MDP, Given(Plan(table)), 3, seed=SEEDS) for table in (rows, actions()))
    np.testing.assert_array_equal(found.regret, plain.regret)
