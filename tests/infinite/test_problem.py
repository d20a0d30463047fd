"""The model without stages: what it is built from, and what is refused."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.infinite import InfiniteMDP, InfiniteProblem, policy_gain, solve_discounted
from tests.support.models import random_model, to_mdp
from tests.support.stationary import random_table, to_model


def test_from_an_episodic_model():
    mdp = envs.river_swim(variant="park", shared_parameter=True)
    endless = InfiniteMDP.from_mdp(mdp)
    problem = endless.problem
    assert (problem.n_states, problem.n_actions, problem.dim, problem.max_reachable) == (6, 2, 10, 3)
    assert problem.param_bound == mdp.problem.param_bound
    np.testing.assert_array_equal(problem.reward, mdp.problem.reward[0])
    np.testing.assert_array_equal(endless.theta, mdp.theta[0])
    for s in range(6):
        for a in range(2):
            np.testing.assert_array_equal(problem.next_states(s, a), mdp.problem.next_states(0, s, a))
            np.testing.assert_array_equal(problem.features(s, a), mdp.problem.features(0, s, a))
            np.testing.assert_array_equal(endless.probabilities(s, a), mdp.probabilities(0, s, a))
            np.testing.assert_allclose(
                endless.table[s, a, problem.next_states(s, a)], mdp.probabilities(0, s, a), rtol=1e-14
            )
    np.testing.assert_allclose(endless.table.sum(axis=-1), 1.0, rtol=0, atol=1e-14)


def test_a_learner_has_no_theta():
    problem = InfiniteMDP.from_mdp(envs.park_two_state()).problem
    assert isinstance(problem, InfiniteProblem)
    assert not hasattr(problem, "theta") and not hasattr(problem.stage, "theta")


def test_equal_parameters_per_stage_will_do():
    own = InfiniteMDP.from_mdp(envs.park_two_state(shared_parameter=False))
    shared = InfiniteMDP.from_mdp(envs.park_two_state())
    assert own.table.tobytes() == shared.table.tobytes()


def test_one_of_several_tables():
    """A model may hold tables that no stage uses; they must leave no trace."""
    rng = np.random.default_rng(0)
    for kind in ("dense", "block"):
        model = random_model(rng, H=2, S=4, A=2, d=4, U=3, kind=kind)
        both = to_mdp(model, shared=True).problem
        rows = both.rows
        assert rows.n_tables == 2
        one = livarot.Problem(2, rows, np.ones(2, dtype=np.int32), model["reward"][[0, 0]], both.start, 1.0, True)
        theta = model["theta"][:1]
        endless = InfiniteMDP.from_mdp(livarot.MNLMDP(one, theta))
        assert endless.problem.rows.n_tables == 1
        endless.problem.rows.validate()
        for s in range(4):
            for a in range(2):
                nxt, phi, _ = model["rows"][1][s][a]
                np.testing.assert_array_equal(endless.problem.next_states(s, a), nxt)
                np.testing.assert_array_equal(endless.problem.features(s, a), phi)
        largest = max(np.linalg.norm(model["rows"][1][s][a][1], axis=1).max() for s in range(4) for a in range(2))
        assert endless.problem.rows.norms().max() == pytest.approx(largest, rel=1e-14)


@pytest.mark.parametrize(
    ("make", "argument", "index"),
    [
        (lambda: envs.hard_chain(4), "mdp", 3),  # signs per stage: those of seed 0 are equal up to stage 2
        (lambda: to_mdp(random_model(np.random.default_rng(0), one_table=True), shared=True), "mdp", 1),  # rewards
        (lambda: to_mdp(random_model(np.random.default_rng(0)), shared=True), "mdp", 1),  # features
        (lambda: "river-swim", "mdp", None),
    ],
)
def test_what_changes_with_the_stage_is_refused(make, argument, index):
    with pytest.raises(livarot.LivarotError) as error:
        InfiniteMDP.from_mdp(make())
    assert error.value.argument == argument
    assert error.value.index == (None if index is None else (index,))


def test_more_refusals():
    mdp = InfiniteMDP.from_mdp(envs.park_two_state())
    with pytest.raises(livarot.LivarotError, match="theta"):
        InfiniteMDP.from_function(
            2, 1, features=lambda s, a: ([0, 1], [[0.0], [1.0]]), reward=[[0], [1]], theta=[[0.5], [0.5]]
        )
    with pytest.raises(livarot.LivarotError, match="horizon 20"):
        InfiniteProblem(envs.park_two_state().problem)
    for policy, index in (
        ([0, 9], (1,)),
        ([-1, 0], (0,)),
        ([0, 0, 0], None),
        (np.full((2, 8), 0.2), (0,)),
        ("a", None),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            policy_gain(mdp, policy)
        assert error.value.argument == "policy" and error.value.index == index


def test_the_terms_of_an_episodic_model_stay():
    """Costs, a discount, missing actions, rewards of the next state and an end: the same numbers as built directly."""
    law = {(0, 0): ([0, 1], [0.4, 0.6]), (0, 1): ([2], [1.0]), (1, 0): ([0, 2], [0.5, 0.5])}

    def features(s, a):
        return (law[s, a][0], np.zeros((len(law[s, a][0]), 1))) if (s, a) in law else None

    def offset(s, a):
        return np.log(law[s, a][1])

    def cost(s, a, to):
        return 1e4 * (1 + s) - 300.0 * to + a

    mask = np.array([[True, True], [True, False], [False, False]])
    common = {"theta": [0.0], "discount": 0.9, "param_bound": 1.0}
    episodic = livarot.MNLMDP.from_function(
        4, 3, 2, features=lambda h, s, a: features(s, a), offset=lambda h, s, a: offset(s, a), terminal=[2],
        terminal_cost=[0.0, 0.0, 777.0], available=mask, cost=lambda h, s, a, to: cost(s, a, to), **common,
    )  # fmt: skip
    direct = InfiniteMDP.from_function(
        3, 2, features=features, offset=offset, terminal={2: 777.0}, available=mask, cost=cost, **common
    )
    found, expected = solve_discounted(InfiniteMDP.from_mdp(episodic)), solve_discounted(direct)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
    np.testing.assert_array_equal(found.policy, expected.policy)
    assert InfiniteMDP.from_mdp(episodic).problem.terms.costs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_first_steps_are_an_episodic_model(seed, scale):
    """Ends, missing actions, rewards of the next state: T rounds of value iteration, and the limit."""
    table, ends = random_table(np.random.default_rng(seed), scale=scale)
    mdp = to_model(table, ends, discount=0.7)
    last = np.array([ends.get(s, 0.0) for s in range(5)])
    value = [last]
    for _ in range(4):
        best = [max(sum(p * (r + 0.7 * value[-1][to]) for to, p, r in own) for own in row if own) for row in table]
        value.append(np.where(mdp.problem.terms.terminal, last, best))
    episodic = mdp.with_horizon(4)
    np.testing.assert_allclose(livarot.solve(episodic).value, value[::-1], rtol=0, atol=1e-11 * scale)
    long = livarot.solve(mdp.with_horizon(120)).value[0]
    np.testing.assert_allclose(long, solve_discounted(mdp).value, rtol=0, atol=1e-9 * scale)
    back = InfiniteMDP.from_mdp(episodic)
    np.testing.assert_allclose(solve_discounted(back).value, solve_discounted(mdp).value, rtol=0, atol=1e-9 * scale)
    with pytest.raises(livarot.LivarotError, match="horizon"):
        mdp.with_horizon(0)
