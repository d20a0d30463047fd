"""
When to replace a bus engine
============================

Rust's problem: mileage grows by 0, 1 or 2 bins a month, an engine costs more to keep the older it is, and a lump sum to
replace. The months never end, so costs are discounted. Rewards are one minus the cost as a share of the largest.
"""

import matplotlib.pyplot as plt
import numpy as np

from livarot.infinite import InfiniteMDP, solve_discounted

bins, keep, replace = 60, 0, 1
upkeep, lump = 0.012, 1.0  # a month's cost per bin of mileage, and that of a new engine
largest = max(upkeep * (bins - 1), lump)


def features(mileage, action):
    begin = 0 if action == replace else mileage
    after = sorted({min(begin + step, bins - 1) for step in (0, 1, 2)})
    return after, [[float(k == 1), float(k == 2)] for k in range(len(after))]


def reward(mileage, action):
    return 1.0 - (lump if action == replace else upkeep * mileage) / largest


theta = np.log([0.55 / 0.40, 0.05 / 0.40])  # the month's growth is 0, 1, 2 bins with chances .40, .55, .05
mdp = InfiniteMDP.from_function(bins, 2, features=features, reward=reward, theta=theta)

# %%
# The more the future counts, the earlier an engine is replaced:

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for discount in (0.9, 0.97, 0.99):
    solution = solve_discounted(mdp, discount)
    cost = (1.0 / (1.0 - discount) - solution.value) * largest
    first = int(np.flatnonzero(solution.policy == replace)[0])
    (line,) = axes.plot(cost - cost[0], label=f"discount {discount}: replace from bin {first} on")
    axes.plot(first, (cost - cost[0])[first], "o", color=line.get_color())
axes.set(xlabel="mileage bin", ylabel="expected discounted cost above that of a new engine")
_ = axes.legend()
