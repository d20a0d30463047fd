"""Random MNL MDPs of chosen size, parameter norm, minimal gap and variance.

Every (s, a) reaches U states drawn without replacement; the first has phi = 0 (the support state that the lower bound
on Hessians needs, E9), the others have unit vectors of uniform direction, the same at all stages.  |theta| = B, with
one uniform direction per stage, or one for all.  The start is state 0.

Rewards make the two problem-dependent constants exact, without search.  Let W be the value of state rewards xi_h(s)
drawn uniformly from [0, 1], and let the best action of (h, s) be the one with the best continuation:

    W_h(s) = xi_h(s) + max_a (P_h W_{h+1})(s, a),   b_h(s) = argmax_a (P_h W_{h+1})(s, a),   l_h(s) = l_0 + c xi_h(s)
    r_h(s, a) = min(1, l_h(s) + c (P_h W_{h+1})(s, b) - c (P_h W_{h+1})(s, a) - gap (1 + u_h(s, a)))

(b_h(s) is drawn where all continuations are equal.)  l_h(s) is the reward of b_h(s), r_h(s, a) that of the others,
with u >= 0 drawn, and 0 for one action of each (h, s).  Then V*_h(s) = c W_h(s) + (H - h) l_0 for every c, hence

    the optimal policy is b,   gap_min = min {V*_h(s) - Q*_h(s, a) > 0} = gap   (attained at the last stage),
    sigma_bar = c sigma_bar(W),   sigma_bar^2 = 1/H sum_h E[Var V*_{h+1}(s_{h+1} | s_h, b_h)] / H^2  along pi*.

c is chosen for ``sigma_bar``; l_0 = gap (1 + max u) keeps rewards >= 0, so c <= 1 - l_0: a larger gap leaves less
room for variance.  With ``gap=None`` all r_h(s, a) are uniform instead, and scaled by c.

The sum of those variances is the variance of the return, so sigma_bar <= 1/(2 sqrt H) always; in a model that mixes
fast it is of order 1/H.  ``persistent=True`` splits the states 1..S-1 into two halves that are never left, one with
rewards (or xi) in [.8, 1] and one in [0, .2]; state 0 reaches both: there sigma_bar may come close to that bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, IntArray
from livarot.errors import bad
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory


@checked
def random_mdp(
    n_states: int = 6,
    n_actions: int = 3,
    n_reachable: int = 3,
    dim: int = 4,
    horizon: int = 8,
    param_bound: float = 2.0,
    gap: float | None = None,
    sigma_bar: float | None = None,
    seed: int = 0,
    *,
    shared_parameter: bool = False,
    persistent: bool = False,
) -> MNLMDP:
    """A random MNL MDP with chosen (S, A, U, d, H, B), and ``gap`` and ``sigma_bar`` if given.

    ``gap`` is the smallest positive V*_h(s) - Q*_h(s, a) over all stages, states and actions; ``sigma_bar`` that of
    the optimal policy from state 0.  A value that cannot be attained is refused, with the range of those that can;
    ``persistent=True`` makes the range of ``sigma_bar`` several times wider.

    >>> import livarot
    >>> solution = livarot.solve(random_mdp(gap=0.1, sigma_bar=0.01))
    >>> gaps = solution.value[:-1, :, None] - solution.q
    >>> round(float(gaps[gaps > 1e-9].min()), 9)
    0.1
    """
    if n_reachable > n_states:
        raise bad("n_reachable", f"is {n_reachable}, there are {n_states} states", cure="take at most n_states")
    pairs = n_states * n_actions
    drawn = 2 * pairs * (n_reachable if persistent else n_states)  # the reachable sets, from permutations of all states
    rows = pairs * n_reachable * (3 * dim + horizon + 8)
    require_memory("n_states", "the random model", drawn + rows + 4 * pairs * horizon + 2 * horizon * dim)
    rng = stream(seed, "random mdp")
    nexts = _reachable_sets(rng, n_states, n_actions, n_reachable, persistent)
    features = rng.standard_normal((n_states * n_actions, n_reachable, dim))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    features[:, 0] = 0.0
    theta = rng.standard_normal((1 if shared_parameter else horizon, dim))
    theta *= param_bound / np.linalg.norm(theta, axis=1, keepdims=True)

    def build(reward: FloatArray) -> MNLMDP:
        problem = Problem.from_arrays(
            horizon,
            n_states,
            n_actions,
            outcomes=np.full((n_states, n_actions), n_reachable),
            next_state=nexts.reshape(-1),
            features=features.reshape(-1, dim),
            reward=reward,
            param_bound=param_bound,
            stage_table=np.zeros(horizon, dtype=np.int32),
            shared_parameter=shared_parameter,
        )
        return MNLMDP(problem, theta)

    shape = (horizon, n_states, n_actions)
    kernel = transition_kernel(build(np.zeros(shape)))
    size = n_states * n_actions * n_reachable
    prob = np.stack([kernel.prob[base : base + size] for base in kernel.base]).reshape(*shape, n_reachable)
    model = _Model(prob, nexts.reshape(n_states, n_actions, n_reachable))
    if gap is None:
        uniform = _levels(rng.random(shape), persistent)
        best, _ = _plan(model, uniform)
        return build(uniform * _factor(model, best, sigma_bar, 1.0 / float(uniform.max())))
    return build(_rewards_with_gap(model, rng, gap, sigma_bar, persistent))


def _reachable_sets(
    rng: np.random.Generator, n_states: int, n_actions: int, n_reachable: int, persistent: bool
) -> IntArray:
    """(S * A, U) different states per row; if persistent, in the state's own half, and from state 0 in both halves."""
    if not persistent:
        order = rng.permuted(np.tile(np.arange(n_states), (n_states * n_actions, 1)), axis=1)
        return np.ascontiguousarray(order[:, :n_reachable])
    low, high = _halves(n_states)
    if n_reachable < 2 or n_reachable > len(low):
        cure = "persistent models need 2 <= n_reachable <= (n_states - 1) // 2"
        raise bad("n_reachable", f"is {n_reachable} with {n_states} states", cure=cure)
    sets = np.empty((n_states, n_actions, n_reachable), dtype=np.int64)
    for s, a in np.ndindex(n_states, n_actions):
        half = high if s in high else low
        if s == 0:  # one of each half, then any
            both = [rng.choice(low), rng.choice(high)]
            rest = np.setdiff1d(np.arange(1, n_states), both)
            sets[s, a] = [*both, *rng.choice(rest, n_reachable - 2, replace=False)]
        else:
            sets[s, a] = rng.choice(half, n_reachable, replace=False)
    return sets.reshape(-1, n_reachable)


def _halves(n_states: int) -> tuple[range, range]:
    middle = 1 + (n_states - 1) // 2
    return range(1, middle), range(middle, n_states)


def _levels(uniform: FloatArray, persistent: bool) -> FloatArray:
    """Draws (H, S) or (H, S, A) as they are, or if persistent squeezed into [0, .2] and [.8, 1] in the two halves."""
    if persistent:
        low, high = _halves(uniform.shape[1])
        uniform[:, low] *= 0.2
        uniform[:, high] = 1.0 - 0.2 * uniform[:, high]
    return uniform


class _Model(NamedTuple):
    prob: FloatArray  # (H, S, A, U)
    nexts: IntArray  # (S, A, U)

    def ahead(self, h: int, value: FloatArray) -> FloatArray:
        """(P_h value)(s, a), (S, A)."""
        return np.asarray(np.einsum("sau,sau->sa", self.prob[h], value[self.nexts]))


class _Best(NamedTuple):
    action: IntArray  # (H, S)
    value: FloatArray  # (H + 1, S)


def _plan(model: _Model, reward: FloatArray) -> tuple[_Best, FloatArray]:
    """Backward induction, and the continuations (H, S, A)."""
    horizon, n_states, _ = reward.shape
    value, action = np.zeros((horizon + 1, n_states)), np.zeros((horizon, n_states), dtype=np.int64)
    ahead = np.zeros(reward.shape)
    for h in range(horizon - 1, -1, -1):
        ahead[h] = model.ahead(h, value[h + 1])
        total = reward[h] + ahead[h]
        action[h] = total.argmax(axis=1)
        value[h] = total.max(axis=1)
    return _Best(action, value), ahead


def _rewards_with_gap(
    model: _Model, rng: np.random.Generator, gap: float, sigma_bar: float | None, persistent: bool
) -> FloatArray:
    horizon, n_states, n_actions, _ = model.prob.shape
    step = gap
    if n_actions < 2 or not 0.0 < step <= 1.0:
        cure = "take two actions or more and 0 < gap <= 1: the last stage has only its reward, which lies in [0, 1]"
        raise bad("gap", f"{step:.6g} cannot be attained with {n_actions} actions", cure=cure)
    xi = _levels(rng.random((horizon, n_states)), persistent)
    best, ahead = _plan(model, np.repeat(xi[:, :, None], n_actions, axis=2))
    best.action[-1] = rng.integers(n_actions, size=n_states)  # all continuations are 0 there
    more = rng.random(ahead.shape) * min(1.0, (1.0 - step) / (2.0 * step))
    here = np.ix_(range(horizon), range(n_states))
    runner_up = (best.action + rng.integers(1, n_actions, size=best.action.shape)) % n_actions
    more[*here, runner_up] = 0.0
    floor = step * (1.0 + float(more.max()))
    factor = _factor(model, best, sigma_bar, 1.0 - floor, default=1.0 - floor)
    level = floor + factor * xi
    lead = factor * (ahead[*here, best.action][:, :, None] - ahead)  # >= 0
    reward = np.minimum(level[:, :, None] + lead - step * (1.0 + more), 1.0)
    reward[*here, best.action] = level
    return np.asarray(np.clip(reward, 0.0, 1.0))  # rounding


def _factor(model: _Model, best: _Best, sigma_bar: float | None, largest: float, default: float = 1.0) -> float:
    """c with c sigma_bar(W) = sigma_bar, at most ``largest``."""
    if sigma_bar is None:
        return default
    asked = sigma_bar
    unit = _spread(model, best)
    if asked > largest * unit:
        raise bad(
            "sigma_bar",
            f"{asked:.6g} is outside the attainable range [0, {largest * unit:.6g}]",
            cure="ask for less, or take persistent=True, a smaller gap or other sizes",
        )
    return asked / unit if unit > 0.0 else 0.0


def _spread(model: _Model, best: _Best) -> float:
    """sigma_bar of the policy ``best`` from state 0, its values being those of a reward scale of 1."""
    horizon, n_states = best.action.shape
    states = np.arange(n_states)
    visits = np.eye(1, n_states)[0]
    total = 0.0
    for h in range(horizon):
        prob, nexts = model.prob[h][states, best.action[h]], model.nexts[states, best.action[h]]
        value = best.value[h + 1][nexts]
        mean = (prob * value).sum(axis=1, keepdims=True)
        total += float(visits @ (prob * (value - mean) ** 2).sum(axis=1))
        visits = np.bincount(nexts.reshape(-1), weights=(visits[:, None] * prob).reshape(-1), minlength=n_states)
    return float(np.sqrt(total / horizon**3))
