"""The environments: number for number the twins', and the published values."""

import itertools
import math

import numpy as np
import pytest

import livarot
from livarot import agents, envs
from livarot.envs.hard import paper_gap
from tests.support.models import rows_of, to_model
from tests.twins import core as ref
from tests.twins import envs as ref_envs


def same_rows(one, other, atol=1e-14):
    for stage, twin_stage in zip(one, other, strict=True):
        for state, twin_state in zip(stage, twin_stage, strict=True):
            for (nxt, phi, shift), (twin_nxt, twin_phi, twin_shift) in zip(state, twin_state, strict=True):
                assert list(nxt) == list(twin_nxt)
                np.testing.assert_allclose(phi, twin_phi, rtol=0, atol=atol)
                np.testing.assert_array_equal(shift, twin_shift)


# ---------------------------------------------------------------- the hard chain
@pytest.mark.parametrize(("H", "d", "gap"), [(2, 2, 0.2), (5, 2, None), (6, 3, 0.1), (4, 4, None), (10, 2, None)])
def test_hard_chain_is_the_twin(H, d, gap):
    mdp = envs.hard_chain(H, n_episodes=700, dim=d, gap=gap, seed=4, param_bound="tight")
    model = ref.hard_chain_rows(H, 700, d, gap=gap, signs=np.sign(mdp.theta[:, : d - 1]))
    same_rows(rows_of(mdp), model["rows"])
    np.testing.assert_allclose(mdp.theta, model["theta"], rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(mdp.problem.reward, model["reward"])
    np.testing.assert_array_equal(mdp.problem.start, model["start"])
    assert mdp.problem.param_bound == pytest.approx(model["param_bound"], rel=1e-13)
    assert mdp.problem.n_actions == 2 ** (d - 1) == len(model["actions"])
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    best = livarot.solve(mdp)
    assert mdp.probabilities(0, 0, int(best.policy[0, 0]))[1] == pytest.approx(model["p_best"], abs=1e-13)


def test_hard_chain_bounds():
    tight = envs.hard_chain(10, param_bound="tight")
    assert tight.problem.param_bound == pytest.approx(np.linalg.norm(tight.theta, axis=1).max(), rel=1e-14)
    plain = envs.hard_chain(10)
    assert plain.problem.param_bound == pytest.approx(1.5 * (1 + math.log(9)), rel=1e-14)
    np.testing.assert_array_equal(plain.theta, tight.theta)
    assert envs.hard_chain(10, param_bound=7.5).problem.param_bound == 7.5
    # a gap so wide that the quoted bound does not hold: the parameter's own norm
    wide = envs.hard_chain(3, gap=0.65)
    assert wide.problem.param_bound == pytest.approx(np.linalg.norm(wide.theta, axis=1).max())
    assert wide.problem.param_bound > 1.5 * (1 + math.log(2))


def test_hard_chain_signs_come_from_the_seed():
    one, same, other = (envs.hard_chain(12, dim=3, gap=0.05, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.theta, same.theta)
    assert not np.array_equal(one.theta, other.theta)
    assert one.problem.same_as(other.problem)  # what the learner knows is the same
    signs = np.sign(np.concatenate([envs.hard_chain(12, dim=3, gap=0.05, seed=s).theta[:, :2] for s in range(40)]))
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)


def test_hard_chain_gap():
    assert paper_gap(10, 1000) == pytest.approx(1 / (4 * math.sqrt(20000)), rel=1e-15)
    tuned, fixed = envs.hard_chain(10, 1000), envs.hard_chain(10, gap=paper_gap(10, 1000))
    np.testing.assert_array_equal(tuned.theta, fixed.theta)


def test_hard_chain_actions_are_all_sign_vectors_in_order():
    mdp = envs.hard_chain(5, dim=4, gap=0.05)
    actions = list(itertools.product((-1, 1), repeat=3))
    moving = np.array([mdp.problem.features(0, 0, a)[0] for a in range(8)])
    np.testing.assert_array_equal(np.sign(-moving[:, :3]), actions)
    assert np.ptp(moving[:, 3]) == 0


# ---------------------------------------------------------------- RiverSwim
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


# ---------------------------------------------------------------- registries
def test_environments_by_name():
    assert {"hard-chain", "river-swim", "six-arms", "deep-sea", "park-two-state", "random"} <= set(envs.registry)
    made = envs.make("river-swim", n_states=4, horizon=5, features="moves")
    assert made.problem.same_as(envs.river_swim(4, 5, features="moves").problem)
    chain = envs.make("hard-chain", horizon=4, gap=0.1, seed=3)
    np.testing.assert_array_equal(chain.theta, envs.hard_chain(4, gap=0.1, seed=3).theta)
    assert all(envs.registry.summary(name) for name in envs.registry)


def test_agents_by_name():
    assert {"livarot", "ucrl-mnl-ol", "certainty-equivalent", "uniform", "oracle"} <= set(agents.registry.names())
    assert agents.make("livarot", beta_scale=0.3) == agents.Livarot(beta_scale=0.3)
    assert agents.make("ucrl-mnl-ol") == agents.UCRLMNLOL()
    assert agents.make("uniform") == agents.Uniform()
    for name in agents.registry:
        assert agents.registry.summary(name)
        assert name == "oracle" or agents.make(name).name == name


def test_a_model_of_the_library_and_of_the_twin_have_the_same_optimum():
    for mdp in (envs.hard_chain(6, gap=0.1), envs.river_swim(5, 8), envs.river_swim(4, 6, features="moves")):
        model = to_model(mdp)
        exact = ref.solve(model["rows"], model["theta"], model["reward"])
        np.testing.assert_allclose(livarot.solve(mdp).value, exact["value"], rtol=0, atol=1e-12)
