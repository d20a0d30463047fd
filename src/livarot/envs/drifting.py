"""A model that drifts: the same problem, another theta every so often.

A :class:`Drifting` holds what the learner knows once, and the parameter of each *piece* of episodes.  Episode t is
played in ``drifting.at(t)``, an ordinary :class:`livarot.MNLMDP`.  Three ways to make one of any model:

``abrupt``         a new direction of theta every ``every`` episodes;
``rotation``       a slow turn of theta in one random plane;
``interpolation``  along the straight line to a given theta.

Turning theta by an angle w in the plane of theta and a random unit vector e orthogonal to it,

    theta(w) = cos(w) theta + sin(w) |theta| e,

keeps |theta|, and the segment between two points of the B-ball stays inside: |theta| <= B always.  (With d = 1 there
is no e, and theta(w) = cos(w) theta.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.core.tolerances import NORM_SLACK
from livarot.errors import bad, require_finite, require_number, require_positive_int
from livarot.model.building.validation import whole_numbers
from livarot.model.problem import MNLMDP, Problem
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@checked
@dataclass(frozen=True, eq=False)
class Drifting:
    """Piece i plays ``thetas[i]`` from episode ``boundaries[i]`` (counted from 0) to the next boundary."""

    problem: Problem
    thetas: FloatArray  # (pieces, K, d)
    boundaries: IntArray  # (pieces,) first episodes, from 0, increasing; the last piece has no end

    def __post_init__(self) -> None:
        thetas = require_finite("thetas", self.thetas)
        shape = (self.problem.n_parameters, self.problem.dim)
        if thetas.ndim != 3 or len(thetas) == 0 or thetas.shape[1:] != shape:
            raise bad("thetas", f"has shape {thetas.shape}, expected (pieces, {shape[0]}, {shape[1]})")
        first = whole_numbers("boundaries", self.boundaries)
        if first.shape != (len(thetas),) or first[0] != 0 or (np.diff(first) <= 0).any():
            cure = "give the first episode of each piece: 0, then increasing"
            raise bad("boundaries", f"do not fit {len(thetas)} pieces", cure=cure)
        norms = np.linalg.norm(thetas, axis=2)
        over = np.argwhere(norms > self.problem.param_bound * (1.0 + NORM_SLACK))
        if len(over):
            index = (int(over[0][0]), int(over[0][1]))
            text = f"|theta| = {norms[index]:.6g} exceeds param_bound = {self.problem.param_bound:.6g} at (piece, k)"
            raise bad("thetas", text, index=index, count=len(over), cure="build the model with a larger param_bound")
        object.__setattr__(self, "thetas", thetas)
        object.__setattr__(self, "boundaries", first)

    @property
    def n_pieces(self) -> int:
        return len(self.thetas)

    @property
    def path_length(self) -> FloatArray:
        """sum over pieces of |theta_{i+1} - theta_i|, per parameter, (K,)."""
        return np.asarray(np.linalg.norm(np.diff(self.thetas, axis=0), axis=2).sum(axis=0))

    def piece(self, episode: int) -> int:
        """The piece that an episode belongs to."""
        return int(np.searchsorted(self.boundaries, episode, side="right")) - 1

    def at(self, episode: int) -> MNLMDP:
        """The model of an episode; all share one :class:`livarot.Problem`."""
        return MNLMDP(self.problem, self.thetas[self.piece(episode)])

    def pieces(self, n_episodes: int) -> Iterator[tuple[range, MNLMDP]]:
        """The episodes of each piece, up to ``n_episodes``, with their model."""
        ends = [*self.boundaries[1:].tolist(), n_episodes]
        for first, end, theta in zip(self.boundaries.tolist(), ends, self.thetas, strict=True):
            if first < n_episodes:
                yield range(first, min(end, n_episodes)), MNLMDP(self.problem, theta)

    @classmethod
    @checked(angle=require_number)
    def abrupt(cls, mdp: MNLMDP, every: int, n_pieces: int, *, angle: float = math.pi / 2, seed: int = 0) -> Drifting:
        """Turn theta by ``angle`` in a new random plane every ``every`` episodes.

        >>> from livarot.envs import river_swim
        >>> river = Drifting.abrupt(river_swim(4, 6), every=100, n_pieces=3)
        >>> [river.piece(t) for t in (0, 99, 100, 5000)]
        [0, 0, 1, 2]
        """
        require_memory("n_pieces", "the parameters of all pieces", 3 * n_pieces * mdp.theta.size)
        rng = stream(seed, "drift")
        thetas = [mdp.theta]
        for _ in range(n_pieces - 1):
            thetas.append(_turned(thetas[-1], _orthogonal(rng, thetas[-1]), angle))
        return cls(mdp.problem, np.stack(thetas), whole_numbers("every", [every * piece for piece in range(n_pieces)]))

    @classmethod
    @checked(angle=require_number)
    def rotation(
        cls, mdp: MNLMDP, n_episodes: int, *, angle: float = math.pi / 2, every: int = 1, seed: int = 0
    ) -> Drifting:
        """Turn theta slowly, by ``angle`` over ``n_episodes``, with a new piece every ``every`` episodes."""
        share, first = _shares(n_episodes, every, mdp)
        normal = _orthogonal(stream(seed, "drift"), mdp.theta)
        return cls(mdp.problem, np.stack([_turned(mdp.theta, normal, angle * part) for part in share]), first)

    @classmethod
    @checked
    def interpolation(cls, mdp: MNLMDP, theta: ArrayLike, n_episodes: int, *, every: int = 1) -> Drifting:
        """From the model's theta straight to another one (d,) or (K, d), reached in the last piece."""
        share, first = _shares(n_episodes, every, mdp)
        end = require_finite("theta", theta)
        if end.shape not in (mdp.theta.shape, mdp.theta.shape[1:]):
            raise bad("theta", f"has shape {end.shape}, expected {mdp.theta.shape} or {mdp.theta.shape[1:]}")
        thetas = (1.0 - share)[:, None, None] * mdp.theta + share[:, None, None] * end
        return cls(mdp.problem, thetas, first)


def _shares(n_episodes: int, every: int, mdp: MNLMDP) -> tuple[FloatArray, IntArray]:
    """How far each piece is on its way, from 0 to 1, and its first episode."""
    require_positive_int("n_episodes", n_episodes, minimum=every + 1)
    require_memory("n_episodes", "the parameters of all pieces", 3 * (n_episodes // every) * (mdp.theta.size + 2))
    first = np.arange(0, n_episodes, every)
    return np.arange(len(first)) / (len(first) - 1), first


def _orthogonal(rng: np.random.Generator, theta: FloatArray) -> FloatArray:
    """A random vector orthogonal to each theta and as long as it; 0 where there is none."""
    draw = rng.standard_normal(theta.shape)
    length = np.linalg.norm(theta, axis=1, keepdims=True)
    unit = theta / np.where(length > 0.0, length, 1.0)
    for _ in range(2):  # once more: the first difference may cancel
        draw -= (draw * unit).sum(axis=1, keepdims=True) * unit
    size = np.linalg.norm(draw, axis=1, keepdims=True)
    return np.asarray(np.where(size > 1e-12, draw / np.where(size > 0.0, size, 1.0), 0.0) * length)


def _turned(theta: FloatArray, normal: FloatArray, angle: float) -> FloatArray:
    return np.asarray(math.cos(angle) * theta + math.sin(angle) * normal)
