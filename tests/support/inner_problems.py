"""Inner problems, max over |x| <= radius of sum_i p_i V_i with p = softmax(z + Y x), as public plans, and a search for
their maxima that shares nothing with the library.

In a two-stage problem with only one pair to plan for, the start value is the inner maximum.  :func:`plan` gives the
pair the features of the inner problem.  With indicator features, centre z and a whitener W with W'W = YY' the pair
stands for any inner problem with that many outcomes, so that one plan solves thousands of them as its replicas
(:func:`plan_many`).
"""

import numpy as np

import livarot
from livarot.estimation.omd import whitened
from livarot.model.episodes import Estimate
from tests.support.engines import engine


def pair_problem(features, values, offset=None):
    """State 0 has the pair; outcome i is state i + 1, worth values[i] in [0, 1] at the second and last stage."""
    phi = np.asarray(features, dtype=float)
    n, dim = phi.shape
    reward = np.zeros((2, n + 1, 1))
    reward[1, 1:, 0] = values
    return livarot.Problem.from_arrays(
        2,
        n + 1,
        1,
        outcomes=np.array([n] + [1] * n)[:, None],
        next_state=np.concatenate([np.arange(1, n + 1)] * 2),
        features=np.concatenate([phi, np.zeros((n, dim))]),
        offset=np.concatenate([np.zeros(n) if offset is None else offset, np.zeros(n)]),
        reward=reward,
        param_bound=1.0,
        shared_parameter=True,
    )


def plan(features, values, radius, offset=None, rule=None, by="pairs"):
    """The optimistic plan of one pair, centre 0, identity Gram matrix; ``by`` is the engine."""
    phi = np.asarray(features, dtype=float)
    scale = max(1.0, float(np.linalg.norm(phi, axis=1).max()))  # features are at most 1 long
    problem = pair_problem(phi / scale, values, offset)
    dim = problem.dim
    estimate = whitened(problem, np.zeros((1, 1, dim)), problem.rows.pack(np.eye(dim)[None, None]))
    with engine(by):
        return livarot.optimistic_plan(problem, estimate, float(radius) * scale, rule)


def plan_many(values, z, y, radius, rule=None, by="replicas"):
    """The plan of R inner problems with the same values (U,): z (R, U), y (R, U, k), radius (R,)."""
    count, n = z.shape
    problem = pair_problem(np.eye(n), values)
    columns = np.zeros((count, max(n, y.shape[2]), n))
    columns[:, : y.shape[2]] = y.swapaxes(1, 2)
    whiten = np.linalg.qr(columns[:, ::-1, ::-1], mode="r")[:, ::-1, ::-1]  # lower triangular, W'W = YY'
    gram = np.broadcast_to(np.eye(n), (count, 1, n, n))
    packed = problem.rows.pack(np.ascontiguousarray(whiten)[:, None])
    estimate = Estimate(np.ascontiguousarray(z[:, None]), problem.rows.pack(gram), packed)
    with engine(by):
        return livarot.optimistic_plan(problem, estimate, np.asarray(radius, dtype=float), rule)


def expectations(values, z, y, points):
    """sum_i p_i V_i at points (..., k) of one problem, summed from the lowest value up."""
    logits = z + points @ y.T
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    low = values.min()
    return low + (p @ (values - low)) / p.sum(axis=-1)


def searched_maximum(values, z, y, radius, rng, n_starts=160, n_steps=400):
    """The largest value found by a projected ascent with halved steps from many starts, or in a dense sample.

    Starts: the centre, every difference of outcomes at several lengths, where each outcome is likeliest, and random
    points of the ball in logarithmic lengths.
    """
    k = y.shape[1]
    pairs = (y[:, None] - y[None]).reshape(-1, k)
    pairs = pairs[np.linalg.norm(pairs, axis=1) > 0]
    units = pairs / np.linalg.norm(pairs, axis=1, keepdims=True) if len(pairs) else np.zeros((1, k))
    loose = rng.normal(size=(4000, k))
    loose /= np.linalg.norm(loose, axis=1, keepdims=True)
    lengths = np.where(rng.random(4000) < 0.5, 1.0, 10.0 ** -rng.uniform(0, 3, 4000))
    sample = radius * lengths[:, None] * loose
    found = expectations(values, z, y, sample)
    start = [
        np.zeros((1, k)),
        *(radius * share * units for share in (1.0, 0.5, 0.1, 0.01)),
        likeliest(z, y, radius),
        sample[np.argsort(-found)[: n_starts // 2]],
        sample[: n_starts // 2],
    ]
    return max(float(found.max()), ascent(values, z, y, radius, np.concatenate(start), n_steps))


def likeliest(z, y, radius, n_steps=300):
    """Points where each outcome is likeliest: conditional-gradient steps on the concave log p_i."""
    x = np.zeros((len(z), y.shape[1]))
    for step in range(n_steps):
        logits = z + x @ y.T
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        g = y - p @ y / p.sum(axis=1, keepdims=True)
        x += 2.0 / (step + 2.0) * (radius * unit(g) - x)
    return x


def unit(g):
    """Rows of length one, zero where they vanish."""
    g = g / np.maximum(np.abs(g).max(axis=1, keepdims=True), 1e-300)
    return g / np.maximum(np.linalg.norm(g, axis=1, keepdims=True), 1e-300)


def ascent(values, z, y, radius, x, n_steps):
    """The best value of projected gradient ascent from many points at once, each with its own step length."""
    best = expectations(values, z, y, x)
    step = np.full(len(x), np.nan)
    for _ in range(n_steps):
        logits = z + x @ y.T
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        g = (p * (values - (p @ values)[:, None])) @ y
        size = np.linalg.norm(g, axis=1)
        longest = 1e3 * radius / np.maximum(size, 1e-100)
        step = np.where(np.isnan(step), 1e-3 * longest, np.minimum(step, longest))
        trial = x + step[:, None] * g
        length = np.linalg.norm(trial, axis=1)
        trial *= np.minimum(1.0, radius / np.maximum(length, 1e-300))[:, None]
        value = expectations(values, z, y, trial)
        better = value > best
        x, best = np.where(better[:, None], trial, x), np.maximum(best, value)
        step = np.where(better, 2.0 * step, 0.25 * step)
    return float(best.max())


HARD_KINDS = ("wide", "interior", "ill-conditioned", "huge offsets")


def hard_batches(per_batch=10, n_values=9, seed=0):
    """Batches (values, z, y, radius) of problems with several local maxima: 4 kinds x 5 sizes x ``n_values``."""
    for kind, name in enumerate(HARD_KINDS):
        for n in (3, 4, 5, 6, 8):
            for turn in range(n_values):
                rng = np.random.default_rng([seed, kind, n, turn])
                k = int(rng.integers(1, 5))
                values = rng.integers(0, 3, n) / 2.0 if turn % 4 == 3 else rng.random(n) ** (1 + 2 * (turn % 2))
                values = (values - values.min()) / max(np.ptp(values), 0.1)
                y, z = rng.normal(size=(per_batch, n, k)), rng.normal(size=(per_batch, n))
                if name == "interior":  # the best outcome lies among the others
                    best, others = int(values.argmax()), np.arange(n) != values.argmax()
                    y[:, best] = y[:, others].mean(axis=1) + 0.1 * rng.normal(size=(per_batch, k))
                elif name == "ill-conditioned":
                    y = y * 10.0 ** rng.uniform(-4, 0, size=(per_batch, 1, k))
                elif name == "huge offsets":
                    z *= 10.0 ** rng.uniform(1, 2.5, size=(per_batch, 1))
                reach = np.linalg.norm(y - y.mean(axis=1, keepdims=True), axis=2).max(axis=1)
                width = 10.0 ** rng.uniform(0.3, 2, size=per_batch)
                if name == "huge offsets":
                    width = np.ptp(z, axis=1) * 10.0 ** rng.uniform(-1, 0.3, size=per_batch)
                yield name, values, z, y, width / reach
