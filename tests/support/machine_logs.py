"""A small log of machines that wear and are mended, and fits to it, for tests of plans from data."""

import warnings

import numpy as np
import pandas as pd

from livarot.data import MNLTransition

SETS = {
    ("new", "run"): ["new", "used"], ("new", "mend"): ["new", "used"],
    ("used", "run"): ["new", "used", "worn"], ("used", "mend"): ["new", "used", "worn"],
    ("worn", "run"): ["used", "worn", "broken"], ("worn", "mend"): ["used", "worn", "broken"],
}  # fmt: skip
WEAR = {"new": 0.0, "used": 1.0, "worn": 2.0, "broken": 4.0}
TRUTH = {"run": 0.5, "mend": -1.0}
PAYS = {"new": 1.0, "used": 0.8, "worn": 0.4}
ONLY_NEW = {"new": 1.0, "used": 0.0, "worn": 0.0}


def make_log(n, seed, weeks=None):
    """n transitions from all pairs, (state, action) drawn at random."""
    rng = np.random.default_rng(seed)
    pairs = list(SETS)
    rows = []
    for i in range(n):
        state, action = pairs[rng.integers(len(pairs))]
        nexts = SETS[state, action]
        logits = np.array([WEAR[s] * TRUTH[action] for s in nexts])
        p = np.exp(logits - logits.max())
        after = nexts[rng.choice(len(nexts), p=p / p.sum())]
        rows.append((state, action, after, i % (weeks or 1)))
    return pd.DataFrame(rows, columns=["state", "action", "next_state", "week"])


def fitted(n=1500, seed=0, **settings):
    states = pd.DataFrame({"state": list(WEAR), "wear": list(WEAR.values())})
    model = MNLTransition(features=["action:wear"], reachable=SETS, states=states, **settings)
    return model.fit(make_log(n, seed, 3))


def with_covariates(n=300, **settings):
    """A fit that depends on the age and the kind of a machine, with clusters and sampling weights."""
    log = make_log(n, 0).assign(age=np.arange(n) % 7 / 2.0, kind=np.array(["drill", "saw"])[np.arange(n) % 2])
    log = log.assign(owner=np.arange(n) % 20, w=1.0 + np.arange(n) % 3)
    states = pd.DataFrame({"state": list(WEAR), "wear": list(WEAR.values())})
    formula = "~ action:wear + age:wear + kind:wear + poly(age, 2):wear"
    model = MNLTransition(
        formula=formula, reachable=SETS, states=states, cluster="owner", weights="w", collinear="drop"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(**settings).fit(log)


def everywhere(fit, horizon=6, start="new"):
    """The same model with all actions everywhere: what is broken stays so."""
    return fit.to_mdp(PAYS | {"broken": 0.0}, horizon, start, unseen="stay")


def to_mdp(fit, horizon=6):
    return fit.to_mdp(PAYS, horizon, "new", terminal="broken")
