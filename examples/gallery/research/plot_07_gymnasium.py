"""
Gymnasium and Stable-Baselines3
===============================

Every environment is a Gymnasium environment. Any agent that knows Gymnasium can learn in it, those of
Stable-Baselines3 too: ``PPO("MlpPolicy", env).learn(10_000)``. Here a Q-table of ten lines plays against an agent that
knows the features, both judged by what their episodes earn.
"""

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import livarot

env = gymnasium.make("livarot/RiverSwim-v0", n_states=4, horizon=12)
mdp = env.unwrapped.mdp
rng = np.random.default_rng(0)

q = np.full((12, 4, 2), 3.0)  # optimistic values for every stage, state and action
returns = []
for episode in range(1500):
    state, info = env.reset(seed=0 if episode == 0 else None)
    total, ended = 0.0, False
    while not ended:
        h = info["stage"]
        action = int(q[h, state].argmax()) if rng.random() > 0.05 else int(rng.integers(2))
        after, reward, ended, _, info = env.step(action)
        best_after = 0.0 if ended else q[info["stage"], after].max()
        q[h, state, action] += 0.1 * (reward + best_after - q[h, state, action])
        state, total = after, total + reward
    returns.append(total)

# %%
# LIVAROT in the same model, with exact values of its policies:

result = livarot.run(mdp, livarot.agents.Livarot(), 1500, seed=0)
best = livarot.solve(mdp).value[0, 0]
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
window = np.ones(100) / 100
axes.plot(np.arange(100, 1501), np.convolve(returns, window, "valid"), label="Q-table, mean return of 100 episodes")
axes.plot(np.arange(1, 1501), best - result.regret[0], label="LIVAROT, value of its policy")
axes.axhline(best, color="grey", linestyle="--", label="V*")
axes.set(xlabel="episode", ylabel="return", ylim=(0, None))
_ = axes.legend()
