"""Tabular planners against their twins, the L1 maximum against a linear program."""

import numpy as np
import pytest

from livarot.core.compiling.jit import jit
from livarot.estimation.counts import count_episodes, initial_counts
from livarot.model.tabular_view import laws_of
from livarot.planning import empirical as tabular
from livarot.planning.empirical import (
    BonusCode,
    bonus_values,
    empty_values,
    noisy_values,
    optimistic_values,
    sampled_values,
)
from tests.support.tabular import MODELS, as_lists, assert_same_plan, dense_counts, episodes_of, follow_of, law_of, one
from tests.twins import tabular as ref

KINDS = pytest.mark.parametrize("mdp", MODELS.values(), ids=MODELS)
KNOWN = pytest.mark.parametrize("known", [True, False], ids=["known", "any"])
NONE = np.zeros((2, 0, 0), dtype=np.int64), np.zeros((2, 0, 0, 0))


@jit
def l1_maximum(mass, gains, n, visits, half):
    return tabular.l1_maximum(mass, gains, n, visits, half)


def counted(mdp, known, n=12):
    """Counts of two replicas (n and 2n episodes), and the twins' dicts."""
    laws, episodes = laws_of(mdp.problem, known), episodes_of(mdp, 2 * n)
    counts = initial_counts(laws, 1)
    kept = []
    for i in range(2 * n):
        counts = count_episodes(laws, counts, one(episodes, i))
        kept += [counts] if i in (n - 1, 2 * n - 1) else []
    twins = [ref.count(follow_of(mdp, known), law_of(mdp), as_lists(episodes)[:k]) for k in (n, 2 * n)]
    return laws, np.concatenate(kept), twins


@KINDS
@KNOWN
def test_bonus(mdp, known):
    laws, counts, twins = counted(mdp, known)
    H = mdp.problem.horizon
    code = BonusCode(0.2, over_root=0.3, variance=0.7, over_n=0.11, over_n_left=0.05)

    def bonus(n, variance, h, p):
        return 0.2 * (0.3 / n**0.5 + 0.7 * (variance / n) ** 0.5 + (0.11 + 0.05 * (H - h)) / n)

    values = bonus_values(mdp.problem, laws, counts, code, *NONE)
    for r in range(2):
        twin = ref.bonus_plan(follow_of(mdp, known), law_of(mdp), mdp.problem.reward, twins[r], bonus)
        assert_same_plan(mdp, values, twin, known, r)


@KNOWN
def test_bonus_with_correction_and_a_last_plan(known):
    mdp = MODELS["stage-dependent"]
    laws, counts, twins = counted(mdp, known)
    shape = mdp.problem.reward.shape
    rng = np.random.default_rng(3)
    seen = rng.integers(0, 3, size=(2, *shape[:2]))
    last = rng.uniform(0.3, 3.0, size=(2, *shape))
    far = 5.0
    code = BonusCode(0.1, over_root=1.0, correction=far)
    q = last.copy()
    values = bonus_values(mdp.problem, laws, counts, code, seen, q)
    H, follow = mdp.problem.horizon, follow_of(mdp, known)
    for r in range(2):

        def bonus(n, variance, h, p, r=r):
            each = {y: min(far / seen[r, h + 1, y], H**2) if h + 1 < H and seen[r, h + 1, y] else H**2 for y in p}
            return 0.1 * (1 / n**0.5 + (8 / n * sum(p[y] * each[y] for y in p)) ** 0.5)

        twin = ref.bonus_plan(follow, law_of(mdp), mdp.problem.reward, twins[r], bonus, last[r])
        assert_same_plan(mdp, values, twin, known, r)
        lowered = np.array([[[len(follow[h][s][a]) > 1 for a in range(shape[2])] for s in range(shape[1])]
                            for h in range(shape[0])])  # fmt: skip
        lowered &= (mdp.problem.reachable[:-1] if known else np.ones(shape[:2], dtype=bool))[:, :, None]
        np.testing.assert_allclose(q[r][lowered], np.array(twin[1])[lowered], rtol=0, atol=1e-12)
        assert (q[r][lowered] <= last[r][lowered]).all()


@KINDS
@KNOWN
def test_l1_optimism(mdp, known):
    laws, counts, twins = counted(mdp, known, n=6)
    values = empty_values(mdp.problem, 2)
    optimistic_values(mdp.problem, laws, counts, np.array([0.5, 1.1]), np.ones(2, dtype=np.bool_), values)
    for r, width in enumerate((0.5, 1.1)):
        twin = ref.optimistic_plan(
            follow_of(mdp, known), law_of(mdp), mdp.problem.reward, twins[r], lambda n, k, w=width: w * (k / n) ** 0.5
        )
        assert_same_plan(mdp, values, twin, known, r, atol=1e-9)


def test_only_those_who_are_due_are_planned_for():
    mdp = MODELS["homogeneous"]
    laws, counts, _ = counted(mdp, True)
    both, single = empty_values(mdp.problem, 2), empty_values(mdp.problem, 2)
    optimistic_values(mdp.problem, laws, counts, np.full(2, 0.3), np.array([True, True]), both)
    optimistic_values(mdp.problem, laws, counts, np.full(2, 0.3), np.array([False, True]), single)
    assert not single.value[0].any() and not single.policy[0].any() and single.start_value[0] == 0
    assert np.array_equal(single.value[1], both.value[1]) and single.start_value[1] == both.start_value[1]


def test_the_l1_maximum_is_that_of_the_linear_program():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(2, 7))
        counts = rng.integers(0, 4, size=n).astype(float)
        counts[0] += 1
        gains, half = rng.normal(size=n).round(1), 10 ** rng.uniform(-3, 0.5)  # rounding makes ties
        p = counts / counts.sum()
        found = l1_maximum(counts.copy(), gains.copy(), n, int(counts.sum()), half)
        assert found == pytest.approx(ref.l1_maximum(p.tolist(), gains.tolist(), 2 * half), abs=1e-9)
        assert p @ gains - 1e-12 <= found <= gains.max()


def test_the_l1_maximum_moves_mass_by_value_and_not_by_probability():
    assert l1_maximum(np.array([8.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.5]), 3, 10, 0.3) == pytest.approx(0.45)
    assert l1_maximum(np.array([1.0, 1.0]), np.array([2.0, 5.0]), 2, 0, 0.0) == 5.0  # no visits


@KINDS
@KNOWN
def test_noise(mdp, known):
    laws, counts, twins = counted(mdp, known)
    noise = np.random.default_rng(1).normal(size=(2, *mdp.problem.reward.shape))
    values = noisy_values(mdp.problem, laws, counts, noise, 0.4, 0.2)
    for r in range(2):
        twin = ref.noisy_plan(follow_of(mdp, known), law_of(mdp), mdp.problem.reward, twins[r], noise[r], 0.4, 0.2)
        assert_same_plan(mdp, values, twin, known, r)


@KINDS
@KNOWN
def test_sampled(mdp, known):
    laws = laws_of(mdp.problem, known)
    weights = np.random.default_rng(2).gamma(0.5, size=(2, len(laws.next_state)))
    weights[1, laws.row_start[2] : laws.row_start[3]] = 0.0  # a pair whose draws have all underflowed
    values = sampled_values(mdp.problem, laws, weights)
    for r in range(2):
        twin = ref.sampled_plan(
            follow_of(mdp, known), law_of(mdp), mdp.problem.reward, dense_counts(mdp, laws, weights[r])
        )
        assert_same_plan(mdp, values, twin, known, r)
