"""Loop-by-loop twins for plans from a fit; the library is not imported."""

import math


def probabilities(offsets, rows, theta):
    logits = [o + sum(x * t for x, t in zip(row, theta, strict=True)) for o, row in zip(offsets, rows, strict=True)]
    top = max(logits)
    weights = [math.exp(z - top) for z in logits]
    return [w / sum(weights) for w in weights]


def value(model, policy, theta):
    """Value at the start; ``model`` is a dict: horizon, n_states, start, reward(h, s, a), choices(h, s, a) -> (next
    states, offsets, rows); ``theta(h)`` the parameter of a stage; ``policy[h][s]`` probabilities of actions."""
    after = [0.0] * model["n_states"]
    for h in reversed(range(model["horizon"])):
        now = []
        for s in range(model["n_states"]):
            total = 0.0
            for a, weight in enumerate(policy[h][s]):
                nexts, offsets, rows = model["choices"](h, s, a)
                p = probabilities(offsets, rows, theta(h))
                total += weight * (model["reward"](h, s, a) + sum(q * after[n] for q, n in zip(p, nexts, strict=True)))
            now.append(total)
        after = now
    return sum(p * v for p, v in zip(model["start"], after, strict=True))


def divergence(p, q):
    return sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
