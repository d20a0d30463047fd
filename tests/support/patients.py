"""A log of patients who are treated or not, and what it was drawn from."""

import numpy as np
import pandas as pd

SEVERITY = {"well": 0.0, "ill": 1.0, "dead": 3.0}


REACHABLE = {
    ("well", "wait"): ["well", "ill"],
    ("well", "treat"): ["well", "ill"],
    ("ill", "wait"): ["well", "ill", "dead"],
    ("ill", "treat"): ["well", "ill", "dead"],
}


def truth(state, action):
    """The distribution the logs are drawn from: weight e^(coefficient x severity)."""
    nexts = REACHABLE[state, action]
    weights = np.array([np.exp((-1.0 if action == "treat" else -0.5) * SEVERITY[s]) for s in nexts])
    return nexts, weights / weights.sum()


def simulate(n, seed=0, horizon=5):
    rng = np.random.default_rng(seed)
    rows, state = [], "well"
    for t in range(n):
        action = str(rng.choice(["wait", "treat"]))
        nexts, p = truth(state, action)
        after = nexts[rng.choice(len(nexts), p=p)]
        rows.append((t % horizon, state, action, after, SEVERITY[after]))
        state = "well" if after == "dead" else after
    return pd.DataFrame(rows, columns=["t", "state", "action", "next_state", "severity"])


LOG = simulate(1500)


def expanded(log):
    """The same log with one row per alternative."""
    rows = []
    for i, row in enumerate(log.itertuples()):
        for s in REACHABLE[row.state, row.action]:
            wait, treat = (SEVERITY[s] * (row.action == a) for a in ("wait", "treat"))
            rows.append((i, row.t, row.state, row.action, s, s == row.next_state, treat, wait))
    return pd.DataFrame(rows, columns=["choice", "t", "state", "action", "next_state", "chosen", "treat", "wait"])
