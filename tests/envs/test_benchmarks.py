"""SixArms, DeepSea, Park's two states and the machine: number for number, and their published or exact values."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs import deepsea, maintenance
from tests.twins import envs as ref


def table_of(mdp, h=0):
    problem = mdp.problem
    P = np.zeros((problem.n_states, problem.n_actions, problem.n_states))
    for s, a in np.ndindex(*P.shape[:2]):
        P[s, a, problem.next_states(h, s, a)] = mdp.probabilities(h, s, a)
    return P


def refused(make):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    return caught.value.argument


# ---------------------------------------------------------------- SixArms
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


# ---------------------------------------------------------------- DeepSea
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


# ---------------------------------------------------------------- two states
@pytest.mark.parametrize(("d", "delta", "gap", "seed"), [(4, 0.25, 0.01, None), (2, 0.1, 0.2, 3), (5, 0.6, 0.05, 8)])
def test_two_states(d, delta, gap, seed):
    H = 6
    mdp = envs.park_two_state(H, d, delta, gap, seed)
    P = table_of(mdp)
    np.testing.assert_allclose(P[1, :, 0], delta, rtol=1e-13)
    assert P[0, :, 1].max() == pytest.approx(delta + (d - 1) * gap, rel=1e-12)
    signs = np.sign(mdp.theta[0, :-1])
    best = int(((signs + 1) / 2) @ 2.0 ** np.arange(d - 2, -1, -1))  # actions count up in binary
    assert P[0, :, 1].argmax() == best and (seed is not None or best == 2 ** (d - 1) - 1)
    odds = math.log((1 - delta) * (delta + (d - 1) * gap) / (delta * (1 - delta - (d - 1) * gap)))
    for a in range(2 ** (d - 1)):
        action = np.array([1 if a >> bit & 1 else -1 for bit in range(d - 2, -1, -1)])
        exact = 1 / (1 + (1 / delta - 1) * math.exp(-odds / (d - 1) * float(signs @ action)))
        assert P[0, a, 1] == pytest.approx(exact, rel=1e-12)
    # V in closed form: the chance x_h of being up obeys x' = x (1 - delta) + (1 - x) p
    p, up, value = delta + (d - 1) * gap, 0.0, 0.0
    for _ in range(H):
        value += up
        up = up * (1 - delta) + (1 - up) * p
    assert livarot.solve(mdp).value[0, 0] == pytest.approx(value, abs=1e-12)
    assert mdp.problem.rows.norms().max() == pytest.approx(1.0, rel=1e-14)
    assert mdp.problem.param_bound == pytest.approx(np.linalg.norm(mdp.theta[0]), rel=1e-14)


def test_two_states_with_a_bound_and_a_parameter_per_stage():
    mdp = envs.park_two_state(3, shared_parameter=False, param_bound=5.0)
    assert mdp.problem.param_bound == pytest.approx(5.0, rel=1e-15) and mdp.theta.shape == (3, 4)


# ---------------------------------------------------------------- the machine
def test_the_machine_is_the_page_that_describes_it():
    mdp = envs.machine_maintenance(4)
    wears, wears_hard, breaks, by_wear, breaks_hard, improves, as_new, repaired = maintenance.THETA
    for wear in range(5):
        for hard in (0, 1):
            weights = {wear: 1.0, 5: math.exp(breaks + by_wear * wear / 4 + breaks_hard * hard)}
            if wear < 4:
                weights[wear + 1] = math.exp(wears + wears_hard * hard)
            check(mdp, wear, hard, weights)
        service = {wear: 1.0}
        if wear > 0:
            service[wear - 1] = math.exp(improves)
        if wear > 1:
            service[0] = math.exp(as_new)
        check(mdp, wear, 2, service)
    check(mdp, 5, 2, {5: 1.0, 0: math.exp(repaired)})
    check(mdp, 5, 0, {5: 1.0})
    np.testing.assert_array_equal(mdp.problem.reward[0, :5], [[0.6, 1.0, 0.0]] * 5)
    np.testing.assert_array_equal(mdp.problem.reward[:, 5], 0.0)
    np.testing.assert_allclose(mdp.original_theta[0], maintenance.THETA, rtol=4e-16)


def check(mdp, state, action, weights):
    seen = dict(
        zip(mdp.problem.next_states(1, state, action).tolist(), mdp.probabilities(1, state, action), strict=True)
    )
    assert seen == pytest.approx({s: w / sum(weights.values()) for s, w in weights.items()}, rel=1e-12)


def test_the_machine_s_best_policy_is_the_one_described():
    mdp = envs.machine_maintenance()
    policy = livarot.solve(mdp).policy
    assert (policy[:, :3] == maintenance.HARD).all()
    assert (policy[:20, 3:] == maintenance.SERVICE).all()
    assert (policy[-1, :5] == maintenance.HARD).all()
    hard = np.full(policy.shape, maintenance.HARD)
    hard[:, 5] = maintenance.SERVICE
    gain = livarot.solve(mdp).value[0, 0] - livarot.evaluate(mdp, hard)[0, 0]
    assert gain > 2.0  # the service is worth more than two good weeks


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: envs.six_arms(0), "horizon"),
        (lambda: envs.six_arms(first_room="all"), "first_room"),
        (lambda: envs.deep_sea(1), "size"),
        (lambda: envs.deep_sea(4, slip=1.0), "slip"),
        (lambda: envs.deep_sea(4, slip=-0.1), "slip"),
        (lambda: envs.deep_sea(4, slip=float("nan")), "slip"),
        (lambda: envs.deep_sea(4, features="moves"), "features"),
        (lambda: envs.park_two_state(0), "horizon"),
        (lambda: envs.park_two_state(dim=1), "dim"),
        (lambda: envs.park_two_state(base_probability=1.0), "base_probability"),
        (lambda: envs.park_two_state(gap=0.25), "gap"),
        (lambda: envs.park_two_state(gap=0.0), "gap"),
        (lambda: envs.park_two_state(param_bound=0.1), "theta"),
        (lambda: envs.machine_maintenance(0), "horizon"),
    ],
)
def test_bad_input(make, argument):
    assert refused(make) == argument
