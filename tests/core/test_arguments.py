"""Arguments are checked against the signature: converted where that is safe, refused in one line elsewhere."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs, theory
from livarot.core.arguments import checked, required_arguments
from livarot.core.compiling.jit import counts
from livarot.core.mnl import softmax
from tests.support.refusals import A, H, S, arrays, refusal


@pytest.mark.parametrize("value", [2, np.int64(2), np.float32(2.0), np.float64(2.0)])
def test_numbers_become_floats(value):
    agent = agents.UCRLMNLOL(bonus_constant=value, reg=value)
    assert type(agent.bonus_constant) is float and type(agent.reg) is float
    assert agent == agents.UCRLMNLOL(bonus_constant=2.0, reg=2.0)
    assert repr(agent) == repr(agents.UCRLMNLOL(bonus_constant=2.0, reg=2.0))
    assert type(agents.RRLMNL(n_samples=np.int32(3)).n_samples) is int


def test_an_integer_where_a_float_is_meant_compiles_nothing_anew():
    mdp = envs.hard_chain(3, gap=0.1)
    livarot.run(mdp, agents.UCRLMNLOL(bonus_constant=2.0), 3)
    before = counts.copy()
    found = livarot.run(mdp, agents.UCRLMNLOL(bonus_constant=2), 3)
    assert counts == before
    assert np.array_equal(found.regret, livarot.run(mdp, agents.UCRLMNLOL(bonus_constant=2.0), 3).regret)


@pytest.mark.parametrize("value", [None, True, "3", [3.0], np.array([3.0]), 1 + 2j, 10**400, float("inf"), -1, object])
def test_no_agent_takes_anything_else(value):
    for make, field in (
        (agents.Livarot, "step_size"),
        (agents.UCBVI, "bonus_scale"),
        (livarot.MaxNormBonus, "constant"),
    ):
        assert refusal(lambda make=make, field=field: make(**{field: value})).argument == field


@pytest.mark.parametrize("value", [None, True, 2.0, "2", [2], 2**63, 0, -1])
def test_no_environment_takes_anything_else(value):
    for make in (envs.hard_chain, envs.river_swim, envs.six_arms, envs.kl_robust, envs.random_mdp, envs.park_two_state):
        assert refusal(lambda make=make: make(horizon=value)).argument == "horizon"


def test_truth_values_words_classes_and_functions():
    assert refusal(lambda: agents.PSRL(known_support=1)).argument == "known_support"
    assert agents.PSRL(known_support=np.False_).known_support is False
    assert refusal(lambda: envs.river_swim(variant=["osband"])).argument == "variant"
    assert "choose 'tight' or float" in str(refusal(lambda: envs.hard_chain(param_bound="loose")))
    assert "make one: JointMaximum(...)" in str(refusal(lambda: agents.Livarot(rule=livarot.JointMaximum)))
    assert refusal(lambda: theory.rho("river-swim")).argument == "model"
    assert (
        refusal(lambda: livarot.MNLMDP.from_function(2, 2, 2, features=3, reward=0, theta=[0.0])).argument == "features"
    )


def test_required_arguments_are_positional_and_without_a_default():
    def reward(s, a, /, to, *more, scale=1.0, **others):
        """Three of them are required."""

    assert required_arguments(reward) == 3
    assert required_arguments(partial(reward, 0)) == 2
    assert required_arguments(lambda *all_of_them: 0.0) == required_arguments(max) == 0


def test_the_signature_stays():
    @checked
    def one(a: int, *rest: int, b: float = 2.0, **more: float) -> tuple:
        """Words."""
        return a, rest, b, more

    assert one.__doc__ == "Words." and one(1, 2, 3, b=1, c="x") == (1, (2, 3), 1.0, {"c": "x"})
    with pytest.raises(TypeError):
        one()


def test_huge_counts_do_not_wrap():
    """Their sum would be 0 in 64 bits, and the kernels would read outside the arrays."""
    code = f"""
import numpy as np
import livarot
from tests.support.refusals import arrays
for counts in ([2**62] * 4 + [2, 2], [2**63 - 1] * 2 + [2] * 4, [2**64 - 2] + [2] * 5):
    try:
        mdp = livarot.MNLMDP.from_arrays({H}, {S}, {A}, **arrays() | {{"outcomes": counts}})
        livarot.solve(mdp)
    except livarot.LivarotError as error:
        assert error.argument in ("outcomes", "next_state"), error
    else:
        raise SystemExit("accepted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize(
    "table", [[2**32, 0, 0], [0.9, 0.2, 0], [-(2**32), 0, 0], [0, 0, "0"], [[0, 0, 0]] * 2, [1, 0, 0]]
)
def test_a_stage_table_is_not_rounded(table):
    assert refusal(lambda: livarot.MNLMDP.from_arrays(H, S, A, **arrays(), stage_table=table)).argument == "stage_table"


@pytest.mark.parametrize("values", [[2**63], [1e19], [0.5], ["1"], [1 + 0j], [None], [float("nan")]])
def test_next_states_are_whole_numbers(values):
    given = arrays() | {"next_state": values * (2 * S * A)}
    assert refusal(lambda: livarot.MNLMDP.from_arrays(H, S, A, **given)).argument == "next_state"


@pytest.mark.parametrize(
    "logits", [[float("inf"), 0.0], [0.0, float("nan")], [-float("inf")] * 2, [], 3.0, ["x"], None]
)
def test_softmax_of_what_has_none(logits):
    assert refusal(lambda: softmax(logits)).argument == "logits"
    assert softmax([-float("inf"), 0.0]).tolist() == [0.0, 1.0]


def test_numbers_at_the_edge():
    tiny, huge = 1e-320, 1e300
    for make in (envs.hard_chain, envs.park_two_state):
        assert refusal(lambda make=make: make(gap=tiny)).argument == "gap"
    assert refusal(lambda: envs.park_two_state(base_probability=tiny)).argument == "base_probability"
    assert np.isfinite(theory.hard_chain_sigma_bar(5, tiny))
    assert refusal(lambda: theory.chain_lower_bound(5, 3, 100, gap=tiny)).argument == "gap"
    assert refusal(lambda: envs.hard_chain(3, gap=0.1, param_bound=huge)).argument == "param_bound"
    given = arrays() | {"theta": [huge, 0.0]}
    assert refusal(lambda: livarot.MNLMDP.from_arrays(H, S, A, **given)).argument == "param_bound"
    for make in (agents.Livarot, agents.UCRL2, theory.regret_bound):
        arguments = {"model": envs.hard_chain(3), "n_episodes": 9} if make is theory.regret_bound else {}
        call = partial(make, failure_level=tiny, **arguments)
        assert refusal(call).argument == "failure_level"
    mdp = envs.hard_chain(3, gap=0.1, param_bound=1e60)
    assert np.isfinite(livarot.solve(mdp).value).all()
    for make in (agents.Livarot, agents.BonusLivarot, agents.UCRLMNLOL, agents.UCRLMNL.theory, agents.ThompsonLivarot):
        try:
            found = livarot.run(mdp, make(), 3)
        except LivarotError:
            continue
        assert np.isfinite(found.regret).all()


def test_read_only_rewards_compile_nothing_anew():
    reward = np.full((H, S, A), 0.5)
    reward.flags.writeable = False
    mdp = livarot.MNLMDP.from_arrays(H, S, A, **arrays() | {"reward": reward})
    one_stage = livarot.MNLMDP.from_arrays(1, S, A, **arrays() | {"reward": np.full((S, A), 0.5)})
    assert mdp.problem.reward.flags.writeable and one_stage.problem.reward.flags.writeable


def test_pairs_out_of_range():
    mdp = livarot.MNLMDP.from_arrays(H, S, A, **arrays())
    for place, argument in (((H, 0, 0), "stage"), ((0, S, 0), "state"), ((0, 0, -1), "action"), ((0, 0.5, 0), "state")):
        for call in (mdp.probabilities, mdp.problem.features, mdp.problem.next_states):
            assert refusal(lambda call=call, place=place: call(*place)).argument == argument
