"""Random numbers by counter: one Philox stream per (seed, purpose), the episode as its counter.

Episode t of a seed always uses the same block of the stream, so a run can start or resume anywhere, the
environment's numbers do not depend on the agent, and nothing depends on the number of workers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.errors import bad

DRAWS_PER_COUNT = 4  # one step of the Philox counter gives four doubles


def seed_list(seed: int | Sequence[int]) -> list[int]:
    """One seed or several, checked, as a list."""
    seeds: list[Any] = list(seed) if isinstance(seed, Iterable) else [seed]
    if not seeds:
        raise bad("seed", "is empty", cure="give an int or a non-empty sequence of ints")
    for index, value in enumerate(seeds):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**63:
            raise bad("seed", f"{value!r} is not a seed", index=index, cure="seeds are integers from 0 to 2^63 - 1")
    return [int(value) for value in seeds]


def stream(seed: int, purpose: str, count: int = 0) -> np.random.Generator:
    """The generator of a (seed, purpose), its counter advanced to ``count``."""
    # crc32 keeps the purpose a plain number; SeedSequence mixes both into the key
    entropy = np.random.SeedSequence((int(seed), zlib.crc32(purpose.encode())))
    bits = np.random.Philox(entropy)
    bits.advance(count)
    return np.random.Generator(bits)


def _uniforms(seed: int, purpose: str, first_episode: int, n_episodes: int, width: int) -> FloatArray:
    return Draws(purpose, [seed], width).block(first_episode, first_episode + n_episodes)[:, 0]


def environment_uniforms(seed: int, first_episode: int, n_episodes: int, horizon: int) -> FloatArray:
    """u (n_episodes, H + 1): u[t, 0] chooses the start, u[t, 1 + h] the transition of stage h."""
    return _uniforms(seed, "environment", first_episode, n_episodes, horizon + 1)


def action_uniforms(seed: int, first_episode: int, n_episodes: int, horizon: int) -> FloatArray:
    """Uniforms (n_episodes, H) for agents whose policy draws its actions."""
    return _uniforms(seed, "action", first_episode, n_episodes, horizon)


class Draws:
    """:func:`environment_uniforms` or :func:`action_uniforms` of several seeds, in blocks of episodes.

    Blocks go to the same memory, ``numbers`` (episodes, seeds, width), and those that follow each other go on with the
    same generators: making one takes as long as a hundred episodes' draws.
    """

    numbers: FloatArray | None = None

    def __init__(self, purpose: str, seeds: Sequence[int], width: int) -> None:
        self._purpose, self._seeds, self._width = purpose, seeds, width
        self._next = -1

    @classmethod
    def of_environment(cls, seeds: Sequence[int], horizon: int) -> Draws:
        return cls("environment", seeds, horizon + 1)

    @classmethod
    def of_actions(cls, seeds: Sequence[int], horizon: int) -> Draws:
        return cls("action", seeds, horizon)

    def block(self, first: int, end: int) -> FloatArray:
        """``numbers`` with those of the episodes from ``first`` to ``end`` in front; the first block is the longest."""
        counts, episodes = -(-self._width // DRAWS_PER_COUNT), end - first  # whole counter steps per episode
        if self.numbers is None:
            self.numbers = np.empty((episodes, len(self._seeds), self._width))
        if first != self._next:
            self._generators = [stream(seed, self._purpose, first * counts) for seed in self._seeds]
        self._next = end
        for r, generator in enumerate(self._generators):
            drawn = generator.random((episodes, counts * DRAWS_PER_COUNT))
            self.numbers[:episodes, r] = drawn[:, : self._width]
        return self.numbers


class AgentRandom:
    """An agent's own randomness: one independent stream per replica, indexed by the episode.

    It costs nothing until it is used.  ``normal(shape)`` is (R, *shape); calls within an episode continue its stream.
    """

    def __init__(self, seeds: Sequence[int], episode: int = 0) -> None:
        self._seeds = seeds
        self._generators: list[np.random.Generator] | None = None
        self.start(episode)

    def start(self, episode: int) -> None:
        """Go to the beginning of an episode's numbers."""
        self._episode = episode
        self._ready = False

    def of(self, replicas: int) -> AgentRandom:
        """This object itself; refused unless it has one stream per replica of a state."""
        if len(self._seeds) != replicas:
            problem = f"has {len(self._seeds)} streams, the state has {replicas} replicas"
            raise bad("rng", problem, cure="make it with one seed per replica: AgentRandom([0, 1])")
        return self

    @property
    def generators(self) -> list[np.random.Generator]:
        """One generator per replica."""
        if self._generators is None:
            self._generators = [stream(seed, "agent") for seed in self._seeds]
        if not self._ready:
            for generator in self._generators:
                _go_to(generator, self._episode)
            self._ready = True
        return self._generators

    def normal(self, shape: tuple[int, ...] = ()) -> FloatArray:
        """Standard normal numbers (R, *shape)."""
        return np.stack([g.standard_normal(shape) for g in self.generators])

    def uniform(self, shape: tuple[int, ...] = ()) -> FloatArray:
        """Uniform numbers in [0, 1), (R, *shape)."""
        return np.stack([g.random(shape) for g in self.generators])


def _go_to(generator: np.random.Generator, episode: int) -> None:
    """Set the counter to 2^64 times the episode, so that episodes never overlap.

    The same as ``stream(seed, purpose, episode << 64)``, without mixing seed and purpose into a key once more, which
    takes six times as long.
    """
    fresh: Any = dict(generator.bit_generator.state)
    fresh["state"] = {"counter": np.array([0, episode, 0, 0], dtype=np.uint64), "key": fresh["state"]["key"]}
    generator.bit_generator.state = fresh | {"buffer_pos": DRAWS_PER_COUNT, "has_uint32": 0, "uinteger": 0}
