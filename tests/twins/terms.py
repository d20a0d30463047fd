"""Slow twins of planning in a user's terms: costs, discount, rewards of the next state, actions that exist, terminal
states.  Everything is a dictionary, in the user's units, and is written out from the definitions.

``law[h, s, a]`` is ``{next state: probability}``, for pairs that exist; ``paid[h, s, a, s']`` is what a step earns;
``final[s]`` the terminal reward; ``over`` the terminal states.
"""

from __future__ import annotations

import itertools
import math


def mean(h, s, a, worth, law):
    """E of what the next states are worth."""
    return sum(p * worth[n] for n, p in law.items())


def backward(horizon, n_states, law, paid, final, over, discount, choose, expect=mean):
    """V[h][s] and Q[h, s, a]; ``choose(h, s, q)`` gives V from {action: Q}, ``expect(h, s, a, worth, law)`` Q."""
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
                    worth = {n: paid[h, s, a, n] + discount * value[h + 1][n] for n in follows}
                    own[a] = expect(h, s, a, worth, follows)
            q.update({(h, s, a): number for a, number in own.items()})
            value[h][s] = choose(h, s, own)
    return value, q


def optimal(horizon, n_states, law, paid, final, over, discount, expect=mean):
    return backward(horizon, n_states, law, paid, final, over, discount, lambda h, s, q: max(q.values()), expect)


def of_policy(policy, horizon, n_states, law, paid, final, over, discount, expect=mean):
    return backward(horizon, n_states, law, paid, final, over, discount, lambda h, s, q: q[policy[h][s]], expect)[0]


def best_policy_value(start, horizon, n_states, law, paid, final, over, discount, expect=mean):
    """The best start value over all deterministic policies, one by one."""
    places = [(h, s) for h in range(horizon) for s in range(n_states) if s not in over]
    options = [[a for (k, t, a) in law if (k, t) == place] for place in places]
    best = -math.inf
    for chosen in itertools.product(*options):
        policy = [[0] * n_states for _ in range(horizon)]
        for (h, s), a in zip(places, chosen, strict=True):
            policy[h][s] = a
        value = of_policy(policy, horizon, n_states, law, paid, final, over, discount, expect)
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


def adversary(eta):
    """What an adversary with a KL penalty leaves of what comes, reward included."""
    return lambda h, s, a, worth, law: soft_min(worth, law, eta)


def of_a_grid(choices, grid, best):
    """``best`` (max or min) over a grid of parameters, one set per stage, of what comes.

    ``choices[h, s, a]`` is {next state: feature}, one feature each; ``grid[h]`` are the parameters of a stage.
    """

    def expect(h, s, a, worth, law):
        found = []
        for theta in grid[h]:
            weights = {n: math.exp(theta * x) for n, x in choices[h, s, a].items()}
            found.append(sum(w * worth[n] for n, w in weights.items()) / sum(weights.values()))
        return best(found)

    return expect


def l1_ball(widths):
    """The most that a law within ``widths[h, s, a]`` of the given one in L1 makes of what comes, by moving mass."""

    def expect(h, s, a, worth, law):
        order = sorted(law, key=lambda n: worth[n])
        moved, left = dict(law), widths[h, s, a] / 2.0
        left = min(left, 1.0 - law[order[-1]])
        moved[order[-1]] += left
        for n in order[:-1]:
            taken = min(left, moved[n])
            moved[n] -= taken
            left -= taken
        return sum(p * worth[n] for n, p in moved.items())

    return expect
