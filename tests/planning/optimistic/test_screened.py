"""Plans that solve only pairs that can be best have the numbers of solving all pairs, whatever their shapes."""

import numpy as np
import pytest

import livarot
from livarot.core.mnl import softmax
from livarot.estimation.omd import whitened
from livarot.model.episodes import Estimate
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.blocks import pair_blocks
from livarot.planning.optimistic.rules import (
    FrankWolfe,
    JointMaximum,
    PlugIn,
    SecondOrderBonus,
    ShiftedPower,
    VarianceBonus,
)
from tests.support.engines import engine

SHARP = JointMaximum(ShiftedPower(tol=1e-13, max_iter=3000))


def model(seed=0, n_states=14, n_actions=5, dim=4, dependent=True, dense=False, start=None, horizon=6):
    """Reachable sets of 1 to n_states outcomes, dependent features in some pairs, none in others, an offset."""
    rng = np.random.default_rng(seed)
    table = {}
    for s in range(n_states):
        for a in range(n_actions):
            count = int(rng.integers(1, n_states + 1)) if a else int(rng.integers(1, 4))
            nexts = rng.choice(n_states, size=count, replace=False)
            phi = rng.standard_normal((count, dim)) / (3.0 * np.sqrt(dim))
            if dependent and a % 2:
                phi = phi[:, :2] @ rng.standard_normal((2, dim)) / 3.0  # rank 2
            if a == 2 and not dense:
                phi[:, 1:] = 0.0
            if a == 4:
                phi[:] = 0.0
            table[s, a] = nexts, phi / max(1.0, np.linalg.norm(phi, axis=1).max()), rng.standard_normal(count)
    reward = rng.random((horizon, n_states, n_actions))
    return livarot.MNLMDP.from_function(
        horizon,
        n_states,
        n_actions,
        features=lambda h, s, a: table[s, a][:2],
        offset=lambda h, s, a: table[s, a][2],
        reward=reward,
        theta=rng.standard_normal(dim),
        start=np.full(n_states, 1.0 / n_states) if start is None else start,
    )


def estimate(problem, seed=0, replicas=2, scale=1.0):
    """Random centres, Gram matrices of mixed scales."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((replicas, 1, problem.dim, problem.dim))
    gram = scale * (root @ root.swapaxes(2, 3) + 0.1 * np.eye(problem.dim))
    theta = rng.standard_normal((replicas, 1, problem.dim))
    return whitened(problem, theta, problem.rows.pack(gram))


def both(problem, guess, radius, rule):
    with engine("pairs"):
        general = optimistic_plan(problem, guess, radius, rule)
    with engine("screened"):
        screened = optimistic_plan(problem, guess, radius, rule)
    assert (general.engine, screened.engine) == ("pairs", "screened")
    return general, screened


@pytest.mark.parametrize("scale", [0.3, 30.0, 3e4])
def test_it_gives_the_numbers_of_solving_all_pairs(scale):
    for seed, options in enumerate(({}, {"dense": True, "dependent": False}, {"dim": 7}, {"start": 0, "n_states": 9})):
        problem = model(seed, **options).problem
        general, special = both(problem, estimate(problem, seed, scale=scale), np.array([0.7, 1.9]), SHARP)
        assert special.value == pytest.approx(general.value, abs=1e-12)
        assert np.array_equal(special.policy, general.policy)
        assert special.start_value == pytest.approx(general.start_value, abs=1e-12)
        # a pair is left out of the second recursion by a bound that may be smaller than its own certified one
        assert np.all(special.upper <= general.upper + 1e-12)
        assert np.all(special.upper >= special.start_value)
        assert (special.inner_gap <= general.inner_gap + 1e-12).all()  # of the pairs that were solved only


@pytest.mark.parametrize("scale", [0.3, 30.0, 3e4])
def test_the_variance_bonus_is_that_of_all_pairs(scale):
    """In wide sets, where it is max V for most pairs, and in narrow ones; it is not exact for two outcomes."""
    for seed, options in enumerate(({}, {"dense": True, "dependent": False}, {"dim": 7}, {"start": 0, "n_states": 9})):
        problem = model(seed, **options).problem
        for radius in (np.array([0.07, 0.4]), np.array([0.7, 1.9])):
            general, special = both(problem, estimate(problem, seed, scale=scale), radius, VarianceBonus())
            assert special.value == pytest.approx(general.value, abs=1e-12)
            assert np.array_equal(special.policy, general.policy)
            assert special.upper == pytest.approx(general.upper, abs=1e-12)
            assert np.array_equal(special.start_value, special.upper)


@pytest.mark.parametrize("stages", ["one parameter", "one each", "other features"])
def test_stages_may_share_what_is_kept_or_not(stages):
    mdp = model(1, horizon=5)
    rng = np.random.default_rng(4)
    tables = [model(1 + (stages == "other features") * h) for h in range(5)]

    def rows(h, s, a):
        return tables[h].problem.next_states(0, s, a), tables[h].problem.features(0, s, a)

    theta = rng.standard_normal((5, 4) if stages != "one parameter" else 4)
    problem = livarot.MNLMDP.from_function(
        5, 14, 5, features=rows, reward=mdp.problem.reward, theta=theta, start=np.full(14, 1 / 14)
    ).problem
    n = problem.n_parameters
    root = rng.standard_normal((2, n, 4, 4))
    gram = problem.rows.pack(root @ root.swapaxes(2, 3) + 0.1 * np.eye(4))
    guess = whitened(problem, rng.standard_normal((2, n, 4)), gram)
    general, special = both(problem, guess, np.array([0.2, 1.0]), SHARP)
    assert special.value == pytest.approx(general.value, abs=1e-12)
    assert np.array_equal(special.policy, general.policy)


def test_two_outcomes_only():
    rng = np.random.default_rng(3)
    phi = rng.standard_normal((6, 3, 2, 3)) / 4.0
    nexts = np.stack([np.stack([rng.choice(6, 2, replace=False) for _ in range(3)]) for _ in range(6)])
    mdp = livarot.MNLMDP.from_function(
        7,
        6,
        3,
        features=lambda h, s, a: (nexts[s, a], phi[s, a]),
        reward=rng.random((6, 3)),
        theta=rng.standard_normal(3),
    )
    general, special = both(mdp.problem, estimate(mdp.problem), 0.8, JointMaximum())
    assert special.value == pytest.approx(general.value, abs=1e-13)
    assert np.array_equal(special.policy, general.policy)


def test_when_it_is_used():
    problem = model().problem
    guess = estimate(problem, replicas=1)
    assert optimistic_plan(problem, guess, 0.5).engine == "screened"
    assert optimistic_plan(problem, guess, 0.5, JointMaximum(FrankWolfe())).engine == "pairs"  # it does not climb
    for rule in (VarianceBonus(), PlugIn(), SecondOrderBonus()):
        assert optimistic_plan(problem, guess, 0.5, rule).engine == "pairs"
        assert optimistic_plan(problem, estimate(problem, replicas=8), 0.5, rule).engine == "replicas"
    assert optimistic_plan(problem, estimate(problem, replicas=9), 0.5).engine == "screened"
    large = model(n_states=100, n_actions=8, horizon=3).problem
    assert optimistic_plan(large, estimate(large, replicas=9), 0.5, VarianceBonus()).engine == "screened"
    assert optimistic_plan(large, estimate(large, replicas=9), 0.5, PlugIn()).engine == "replicas"
    chain = livarot.envs.hard_chain(6, gap=0.1).problem  # two outcomes
    guess = livarot.agents.Livarot().init(chain).estimate
    assert optimistic_plan(chain, guess, 0.5).engine == "pairs"


def test_blocks_hold_each_pair_with_its_rows():
    problem = model(5, dim=6).problem
    blocks = pair_blocks(problem).fields
    pairs = np.concatenate([blocks.plain, blocks.pair.ravel()])
    assert sorted(set(pairs.tolist())) == list(range(problem.n_states * problem.n_actions))
    for b, (n_out, m, _, row, feat, _) in enumerate(blocks.shape):
        for lane, pair in enumerate(blocks.pair[b]):
            state, action = divmod(int(pair), problem.n_actions)
            dense = problem.features(0, state, action)[:, problem.rows.columns(pair)]
            assert np.array_equal(blocks.feature[feat : feat + n_out * m, lane].reshape(n_out, m), dense)
            assert np.array_equal(blocks.next_state[row : row + n_out, lane], problem.next_states(0, state, action))


def test_stages_that_reach_almost_the_same_states_share_their_blocks():
    """State 29 cannot be the first one: its pairs are in the shared list, but do not count at stage 0."""
    start = np.append(np.full(29, 1 / 29), 0.0)
    problem = model(6, n_states=30, horizon=2, start=start).problem  # state 29 has the largest gap
    assert problem.reachable.sum(axis=1).tolist() == [29, 30, 30]
    assert pair_blocks(problem).fields.stage_list.tolist() == [0, 0]
    guess, slow = estimate(problem), JointMaximum(FrankWolfe(n_iter=3, n_starts=0))
    plans = []
    for way in ("pairs", "replicas"):  # these visit only the states that can be reached
        with engine(way):
            plans.append(optimistic_plan(problem, guess, 0.8, slow))
    assert np.array_equal(plans[0].inner_gap, plans[1].inner_gap)
    assert np.array_equal(plans[0].value, plans[1].value)
    few = model(6, n_states=30, horizon=2, start=0).problem
    assert pair_blocks(few).fields.stage_list.tolist() == [0, 1]


def test_the_bounds_that_choose_the_pairs_hold():
    """B(V) = m + sum s|V - m| / sum p e^-b  is above the corners of the box, and close to them where it is narrow; and
    aF(V) + B(V' - aV)  is above the maximum F(V') over the ball, whatever a >= 0."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, beta = int(rng.integers(2, 9)), float(rng.choice((0.01, 0.1, 0.5, 1.5)))
        y, z = rng.standard_normal((n, 2)), 2.0 * rng.standard_normal(n)
        p = softmax(z)
        b = beta * np.linalg.norm(y - p @ y, axis=1)

        def bound(v, p=p, b=b):
            mean = p * np.cosh(b) @ v / (p @ np.cosh(b))
            return mean + p * np.sinh(b) @ np.abs(v - mean) / (p @ np.exp(-b))

        angle = np.linspace(0.0, 2.0 * np.pi, 400)
        ball = np.concatenate([r * beta * np.stack((np.cos(angle), np.sin(angle)), axis=1) for r in (0.0, 0.4, 1.0)])
        laws = softmax(z + ball @ y.T)
        v, later = rng.random(n), rng.random(n)
        order = np.argsort(v)
        corners = [softmax(z + np.where(np.isin(np.arange(n), order[k:]), b, -b)) @ v for k in range(n)]
        assert (laws @ v).max() <= max(corners) + 1e-12 <= bound(v) + 2e-12
        assert bound(v) - max(corners) <= 3.0 * b.max() * (max(corners) - p @ v) + 1e-12 or b.max() > 0.5
        for a in (0.0, 0.3, 1.0, 1.7):
            assert (laws @ v).max() <= a * (laws @ later).max() + bound(v - a * later) + 1e-12


def test_replicas_do_not_depend_on_each_other():
    problem = model(2).problem
    guess = estimate(problem, replicas=3)
    together = optimistic_plan(problem, guess, np.array([0.3, 0.9, 2.0]))
    for r, radius in enumerate((0.3, 0.9, 2.0)):
        alone = optimistic_plan(problem, Estimate(*(part[r : r + 1] for part in guess)), radius)
        assert np.array_equal(alone.value[0], together.value[r])
        assert np.array_equal(alone.policy[0], together.policy[r])


# ---------------------------------------------------------------- which pairs may be left out
def known(value):
    """A pair with one outcome, worth that much."""
    return [value], np.zeros((1, 1)), [0.0], 0.0


def rivals(pairs, radius):
    """Plans, by both loops, of a problem whose state 0 has ``pairs`` (values, features, offset, reward) as actions."""
    dim = max(np.shape(features)[1] for _, features, _, _ in pairs)
    starts = np.cumsum([1, *(len(values) for values, _, _, _ in pairs)])
    reward = np.zeros((2, starts[-1], len(pairs)))
    for a, (values, _, _, gain) in enumerate(pairs):
        reward[0, 0, a] = gain
        reward[1, starts[a] : starts[a + 1]] = np.reshape(values, (-1, 1))

    def rows(h, s, a):
        if s > 0:
            return [s], np.zeros((1, dim))
        phi = np.asarray(pairs[a][1])
        return np.arange(starts[a], starts[a + 1]), np.pad(phi, ((0, 0), (dim - phi.shape[1], 0)))

    problem = livarot.MNLMDP.from_function(
        2, int(starts[-1]), len(pairs), features=rows, reward=reward, theta=np.zeros(dim), param_bound=1.0,
        offset=lambda h, s, a: pairs[a][2] if s == 0 else [0.0],
    ).problem  # fmt: skip
    guess = whitened(problem, np.zeros((1, 1, dim)), problem.rows.pack(np.eye(dim)[None, None]))
    return both(problem, guess, radius, None)


# five outcomes, four of them with orthogonal features: the box moves all logits at once, by sd(V) (sum p b^2)^(1/2),
# which the ellipsoid cannot; the fifth, rare and far away, spoils the other upper bound
FIVE, RARE, WORTH = np.diag([0.1, 0.1, 0.1, 0.1, 1.0]), np.array([0.0, 0.0, 0.0, 0.0, -14.0]), [1.0, 1.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("radius", [0.2, 1.0])
def test_a_pair_is_not_left_out_whose_curvature_makes_it_best(radius):
    """V = (1, 0, 1), y = (-1, 0, 1): the slope at the centre is 0 and f'' = (max V - f) Var is the bound itself, so
    that the maximum takes all the growth that the variance allows.  The rival has a far larger upper bound, and a value
    just below."""
    values, features = [1.0, 0.0, 1.0], [[-0.1], [0.0], [0.1]]
    best = float(softmax(np.array([-0.1, 0.0, 0.1]) * radius) @ values)
    other = livarot.inner_max(FIVE, np.array(WORTH) / 2, livarot.Ellipsoid.ball(5, radius), offset=RARE)
    gain = best - 0.1 * (best - 2 / 3) - other.value
    for made in rivals([(np.array(WORTH) / 2, FIVE, RARE, gain), (values, features, np.zeros(3), 0.0)], radius):
        assert made.start_value[0] == pytest.approx(best, abs=1e-9)
        assert made.policy[0, 0, 0] == 1
        assert made.upper[0] > best + 0.005 * radius


def test_a_pair_is_not_left_out_whose_box_is_the_largest_bound():
    """A known outcome lies between the maximum and the box of the five."""
    radius = 0.2
    b = radius * np.linalg.norm(FIVE - softmax(RARE) @ FIVE, axis=1)
    box = float(softmax(RARE + b * [1, 1, -1, -1, -1]) @ WORTH)
    between = box - 0.05 * (box - 0.5)
    for made in rivals([known(between), (WORTH, FIVE, RARE, 0.0)], radius):
        assert made.start_value[0] == pytest.approx(between, abs=1e-12)  # the ellipsoid of the five does not reach it
        assert made.upper[0] == pytest.approx(box, abs=1e-9)


def test_a_set_wider_than_weights_can_tell_leaves_nothing_out():
    """The weight e^-2000 of the third outcome, which cannot be told from e^-700, moves to e^1000."""
    far = ([0.0, 0.0, 1.0], [[0.0], [0.0], [1.0]], [0.0, 0.0, -2000.0], 0.0)
    for made in rivals([known(0.9), far], 3000.0):
        assert made.upper[0] == pytest.approx(1.0, abs=1e-9)
        assert made.start_value[0] == pytest.approx(1.0, abs=1e-9)
        assert made.policy[0, 0, 0] == 1


def test_actions_tie_within_a_relative_tolerance():
    """The first action within 1e-9 (1 + |Q|) of the best, Q = 1/2 here: a rival must be worth 1.5e-9 more."""
    for more, action in ((-1e-8, 0), (0.0, 0), (1.4e-9, 0), (1.6e-9, 1), (1e-8, 1)):
        for made in rivals([known(0.5), (np.full(3, 0.5 + more), [[-1.0], [0.0], [1.0]], np.zeros(3), 0.0)], 0.3):
            assert made.policy[0, 0, 0] == action
            assert made.start_value[0] == pytest.approx(0.5 + max(more, 0.0), abs=1e-15)
