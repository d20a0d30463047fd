"""
Compare agents
==============

Four agents and a control on the hard chain: the same seeds, hence the same luck, exact regret, and intervals for the
paired differences.
"""

import matplotlib.pyplot as plt

import livarot

mdp = livarot.envs.hard_chain(10, gap=0.05)
agents = [
    livarot.agents.Livarot(),
    livarot.agents.BonusLivarot(),
    livarot.agents.UCRLMNLOL(),
    livarot.agents.PSRL(),
    livarot.agents.Uniform(),
]
results = {agent.name: livarot.run(mdp, agent, 400, seed=range(12)) for agent in agents}

# %%
# Cumulative regret, mean and 10 to 90 % quantiles over seeds:

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for result in results.values():
    result.plot(axes)
_ = axes.set_ylim(0, None)

# %%
# How much less than each of the others does ``Livarot`` lose?  The intervals are for paired seeds.

ours = results["livarot"].cumulative_regret[:, -1]
for name, result in results.items():
    if name != "livarot":
        found = livarot.experiments.paired_difference(result.cumulative_regret[:, -1], ours)
        print(f"{name:14} {found.estimate:6.1f}  [{found.low:.1f}, {found.high:.1f}]")
