"""SixArms: its rooms and its published values."""

import numpy as np
import pytest

import livarot
from livarot import envs
from tests.support.models import table_of
from tests.twins import envs as ref


@pytest.mark.parametrize("first_room", ["published", "matching"])
@pytest.mark.parametrize(("H", "value"), [(10, 0.4382), (20, 1.7907), (50, 10.5006)])
def test_six_arms(H, value, first_room):
    mdp = envs.six_arms(H, first_room=first_room)
    P, R = ref.arms(first_room == "matching")
    np.testing.assert_allclose(table_of(mdp, H - 1), P, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(mdp.problem.reward[0], R)
    assert livarot.solve(mdp).value[0, 0] == pytest.approx(value, abs=5e-5)
    assert (mdp.problem.dim, mdp.problem.max_reachable, mdp.theta.shape) == (5, 2, (1, 5))


def test_the_two_readings_of_room_1_differ_in_room_1():
    one, other = (livarot.solve(envs.six_arms(10, first_room=x)).value[0] for x in ("published", "matching"))
    np.testing.assert_array_equal(one, other)  # one action that stays and one that leaves are enough
    q, other_q = (livarot.solve(envs.six_arms(10, first_room=x)).q[0, 1] for x in ("published", "matching"))
    assert (np.abs(q - other_q) > 1e-4).tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: envs.six_arms(0), "horizon"),
        (lambda: envs.six_arms(first_room="all"), "first_room"),
    ],
)
def test_bad_settings_of_the_arms(make, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    assert caught.value.argument == argument
