"""Bad input is refused with the argument, the first bad index, the count and a cure; nothing is changed."""

import copy

import numpy as np
import pytest
from scipy import sparse

import livarot
from livarot import MNLMDP, agents, envs
from livarot.agents.certainty_equivalent import CertaintyEquivalent
from livarot.model.episodes import check_policy
from livarot.planning.optimistic import optimistic_plan
from tests.support.refusals import A, H, S, altered, arrays, base, refusal

NAN, INF = float("nan"), float("inf")


def everywhere_changed(value, *places):
    out = np.full((H, S, A), 0.5)
    for place in places:
        out[place] = value
    return out


def test_the_base_is_accepted():
    MNLMDP.from_function(H, S, A, **base())
    MNLMDP.from_arrays(H, S, A, **arrays())


OK = [0, 1]
FUNCTION_CASES = {
    "features NaN": (
        {"features": altered((OK, [[0, 0], [NAN, 0]]), (1, 2, 0))},
        "features",
        (1, 2, 0),
        1,
        None,
    ),
    "features inf": (
        {"features": altered((OK, [[INF, 0], [INF, 0]]), (0, 0, 1))},
        "features",
        (0, 0, 1),
        2,
        None,
    ),
    "features rows": (
        {"features": altered((OK, [[0.0, 0.0]]), (2, 0, 0))},
        "features",
        (2, 0, 0),
        None,
        "one row",
    ),
    "features columns": (
        {"features": altered((OK, np.zeros((2, 3))), (0, 1, 1))},
        "features",
        (0, 1, 1),
        None,
        "same d",
    ),
    "features norm": (
        {"features": altered((OK, [[0.0, 0.0], [3.0, 4.0]]), (0, 1, 0), (0, 2, 1))},
        "features",
        (0, 1, 0, 1),
        2,
        "normalise=True",
    ),
    "features no pair": ({"features": altered([0, 1, 2], (1, 0, 0))}, "features", (1, 0, 0), None, None),
    "features text": (
        {"features": altered((OK, [["x", "y"], ["z", "w"]]), (0, 0, 0))},
        "features",
        ...,
        None,
        None,
    ),
    "features ragged": (
        {"features": altered((OK, [[0.0], [0.1, 0.2]]), (0, 0, 0))},
        "features",
        ...,
        None,
        None,
    ),
    "empty set": (
        {"features": altered(([], np.zeros((0, 2))), (0, 1, 1), (0, 2, 0))},
        "next_states",
        (0, 1, 1),
        2,
        "at least one",
    ),
    "empty list": ({"features": altered(([], []), (0, 1, 1))}, "next_states", (0, 1, 1), 1, "at least one"),
    "next state high": (
        {"features": altered(([0, 3], [[0.0, 0.0], [0.6, 0.8]]), (0, 2, 1))},
        "next_states",
        (0, 2, 1, 1),
        1,
        "0 to",
    ),
    "next state negative": (
        {"features": altered(([-1, 2], [[0.0, 0.0], [0.6, 0.8]]), (0, 0, 0), (0, 1, 0))},
        "next_states",
        (0, 0, 0, 0),
        2,
        "0 to",
    ),
    "next state repeated": (
        {"features": altered(([2, 2], [[0.0, 0.0], [0.6, 0.8]]), (0, 1, 0))},
        "next_states",
        (0, 1, 0, 1),
        1,
        "once",
    ),
    "next state fraction": (
        {"features": altered(([0.2, 1.7], [[0.0, 0.0], [0.6, 0.8]]), (0, 1, 0))},
        "next_states",
        ...,
        None,
        None,
    ),
    "next state NaN": (
        {"features": altered(([NAN, 1.0], [[0.0, 0.0], [0.6, 0.8]]), (0, 1, 0))},
        "next_states",
        ...,
        None,
        None,
    ),
    "offset shape": ({"offset": lambda h, s, a: [0.0]}, "offset", (0, 0, 0), None, None),
    "offset NaN": ({"offset": lambda h, s, a: [0.0, NAN]}, "offset", (1,), 18, None),
    "reward NaN": ({"reward": everywhere_changed(NAN, (2, 1, 1), (2, 2, 0))}, "reward", (2, 1, 1), 2, None),
    "reward function NaN": (
        {"reward": lambda h, s, a: NAN if (h, s) == (1, 1) else 0.0},
        "reward",
        (1, 1, 0),
        2,
        None,
    ),
    "reward shape": ({"reward": np.zeros((S, A + 1))}, "reward", None, None, None),
    "reward text": ({"reward": "x"}, "reward", None, None, None),
    "theta too long": (
        {"theta": [[0.0, 0.1], [3.0, 4.0], [0.0, 6.0]], "param_bound": 1.0},
        "theta",
        (1,),
        2,
        "param_bound",
    ),
    "theta NaN": ({"theta": [[0.0, NAN]] * H}, "theta", (0, 1), H, None),
    "theta dimension": ({"theta": np.zeros((H, 3))}, "theta", None, None, "(H, d)"),
    "theta stages": ({"theta": np.zeros((H + 1, 2))}, "theta", None, None, "(H, d)"),
    "theta empty": ({"theta": []}, "theta", None, None, None),
    "theta text": ({"theta": ["x"]}, "theta", None, None, None),
    "bound negative": ({"param_bound": -1.0}, "param_bound", None, None, None),
    "bound NaN": ({"param_bound": NAN}, "param_bound", None, None, None),
    "bound infinite": ({"param_bound": INF}, "param_bound", None, None, None),
    "start sum": ({"start": [0.25, 0.25, 0.25]}, "start", None, None, "sum"),
    "start negative": ({"start": [-0.5, 0.5, 1.0]}, "start", None, None, "sum to 1"),
    "start NaN": ({"start": [NAN, 0.5, 0.5]}, "start", None, None, "sum to 1"),
    "start short": ({"start": [0.5, 0.5]}, "start", None, None, "sum to 1"),
    "start state": ({"start": 3}, "start", None, None, "0..2"),
    "start negative state": ({"start": -1}, "start", None, None, "0..2"),
    "start fraction": ({"start": 0.5}, "start", None, None, "0..2"),
    "start text": ({"start": ["x", "y", "z"]}, "start", None, None, None),
}


@pytest.mark.parametrize("case", FUNCTION_CASES, ids=lambda case: case.replace(" ", "-"))
def test_from_function(case):
    change, argument, index, count, cure = FUNCTION_CASES[case]
    arguments = base() | change
    before = copy.deepcopy({k: v for k, v in arguments.items() if not callable(v)})
    error = refusal(lambda: MNLMDP.from_function(H, S, A, **arguments))
    assert error.argument == argument
    if index is not ...:
        assert error.index == index
    if count is not None:
        assert error.count == count
    if cure is not None:
        assert error.cure is not None
        assert cure in error.cure
    for name, value in before.items():
        np.testing.assert_array_equal(arguments[name], value)


ARRAY_CASES = {
    "outcomes length": ({"outcomes": np.full(5, 2)}, "outcomes", None, None),
    "outcomes empty": (
        {"outcomes": [], "next_state": [], "features": np.zeros((0, 2))},
        "outcomes",
        None,
        None,
    ),
    "outcomes negative": ({"outcomes": [[2, 2], [2, 2], [5, -1]]}, "outcomes", ..., ...),
    "outcomes zero": ({"outcomes": [[2, 2], [0, 0], [4, 4]]}, "available", (0, 1), 3),
    "next state length": ({"next_state": np.zeros(5)}, "next_state", None, None),
    "next state fraction": ({"next_state": arrays()["next_state"] + 0.3}, "next_state", ..., ...),
    "features rows": ({"features": np.zeros((5, 2))}, "features", None, None),
    "features no column": ({"features": np.zeros((12, 0))}, "features", None, None),
    "features NaN": (
        {"features": np.where(np.arange(24).reshape(12, 2) < 22, 0.1, NAN)},
        "features",
        (11, 0),
        2,
    ),
    "features long": ({"features": np.full((12, 2), 0.8)}, "features", (0, 0, 0, 0), 12),
    "features sparse rows": ({"features": sparse.csr_array((5, 2))}, "features", None, None),
    "features sparse NaN": ({"features": sparse.csr_array(np.full((12, 2), NAN))}, "features", (0,), 24),
    "features sparse long": ({"features": sparse.csr_array(np.eye(12, 2) * 3)}, "features", (0, 0, 0, 0), 2),
    "offset length": ({"offset": np.zeros(5)}, "offset", None, None),
    "offset infinite": ({"offset": np.full(12, INF)}, "offset", (0,), 12),
    "stage table": ({"stage_table": [0, 1, 0]}, "stage_table", None, None),
    "stage table length": ({"stage_table": [0, 0]}, "stage_table", None, None),
}


@pytest.mark.parametrize("case", ARRAY_CASES, ids=lambda case: case.replace(" ", "-"))
def test_from_arrays(case):
    change, argument, index, count = ARRAY_CASES[case]
    error = refusal(lambda: MNLMDP.from_arrays(H, S, A, **(arrays() | change)))
    assert error.argument == argument
    if index is not ...:
        assert (error.index, error.count) == (index, count)


def test_two_tables_for_three_stages_need_a_stage_table():
    doubled = {k: np.concatenate([v, v]) for k, v in arrays().items() if k in ("outcomes", "next_state", "features")}
    error = refusal(lambda: MNLMDP.from_arrays(H, S, A, **(arrays() | doubled)))
    assert error.argument == "stage_table"


@pytest.mark.parametrize("which", ["horizon", "n_states", "n_actions"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_sizes(which, value):
    sizes = {"horizon": H, "n_states": S, "n_actions": A} | {which: value}
    for make in (MNLMDP.from_function, MNLMDP.from_arrays):
        arguments = base() if make == MNLMDP.from_function else arrays()
        assert refusal(lambda m=make, x=arguments: m(*sizes.values(), **x)).argument == which


# ---------------------------------------------------------------- agents, environments and runs
@pytest.mark.parametrize("agent", [agents.Livarot, agents.UCRLMNLOL, CertaintyEquivalent])
@pytest.mark.parametrize("field", ["reg", "step_size"])
@pytest.mark.parametrize("value", [-1.0, NAN, INF, "1", True])
def test_negative_hyper_parameters(agent, field, value):
    assert refusal(lambda: agent(**{field: value})).argument == field


@pytest.mark.parametrize("agent", [agents.Livarot, agents.UCRLMNLOL, CertaintyEquivalent])
def test_no_regularisation_at_all_is_refused_before_it_divides_by_zero(agent):
    assert refusal(lambda: agent(reg=0.0).init(envs.river_swim(3, 2).problem)).argument == "reg"


@pytest.mark.parametrize("agent", [agents.Livarot, agents.UCRLMNLOL])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.5, NAN, "x"])
def test_failure_level(agent, value):
    assert refusal(lambda: agent(failure_level=value)).argument == "failure_level"


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: agents.Livarot(beta_scale=-0.1), "beta_scale"),
        (lambda: agents.Livarot(n_explore=-1), "n_explore"),
        (lambda: agents.Livarot(n_explore=2.5), "n_explore"),
        (lambda: agents.Livarot(n_explore=None), "n_episodes"),
        (lambda: agents.Livarot(reg_explore=-1.0), "reg_explore"),
        (lambda: agents.Livarot(kappa=-1.0), "kappa"),
        (lambda: agents.Livarot.theory(0), "n_episodes"),
        (lambda: agents.Livarot(rule="joint"), "rule"),
        (lambda: agents.Livarot(exploration="literal"), "exploration"),
        (lambda: agents.UCRLMNLOL(beta_scale=-0.1), "beta_scale"),
        (lambda: agents.UCRLMNLOL(bonus_constant=NAN), "bonus_constant"),
        (lambda: livarot.ShiftedPower(tol=-1.0), "tol"),
        (lambda: livarot.ShiftedPower(max_iter=0), "max_iter"),
        (lambda: livarot.ShiftedPower(n_starts=-1), "n_starts"),
        (lambda: livarot.FrankWolfe(n_iter=0), "n_iter"),
        (lambda: livarot.JointMaximum(solver="frank-wolfe"), "solver"),
        (lambda: livarot.SecondOrderBonus(-1.0), "constant"),
        (lambda: envs.hard_chain(1), "horizon"),
        (lambda: envs.hard_chain(5, 0), "n_episodes"),
        (lambda: envs.hard_chain(5, dim=1), "dim"),
        (lambda: envs.hard_chain(5, gap=0.8), "gap"),
        (lambda: envs.hard_chain(5, dim=3, gap=0.4), "gap"),
        (lambda: envs.hard_chain(5, gap=0.0), "gap"),
        (lambda: envs.hard_chain(5, gap=-0.1), "gap"),
        (lambda: envs.hard_chain(5, param_bound=-1.0), "param_bound"),
        (lambda: envs.hard_chain(5, param_bound=0.1), "theta"),
        (lambda: envs.river_swim(1, 5), "n_states"),
        (lambda: envs.river_swim(4, 0), "horizon"),
        (lambda: envs.river_swim(4, 5, features="onehot"), "features"),
    ],
)
def test_settings(make, argument):
    assert refusal(make).argument == argument


@pytest.mark.parametrize(
    ("make", "closest"),
    [
        (lambda: agents.make("livaro"), "'livarot'"),
        (lambda: agents.make("certainty-equivalence"), "'certainty-equivalent'"),
        (lambda: agents.make("livarot", betascale=1.0), "'beta_scale'"),
        (lambda: envs.make("hardchain"), "'hard-chain'"),
        (lambda: envs.make("riverswim"), "'river-swim'"),
        (lambda: envs.make("river-swim", nstates=4), "'n_states'"),
    ],
)
def test_unknown_names_suggest_the_closest(make, closest):
    assert closest in refusal(make).cure


def test_a_name_far_from_all_lists_them():
    cure = refusal(lambda: envs.make("zzz")).cure
    assert "did you mean" not in cure
    assert all(name in cure for name in envs.registry.names())


MDP = envs.river_swim(3, 2)


@pytest.mark.parametrize(
    ("make", "argument", "index"),
    [
        (lambda: livarot.run(MDP, agents.Uniform(), 0), "n_episodes", None),
        (lambda: livarot.run(MDP, agents.Uniform(), -3), "n_episodes", None),
        (lambda: livarot.run(MDP, agents.Uniform(), 2.0), "n_episodes", None),
        (lambda: livarot.run(MDP, agents.Uniform(), 2, workers=0), "workers", None),
        (lambda: livarot.run(MDP, agents.Uniform(), 2, seed=[]), "seed", None),
        (lambda: livarot.run(MDP, agents.Uniform(), 2, seed=-1), "seed", (0,)),
        (lambda: livarot.run(MDP, agents.Uniform(), 2, seed=[0, 1.5]), "seed", (1,)),
        (lambda: livarot.run(MDP, agents.Uniform(), 2, seed=[0, True]), "seed", (1,)),
        (lambda: livarot.run([MDP, MDP], agents.Uniform(), 2, seed=range(3)), "mdp", None),
        (lambda: livarot.run([MDP, "x"], agents.Uniform(), 2, seed=range(2)), "mdp", (1,)),
        (lambda: livarot.run([MDP, envs.river_swim(3, 3)], agents.Uniform(), 2, seed=range(2)), "mdp", (1,)),
        (lambda: livarot.simulate(MDP, np.zeros((2, 3), int), 0), "n_episodes", None),
        (lambda: livarot.simulate(MDP, np.zeros((2, 3), int), 1, seed=-1), "seed", None),
        (lambda: livarot.evaluate(MDP, np.full((2, 3), 2)), "policy", (0, 0)),
        (lambda: livarot.evaluate(MDP, np.full((2, 3, 2), 0.3)), "policy", (0, 0)),
        (lambda: livarot.evaluate(MDP, np.zeros((3, 2), int)), "policy", None),
        (lambda: livarot.evaluate(MDP, np.zeros((2, 3))), "policy", None),
        (lambda: check_policy(MDP.problem, np.array([[0, 1, 0], [0, 0, -1]])), "policy", (1, 2)),
    ],
)
def test_runs_and_policies(make, argument, index):
    error = refusal(make)
    assert (error.argument, error.index) == (argument, index)


@pytest.mark.parametrize("radius", [-1.0, NAN, [0.5, -0.5], [0.5], np.array(-1.0)])
def test_negative_radius(radius):
    estimate = agents.Livarot().init(MDP.problem, 2).estimate
    assert refusal(lambda: optimistic_plan(MDP.problem, estimate, radius)).argument == "radius"
