"""How much regret is left for an oracle that knows everything but which of a few models is the true one.

It keeps the exact posterior over the candidates, from a uniform prior,

    w_m  proportional to  prod over all transitions seen of P_h^m(s'|s, a),

and plays the optimal policy of the most probable one (the first among equals) for an episode at a time.  The true model
is drawn from the same prior, a new one for each run.  The sign oracle of the chain (:mod:`livarot.theory.limits`) is
the special case of all sign vectors, where the posterior factorises over stages; here everything is enumerated, so that
any model will do, the two-state one of Park with its 2^(d-1) sign vectors among them.  It is no lower bound: another
rule on the same posterior may explore better.  But an agent that knows less can hardly have less regret on average over
the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from livarot.core.arguments import checked
from livarot.errors import bad
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import evaluate, solve
from livarot.simulation.rollout import play
from livarot.simulation.streams import stream
from livarot.system.sizes import require_memory
from livarot.theory.limits import MOST_EPISODES, SignOracle

MOST_CANDIDATES = 64  # every policy is evaluated in every model


@checked
def candidate_oracle(models: Sequence[MNLMDP], n_episodes: int, *, n_runs: int = 1000, seed: int = 0) -> SignOracle:
    """The regret of the oracle that knows that the model is one of ``models``, which share one problem.

    >>> import livarot
    >>> models = [livarot.envs.park_two_state(gap=0.05, seed=seed) for seed in (0, 1)]
    >>> found = candidate_oracle(models, 50, n_runs=20)
    >>> found.curve.shape, bool(0 < found.mean < 20)
    ((50,), True)
    """
    given = list(models)
    if not 2 <= len(given) <= MOST_CANDIDATES:
        raise bad("models", f"has {len(given)} models", cure=f"give 2 to {MOST_CANDIDATES}")
    wrong = [i for i, model in enumerate(given) if not isinstance(model, MNLMDP)]
    if wrong:
        raise bad("models", "an entry is no MNLMDP", index=wrong[0], count=len(wrong))
    problem = given[0].problem
    wrong = [i for i, model in enumerate(given) if not problem.same_as(model.problem)]
    if wrong:
        raise bad(
            "models",
            "an entry has another problem than model 0",
            index=wrong[0],
            count=len(wrong),
            cure="vary theta only",
        )
    plans, kernels = [solve(model) for model in given], [transition_kernel(model) for model in given]
    base, prob = kernels[0].base, np.stack([kernel.prob for kernel in kernels])
    if n_episodes > MOST_EPISODES:
        raise bad("n_episodes", f"is {n_episodes}", cure=f"take at most {MOST_EPISODES}")
    require_memory("n_runs", "the episodes", n_runs * (prob.shape[1] + len(given) * (problem.horizon + 2)))
    policies = np.stack([plan.policy for plan in plans])
    optimum = [problem.start @ plan.value[0] for plan in plans]
    worth = [[problem.start @ evaluate(model, policy)[0] for model in given] for policy in policies]
    loss = np.abs(np.array(optimum) - np.array(worth))  # (policies, models); costs are lost upwards
    with np.errstate(divide="ignore"):
        log_prob = np.log(prob)
    draws = stream(seed, "candidate oracle")
    truth = draws.integers(len(given), size=n_runs)
    true_prob, stages = prob[truth], np.arange(problem.horizon)
    weight, chosen = np.zeros((n_runs, len(given))), np.zeros(n_runs, dtype=np.int64)
    total, curve, no_actions = np.zeros(n_runs), np.empty(n_episodes), np.empty((n_runs, 0))
    for t in range(n_episodes):
        total += loss[chosen, truth]
        curve[t] = total.mean()
        luck = draws.random((n_runs, problem.horizon + 1))
        seen = play(problem, true_prob, base, policies[chosen], luck, no_actions)
        pair = (problem.stage_table * problem.n_states + seen.states[:, :-1]) * problem.n_actions + seen.actions
        rows = base[stages] + problem.rows.row_start[pair] + seen.choices
        for m, column in enumerate(log_prob):
            weight[:, m] += column[rows].sum(axis=1)
        best = weight.max(axis=1, keepdims=True)
        chosen = np.argmax(weight >= best - 1e-12 * (1.0 + np.abs(best)), axis=1)
    return SignOracle(total, curve)
