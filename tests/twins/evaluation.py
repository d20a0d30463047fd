"""Loop-by-loop twins of off-policy evaluation; the library is not imported.

An episode is a list of steps (state, action, reward, probability of the action under the behaviour).
``policy(t, s, a)`` is a probability.
"""

import math


def weights(episode, policy):
    """w_0, w_1, ... of an episode."""
    found, w = [], 1.0
    for t, (s, a, _, b) in enumerate(episode):
        w *= policy(t, s, a) / b
        found.append(w)
    return found


def importance_sampling(episodes, policy):
    """The values of the episodes."""
    return [weights(e, policy)[-1] * sum(r for _, _, r, _ in e) for e in episodes]


def per_decision(episodes, policy):
    return [sum(w * step[2] for w, step in zip(weights(e, policy), e, strict=True)) for e in episodes]


def at(values, t, ended):
    return values[t] if t < len(values) else ended


def weighted_per_decision(episodes, policy):
    """(estimate, influences): what the estimate loses when an episode is left out, times n - 1 and centred."""

    def estimate(part):
        total = 0.0
        all_weights = [weights(e, policy) for e in part]
        for t in range(max(len(e) for e in episodes)):
            own = [at(w, t, w[-1]) for w in all_weights]
            gains = [at([step[2] for step in e], t, 0.0) for e in part]
            total += sum(w * r for w, r in zip(own, gains, strict=True)) / sum(own)
        return total

    n, whole = len(episodes), estimate(episodes)
    lost = [whole - estimate([e for j, e in enumerate(episodes) if j != i]) for i in range(n)]
    return whole, [(n - 1) * (x - sum(lost) / n) for x in lost]


def doubly_robust(episodes, policy, value, q):
    """The values of the episodes by the recursion of Jiang and Li: V + rho (r + next - Q), from the last step on."""
    found = []
    for e in episodes:
        after = 0.0
        for t in reversed(range(len(e))):
            s, a, r, b = e[t]
            after = value(t, s) + policy(t, s, a) / b * (r + after - q(t, s, a))
        found.append(after)
    return found


def effective_size(own):
    return sum(own) ** 2 / sum(w * w for w in own)


def frequencies(episodes, by_stage=False):
    """b(a|s), or b_t(a|s), from counts; a function of (t, s, a)."""
    pair, state = {}, {}
    for e in episodes:
        for t, (s, a, *_) in enumerate(e):
            key = (t, s) if by_stage else s
            pair[key, a] = pair.get((key, a), 0) + 1
            state[key] = state.get(key, 0) + 1
    return lambda t, s, a: pair.get(((t, s) if by_stage else s, a), 0) / state[(t, s) if by_stage else s]


def standard_error(values):
    n = len(values)
    mean = sum(values) / n
    return math.sqrt(sum((x - mean) ** 2 for x in values) / (n - 1) / n)
