"""RiverSwim: the twin's rows in each encoding, and the published values."""

import numpy as np
import pytest

import livarot
from livarot import envs
from tests.support.models import rows_of, same_rows
from tests.twins import core as ref
from tests.twins import envs as ref_envs


@pytest.mark.parametrize(("S", "H"), [(2, 3), (3, 4), (6, 5)])
def test_river_swim_is_the_twin(S, H):
    mdp, model = envs.river_swim(S, H), ref.riverswim_rows(S, H)
    same_rows(rows_of(mdp), model["rows"], 0.0)
    np.testing.assert_allclose(mdp.theta, model["theta"], rtol=1e-14)
    np.testing.assert_array_equal(mdp.problem.reward, model["reward"])
    np.testing.assert_array_equal(mdp.problem.start, model["start"])
    assert mdp.problem.rows.n_tables == 1


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("size", "value"), [((4, 12), 2.6627), ((6, 20), 3.3973), ((8, 24), 2.6226)])
def test_both_encodings_are_the_same_river(size, value, shared):
    one_hot = envs.river_swim(*size, shared_parameter=shared)
    moves = envs.river_swim(*size, features="moves", shared_parameter=shared)
    for mdp in (one_hot, moves):
        assert livarot.solve(mdp).value[0, 0] == pytest.approx(value, abs=5e-5)
        assert mdp.theta.shape[0] == (1 if shared else size[1])
        assert mdp.problem.rows.norms().max() <= 1 + 1e-12
    np.testing.assert_allclose(livarot.solve(moves).q, livarot.solve(one_hot).q, rtol=0, atol=1e-12)
    assert moves.problem.dim == 4
    assert one_hot.problem.dim == 2 * size[0] - 2
    assert np.diff(one_hot.problem.rows.block_start).max() == 2
    for h, s in ((0, 0), (1, size[0] - 1), (2, 1)):
        p = moves.probabilities(h, s, 1)
        exact = {0: [0.4, 0.6], size[0] - 1: [0.4, 0.6]}.get(s, [0.05, 0.6, 0.35])
        np.testing.assert_allclose(p, exact, rtol=1e-13)
        np.testing.assert_allclose(one_hot.probabilities(h, s, 1), exact, rtol=1e-13)
        assert one_hot.probabilities(h, s, 0).tolist() == [1.0]


def test_river_swim_pays_on_the_action():
    reward = envs.river_swim(5, 3).problem.reward
    expected = np.zeros((5, 2))
    expected[0, 0], expected[4, 1] = 0.005, 1.0
    np.testing.assert_array_equal(reward, np.stack([expected] * 3))


def test_the_most_likely_state_is_the_support():
    """|theta| = 5.12 for six states, not the 6.34 of an arbitrary support."""
    assert envs.river_swim(6, 2).problem.param_bound == pytest.approx(5.12, abs=0.005)


@pytest.mark.parametrize("features", ["one-hot", "moves"])
@pytest.mark.parametrize("variant", ["osband", "park", "vtr", "strehl"])
def test_river_swim_variants_are_the_twins(variant, features):
    mdp = envs.river_swim(5, 7, variant=variant, features=features)
    P, R, start = ref_envs.river(variant, 5)
    np.testing.assert_array_equal(mdp.problem.start, start)
    np.testing.assert_allclose(mdp.problem.reward, np.stack([R] * 7), rtol=1e-15)
    for h, s, a in np.ndindex(7, 5, 2):
        row = np.zeros(5)
        row[mdp.problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
        np.testing.assert_allclose(row, P[s, a], rtol=0, atol=1e-14)
    value, _ = ref_envs.solve_table(P, R, 7)
    np.testing.assert_allclose(livarot.solve(mdp).value, value, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("variant", "size", "value"),
    [
        ("osband", (4, 12), 2.6627),
        ("osband", (6, 20), 3.3973),
        ("osband", (8, 24), 2.6226),
        ("vtr", (5, 20), 5.5851),
        ("park", (6, 20), 3.4094),  # not published: the twin's
        ("strehl", (6, 20), 0.6511),
    ],
)
def test_river_swim_published_values(variant, size, value):
    mdp = envs.river_swim(*size, variant=variant)
    assert mdp.problem.start @ livarot.solve(mdp).value[0] == pytest.approx(value, abs=5e-5)


def test_river_swim_bad_input():
    for options, argument in (({"variant": "thames"}, "variant"), ({"n_states": 2, "variant": "strehl"}, "n_states")):
        with pytest.raises(livarot.LivarotError) as caught:
            envs.river_swim(**options)
        assert caught.value.argument == argument
