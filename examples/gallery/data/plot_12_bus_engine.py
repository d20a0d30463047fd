"""
When to replace a bus engine
============================

Rust's problem: an engine costs more to keep the older it is, and a lump sum to replace. From a simulated log of a depot
to a fitted law, a threshold in dollars without an end of time, and what it becomes if the law is not trusted.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from livarot import infinite
from livarot.data import MNLTransition, plan_robust, robust_radius

depot = infinite.bus_engine()  # mileage in bins of 5000 miles, with the published probabilities of a month's growth
played = infinite.simulate(depot, infinite.solve(depot).policy, n_steps=120, n_paths=60, seed=1)
actions = np.array(["keep", "replace"])
log = pd.DataFrame({
    "bus": np.repeat(np.arange(60), 120), "state": played.states[:, :-1].ravel(),
    "action": actions[played.actions.ravel()], "next_state": played.states[:, 1:].ravel(),
})  # fmt: skip

# %%
# The next bin is a choice among three, counted from the present bin, or from 0 after a replacement; buses are clusters.

rows = [
    (bin, action, first + k, float(k == 1), float(k == 2))
    for bin in range(90)
    for action, first in (("keep", bin), ("replace", 0))
    for k in range(3)
    if first + k < 90
]
reachable = pd.DataFrame(rows, columns=["state", "action", "next_state", "one", "two"])
fit = MNLTransition(features=["one", "two"], reachable=reachable, cluster="bus").fit(log)
mdp = fit.to_mdp(cost=lambda bin, action: 8000 if action == "replace" else 1.82 * bin, discount=0.9999, start=0)
best = infinite.solve(mdp)

# %%
# The threshold, and the one against every law within a KL ball of the fitted one. The radius that 95 % of the refits
# stay within is the log's own doubt:


def threshold(solution):
    return int((np.asarray(solution.policy) == 1).argmax())


radii = np.geomspace(1e-4, 0.1, 13)
robust = [plan_robust(fit, mdp, radius) for radius in radii]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.plot(best.cost - best.cost[0])
left.axvline(threshold(best), color="black", linestyle="--", label=f"replace from bin {threshold(best)} on")
left.set(xlabel="mileage, bins of 5000 miles", ylabel="cost above that of a new engine, dollars", ylim=(0, None))
left.legend()
right.semilogx(radii, [threshold(one) for one in robust], "o-", label="robust threshold")
right.axhline(threshold(best), color="black", linestyle="--", label="threshold of the fit")
right.axvline(robust_radius(fit, mdp).max(), color="grey", linestyle=":", label="radius that the log demands")
right.set(xlabel="radius of the KL balls", ylabel="replace from this bin on")
_ = right.legend()
