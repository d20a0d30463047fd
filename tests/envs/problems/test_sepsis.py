"""ICU-Sepsis: the data as they are, the tilt by its definition, the reference survivals, and clear refusals."""

from importlib.util import find_spec

import numpy as np
import pytest

import livarot
from livarot.envs.problems import sepsis
from livarot.envs.problems.sepsis import DEATH, OVER, SURVIVAL, doses, icu_sepsis, load_sepsis

installed = pytest.mark.skipif(find_spec("icu_sepsis") is None, reason="needs the package icu-sepsis")


@pytest.fixture(scope="module")
def data():
    return load_sepsis()


@pytest.fixture(scope="module")
def hospital():
    return icu_sepsis()


@installed
def test_the_data(data):
    assert data.outcomes.shape == (716, 25)
    assert len(data.next_state) == data.outcomes.sum() == 1_528_600
    owner = np.repeat(np.arange(716 * 25), data.outcomes.reshape(-1))
    assert np.bincount(owner, data.nominal) == pytest.approx(1.0, abs=1e-12)
    assert (data.nominal > 0).all()
    assert data.start.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.count_nonzero(data.start) == 712
    assert not data.start[[DEATH, SURVIVAL, OVER]].any()
    assert data.outcomes.max() == 213
    assert (data.outcomes[[DEATH, SURVIVAL, OVER]] == 1).all()
    assert set(data.next_state[-75:]) == {OVER}


def test_doses():
    vaso, fluid = doses()
    assert vaso[[0, 4, 5, 24]].tolist() == [0.0, 0.0, 0.25, 1.0]
    assert fluid[[0, 4, 5, 24]].tolist() == [0.0, 1.0, 0.0, 1.0]
    swapped = doses(vasopressor_first=False)
    assert np.array_equal(swapped[0], fluid)
    assert np.array_equal(swapped[1], vaso)


@installed
@pytest.mark.parametrize(("state", "action"), [(0, 7), (100, 24), (400, 4), (712, 20), (5, 0), (SURVIVAL, 3)])
def test_probabilities_follow_the_definition(hospital, data, state, action):
    """p proportional to p0 exp(w . x), written out again."""
    pair = state * 25 + action
    starts = np.concatenate(([0], np.cumsum(data.outcomes)))
    rows = slice(starts[pair], starts[pair + 1])
    weights = []
    for following, p0 in zip(data.next_state[rows], data.nominal[rows], strict=True):
        vaso, fluid = (action // 5) / 4, (action % 5) / 4
        death, severity = float(following == 713), data.sofa[following] / max(data.sofa)
        tilt = 3 * death * vaso - 2 * death * fluid + severity * vaso - severity * fluid
        weights.append(p0 * np.exp(tilt))
    expected = np.array(weights) / sum(weights)
    assert hospital.probabilities(0, state, action) == pytest.approx(expected, abs=1e-14)
    assert np.array_equal(hospital.problem.next_states(0, state, action), data.next_state[rows])


@installed
def test_the_problem(hospital):
    problem = hospital.problem
    assert (problem.n_states, problem.n_actions, problem.horizon, problem.dim) == (716, 25, 21, 4)
    assert problem.shared_parameter
    assert problem.rows.n_tables == 1
    assert problem.rows.norms().max() == pytest.approx(1.0)
    assert hospital.original_theta[0] == pytest.approx([3.0, -2.0, 1.0, -1.0])
    assert problem.param_bound == pytest.approx(np.sqrt(15.0) * problem.feature_scale)
    assert problem.reward[:, SURVIVAL].min() == 1.0
    assert problem.reward.sum() == 21 * 25


@installed
def test_the_reference_survivals(hospital):
    """.884 for the optimum; the nominal optimum and random treatment depend on ties and on what random means."""
    problem = hospital.problem
    start = problem.start
    assert start @ livarot.solve(hospital).value[0] == pytest.approx(0.884, abs=5e-4)
    table = np.random.default_rng(0).integers(25, size=(20, 716))  # one random treatment per state and stage
    table = np.concatenate((table, table[:1])).astype(np.int32)  # nothing is decided in the last stage
    assert start @ livarot.evaluate(hospital, table)[0] == pytest.approx(0.562, abs=5e-4)
    even = np.full((21, 716, 25), 1.0 / 25)
    assert start @ livarot.evaluate(hospital, even)[0] == pytest.approx(0.5593, abs=1e-4)
    nominal = livarot.MNLMDP(problem, np.zeros_like(hospital.theta))
    known = livarot.solve(nominal)
    assert start @ known.value[0] == pytest.approx(0.7922, abs=1e-4)
    # ties of the nominal optimum: the first of equal treatments; .721 comes from ties decided by rounding
    assert start @ livarot.evaluate(hospital, known.policy)[0] == pytest.approx(0.7141, abs=1e-4)
    noisy = known.q + np.random.default_rng(1).uniform(0.0, 1e-12, known.q.shape)
    by_chance = start @ livarot.evaluate(hospital, noisy.argmax(axis=2).astype(np.int32))[0]
    assert 0.62 < by_chance < 0.73


@installed
def test_the_nominal_optimum_with_ties_left_to_rounding(hospital, data):
    """.721 of docs/sepsis.md: softmax of log p0, expectations by ``bincount``, the action that rounding makes best."""
    counts = data.outcomes.reshape(-1)
    owner = np.repeat(np.arange(len(counts)), counts)
    logits = np.log(data.nominal)
    top = np.maximum.reduceat(logits, np.concatenate(([0], np.cumsum(counts)[:-1])))
    weights = np.exp(logits - top[owner])
    p = weights / np.bincount(owner, weights)[owner]
    value = np.zeros(716)
    value[SURVIVAL] = 1.0
    policy = np.zeros((21, 716), dtype=np.int32)
    for h in range(19, -1, -1):
        q = np.bincount(owner, p * value[data.next_state]).reshape(716, 25)
        q[DEATH:] = value[DEATH:, None]
        policy[h], value = q.argmax(axis=1), q.max(axis=1)
    found = hospital.problem.start @ livarot.evaluate(hospital, policy)[0]
    assert found == pytest.approx(0.721, abs=0.008)  # another processor may round differently


@installed
def test_survival_is_a_probability_that_grows_with_the_horizon():
    short = icu_sepsis(horizon=1)
    values = livarot.solve(short).value[0]
    # one treatment: survive at once
    best = max(short.probabilities(0, 30, a)[short.problem.next_states(0, 30, a) == SURVIVAL].sum() for a in range(25))
    assert values[30] == pytest.approx(best, abs=1e-14)
    assert values[SURVIVAL] == 1.0
    assert values[DEATH] == 0.0


@installed
def test_learning_the_nominal_coefficient(hospital):
    wide = icu_sepsis(learn_nominal=True, param_bound=10.0)
    assert wide.problem.dim == 5
    assert wide.original_theta[0] == pytest.approx([3.0, -2.0, 1.0, -1.0, 0.0])
    assert wide.problem.rows.norms().max() == pytest.approx(1.0)
    for state, action in ((3, 12), (500, 24)):
        expected = hospital.probabilities(0, state, action)
        assert wide.probabilities(0, state, action) == pytest.approx(expected, abs=1e-14)
    # a coefficient of log p0: p0 to another power
    power = wide.theta.copy()
    power[0] = 0.0
    power[0, 4] = 0.5 * np.abs(np.log(load_sepsis().nominal)).max() * wide.problem.feature_scale
    flat = livarot.MNLMDP(wide.problem, power)
    p0 = livarot.MNLMDP(wide.problem, np.zeros_like(power)).probabilities(0, 3, 12)
    assert flat.probabilities(0, 3, 12) == pytest.approx(p0**1.5 / (p0**1.5).sum(), abs=1e-13)


def test_a_missing_package_is_refused_with_the_cure(monkeypatch):
    monkeypatch.setattr(sepsis, "find_spec", lambda name: None)
    with pytest.raises(livarot.LivarotError, match=r"icu-sepsis: .*not installed.*pip install --no-deps icu-sepsis"):
        icu_sepsis()


@installed
@pytest.mark.parametrize("weights", [(1.0, 2.0), (1.0, 2.0, 3.0, np.nan), np.zeros((2, 2))])
def test_bad_weights(weights):
    with pytest.raises(livarot.LivarotError, match="weights"):
        icu_sepsis(weights=weights)


@installed
def test_damaged_data_is_refused(tmp_path, monkeypatch):
    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(sepsis, "find_spec", lambda name: Spec())
    with pytest.raises(livarot.LivarotError, match="not installed, or has no"):
        icu_sepsis()
    (tmp_path / "envs" / "assets").mkdir(parents=True)
    np.savez(tmp_path / "envs" / "assets" / "dynamics.npz", tx_mat=np.zeros((2, 2, 2)), d_0=[1.0], sofa_scores=[1.0])
    with pytest.raises(livarot.LivarotError, match="tx_mat is not"):
        icu_sepsis()
