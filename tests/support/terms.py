"""A random model in a user's terms, as livarot takes it and as the twins of ``tests/twins/terms.py`` take it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import livarot


class Case(NamedTuple):
    mdp: livarot.MNLMDP
    told: dict  # the arguments of the twins


def random_case(
    seed=0, horizon=3, n_states=4, n_actions=3, *, discount=0.8, costs=False, per_stage=True, plain=False, dim=2
):
    """Some actions missing, the last state terminal, rewards of (h, s, a, s') of odd scale, terminal rewards.

    ``plain=True`` has none of that: all actions, no terminal state, rewards of (h, s, a) in [0, 1].
    """
    rng = np.random.default_rng(seed)
    mask = rng.random((horizon if per_stage else 1, n_states, n_actions)) < 0.7
    mask[:, :, 1] |= ~mask.any(axis=2)
    over = () if plain else (n_states - 1,)
    sets = {
        (s, a): np.sort(rng.permutation(n_states)[: rng.integers(2, n_states + 1)])
        for s in range(n_states)
        for a in range(n_actions)
    }
    phi = {key: rng.standard_normal((len(own), dim)) / 2 / np.sqrt(dim) for key, own in sets.items()}
    theta = rng.standard_normal((horizon, dim))
    reward = rng.random((horizon, n_states, n_actions, n_states)) * 70.0 - 50.0
    final = rng.random(n_states) * 20.0 - 5.0
    if plain:
        mask[:], final[:], discount = True, 0.0, 1.0
        reward = np.repeat(rng.random((horizon, n_states, n_actions, 1)), n_states, axis=3)

    def features(h, s, a):
        return (sets[s, a], phi[s, a]) if mask[h % len(mask), s, a] else None

    sign = -1.0 if costs else 1.0
    name = ("cost", "terminal_cost") if costs else ("reward", "terminal_reward")
    mdp = livarot.MNLMDP.from_function(
        horizon,
        n_states,
        n_actions,
        features=features,
        theta=theta,
        normalise=True,
        discount=discount,
        terminal=list(over) if over else None,
        start=np.full(n_states, 1.0 / n_states),
        **{name[0]: sign * (reward[:, :, :, 0] if plain else reward), name[1]: sign * final},
    )
    law, paid = {}, {}
    for h in range(horizon):
        for (s, a), own in sets.items():
            if s not in over and mask[h % len(mask), s, a]:
                p = np.exp(phi[s, a] @ theta[h])
                law[h, s, a] = dict(zip(own.tolist(), (p / p.sum()).tolist(), strict=True))
                paid |= {(h, s, a, int(n)): float(reward[h, s, a, n]) for n in own}
    told = {"horizon": horizon, "n_states": n_states, "law": law, "paid": paid, "final": final.tolist()}
    return Case(mdp, told | {"over": set(over), "discount": discount})
