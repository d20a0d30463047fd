"""Random streams by counter: the same numbers wherever one begins, for whichever agent."""

import numpy as np
import pytest
from scipy import stats

from livarot.simulation.streams import AgentRandom, Draws, action_uniforms, environment_uniforms, stream


@pytest.mark.parametrize("draw", [environment_uniforms, action_uniforms])
@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 20])
def test_uniforms_do_not_depend_on_where_blocks_begin(draw, horizon):
    whole = draw(5, 0, 40, horizon)
    assert whole.shape == (40, horizon + (1 if draw is environment_uniforms else 0))
    pieces = np.concatenate([draw(5, first, count, horizon) for first, count in ((0, 1), (1, 16), (17, 3), (20, 20))])
    assert pieces.tobytes() == whole.tobytes()
    assert draw(5, 39, 1, horizon).tobytes() == whole[39:].tobytes()
    assert whole.tobytes() == draw(5, 0, 40, horizon).tobytes()


def test_streams_of_seeds_and_purposes_differ():
    draws = [environment_uniforms(s, 0, 200, 4) for s in (0, 1, 2, 2**40)] + [action_uniforms(0, 0, 200, 5)]
    for i, one in enumerate(draws):
        assert len(np.unique(one)) == one.size  # no episode repeats another
        for other in draws[i + 1 :]:
            assert not np.intersect1d(one, other).size
            assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.15


def test_uniforms_are_uniform_and_independent():
    u = environment_uniforms(3, 0, 4000, 4)
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    for column in range(5):
        assert stats.kstest(u[:, column], "uniform").pvalue > 1e-3
    cells = np.histogram2d(u[:-1, 0], u[1:, 0], bins=4, range=[[0, 1], [0, 1]])[0]  # of successive episodes
    assert stats.chisquare(cells.ravel()).pvalue > 1e-3


def test_the_stream_is_a_philox_generator_with_a_counter():
    assert isinstance(stream(0, "x").bit_generator, np.random.Philox)
    ahead = stream(7, "x", 3).random(8)
    assert ahead.tobytes() == stream(7, "x").random(20)[12:].tobytes()  # four numbers per count


def test_agent_randomness_is_per_replica_and_episode():
    one = AgentRandom([4, 9], 3)
    first, second = one.normal((2, 3)), one.uniform((5,))
    assert first.shape == (2, 2, 3)
    assert second.shape == (2, 5)
    again = AgentRandom([9], 3)
    assert again.normal((2, 3)).tobytes() == first[1:].tobytes()
    assert again.uniform((5,)).tobytes() == second[1:].tobytes()
    assert AgentRandom([9], 4).normal((2, 3)).tobytes() != first[1:].tobytes()
    assert AgentRandom([4], 3).normal().shape == (1,)


def test_the_global_generator_is_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    environment_uniforms(0, 0, 10, 3)
    AgentRandom([1], 0).uniform((3,))
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_whatever_was_drawn_before_an_episode_begins_at_its_own_place():
    """Odd draws leave half-used buffers behind; none of it reaches the next episode."""
    rng = AgentRandom([3, 11])
    for episode in (0, 5, 1, 5, 2**40):
        rng.start(episode)
        for generator, seed in zip(rng.generators, (3, 11), strict=True):
            fresh = stream(seed, "agent", episode << 64)
            for draw in (
                lambda g: g.random(3),
                lambda g: g.integers(7, size=3, dtype=np.int32),
                lambda g: g.standard_gamma(0.3, 5),
                lambda g: g.standard_normal(1),
            ):
                assert draw(generator).tobytes() == draw(fresh).tobytes()


@pytest.mark.parametrize("horizon", [1, 3, 7])
def test_blocks_of_draws_are_the_uniforms_of_each_seed(horizon):
    """Blocks that follow each other, a shorter last one, and one that begins elsewhere."""
    seeds = [4, 9, 2**40]
    for made, draw in ((Draws.of_environment, environment_uniforms), (Draws.of_actions, action_uniforms)):
        draws = made(seeds, horizon)
        assert draws.numbers is None
        for first, end in ((0, 8), (8, 16), (16, 19), (3, 11)):
            found = draws.block(first, end)
            assert found is draws.numbers
            expected = np.stack([draw(seed, first, end - first, horizon) for seed in seeds], axis=1)
            assert found[: end - first].tobytes() == expected.tobytes()
