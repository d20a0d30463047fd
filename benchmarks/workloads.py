"""The four benchmark workloads as plain NumPy arrays, independent of the library.

A  the hard chain of Park et al. (two reachable states, one live state per stage)
B  a dense random MDP: S=100, A=5, U=8, d=10, H=20
C  one planning pass of a large dense MDP: S=2000, A=10, U=20, d=30, H=20
D  RiverSwim with one-hot features (block-diagonal Gram matrices), H=2S

A :class:`Dense` problem keeps every feature row in R^d, which is what a direct transcription of the
algorithm reads. :func:`flatten` turns it into the flat ragged layout: features restricted to the
independent components ("blocks") of the coordinates, a packed block-diagonal Gram matrix, and the
states that can be reached at each stage.

Shapes: H stages, S states, A actions, P pairs (table, s, a), R seeds, K = H parameters (1 when shared).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]


@dataclass(frozen=True)
class Dense:
    """logit of row i of pair (h, s, a) = offset_i + phi_i . theta_h, rows stored dense in R^d."""

    horizon: int
    n_states: int
    n_actions: int
    dim: int
    reward: Floats  # (H, S, A)
    start: Floats  # (S,) distribution
    param_bound: float
    stage_table: Ints32  # (H,) table of each stage; pair = (table * S + s) * A + a
    row_start: Ints  # (P + 1,)
    next_state: Ints32  # (rows,)
    offset: Floats  # (rows,)
    phi: Floats  # (rows, d)
    shared_parameter: bool = False

    def pair(self, h: int, s: int, a: int) -> tuple[Ints32, Floats, Floats]:
        """Next states (U,), offsets (U,) and features (U, d) of one pair."""
        p = (int(self.stage_table[h]) * self.n_states + s) * self.n_actions + a
        rows = slice(int(self.row_start[p]), int(self.row_start[p + 1]))
        return self.next_state[rows], self.offset[rows], self.phi[rows]


@dataclass(frozen=True)
class Flat:
    """The flat ragged layout; see :func:`flatten`."""

    horizon: int
    n_states: int
    n_actions: int
    dim: int
    reward: Floats
    start: Floats
    param_bound: float
    shared_parameter: bool
    stage_table: Ints32
    row_start: Ints
    next_state: Ints32
    offset: Floats
    pair_block: Ints32  # (P,) block of the pair, -1 when its probabilities do not depend on theta
    col_start: Ints
    col_count: Ints32
    cols: Ints32  # positions inside the block
    feat_start: Ints
    feat: Floats  # row-major (rows of p) x col_count[p]
    block_start: Ints  # (C + 1,)
    block_coords: Ints32  # (d,)
    gram_start: Ints  # (C + 1,)
    node_start: Ints  # (H + 1,)
    node_state: Ints32


@dataclass(frozen=True)
class Workload:
    """A problem, one true parameter per seed, and LIVAROT's settings for it."""

    name: str
    problem: Dense
    theta_star: Floats  # (R, K, d)
    n_episodes: int
    step_size: float = 20.0
    reg: float = 10.0
    beta_scale: float = 0.01
    failure_level: float = 0.05
    flat: Flat = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "flat", flatten(self.problem))

    @property
    def n_seeds(self) -> int:
        return int(self.theta_star.shape[0])

    def radius(self, t: int) -> float:
        """beta_scale (sqrt(2/3 d log(t/delta)) + 24 B sqrt d), t = episode number from 1."""
        d = self.problem.dim
        explored = np.sqrt(2.0 / 3.0 * d * np.log(t / self.failure_level))
        return float(self.beta_scale * (explored + 24.0 * self.problem.param_bound * np.sqrt(d)))

    def radii(self) -> Floats:
        return np.array([self.radius(t) for t in range(1, self.n_episodes + 1)])

    def uniforms(self) -> Floats:
        """(R, T, H + 1): [.., 0] chooses the start state, [.., 1 + h] the transition of stage h."""
        shape = (self.n_episodes, self.problem.horizon + 1)
        return np.stack([np.random.default_rng((4711, r)).random(shape) for r in range(self.n_seeds)])

    def short(self, *, n_episodes: int | None = None, n_seeds: int | None = None) -> Workload:
        return replace(
            self,
            theta_star=self.theta_star[:n_seeds],
            n_episodes=self.n_episodes if n_episodes is None else n_episodes,
        )


# ---------------------------------------------------------------------------------------------- layout


def reachable(problem: Dense) -> list[Ints]:
    """States that some policy can occupy at each stage, ascending."""
    here = problem.start > 0.0
    stages: list[Ints] = []
    for h in range(problem.horizon):
        stages.append(np.flatnonzero(here).astype(np.int64))
        first = int(problem.stage_table[h]) * problem.n_states * problem.n_actions
        following = np.zeros(problem.n_states, dtype=bool)
        for s in stages[-1]:
            low = int(problem.row_start[first + s * problem.n_actions])
            high = int(problem.row_start[first + (s + 1) * problem.n_actions])
            following[problem.next_state[low:high]] = True
        here = following
    return stages


def flatten(problem: Dense) -> Flat:
    """Blocks = connected components of the coordinates, two being linked when a pair with at least two
    outcomes uses both. Coordinates that no such pair uses are blocks of size one."""
    n_pairs = problem.row_start.size - 1
    counts = np.diff(problem.row_start)
    starts = problem.row_start[:-1]
    used = np.logical_or.reduceat(problem.phi != 0.0, starts, axis=0) & (counts >= 2)[:, None]  # (P, d)

    parent = np.arange(problem.dim)

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = int(parent[i])
        return i

    supports = np.unique(used, axis=0)
    for support in supports:
        columns = np.flatnonzero(support)
        for other in columns[1:]:
            a, b = root(int(columns[0])), root(int(other))
            parent[max(a, b)] = min(a, b)
    roots = np.array([root(i) for i in range(problem.dim)], dtype=np.int64)
    _, block_of = np.unique(roots, return_inverse=True)
    block_coords = np.argsort(block_of, kind="stable")
    sizes = np.bincount(block_of)
    block_start = np.concatenate([[0], np.cumsum(sizes)])
    position = np.empty(problem.dim, dtype=np.int64)
    position[block_coords] = np.arange(problem.dim) - block_start[block_of[block_coords]]

    active = used.any(axis=1)
    col_count = used.sum(axis=1)
    pair_block = np.where(active, block_of[used.argmax(axis=1)], -1)
    coordinates = np.nonzero(used)[1]
    row_pair = np.repeat(np.arange(n_pairs), counts)
    feat = problem.phi[used[row_pair]]  # row-major over rows, so already (rows of p) x col_count[p]
    feat_sizes = counts * col_count
    stages = reachable(problem)
    return Flat(
        horizon=problem.horizon,
        n_states=problem.n_states,
        n_actions=problem.n_actions,
        dim=problem.dim,
        reward=problem.reward,
        start=problem.start,
        param_bound=problem.param_bound,
        shared_parameter=problem.shared_parameter,
        stage_table=problem.stage_table,
        row_start=problem.row_start,
        next_state=problem.next_state,
        offset=problem.offset,
        pair_block=pair_block.astype(np.int32),
        col_start=np.concatenate([[0], np.cumsum(col_count)[:-1]]).astype(np.int64),
        col_count=col_count.astype(np.int32),
        cols=position[coordinates].astype(np.int32),
        feat_start=np.concatenate([[0], np.cumsum(feat_sizes)[:-1]]).astype(np.int64),
        feat=feat,
        block_start=block_start.astype(np.int64),
        block_coords=block_coords.astype(np.int32),
        gram_start=np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64),
        node_start=np.concatenate([[0], np.cumsum([s.size for s in stages])]).astype(np.int64),
        node_state=np.concatenate(stages).astype(np.int32),
    )


def dense_gram(flat: Flat, packed: Floats) -> Floats:
    """(G,) packed blocks -> (d, d)."""
    out = np.zeros((flat.dim, flat.dim))
    for c in range(flat.block_start.size - 1):
        coords = flat.block_coords[flat.block_start[c] : flat.block_start[c + 1]]
        block = packed[flat.gram_start[c] : flat.gram_start[c + 1]]
        out[np.ix_(coords, coords)] = block.reshape(coords.size, coords.size)
    return out


# ------------------------------------------------------------------------------------------ generators


def hard_chain(horizon: int, n_episodes: int = 1000, n_seeds: int = 40, dim: int = 2) -> Workload:
    """A: p(good | s_h, a) = 1 / (1 + (H-1) exp(-bD x_h . a)), gap 1/(4 sqrt(2 H T)), a random sign vector
    x_h per stage and seed; features scaled to norm at most one."""
    base = 1.0 / horizon
    gap = 1.0 / (4.0 * np.sqrt(2.0 * horizon * n_episodes))
    best = base + (dim - 1) * gap
    log_odds = np.log((1.0 - base) * best / (base * (1.0 - best))) / (dim - 1)
    alpha = np.sqrt(log_odds / (1.0 + (dim - 1) * log_odds))
    bias = np.sqrt(1.0 / (1.0 + (dim - 1) * log_odds))
    actions = np.array(list(itertools.product((-1.0, 1.0), repeat=dim - 1)))  # (A, d-1)
    live = np.column_stack([-alpha * actions, np.full(len(actions), bias * np.log(1.0 / base - 1.0))])
    scale = float(np.linalg.norm(live, axis=1).max())
    live = live / scale

    n_states, n_actions = horizon + 2, len(actions)
    next_state: list[int] = []
    phi: list[Floats] = []
    counts: list[int] = []
    for s in range(n_states):
        for a in range(n_actions):
            if s < horizon:
                next_state += [s + 1, horizon + 1]
                phi += [live[a], np.zeros(dim)]
                counts.append(2)
            else:
                next_state.append(s)
                phi.append(np.zeros(dim))
                counts.append(1)
    reward = np.zeros((horizon, n_states, n_actions))
    reward[:, horizon + 1] = 1.0
    signs = np.random.default_rng((101, horizon)).choice([-1.0, 1.0], (n_seeds, horizon, dim - 1))
    theta = scale * np.concatenate([log_odds * signs / alpha, np.full((n_seeds, horizon, 1), 1.0 / bias)], axis=2)
    bound = max(1.5 * (1.0 + np.log(horizon - 1.0)), float(np.linalg.norm(theta, axis=2).max()))
    problem = _assemble(horizon, n_actions, reward, bound, counts, next_state, np.array(phi))
    return Workload(f"A(H={horizon})", problem, theta, n_episodes)


def random_dense(
    name: str,
    *,
    n_states: int,
    n_actions: int,
    n_next: int,
    dim: int,
    horizon: int,
    n_episodes: int,
    n_seeds: int,
    theta_norm: float = 1.0,
    param_bound: float = 1.0,
    beta_scale: float = 0.01,
    n_tables: int = 1,
    shared_parameter: bool = False,
    seed: int = 202,
) -> Workload:
    """Dense random features of norm at most one, U distinct next states per pair, rewards uniform on
    [0, 1], |theta*_h| = theta_norm. With n_tables > 1, stage h reads table h mod n_tables."""
    rng = np.random.default_rng((seed, n_states, dim))
    n_pairs = n_tables * n_states * n_actions
    phi = rng.standard_normal((n_pairs * n_next, dim))
    phi /= np.linalg.norm(phi, axis=1).max()
    next_state = rng.random((n_pairs, n_states)).argpartition(n_next, axis=1)[:, :n_next].ravel()
    reward = rng.random((horizon, n_states, n_actions))
    theta = rng.standard_normal((n_seeds, 1 if shared_parameter else horizon, dim))
    theta *= theta_norm / np.linalg.norm(theta, axis=2, keepdims=True)
    problem = _assemble(horizon, n_actions, reward, param_bound, [n_next] * n_pairs, next_state, phi)
    problem = replace(
        problem,
        stage_table=(np.arange(horizon) % n_tables).astype(np.int32),
        shared_parameter=shared_parameter,
    )
    return Workload(name, problem, theta, n_episodes, beta_scale=beta_scale)


def dense_medium(n_episodes: int = 200, n_seeds: int = 4) -> Workload:
    """B: the ball |theta| <= B cuts the unprojected step in about a third of the stages."""
    return random_dense(
        "B",
        n_states=100,
        n_actions=5,
        n_next=8,
        dim=10,
        horizon=20,
        n_episodes=n_episodes,
        n_seeds=n_seeds,
        theta_norm=2.0,
        param_bound=2.5,
    )


def small_dense(n_episodes: int = 40, n_seeds: int = 2, **changes: float) -> Workload:
    """A small relative of B with active projections."""
    settings: dict[str, float] = {"theta_norm": 0.6, "param_bound": 0.6}
    settings.update(changes)
    return random_dense(
        "B-small",
        n_states=12,
        n_actions=3,
        n_next=4,
        dim=3,
        horizon=4,
        n_episodes=n_episodes,
        n_seeds=n_seeds,
        **settings,  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class PlanningPass:
    """C: what one planning pass reads."""

    workload: Workload
    theta: Floats  # (H, d)
    gram: Floats  # (H, d * d)
    radius: float


def dense_large(n_states: int = 2000, horizon: int = 20) -> PlanningPass:
    """C: theta in the ball, gram = 10 I + sum of 200 weighted outer products of feature differences."""
    dim, bound = 30, 1.0
    workload = random_dense(
        "C",
        n_states=n_states,
        n_actions=10,
        n_next=20,
        dim=dim,
        horizon=horizon,
        n_episodes=200,
        n_seeds=1,
        theta_norm=bound,
        param_bound=bound,
    )
    rng = np.random.default_rng(303)
    theta = rng.standard_normal((horizon, dim))
    theta *= bound * rng.random((horizon, 1)) ** (1.0 / dim) / np.linalg.norm(theta, axis=1, keepdims=True)
    phi = workload.problem.phi
    gram = np.empty((horizon, dim, dim))
    for h in range(horizon):
        rows = phi[rng.integers(0, len(phi), 400)]
        difference = rows[:200] - rows[200:]
        gram[h] = workload.reg * np.eye(dim) + difference.T @ (rng.random((200, 1)) * difference)
    return PlanningPass(workload, theta, gram.reshape(horizon, dim * dim), workload.radius(200))


def river_swim(n_states: int, n_episodes: int, n_seeds: int = 4, horizon: int | None = None) -> Workload:
    """D: Osband's RiverSwim, one coordinate per possible (s, a, s'), the most likely s' being the support
    (phi = 0), so d = 4S - 2 of which the 2S support coordinates are never used. The radius is scaled by
    0.002: at 0.01 the ellipsoids are so wide for S >= 50 that every inner maximum saturates in one step."""
    horizon = 2 * n_states if horizon is None else horizon
    last = n_states - 1
    rows: list[tuple[list[int], list[float]]] = []
    for s in range(n_states):
        rows.append(([max(0, s - 1)], [1.0]))
        if s == 0:
            rows.append(([0, 1], [0.4, 0.6]))
        elif s == last:
            rows.append(([last - 1, last], [0.4, 0.6]))
        else:
            rows.append(([s - 1, s, s + 1], [0.05, 0.6, 0.35]))
    counts = [len(states) for states, _ in rows]
    dim = sum(counts)
    phi = np.zeros((dim, dim))
    theta = np.zeros(dim)
    row = 0
    for _, probabilities in rows:
        support = int(np.argmax(probabilities))
        for i, probability in enumerate(probabilities):
            if i != support:
                phi[row, row] = 1.0
                theta[row] = np.log(probability / probabilities[support])
            row += 1
    reward = np.zeros((horizon, n_states, 2))
    reward[:, 0, 0] = 0.005
    reward[:, last, 1] = 1.0
    next_state = [s for states, _ in rows for s in states]
    problem = _assemble(horizon, 2, reward, float(np.linalg.norm(theta)), counts, next_state, phi)
    stars = np.broadcast_to(theta, (n_seeds, horizon, dim)).copy()
    return Workload(f"D(S={n_states})", problem, stars, n_episodes, beta_scale=0.002)


def _assemble(
    horizon: int,
    n_actions: int,
    reward: Floats,
    bound: float,
    counts: list[int],
    next_state: list[int] | NDArray[np.integer],
    phi: Floats,
) -> Dense:
    n_states = reward.shape[1]
    start = np.zeros(n_states)
    start[0] = 1.0
    return Dense(
        horizon=horizon,
        n_states=n_states,
        n_actions=n_actions,
        dim=phi.shape[1],
        reward=reward,
        start=start,
        param_bound=float(bound),
        stage_table=np.zeros(horizon, dtype=np.int32),
        row_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        next_state=np.asarray(next_state, dtype=np.int32),
        offset=np.zeros(len(phi)),
        phi=np.ascontiguousarray(phi),
    )


A_HORIZONS = (5, 10, 20, 40)
D_SIZES = ((16, 200), (50, 100), (100, 50))  # (S, T)
