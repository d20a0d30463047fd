"""Rare switching: any agent, with a new plan only when it has learned enough (Abbasi-Yadkori et al., 2011).

A replica plans again when, for some parameter k,

    det gram_k  >  factor det gram'_k,

gram'_k that of its last plan, and keeps its plan otherwise.  Each plan but the first multiplies some determinant by
``factor``, and a determinant of reg I plus n Hessians of trace at most 1 is at most (reg + n/d)^d, so a replica makes
at most

    n_plans <= 1 + K d log(1 + n/(reg d))/log(factor),   n = T,   K = H

plans (with one shared parameter n = T H and K = 1): O(d H log T) (certain).  An agent without an :class:`Estimate`
switches when the visits of some (stage, s, a), pooled over stages with the same law, have grown by ``factor``: at most
1 + pairs (1 + log_factor T) plans.  During a burn-in (while its ``log`` is not full), an agent plans every episode.

Few plans are not free: on the hard chain (H = 5, gap .15, T = 2000, 20 seeds) LIVAROT's regret of 19 becomes 36 with
the factor 2, 22 with 1.2 and 19 with 1.05.

**How a plan is kept.**  ``plan`` is a function of its arguments and may not write into the state.  So the state keeps,
replica by replica, the inner state of the last switch and its episode; the plan *is* the inner agent's plan in that
state with that episode's random numbers.  Each thread remembers its last plan, so that it need not be made again.  This
changes no result: after a state is loaded, the kept plans are simply made once more.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
import threading
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from livarot.agents.base import Agent, Wrapper, declared, part_of
from livarot.agents.exploration import Log
from livarot.agents.leaves import leaves, mapped
from livarot.agents.livarot import Livarot
from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.core.compiling.jit import jit
from livarot.errors import bad
from livarot.estimation.counts import count_episodes, initial_counts, pair_visits
from livarot.model.episodes import Episodes, Estimate, Plan
from livarot.model.problem import Problem
from livarot.model.tabular_view import laws_of
from livarot.simulation.streams import AgentRandom

_memory = threading.local()


class Kept(NamedTuple):
    """What the plan in use was made from, per replica."""

    inner: FloatArray  # (R, numbers) the inner state of the last switch, flattened
    since: IntArray  # (R,) the episode of the last switch
    reference: FloatArray  # (R, K) log det, or (R, pairs) visits, at the last switch
    n_plans: IntArray  # (R,) plans so far
    counts: IntArray  # (R, rows) visits so far, of agents without an Estimate; else (R, 0)
    episode: int


@checked
@dataclass(frozen=True)
class RareSwitching(Wrapper):
    """Another agent that plans rarely; its state is that agent's own with one more field, ``kept``."""

    name: ClassVar[str] = "rare-switching"

    agent: Agent[Any] = field(default_factory=Livarot)  # the wrapped agent, which plans and learns
    factor: float = 2.0  # growth of a determinant (or of visits) that calls for a new plan; 1: after any growth

    def __post_init__(self) -> None:
        if isinstance(self.agent, RareSwitching):
            raise bad("agent", f"{self.agent!r} cannot be wrapped", cure="pass an agent such as Livarot()")
        if self.factor < 1.0:
            raise bad("factor", f"{self.factor} is below 1", cure="2 plans when a determinant has doubled")

    def init(self, problem: Problem, n_replicas: int = 1) -> Any:
        inner = self.agent.init(problem, n_replicas)
        counts = initial_counts(laws_of(problem), n_replicas)
        kept = Kept(
            _packed(inner, n_replicas),
            np.zeros(n_replicas, dtype=np.int64),
            np.zeros((n_replicas, 0)),
            np.ones(n_replicas, dtype=np.int64),
            counts if part_of(inner, Estimate) is None else counts[:, :0],
            0,
        )
        kind: Any = type(inner)
        return _extended(kind)(*inner, kept._replace(reference=_growth(problem, inner, kept.counts)))

    def promised_coverage(self) -> float | None:
        """That of the wrapped agent: a set that is kept for several episodes is one of the same sequence of sets."""
        return declared(self.agent).promised_coverage()

    def plan(self, problem: Problem, state: Any, rng: AgentRandom) -> Plan:
        kept: Kept = state.kept
        seeds = list(rng.of(len(kept.since))._seeds)
        last: _Made | None = getattr(_memory, "last", None)
        usable = np.zeros(len(kept.since), dtype=np.bool_)
        if last is not None and last.problem is problem and last.agent is self.agent and last.seeds == seeds:
            if last.since is kept.since and last.inner is kept.inner:  # no replica switched
                return last.plan
            if last.inner.shape == kept.inner.shape:
                usable = (last.since == kept.since) & (last.inner == kept.inner).all(axis=1)
        plan = last.plan if last is not None and usable.any() else None
        for episode in np.unique(kept.since[~usable]):
            chosen = np.flatnonzero((kept.since == episode) & ~usable)
            inner = _unpacked(_inner(state), kept.inner[chosen], len(seeds))
            part = self.agent.plan(problem, inner, AgentRandom([seeds[r] for r in chosen], int(episode)))
            whole = len(chosen) == len(part.policy) == len(seeds)
            plan = part if whole else _merged(plan, part, chosen, len(seeds))
        assert plan is not None  # noqa: S101 (each replica is usable or was just planned for)
        _memory.last = _Made(self.agent, problem, seeds, kept.since, kept.inner, plan)
        return plan

    def update(self, problem: Problem, state: Any, episodes: Episodes) -> Any:
        inner = self.agent.update(problem, _inner(state), episodes)
        kept: Kept = state.kept
        counts, episode, replicas = kept.counts, kept.episode + 1, len(episodes.states)
        if counts.shape[1]:
            counts = count_episodes(laws_of(problem), counts, episodes)
        kept = kept._replace(counts=counts, episode=episode)
        growth = _growth(problem, inner, counts)
        due = self._due(inner, growth, kept)
        same = _with_room(inner, _inner(state), kept.inner, replicas)
        if same is None:  # the state has another form, after a burn-in: all replicas plan anew
            due[:] = True
        elif not due.all():
            kept = kept._replace(inner=same)
        if due.any():
            packed = _packed(inner, replicas)
            kept = kept._replace(
                inner=packed if due.all() else np.where(due[:, None], packed, kept.inner),
                since=np.where(due, episode, kept.since),
                reference=np.where(due[:, None], growth, kept.reference),
                n_plans=kept.n_plans + due,
            )
        return type(state)(*inner, kept)

    def _due(self, inner: Any, growth: FloatArray, kept: Kept) -> BoolArray:
        log = part_of(inner, Log)
        if log is not None and kept.episode <= log.pairs.shape[1]:
            return np.ones(len(growth), dtype=np.bool_)
        if kept.counts.shape[1]:
            grown = growth >= self.factor * np.maximum(kept.reference, 1.0)
            return np.asarray((grown & (growth > kept.reference)).any(axis=1))
        return np.asarray((growth > kept.reference + math.log(self.factor)).any(axis=1))


class _Made(NamedTuple):
    """The last plan of a thread and what it was made from."""

    agent: Agent[Any]
    problem: Problem
    seeds: list[int]
    since: IntArray
    inner: FloatArray
    plan: Plan


@cache
def _extended(inner: Any) -> Any:
    """The inner agent's state with one more field; code that reads ``state.estimate`` still finds it."""
    make: Any = namedtuple
    made = make(f"RareSwitching{inner.__name__}", (*inner._fields, "kept"))
    made.inner = inner
    return made


def _inner(state: Any) -> Any:
    return type(state).inner(*state[:-1])


def _growth(problem: Problem, inner: Any, counts: IntArray) -> FloatArray:
    """log det of each Gram matrix (R, K), or visits of each pair (R, pairs)."""
    estimate = part_of(inner, Estimate)
    if estimate is None:
        return pair_visits(laws_of(problem), counts).astype(np.float64)
    out = np.empty(estimate.whiten.shape[:2])
    _log_determinants(problem.rows.block_start, problem.rows.gram_start, estimate.whiten, out)
    return out


def _packed(state: Any, replicas: int) -> FloatArray:
    """Every number of a state, (R, numbers); what replicas share is repeated, integers must be below 2^53."""
    parts = [np.zeros((replicas, 0))]
    for leaf in map(np.asarray, leaves(state).values()):
        if leaf.size:
            whole = np.broadcast_to(leaf, (replicas, *leaf.shape[1:]))
            parts.append(whole.reshape(replicas, -1).astype(np.float64))
    return np.concatenate(parts, axis=1)


def _unpacked(pattern: Any, packed: FloatArray, replicas: int) -> Any:
    """The state of the replicas in ``packed``; ``pattern``, a state of ``replicas`` replicas, gives the form."""
    at = 0

    def leaf_of(name: str, leaf: Any) -> Any:
        nonlocal at
        shape = np.shape(leaf)
        if np.size(leaf) == 0:
            return leaf[: len(packed)] if shape[0] == replicas else leaf
        size = math.prod(shape[1:])
        at += size
        part = packed[:, at - size : at]
        if not shape:
            return type(leaf)(part[0, 0])
        own = part if len(leaf) == replicas else part[:1]
        return own.reshape(len(own), *shape[1:]).astype(leaf.dtype)

    return mapped(leaf_of, pattern)


def _with_room(new: Any, old: Any, packed: FloatArray, replicas: int) -> FloatArray | None:
    """``packed``, made from states of the form of ``old``, padded as if they had had the room that ``new`` has.

    Room is appended (:func:`livarot.estimation.history.record`) as soon as *one* replica needs it, which must not
    matter to the others.  None if the forms differ in another way.
    """
    forms = [[np.shape(leaf) for leaf in leaves(state).values()] for state in (new, old)]
    if forms[0] == forms[1]:
        return packed
    parts, at = [], 0
    for wide, narrow in zip(*forms, strict=True):
        more = [(0, w - n) for w, n in zip(wide, narrow, strict=True)]
        if any(extra < 0 for _, extra in more) or (0 in narrow and wide != narrow) or wide[:1] != narrow[:1]:
            return None
        size = math.prod(narrow[1:]) if 0 not in narrow else 0
        if size:
            part = packed[:, at : at + size].reshape(replicas, *narrow[1:])
            parts.append(np.pad(part, [(0, 0), *more[1:]]).reshape(replicas, -1))
        at += size
    return np.concatenate(parts, axis=1)


def _merged(plan: Plan | None, part: Plan, chosen: NDArray[np.intp], replicas: int) -> Plan:
    """``plan`` with the replicas ``chosen`` replaced by those of ``part``; fields that one of them lacks are None."""
    merged: list[Any] = []
    for index, new in enumerate(part):
        if not isinstance(new, np.ndarray) or (plan is not None and plan[index] is None):
            merged.append(new if isinstance(new, str) else None)
            continue
        old: Any = np.empty((replicas, *new.shape[1:]), new.dtype) if plan is None else plan[index]
        whole = np.array(np.broadcast_to(old, (replicas, *new.shape[1:])))
        whole[chosen] = new
        merged.append(whole)
    return Plan(*merged)


@jit
def _log_determinants(block_start, gram_start, whiten, out):
    """log det gram = -2 sum log W_ii; entries are multiplied before a logarithm is taken, as far as range allows."""
    for r in range(whiten.shape[0]):
        for k in range(whiten.shape[1]):
            total, product = 0.0, 1.0
            for b in range(len(block_start) - 1):
                n = block_start[b + 1] - block_start[b]
                for i in range(n):
                    product *= whiten[r, k, gram_start[b] + i * n + i]
                    if product < 1e-100 or product > 1e100:
                        total += math.log(product)
                        product = 1.0
            out[r, k] = -2.0 * (total + math.log(product))
