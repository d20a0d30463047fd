"""The endless run: what is reported is true, the same seed gives the same bits, and learning is seen."""

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.infinite import (
    UCMNLK,
    FixedPolicy,
    InfiniteMDP,
    diameter,
    policy_gain,
    policy_value,
    run_infinite,
    solve_average,
    solve_discounted,
)


def park(**options):
    return InfiniteMDP.from_mdp(envs.park_two_state(**options))


AGENT = UCMNLK.average(400, 4.0, reg=1.0)


def test_average_regret_is_what_it_says():
    mdp = park()
    result = run_infinite(mdp, AGENT, 400, seed=range(3))
    gain = solve_average(mdp).gain
    assert result.optimum == gain and result.n_steps == 400
    np.testing.assert_allclose(
        result.cumulative_realised_regret[:, -1], 400 * gain - result.reward.sum(axis=1), rtol=1e-12
    )
    np.testing.assert_array_equal(result.reward, result.states[:, :-1] == 1)  # state 1 pays 1
    assert (result.regret >= -1e-12).all()
    assert set(np.diff(result.epoch, axis=1).ravel()) <= {0, 1}
    assert (result.n_epochs == result.epoch[:, -1] + 1).all()
    # within an epoch the regret per step is that of one policy: one value in a model of one recurrent class
    for r in range(3):
        for epoch in np.unique(result.epoch[r]):
            assert np.ptp(result.regret[r, result.epoch[r] == epoch]) < 1e-12


def test_fixed_policies_have_their_own_gain():
    mdp = park()
    for policy in ([7, 0], [0, 0], [3, 5]):
        result = run_infinite(mdp, FixedPolicy(np.array(policy)), 50, seed=[1, 2])
        expected = solve_average(mdp).gain - policy_gain(mdp, policy).gain[0]
        np.testing.assert_allclose(result.regret, expected, rtol=0, atol=1e-12)
        assert result.covered.mask.all() and result.optimism_gap.mask.all()


def test_the_mean_reward_of_a_fixed_policy_is_its_gain():
    """20 seeds of 4000 steps: a two-state chain with correlation 1 - p - q = .47, sd of the mean .0047 per seed."""
    mdp = park()
    result = run_infinite(mdp, FixedPolicy(np.array([7, 0])), 4000, seed=range(20))
    means = result.reward.mean(axis=1)
    rho = 1 - 0.28 - 0.25
    sd = np.sqrt(0.5283 * 0.4717 * (1 + rho) / (1 - rho) / 4000)
    assert abs(means.mean() - 0.28 / 0.53) < 4 * sd / np.sqrt(20)


def test_discounted_regret_is_the_gap_at_the_visited_states():
    mdp, gamma = park(gap=0.1), 0.95
    result = run_infinite(mdp, UCMNLK(discount=gamma, reg=1.0), 300, seed=[4], discount=gamma)
    best = solve_discounted(mdp, gamma).value
    np.testing.assert_allclose(result.optimum, best, rtol=1e-12)
    assert result.realised_regret.mask.all() and result.cumulative_realised_regret.mask.all()
    fixed = run_infinite(mdp, FixedPolicy(np.array([0, 0])), 100, seed=[4], discount=gamma)
    gap = best - policy_value(mdp, [0, 0], gamma)
    np.testing.assert_allclose(fixed.regret[0], gap[fixed.states[0, :-1]], rtol=0, atol=1e-12)
    assert len(set(fixed.states[0, :-1].tolist())) == 2


def test_same_seed_same_bits_whatever_the_neighbours():
    mdp = park()
    together = run_infinite(mdp, AGENT, 300, seed=[5, 6, 7])
    for index, seed in enumerate((5, 6, 7)):
        alone = run_infinite(mdp, AGENT, 300, seed=seed)
        for name in ("regret", "reward", "states", "epoch"):
            assert getattr(alone, name)[0].tobytes() == getattr(together, name)[index].tobytes(), name
    assert together.states[0].tobytes() != together.states[1].tobytes()


def test_a_longer_run_begins_with_the_shorter(monkeypatch):
    mdp = park()
    long = run_infinite(mdp, AGENT, 301, seed=9)
    short = run_infinite(mdp, AGENT, 123, seed=9)
    assert long.regret[0, :123].tobytes() == short.regret[0].tobytes()
    monkeypatch.setattr("livarot.infinite.learning.run.BLOCK", 64)
    blocks = run_infinite(mdp, AGENT, 301, seed=9)
    assert blocks.states.tobytes() == long.states.tobytes()


def test_the_start_is_drawn_from_its_distribution():
    mdp = InfiniteMDP.from_mdp(envs.river_swim(variant="strehl", shared_parameter=True))
    result = run_infinite(mdp, FixedPolicy(np.zeros(6, dtype=int)), 1, seed=range(400))
    counts = np.bincount(result.states[:, 0], minlength=6)
    assert counts[[0, 3, 4, 5]].sum() == 0 and 140 < counts[1] < 260  # 200, sd 10


def test_progress_and_interruption():
    seen = []
    run_infinite(park(), FixedPolicy(np.array([7, 0])), 5, seed=range(3), progress=seen.append)
    assert seen == [3] * 5

    def stop(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_infinite(park(), AGENT, 5, progress=stop)


def test_table():
    table = run_infinite(park(), AGENT, 20, seed=[3, 4]).to_pandas()
    assert len(table) == 40 and table["step"].max() == 20
    assert table["covered"].notna().all() and table["realised_regret"].notna().all()
    fixed = run_infinite(park(), FixedPolicy(np.array([7, 0])), 3, discount=0.9).to_pandas()
    assert fixed["covered"].isna().all() and fixed["realised_regret"].isna().all()


def test_refusals():
    mdp = park()
    for call, argument in (
        (lambda: run_infinite(envs.park_two_state(), AGENT, 5), "mdp"),
        (lambda: run_infinite(mdp, AGENT, 0), "n_steps"),
        (lambda: run_infinite(mdp, AGENT, 5, seed=[]), "seed"),
        (lambda: run_infinite(mdp, AGENT, 5, seed=[0, -1]), "seed"),
        (lambda: run_infinite(mdp, AGENT, 5, discount=1.0), "discount"),
        (lambda: run_infinite(mdp, FixedPolicy(np.full((2, 8), 0.125)), 5), "policy"),
        (lambda: run_infinite(mdp, FixedPolicy(np.array([0, 8])), 5), "policy"),
    ):
        with pytest.raises(livarot.LivarotError) as error:
            call()
        assert error.value.argument == argument


def test_the_river():
    """The first plan, at theta = 0, swims right, and learning keeps that, with a small radius and a larger one."""
    mdp = InfiniteMDP.from_mdp(envs.river_swim(variant="park", shared_parameter=True))
    for scale in (0.0005, 0.01):
        result = run_infinite(mdp, UCMNLK.average(1000, diameter(mdp), beta_scale=scale), 1000, seed=range(5))
        assert result.cumulative_regret[:, -1].max() < 1e-9 and result.n_epochs.min() > 5


def test_it_learns_when_the_gap_is_wide():
    """Gap .1, T = 2000, 5 seeds: below a tenth of the uniform policy's regret; the first policy, if kept, has 875."""
    mdp = park(gap=0.1)
    result = run_infinite(mdp, UCMNLK.average(2000, 4.0), 2000, seed=range(5))
    uniform = solve_average(mdp).gain - policy_gain(mdp, np.full((2, 8), 0.125)).gain[0]
    assert result.cumulative_regret[:, -1].mean() < 0.1 * 2000 * uniform
    assert result.regret[:, -200:].mean() < 0.05 * uniform


@pytest.mark.statistical
def test_it_learns_park_s_instance():
    """T = 5000, 10 seeds: below three quarters of the uniform policy's 139.7; 20 seeds have 67, se 12."""
    mdp = park()
    result = run_infinite(mdp, UCMNLK.average(5000, 4.0), 5000, seed=range(10))
    uniform = solve_average(mdp).gain - policy_gain(mdp, np.full((2, 8), 0.125)).gain[0]
    assert result.cumulative_regret[:, -1].mean() < 0.75 * 5000 * uniform


def test_a_short_display():
    result = run_infinite(park(), FixedPolicy(np.array([7, 0])), 50, seed=[1, 2])
    lines = repr(result).splitlines()
    assert len(lines) <= 12 and "2 seeds, 50 steps" in repr(result) and max(map(len, lines)) <= 120
    assert f"{result.regret.sum(axis=1).mean():.6g} on average" in repr(result) and "<table>" in result._repr_html_()
