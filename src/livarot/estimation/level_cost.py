"""What it costs to bound the log-likelihood at theta* (:mod:`livarot.estimation.level_set`).

The level of a likelihood-ratio set is log(K/delta) plus a bound on KL(P | Q) + E_P[L] - L(theta_hat), for Q uniform on
the B-ball and a law P that may depend on the data.

*As published*, P is uniform on (1-c) theta_hat + c (the B-ball): beta = log(K/delta) + d log max(e, 2 e B Lip/d), with
Lip = sum over transitions of max_ij |phi_i - phi_j|.

*Ours* (the default) has P the law of (1-c) theta_hat + C x, x uniform on the B-ball, C = (I/m^2 + rho A)^-1/2,
m = 1 - (1-c) |theta_hat|/B (so P stays in the ball), rho = B^2/(d+2) (the variance of x), and A >= the Hessian of L
at every theta: a row of U outcomes has A = 1/2 sum_i (phi_i - average)(phi_i - average)' (Boehning 1992: the Hessian
in logits, diag(p) - pp', has no eigenvalue above 1/2 by Gershgorin).  A Taylor expansion at theta_hat gives

    KL + E_P[L] - L(theta_hat) <= 1/2 log det(I/m^2 + rho A) + 1/2 tr(rho A (I/m^2 + rho A)^-1)
                                  - c grad L(theta_hat) . theta_hat + c^2/2 |theta_hat|_A^2.

It grows as (d/2) log n where the published one grows as d log n, and directions without data cost nothing.  Any c in
[0, 1] is valid; a few are tried.

Where features are collinear but for rounding, log det and the trace are not known; then the former is at most the sum
of the logarithms of the diagonal (Hadamard), and the latter at most d.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

from livarot.core.compiling.inner import inner
from livarot.core.linalg import block_of, dot
from livarot.core.small import cholesky, invert

FINEST = 12  # shares c = 0 and 2^-12 .. 1 are tried
TRUSTED = 0.01  # share by which rounding may have changed an inverse that is used


@inner
def published_cost(d, bound, lipschitz):
    """d log max(e, 2 e B Lip/d)."""
    return d * max(1.0, 1.0 + math.log(max(2.0 * bound * lipschitz / d, 1e-300)))


@inner
def mixture_cost(blocks, bound, length, digits, room):
    """The smallest bound on KL(P | Q) + E_P[L] - L(theta_hat) among the shares c that are tried."""
    d = len(room.x)
    inward, curve = dot(room.gradient, room.x), 0.0
    for b in range(len(blocks.first) - 1):
        own, first = block_of(blocks, room.above, b), blocks.first[b]
        for i in range(len(own)):
            for j in range(len(own)):
                curve += room.x[first + i] * own[i, j] * room.x[first + j]
    best, share, outside = math.inf, 0.0, min(length / bound, 1.0) if bound > 0.0 else 0.0
    for trial in range(FINEST + 2):
        margin = 1.0 - (1.0 - share) * outside
        if margin > 1e-9:
            moved = -share * inward + 0.5 * share * share * curve
            cost = moved + spread_cost(blocks, 1.0 / (margin * margin), bound * bound / (d + 2.0), digits, room)
            if cost > best:
                break
            best = cost
        share = math.ldexp(1.0, trial - FINEST)
    return best


@inner
def spread_cost(blocks, tight, rho, digits, room):
    """1/2 log det M + 1/2 tr(rho A M^-1) for M = tight I + rho A; the trace is d - tight tr M^-1."""
    total = 0.0
    for b in range(len(blocks.first) - 1):
        above, shifted = block_of(blocks, room.above, b), block_of(blocks, room.shifted, b)
        low, inverse = block_of(blocks, room.low, b), block_of(blocks, room.inverse, b)
        n = len(above)
        for i in range(n):
            for j in range(n):
                shifted[i, j] = rho * above[i, j]
            shifted[i, i] += tight
        cholesky(shifted, low)
        invert(low, inverse)
        wrong = rounding(shifted, inverse, digits)
        for i in range(n):
            if wrong < TRUSTED:
                total += 0.5 - math.log(low[i, i]) + wrong
                for j in range(i + 1):
                    total -= 0.5 * tight * inverse[i, j] * inverse[i, j]
            else:
                total += 0.5 + 0.5 * math.log(shifted[i, i])
    return total


@inner
def rounding(square, inverse, digits):
    """The share by which rounding may have changed |x|_{square^-1}; ``inverse`` is that of its Cholesky factor."""
    trace = 0.0
    for i in range(len(square)):
        for j in range(i + 1):
            trace += inverse[i, j] * inverse[i, j] * square[j, j]
    wrong = 2.0 * len(square) * digits * trace
    return wrong if wrong < 1.0 else 1.0
