"""
Write a rule of optimism
========================

A rule says how much an action is worth, given the confidence set of its choice. It is written for one choice, and
compiled for many side by side. Here: the value at the centre plus a multiple of its slope.
"""

from typing import NamedTuple

import matplotlib.pyplot as plt

import livarot
from livarot.lanes import dot, extremes, minimum, solver_room, sqrt, value_at_centre


class Slope(NamedTuple):
    factor: float = 1.0


@livarot.rule(settings=Slope())
def steep(choice, v, settings):
    """p.V + factor beta |slope of p.V at the centre|, at most max V."""
    room = solver_room(choice)  # vectors to work with
    mean = value_at_centre(choice, v, room.weight, room.g)  # the gradient goes to room.g
    _, high = extremes(v)
    return minimum(mean + settings.factor * choice.beta * sqrt(dot(room.g, room.g)), high)


mdp = livarot.envs.hard_chain(8, gap=0.06)
rules = {
    "joint maximum": livarot.JointMaximum(),
    "variance bonus": livarot.VarianceBonus(),
    "ours, factor 1": steep,
    "ours, factor 3": steep.with_settings(factor=3.0),
}
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for label, rule in rules.items():
    livarot.run(mdp, livarot.agents.Livarot(rule=rule), 300, seed=range(10)).plot(axes, label=label)
_ = axes.set_ylim(0, None)
