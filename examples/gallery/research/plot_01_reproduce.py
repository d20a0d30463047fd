"""
Reproduce the paper's figure
============================

A small version of ``livarot reproduce``: regret over H^1.5 on the hard chain, for the paper's gap and for a gap that
does not depend on T. With the paper's gap every curve is flat, that of the uniform policy too.
"""

import matplotlib.pyplot as plt

import livarot

horizons, n_episodes, seeds = [5, 10, 20], 500, range(8)
agents = [livarot.agents.Livarot.paper(), livarot.agents.UCRLMNLOL.paper(), livarot.agents.Uniform()]
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axes, title in zip(panels, ["gap of the paper, 1/(4 √(2HT))", "gap independent of T, 1/(2H)"], strict=True):
    for agent, style in zip(agents, ["o-", "s--", "D:"], strict=True):
        scaled = []
        for horizon in horizons:
            gap = None if "paper" in title else 1 / (2 * horizon)
            mdp = livarot.envs.hard_chain(horizon, n_episodes=n_episodes, gap=gap)
            result = livarot.run(mdp, agent, n_episodes, seed=seeds)
            scaled.append(result.cumulative_regret[:, -1].mean() / horizon**1.5)
        axes.plot(horizons, scaled, style, label=agent.name)
    axes.set(title=title, xlabel="horizon H", ylabel="regret / H$^{1.5}$", ylim=(0, None))
_ = panels[0].legend()
