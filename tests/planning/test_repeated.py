"""The loop for problems whose stages repeat: same numbers as the general one, whatever the shapes of the pairs."""

import numpy as np
import pytest

import livarot
from livarot.core.mnl import softmax
from livarot.core.plan import Estimate
from livarot.estimation.omd import whitened
from livarot.planning import repeated
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.repeated import growth, repeats
from livarot.planning.optimistic.rules import FrankWolfe, JointMaximum, PlugIn, SecondOrderBonus, ShiftedPower, VarianceBonus
from livarot.planning.tiles import table_tiles

RULES = (
    PlugIn(),
    VarianceBonus(),
    SecondOrderBonus(),
    JointMaximum(ShiftedPower(tol=1e-13, max_iter=3000)),
    JointMaximum(FrankWolfe(n_iter=40)),
)


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
    problem.cache["repeats"] = False
    general = optimistic_plan(problem, guess, radius, rule)
    problem.cache["repeats"] = True
    return general, optimistic_plan(problem, guess, radius, rule)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: repr(rule)[:24])
@pytest.mark.parametrize("scale", [0.3, 30.0, 3e4])
def test_it_gives_the_numbers_of_the_general_loop(rule, scale):
    for seed, options in enumerate(({}, {"dense": True, "dependent": False}, {"dim": 7}, {"start": 0, "n_states": 9})):
        problem = model(seed, **options).problem
        general, special = both(problem, estimate(problem, seed, scale=scale), np.array([0.7, 1.9]), rule)
        assert special.value == pytest.approx(general.value, abs=1e-12)
        assert np.array_equal(special.policy, general.policy)
        for name in ("start_value", "upper"):
            one, other = getattr(general, name), getattr(special, name)
            assert (one is None) == (other is None)
            if one is not None:
                assert other == pytest.approx(one, abs=1e-12)
        if general.inner_gap is not None:  # of the pairs that were solved only
            assert (special.inner_gap <= general.inner_gap + 1e-12).all()


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


def test_when_it_is_used(monkeypatch):
    mdp = model()
    assert not repeats(mdp.problem)  # too small
    monkeypatch.setattr(repeated, "MANY_ROWS", 10)
    assert repeats(model().problem)
    assert not repeats(model(horizon=3).problem)
    chain = livarot.envs.hard_chain(6, gap=0.1)  # one parameter per stage
    assert not repeats(chain.problem)


@pytest.mark.parametrize(("dependent", "expected"), [(True, {0, 1, 2, 3}), (False, {0, 1, 3, 6})])
def test_tiles_hold_each_pair_once_and_split_the_features_exactly(dependent, expected):
    problem = model(5, dim=6, dependent=dependent).problem
    tiles = table_tiles(problem)
    assert sorted(tiles.order) == list(range(problem.n_states * problem.n_actions))
    ranks = []
    for begin, end, n_out, rank, at, feat in tiles.table:
        width = -(-(end - begin) // 8) * 8
        for lane, item in enumerate(range(begin, end)):
            pair = tiles.order[item]
            state, action = divmod(int(pair), problem.n_actions)
            dense = problem.features(0, state, action)
            columns = problem.rows.columns(pair)
            matrix = dense[:, columns] if problem.rows.pair_block[pair] >= 0 else np.zeros((n_out, 0))
            assert rank == np.linalg.matrix_rank(matrix, tol=1e-10)
            c = tiles.features[feat : feat + n_out * rank * width].reshape(n_out, rank, width)[:, :, lane]
            first = tiles.basis_start[item]
            if first >= 0:
                c = c @ tiles.basis[first : first + rank * len(columns)].reshape(rank, len(columns))
            if rank:
                assert c == pytest.approx(matrix, abs=1e-15)
            states = tiles.next_state[at : at + n_out * width].reshape(n_out, width)[:, lane]
            assert np.array_equal(states, problem.next_states(0, state, action))
            ranks.append(int(rank))
    assert expected <= set(ranks)


def test_the_bounds_that_choose_the_pairs_hold():
    """f0 + beta |g| -+ C around the maximum over the ball, by brute force over directions; C is not always the larger
    one of the two."""
    rng = np.random.default_rng(0)
    smaller = 0
    for _ in range(60):
        n, beta = int(rng.integers(2, 9)), float(rng.choice((0.1, 0.5, 1.5)))
        y, v, z = rng.standard_normal((n, 2)), rng.random(n), 2.0 * rng.standard_normal(n)
        p = softmax(z)
        f0, mean = p @ v, p @ y
        slope = beta * np.linalg.norm((p * (v - f0)) @ y)
        b = beta * np.linalg.norm(y - mean, axis=1)
        wide = 0.5 * min(b.max() ** 2, beta**2 * (y**2).sum(axis=1).max())
        tight = min(wide, (p * b**2).sum() * growth(2.0 * b.max()))
        smaller += tight < wide
        angle = np.linspace(0.0, 2.0 * np.pi, 400)
        ball = np.concatenate([r * beta * np.stack((np.cos(angle), np.sin(angle)), axis=1) for r in (0.3, 0.7, 1.0)])
        values = softmax(z + ball @ y.T) @ v
        top = max(values.max(), f0)
        upward = min(np.ptp(v), v.max() - f0 + slope + np.ptp(v) * tight) * tight
        assert top <= f0 + slope + upward + 1e-12
        assert top >= f0 + slope - np.ptp(v) * tight - 1e-4 * slope
        first = np.sqrt((p @ v**2 - f0**2) * (p @ b**2))
        box = f0 + first + min(np.ptp(v), v.max() - f0 + first + np.ptp(v) * tight) * tight
        for _ in range(20):
            assert softmax(z + b * rng.choice((-1.0, 1.0), n)) @ v <= box + 1e-12
    assert smaller > 20


def test_growth():
    for d in (0.0, 1e-6, 5e-4, 1e-3, 0.1, 3.0):
        series = sum(d**k / np.prod(np.arange(1, k + 3, dtype=float)) for k in range(60))
        assert growth(d) >= series * (1 - 1e-9)
        assert growth(d) == pytest.approx(series, rel=1e-5)


def test_memory_is_used_again_and_not_shared():
    problem = model().problem
    problem.cache["repeats"] = True
    guess = estimate(problem)
    first = optimistic_plan(problem, guess, 0.5)
    kept = problem.cache["centre"]
    second = optimistic_plan(problem, guess, 0.5, VarianceBonus())
    assert problem.cache["centre"] is kept
    third = optimistic_plan(problem, guess, 0.5)
    assert np.array_equal(first.value, third.value)
    assert not np.array_equal(first.value, second.value)


def test_replicas_do_not_depend_on_each_other():
    problem = model(2).problem
    problem.cache["repeats"] = True
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
    """Plans by both loops of a state 0 whose actions are ``pairs`` (values, features, offset, reward)."""
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
    that the maximum uses the growth of the variance up.  The rival has a far larger upper bound, and a value just
    below."""
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
        assert made.start_value[0] == pytest.approx(between, abs=1e-12)  # so much the ellipsoid does not hold
        assert made.upper[0] == pytest.approx(box, abs=1e-9)


def test_actions_tie_within_a_relative_tolerance():
    """The first action within 1e-9 (1 + |Q|) of the best, Q = 1/2 here: a rival must be worth 1.5e-9 more."""
    for more, action in ((-1e-8, 0), (0.0, 0), (1.4e-9, 0), (1.6e-9, 1), (1e-8, 1)):
        for made in rivals([known(0.5), (np.full(3, 0.5 + more), [[-1.0], [0.0], [1.0]], np.zeros(3), 0.0)], 0.3):
            assert made.policy[0, 0, 0] == action
            assert made.start_value[0] == pytest.approx(0.5 + max(more, 0.0), abs=1e-15)
