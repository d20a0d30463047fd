"""
Sepsis: learning in a simulated hospital
========================================

A public simulator with 716 states and 25 treatments, and patients who respond differently from the nominal model.
**A demonstration, not medical advice.** How much survival is lost by trusting the nominal model, and how fast is it
recovered?
"""

import matplotlib.pyplot as plt
import numpy as np

import livarot

hospital = livarot.envs.icu_sepsis()
nominal = livarot.envs.icu_sepsis(weights=(0, 0, 0, 0))
start = hospital.problem.start
best = start @ livarot.solve(hospital).value[0]
trusting = start @ livarot.evaluate(hospital, livarot.solve(nominal).policy)[0]
print(f"survival: best policy {best:.3f}, best policy of the nominal model {trusting:.3f}")

# %%
# An agent that starts at the nominal model (θ = 0) and learns from one patient after the other:

result = livarot.run(hospital, livarot.agents.CertaintyEquivalent(), 24, seed=range(2))
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(np.arange(1, 25), best - result.regret.mean(axis=0), label="learning, mean of 2 seeds")
axes.axhline(best, color="grey", linestyle="--", label="best policy")
axes.axhline(trusting, color="grey", linestyle=":", label="best policy of the nominal model")
axes.set(xlabel="patient", ylabel="chance of survival under the policy played")
_ = axes.legend()
