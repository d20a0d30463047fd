"""DeepSea: the exact value of its best policy, with and without slips."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs.problems import deepsea
from tests.twins import envs as ref


@pytest.mark.parametrize("features", ["one-hot", "slips"])
@pytest.mark.parametrize(("N", "slip"), [(2, 0.3), (5, None), (8, None), (8, 0.01), (12, 0.6), (4, 0.0)])
def test_deep_sea_values(N, slip, features):
    mdp = envs.deep_sea(N, slip=slip, features=features)
    exact = ref.sea_values(N, 1 / N if slip is None else slip)
    value = mdp.original_value(livarot.solve(mdp).value)
    for (row, column), number in exact.items():  # the state's row is its stage
        assert value[row, deepsea.cell(row, column)] == pytest.approx(number, abs=1e-12)
    assert mdp.problem.n_states == N * (N + 1) // 2 and mdp.problem.horizon == N
    expected = max(N * (N - 1) // 2, 1) if features == "one-hot" and mdp.problem.max_reachable > 1 else 1
    assert mdp.problem.dim == expected


def test_deep_sea_closed_form():
    N = 10
    p, cost = 1 - 1 / N, 0.01 / N
    mdp = envs.deep_sea(N)
    value = float(mdp.original_value(livarot.solve(mdp).value)[0, 0])
    assert value == pytest.approx(p ** (N - 1) - cost * (1 - p**N) / (1 - p), abs=1e-12)
    assert mdp.reward_scale.scale == pytest.approx(1.0, abs=1e-15)
    assert mdp.reward_scale.shift == -cost


def test_the_deterministic_sea_has_nothing_to_learn_and_can_be_played():
    mdp = envs.deep_sea(4, slip=0.0)
    assert mdp.problem.max_reachable == 1 and (mdp.problem.rows.pair_block == -1).all()
    result = livarot.run(mdp, livarot.agents.Livarot(), 2, seed=0)
    assert np.abs(np.asarray(result.regret)).max() < 1e-12


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: envs.deep_sea(1), "size"),
        (lambda: envs.deep_sea(4, slip=1.0), "slip"),
        (lambda: envs.deep_sea(4, slip=-0.1), "slip"),
        (lambda: envs.deep_sea(4, slip=float("nan")), "slip"),
        (lambda: envs.deep_sea(4, features="moves"), "features"),
    ],
)
def test_bad_settings_of_the_sea(make, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    assert caught.value.argument == argument
