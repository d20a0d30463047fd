"""Sparse arithmetic of stationary models: Bellman backups, the chain of a policy, linear systems of that chain.

Nothing here takes more memory than the model: the rows of all pairs, as stored, or those of one policy.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import bicgstab, splu

from livarot.core.arrays import FloatArray, Int32Array
from livarot.core.compiling.inner import inner
from livarot.core.compiling.jit import jit
from livarot.core.views import view
from livarot.infinite.problem import InfiniteMDP

EPS = float(np.finfo(float).eps)
DIRECT = 400  # states: up to here a linear system is factorised, whatever its fill
MAX_KRYLOV = 2000  # steps


class Chain(NamedTuple):
    """The Markov chain of a policy in a model: its kernel (S, S) in CSR form, and its rewards (S,)."""

    start: NDArray[np.int64]  # (S + 1,)
    next_state: Int32Array
    prob: FloatArray
    reward: FloatArray  # (S,)

    @property
    def matrix(self) -> csr_array:
        """The kernel, as a copy: scipy may sort the entries of a matrix in place."""
        n = len(self.reward)
        return csr_array((self.prob, self.next_state, self.start), shape=(n, n), copy=True)


def chain_of(mdp: InfiniteMDP, policy: NDArray[np.int32] | FloatArray, pay: FloatArray) -> Chain:
    """The chain of a checked policy, actions (S,) or probabilities (S, A), with the rewards ``pay`` (S, A)."""
    rows = mdp.problem.rows
    n, n_actions = pay.shape
    if policy.ndim == 2:
        model = matrix_of(mdp)
        places = np.arange(0, n * n_actions + 1, n_actions)
        weights = csr_array((policy.ravel(), np.arange(n * n_actions), places), shape=(n, n * n_actions))
        move = csr_array(weights @ model)
        start = np.asarray(move.indptr, dtype=np.int64)
        mixed = (policy * np.where(policy > 0.0, pay, 0.0)).sum(axis=1)
        return Chain(start, np.asarray(move.indices, dtype=np.int32), move.data, mixed)
    counts = rows.outcomes[np.arange(n) * n_actions + policy]
    size = int(counts.sum())
    chain = Chain(
        np.zeros(n + 1, dtype=np.int64), np.empty(size, dtype=np.int32), np.empty(size), pay[np.arange(n), policy]
    )
    gather(rows_of(mdp), policy, n_actions, *chain[:3])
    return chain


def rows_of(mdp: InfiniteMDP) -> tuple[NDArray[np.int64], Int32Array, FloatArray]:
    """Where the rows of each pair begin, their next states, their probabilities."""
    return mdp.problem.rows.row_start, mdp.problem.rows.next_state, mdp.prob


def matrix_of(mdp: InfiniteMDP) -> csr_array:
    """P as a matrix (S A, S) on the model's own arrays, which scipy may read but not sort."""
    rows, prob = mdp.problem.rows, mdp.prob.view()
    prob.flags.writeable = False
    return csr_array((prob, rows.next_state, rows.row_start), shape=(rows.n_pairs, mdp.problem.n_states))


def solve_system(system: csr_array, right: FloatArray, guess: FloatArray, rtol: float) -> FloatArray:
    """x with system x = right: by factorisation if the system is small, otherwise by BiCGSTAB from ``guess``.

    ``rtol`` is the residual that BiCGSTAB aims at, as a share of that of the guess.  Its answer is as good as its
    residual, which the caller has to check; incomplete factors as preconditioners cost more than they save here.
    """
    if len(right) <= DIRECT:
        factor = splu(csc_array(system))
        x = factor.solve(right)
        return np.asarray(x + factor.solve(right - system @ x))  # one refinement: residuals to rounding
    residual = right - system @ guess
    step, _ = bicgstab(system, residual, rtol=rtol, atol=0.0, maxiter=MAX_KRYLOV)
    better = guess + step
    closer = np.linalg.norm(right - system @ better) < np.linalg.norm(residual)  # also false where BiCGSTAB broke down
    return np.asarray(better if closer else guess)


def discounted_system(chain: Chain, gamma: float) -> csr_array:
    """I - gamma P."""
    return csr_array(eye_array(len(chain.reward), format="csr") - gamma * chain.matrix)


@inner
def mean(prob, next_state, v, first, last):
    """P v of the rows ``first`` to ``last``."""
    total = 0.0
    for row in range(first, last):
        total += prob[row] * v[next_state[row]]
    return total


@jit
def back_up(rows, reward, gamma, v, best, policy, tie):
    """best = max_a (r + gamma P v) and the first action within ``tie`` (1 + |best|) of it; rows: starts, states, probs.

    A pair without rows has the reward -inf, and is never taken.
    Returns the smallest and the largest rise best - v, and the smallest rise of the policy taken.
    """
    start, next_state, prob, value = view(rows[0]), view(rows[1]), view(rows[2]), view(v)
    n_states, n_actions = reward.shape
    q = np.empty(n_actions)
    low, high, own = math.inf, -math.inf, math.inf
    for s in range(n_states):
        top = -math.inf
        for a in range(n_actions):
            pair = s * n_actions + a
            q[a] = reward[s, a] + gamma * mean(prob, next_state, value, start[pair], start[pair + 1])
            top = max(top, q[a])
        a = 0
        while q[a] < top - tie * (1.0 + abs(top)):
            a += 1
        policy[s], best[s] = a, top
        low, high, own = min(low, top - v[s]), max(high, top - v[s]), min(own, q[a] - v[s])
    return low, high, own


@jit
def gather(rows, policy, n_actions, start, next_state, prob):
    """The rows of the policy's pairs, one state after the other."""
    begin, states, probs = view(rows[0]), view(rows[1]), view(rows[2])
    at = 0
    for s in range(len(policy)):
        pair = s * n_actions + policy[s]
        for row in range(begin[pair], begin[pair + 1]):
            next_state[at], prob[at] = states[row], probs[row]
            at += 1
        start[s + 1] = at


@jit
def sweep(start, next_state, prob, reward, gamma, v, out):
    """out = r + gamma P v of a chain; returns the smallest and the largest out - v."""
    begin, states, probs, value = view(start), view(next_state), view(prob), view(v)
    low, high = math.inf, -math.inf
    for s in range(len(out)):
        new = reward[s] + gamma * mean(probs, states, value, begin[s], begin[s + 1])
        out[s] = new
        low, high = min(low, new - v[s]), max(high, new - v[s])
    return low, high


def all_q(mdp: InfiniteMDP, pay: FloatArray, gamma: float, v: FloatArray) -> FloatArray:
    """r + gamma P v, (S, A); -inf where there is no action."""
    return np.asarray(pay + gamma * (matrix_of(mdp) @ v).reshape(pay.shape))


def largest(pay: FloatArray) -> float:
    """max |r| over the pairs that exist."""
    return max(float(pay.max()), -float(pay.min(initial=math.inf, where=np.isfinite(pay))))


def rounding(most: float, top: float, v: FloatArray) -> float:
    """A bound on the rounding error of r + gamma P v, errors of P included: (terms + 4) eps (max|r| + max|v|)."""
    return (most + 4.0) * EPS * (top + float(np.abs(v).max()))
