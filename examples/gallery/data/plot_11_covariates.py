"""
Covariates by formula: who is at risk
=====================================

What happens next may depend on who it happens to. A formula says how, as in R; the fit gives tests, probabilities with
bands, and a plan for every profile. The data are simulated.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import livarot
from livarot.data import MNLTransition, plot_probabilities, term_tests, value_interval

rng, n = np.random.default_rng(0), 3000
log = pd.DataFrame({"state": rng.choice(["well", "ill"], n), "action": rng.choice(["wait", "treat"], n)})
log["age"], log["sex"] = rng.uniform(30, 85, n).round(1), rng.choice(["f", "m"], n)
ill = 0.03 * (log.age - 55) + 0.8 * (log.state == "ill") - 1.0 * (log.action == "treat")
dead = 0.08 * (log.age - 55) + 0.9 * (log.state == "ill") - 3.5
logits = np.stack([np.zeros(n), ill, dead], axis=1)
log["next_state"] = np.array(["well", "ill", "dead"])[(logits + rng.gumbel(size=(n, 3))).argmax(axis=1)]

warnings.simplefilter("ignore", livarot.data.DataWarning)  # age and sex alone cancel, as in every choice model
fit = MNLTransition(
    formula="~ next_state * (age + sex) + next_state:state + next_state:action",
    reference={"next_state": "well", "action": "wait", "state": "well"},
    reachable={"well": ["well", "ill", "dead"], "ill": ["well", "ill", "dead"]},
).fit(log)
print(term_tests(fit).round(4))  # the sex does not matter here, and the test says so

# %%
# Probabilities of what follows illness without treatment, and what the best policy is worth, both against age and with
# 95 % bands:

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
plot_probabilities(fit, "age", state="ill", action="wait", at={"sex": "f"}, ax=left)
ages = np.arange(30, 86, 5)
found = []
for age in ages:
    at = {"age": float(age), "sex": "f"}
    mdp = fit.to_mdp({"well": 1.0, "ill": 0.4}, horizon=10, start="well", terminal="dead", at=at)
    found.append(value_interval(fit, mdp))
right.fill_between(
    ages, [one.lower for one in found], [one.upper for one in found], alpha=0.25, linewidth=0, label="95 %"
)
right.plot(ages, [one.value for one in found], "o-", label="best policy")
right.legend(loc="lower left")
_ = right.set(xlabel="age", ylabel="good years out of 10 under the best policy", ylim=(0, 10))
