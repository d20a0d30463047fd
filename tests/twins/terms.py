"""Slow twins of planning in a user's terms: costs, discount, rewards of the next state, actions that exist, terminal
states.  Everything is a dictionary, in the user's units, and is written out from the definitions.

``law[h, s, a]`` is ``{next state: probability}``, for pairs that exist; ``paid[h, s, a, s']`` is what a step earns;
``final[s]`` the terminal reward; ``over`` the terminal states.
"""

from __future__ import annotations

import itertools
import math


def backward(horizon, n_states, law, paid, final, over, discount, choose):
    """V[h][s] and Q[h, s, a]; ``choose(h, s, q)`` gives V from {action: Q}."""
    value = [[0.0] * n_states for _ in range(horizon)] + [[float(g) for g in final]]
    q = {}
    for h in reversed(range(horizon)):
        for s in range(n_states):
            if s in over:
                value[h][s] = float(final[s])
                continue
            own = {}
            for (k, t, a), follows in law.items():
                if (k, t) == (h, s):
                    own[a] = sum(p * (paid[h, s, a, n] + discount * value[h + 1][n]) for n, p in follows.items())
            q.update({(h, s, a): number for a, number in own.items()})
            value[h][s] = choose(h, s, own)
    return value, q


def optimal(horizon, n_states, law, paid, final, over, discount):
    return backward(horizon, n_states, law, paid, final, over, discount, lambda h, s, q: max(q.values()))


def of_policy(policy, horizon, n_states, law, paid, final, over, discount):
    return backward(horizon, n_states, law, paid, final, over, discount, lambda h, s, q: q[policy[h][s]])[0]


def best_policy_value(start, horizon, n_states, law, paid, final, over, discount):
    """The best start value over all deterministic policies, one by one."""
    places = [(h, s) for h in range(horizon) for s in range(n_states) if s not in over]
    options = [[a for (k, t, a) in law if (k, t) == place] for place in places]
    best = -math.inf
    for chosen in itertools.product(*options):
        policy = [[0] * n_states for _ in range(horizon)]
        for (h, s), a in zip(places, chosen, strict=True):
            policy[h][s] = a
        value = of_policy(policy, horizon, n_states, law, paid, final, over, discount)
        best = max(best, sum(w * v for w, v in zip(start, value[0], strict=True)))
    return best


def episode_return(states, actions, paid, final, over, discount):
    """What one episode earned: it is over in a terminal state, and the terminal reward is earned once."""
    total, faded = 0.0, 1.0
    for h, action in enumerate(actions):
        if states[h] in over:
            return total + faded * final[states[h]]
        total += faded * paid[h, states[h], action, states[h + 1]]
        faded *= discount
    return total + faded * final[states[-1]]


def soft_min(values, law, eta):
    """min over p of E_p V + KL(p | law) / eta."""
    low = min(values[n] for n in law)
    return low - math.log(sum(p * math.exp(-eta * (values[n] - low)) for n, p in law.items())) / eta


def robust(horizon, n_states, law, paid, final, over, discount, eta):
    """Optimal values against an adversary with a KL penalty; the adversary changes what comes, reward included."""
    value = [[0.0] * n_states for _ in range(horizon)] + [[float(g) for g in final]]
    for h in reversed(range(horizon)):
        for s in range(n_states):
            if s in over:
                value[h][s] = float(final[s])
                continue
            found = []
            for (k, t, a), follows in law.items():
                if (k, t) == (h, s):
                    worth = {n: paid[h, s, a, n] + discount * value[h + 1][n] for n in follows}
                    found.append(soft_min(worth, follows, eta))
            value[h][s] = max(found)
    return value


def optimistic(horizon, n_states, choices, paid, final, over, discount, grid):
    """Optimistic values over a grid of parameters, one set per stage: max over the grid of E[r + discount V].

    ``choices[h, s, a]`` is {next state: feature}, one feature each; ``grid[h]`` are the parameters of a stage.
    """
    value = [[0.0] * n_states for _ in range(horizon)] + [[float(g) for g in final]]
    for h in reversed(range(horizon)):
        for s in range(n_states):
            if s in over:
                value[h][s] = float(final[s])
                continue
            best = -math.inf
            for (k, t, a), features in choices.items():
                if (k, t) != (h, s):
                    continue
                for theta in grid[h]:
                    weights = {n: math.exp(theta * x) for n, x in features.items()}
                    total = sum(w * (paid[h, s, a, n] + discount * value[h + 1][n]) for n, w in weights.items())
                    best = max(best, total / sum(weights.values()))
            value[h][s] = best
    return value
