"""Finite-horizon value iteration on a Gymnasium table, outcome by outcome, where ``terminated`` ends the sum.

P[s][a] = [(probability, next state, reward, terminated), ..].  Nothing of the library is imported.
"""


def value_iteration(table, horizon):
    """V[h][s] = max_a sum p (r + (0 if terminated else V[h+1][s']))."""
    values = [[0.0] * len(table)]
    for _ in range(horizon):
        later = values[0]
        now = []
        for s in range(len(table)):
            best = None
            for a in sorted(table[s]):
                total = 0.0
                for p, following, reward, terminated in table[s][a]:
                    total += p * (reward + (0.0 if terminated else later[following]))
                if best is None or total > best:
                    best = total
            now.append(best)
        values.insert(0, now)
    return values


def alive(table, start):
    """The states in which an episode can be, stage 0 included."""
    found, todo = set(start), list(start)
    while todo:
        for outcomes in table[todo.pop()].values():
            for p, following, _, terminated in outcomes:
                if p > 0 and not terminated and following not in found:
                    found.add(following)
                    todo.append(following)
    return found
