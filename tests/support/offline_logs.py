"""Logged episodes of a machine that wears: a small truth, a behaviour, policies to judge, and fits to the log."""

import numpy as np
import pandas as pd

import livarot
from livarot.data import MNLTransition

STATES = ["new", "used", "worn"]
ACTIONS = ["mend", "run"]
SETS = {(s, a): STATES if s != "new" else STATES[:2] for s in STATES for a in ACTIONS}
WEAR = pd.DataFrame({"state": STATES, "wear": [0.0, 1.0, 2.0]})
THETA = np.array([-0.8, 0.6])  # of action[mend]:wear and action[run]:wear
PAYS = {("new", "run"): 1.0, ("used", "run"): 0.8, ("worn", "run"): 0.2} | {(s, "mend"): 0.0 for s in STATES}
HORIZON = 4


def truth(horizon=HORIZON, start=None):
    """The MDP that makes the logs: states and actions in the order of their labels."""
    first = {"new": 0.6, "used": 0.4} if start is None else start
    fake = pd.DataFrame([(s, a, n) for (s, a), nexts in SETS.items() for n in nexts])
    fake.columns = ["state", "action", "next_state"]
    fit = MNLTransition(features=["action:wear"], reachable=SETS, states=WEAR, reg=1.0).fit(fake)
    problem = fit.to_mdp(PAYS, horizon, first, param_bound=10.0).problem
    return livarot.MNLMDP(problem, THETA[None] * problem.feature_scale)


def behaviour(horizon=HORIZON, careful=0.5):
    """Mends more often what is more worn, (H, S, A)."""
    mends = np.array([0.5 * careful, careful, min(1.4 * careful, 0.95)])
    return np.tile(np.stack([mends, 1.0 - mends], axis=1), (horizon, 1, 1))


def target(horizon=HORIZON, sure=0.8):
    """Mends what is worn, mostly."""
    mends = np.array([1.0 - sure, 1.0 - sure, sure])
    return np.tile(np.stack([mends, 1.0 - mends], axis=1), (horizon, 1, 1))


def make_log(mdp, policy, n, seed, noise=0.0):
    """A table with one row per step; rewards are the model's plus noise of this size."""
    played = livarot.simulate(mdp, policy, n, seed=seed)
    horizon = mdp.problem.horizon
    who, step = np.divmod(np.arange(n * horizon), horizon)
    state, action = played.states[:, :-1].ravel(), played.actions.ravel()
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "episode": who,
            "step": step,
            "state": np.array(STATES)[state],
            "action": np.array(ACTIONS)[action],
            "reward": mdp.problem.reward[step, state, action] + noise * rng.normal(size=len(state)),
            "next_state": np.array(STATES)[played.states[:, 1:].ravel()],
            "probability": policy[step, state, action],
        }
    )


def fitted(log, **settings):
    return MNLTransition(features=["action:wear"], reachable=SETS, states=WEAR, **settings).fit(log)


def to_mdp(fit, horizon=HORIZON):
    return fit.to_mdp(PAYS, horizon, {"new": 0.6, "used": 0.4})


def random_log(seed, n=25, horizon=4, n_states=3, n_actions=3):
    """Episodes of random lengths as the twins' lists and as a table, with a policy (H, S, A)."""
    rng = np.random.default_rng(seed)
    episodes, rows = [], []
    for i in range(n):
        steps = []
        for t in range(int(rng.integers(1, horizon + 1)) if i else horizon):
            one = (
                int(rng.integers(n_states)),
                int(rng.integers(n_actions)),
                float(rng.normal()),
                rng.uniform(0.1, 1.0),
            )
            steps.append(one)
            rows.append((i, t, *one))
        episodes.append(steps)
    rows += [(n + k, 0, k % n_states, k % n_actions, 0.0, 0.5) for k in range(9)]  # every label occurs
    episodes += [[(k % n_states, k % n_actions, 0.0, 0.5)] for k in range(9)]
    columns = dict(zip(("episode", "step", "state", "action", "reward", "b"), zip(*rows, strict=True), strict=True))
    policy = rng.dirichlet(np.ones(n_actions) * 0.7, size=(horizon, n_states))
    return episodes, {k: np.array(v) for k, v in columns.items()}, policy
