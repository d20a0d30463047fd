"""
Covariates: what drives the choice
==================================

Does a dose work better in older patients? Attributes of states and actions enter as products with attributes of the
next state. The data are simulated, so the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from livarot.data import MNLTransition

ages, doses = {"young": 0.0, "middle": 0.5, "old": 1.0}, {"low": 0.0, "high": 1.0}
truth = {"recovers": 0.4, "recovers x dose": 0.6, "recovers x dose x age": 1.2}
rng, rows = np.random.default_rng(1), []
for _ in range(6000):
    state, action = rng.choice(list(ages)), rng.choice(list(doses))
    dose, age = doses[action], ages[state]
    logit = truth["recovers"] + truth["recovers x dose"] * dose + truth["recovers x dose x age"] * dose * age
    after = "well" if rng.random() < 1 / (1 + np.exp(-logit)) else "ill"
    rows.append((state, action, after, float(after == "well")))
log = pd.DataFrame(rows, columns=["state", "action", "next_state", "recovers"])

fit = MNLTransition(
    features=["recovers", "action.dose:recovers", "state.age:action.dose:recovers"],
    reachable={name: ["well", "ill"] for name in ages},
    states=pd.DataFrame({"state": list(ages), "age": list(ages.values())}),
    actions=pd.DataFrame({"action": list(doses), "dose": list(doses.values())}),
).fit(log)
print(fit.summary())

# %%
# Estimates with 95 % intervals, and the truth:

table = fit.summary().table
figure, axes = plt.subplots(figsize=(6.5, 3), layout="constrained")
places = np.arange(len(table))
axes.errorbar(table["coef"], places, xerr=1.96 * table["std err"], fmt="o", capsize=4, label="estimate")
axes.plot(list(truth.values()), places, "x", color="black", label="truth")
axes.set(yticks=places, yticklabels=list(truth), xlabel="coefficient")
axes.axvline(0.0, color="grey", linewidth=0.8)
_ = axes.legend()
