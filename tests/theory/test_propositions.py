"""Propositions of the paper on ten thousand random small models each: no violation beyond 1e-9.

Models are drawn from one seed: horizons 1 to 6, up to 4 states, 3 actions, 3 outcomes, one theta per stage of size .1
to 5 (nearly fair coins to nearly certain moves), rewards uniform or 0/1 (with many ties).
"""

import math

import numpy as np

from livarot import MNLMDP, simulate, solve
from livarot.estimation.omd import whitened
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.theory.constants import gaps, kappa_bound, kappa_star, log_kappa_star, nu_max
from livarot.theory.variance import episode_variance, sigma_bar_limit, sigma_bar_star, sigma_bar_star_limit

MODELS = 10_000
TOLERANCE = 1e-9


def sizes(rng):
    return int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))


def draw_arrays(rng, S, A, d):
    outcomes = rng.integers(1, min(S, 3) + 1, size=(S, A))
    nexts = np.concatenate([rng.permutation(S)[:count] for count in outcomes.reshape(-1)])
    features = rng.normal(size=(len(nexts), d))
    features /= np.maximum(1.0, np.linalg.norm(features, axis=1))[:, None]
    return {"outcomes": outcomes, "next_state": nexts, "features": features}


def draw_reward(rng, H, S, A):
    reward = rng.random((H, S, A))
    return (reward < rng.random()).astype(float) if rng.random() < 0.5 else reward


def draw(rng):
    H, S, A, d = sizes(rng)
    return MNLMDP.from_arrays(
        H,
        S,
        A,
        **draw_arrays(rng, S, A, d),
        reward=draw_reward(rng, H, S, A),
        theta=rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=(H, d)),
        start=rng.dirichlet(np.ones(S)) if rng.random() < 0.5 else int(rng.integers(S)),
    )


def test_sigma_bar():
    """sigma_bar in [0, 1/2] on any trajectory, E[sigma_bar^2] <= 1/(4H) under pi*, and the sharper limits."""
    rng = np.random.default_rng(2026)
    along, under, positive = 0.0, 0.0, 0
    for _ in range(MODELS):
        mdp = draw(rng)
        best, H = solve(mdp), mdp.problem.horizon
        # every state of a stage, so every trajectory whatever the learner plays
        left = H - 1.0 - np.arange(H)
        assert np.all(best.variance >= 0.0)
        assert np.all(best.variance.max(axis=1) <= left**2 / 4 + TOLERANCE)
        worst = math.sqrt(best.variance.max(axis=1).sum() / H**3)
        assert worst <= sigma_bar_limit(H) + TOLERANCE and worst <= 0.5
        star = sigma_bar_star(mdp, solution=best)
        assert 0.0 <= star**2 <= 1 / (4 * H) + TOLERANCE
        assert star <= sigma_bar_star_limit(H) + TOLERANCE and star <= worst + TOLERANCE
        if H > 1:
            along, under = max(along, worst / sigma_bar_limit(H)), max(under, star / sigma_bar_star_limit(H))
        positive += star > 0
    assert along > 0.99 and under > 0.97  # models come close: a smaller limit would be violated
    assert positive > MODELS / 3


def test_the_variance_of_the_return():
    """The proposition's proof: sum_h E[Var_h] is the variance of the return given the first state (second moments)."""
    rng = np.random.default_rng(7)
    for _ in range(1000):
        mdp = draw(rng)
        problem, best = mdp.problem, solve(mdp)
        H, S = problem.horizon, problem.n_states
        second = np.zeros((H + 1, S))  # E[G_h^2 | s_h] under pi*
        for h in range(H - 1, -1, -1):
            for s in range(S):
                a = int(best.policy[h, s])
                r, p, nexts = problem.reward[h, s, a], mdp.probabilities(h, s, a), problem.next_states(h, s, a)
                second[h, s] = r * r + p @ (2 * r * best.value[h + 1, nexts] + second[h + 1, nexts])
        variance = problem.start @ (second[0] - best.value[0] ** 2)
        assert abs(variance / H**3 - sigma_bar_star(mdp, solution=best) ** 2) < TOLERANCE


def test_the_variance_of_an_action_is_bounded_by_its_gap():
    """Step 5 of the proof: Var_a <= Var_{pi*} + nu_max (V* - Q*(a)), even with nu_max / 2."""
    rng = np.random.default_rng(8)
    for _ in range(1000):
        mdp = draw(rng)
        problem, best, nu = mdp.problem, solve(mdp), nu_max(mdp, all_states=True)
        found = gaps(mdp).gap
        for h, s, a in np.ndindex(*best.q.shape):
            p, ahead = mdp.probabilities(h, s, a), best.value[h + 1, problem.next_states(h, s, a)]
            spread = p @ (ahead - p @ ahead) ** 2
            assert spread <= best.variance[h, s] + 0.5 * nu * found[h, s, a] + 1e-8  # ties within 1e-9 (1 + |Q|)


def test_trajectories():
    """The increments of trajectories of random policies obey the same limit."""
    rng = np.random.default_rng(9)
    for _ in range(500):
        mdp = draw(rng)
        H, S, A = mdp.problem.reward.shape
        episodes = simulate(mdp, rng.dirichlet(np.ones(A), size=(H, S)), 20, seed=int(rng.integers(1000)))
        increments = episode_variance(solve(mdp).variance, episodes.states)
        assert np.all((increments >= 0) & (increments <= sigma_bar_limit(H) ** 2 + TOLERANCE))


def test_kappa_is_at_most_its_bound():
    rng = np.random.default_rng(10)
    for _ in range(MODELS):
        mdp = draw(rng)
        assert 0.0 <= log_kappa_star(mdp) <= math.log(kappa_bound(mdp)) + TOLERANCE
        assert kappa_star(mdp) >= 1.0


def test_the_certified_value_is_optimistic():
    """Plan.upper >= V* whenever theta* lies in all sets: a thousand problems, ten parameters and sets each."""
    rng = np.random.default_rng(11)
    replicas, close = 10, 0
    for _ in range(MODELS // replicas):
        H, S, A, d = sizes(rng)
        problem = Problem.from_arrays(
            H, S, A, **draw_arrays(rng, S, A, d), reward=draw_reward(rng, H, S, A), param_bound=100.0
        )
        truth = rng.choice([0.1, 1.0, 5.0]) * rng.normal(size=(replicas, H, d))
        root = rng.normal(size=(replicas, H, d, d))
        dense = root @ root.swapaxes(-1, -2) + 0.1 * np.eye(d)
        packed = np.ascontiguousarray(problem.rows.pack(dense))
        off = 10.0 ** rng.uniform(-2, 0.5, size=(replicas, 1, 1)) * rng.normal(size=truth.shape)
        dense = problem.rows.unpack(packed)
        distance = np.sqrt(np.einsum("rki,rkij,rkj->rk", off, dense, off)).max(axis=1)
        plan = optimistic_plan(problem, whitened(problem, truth + off, packed), distance * (1 + 1e-12))
        for r in range(replicas):
            optimum = problem.start @ solve(MNLMDP(problem, truth[r])).value[0]
            assert plan.upper[r] >= optimum - TOLERANCE
            close += plan.upper[r] < optimum + 0.01 * H
    assert close > MODELS / 10  # the bound is not merely huge


def test_the_curvature_of_a_stage_grows_with_the_span_of_its_values():
    """Half the second derivative of E[V] from theta* to theta is at most 2 beta^2 span(V) max|phi|^2, |.| as in C.

    Hence one H per stage, and H^2 in the theorem's curvature term (step 7 of its proof has H^2 per stage).  The maxima
    themselves sum to at most 2 kappa d log(1 + T/(d lambda)) along any sequence of pairs with a zero row.
    """
    rng = np.random.default_rng(7)
    for _ in range(300):
        d, T, reg, bound = int(rng.integers(1, 5)), 40, float(rng.uniform(1.0, 20.0)), float(rng.uniform(0.1, 2.0))
        gram, total, kappa = reg * np.eye(d), 0.0, 1.0
        for _ in range(T):
            n, span = int(rng.integers(2, 5)), float(10 ** rng.uniform(-1, 2))
            phi = np.vstack((np.zeros(d), rng.normal(size=(n - 1, d))))
            phi /= max(1.0, float(np.linalg.norm(phi, axis=1).max()))
            theta = rng.normal(size=d)
            theta *= bound / np.linalg.norm(theta)
            value, beta = span * rng.random(n), float(rng.uniform(0.1, 3.0))
            step = rng.normal(size=d)
            step *= 2 * beta / math.sqrt(step @ gram @ step)  # two points of an ellipsoid of radius beta
            width = float(np.einsum("ij,jk,ik->i", phi, np.linalg.inv(gram), phi).max())
            for t in (0.0, 0.5, 1.0):
                p = np.exp(phi @ (theta + t * step))
                p /= p.sum()
                x = phi @ step
                second = p @ ((value - p @ value) * (x - p @ x) ** 2)
                assert abs(second) / 2 <= 2 * beta**2 * np.ptp(value) * width * (1 + TOLERANCE)
            p = np.exp(phi @ theta)
            p /= p.sum()
            small = np.sort(p)
            kappa = max(kappa, 1 / (small[0] * small[1]))
            total += width
            centred = phi - p @ phi
            gram = gram + (centred.T * p) @ centred
        assert total <= 2 * kappa * d * math.log1p(T / (d * reg)) * (1 + TOLERANCE)
