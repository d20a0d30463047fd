"""Whether theta* lies in the confidence sets of a plan: the judge's own check, compiled."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from livarot.core.compiling.inner import inner
from livarot.core.views import flat

LAST_BIT = 1 << 31  # of a word of ``RunResult.stage_bits``


@inner
def coverage(truth, beliefs, covered, bits, away):
    """1 where |theta* - center|_gram <= radius for every parameter; a parameter's bit is set where it holds for it.

    Returns whether all distances are numbers.
    """
    parameters, d = truth.theta.shape[1], truth.theta.shape[2]
    size = truth.gram_start[len(truth.gram_start) - 1]
    target, middle, metric = flat(truth.theta), flat(beliefs.center), flat(beliefs.gram)
    radius, numbers = beliefs.radius, True
    for r in range(len(radius)):
        limit = radius[r] * radius[r] * (1.0 + 1e-12)
        inside, word, bit = True, 0, 1
        for k in range(bits.shape[1]):
            bits[r, k] = 0
        for k in range(parameters):
            first, here = ((r if len(truth.theta) > 1 else 0) * parameters + k) * d, (r * parameters + k) * d
            total = square_distance(truth, target, first, middle, here, metric, (r * parameters + k) * size, away)
            if total <= limit:  # NaN is not inside
                bits[r, word] |= np.int32(bit)
            else:
                inside = False
                numbers &= total < np.inf
            bit *= 2
            if bit > LAST_BIT:
                word, bit = word + 1, 1
        covered[r] = 1.0 if inside else 0.0
    return numbers


@inner
def square_distance(truth, target, first, middle, here, metric, at, away):
    """|x|^2 in the packed metric that begins at ``at``, x = target - middle, from ``first`` and ``here`` on."""
    total = 0.0
    for b in range(len(truth.block_start) - 1):
        base, n = truth.block_start[b], truth.block_start[b + 1] - truth.block_start[b]
        row = at + truth.gram_start[b]
        if n == 2:  # the same, unrolled
            c, e = truth.block_coords[base], truth.block_coords[base + 1]
            x, y = target[first + c] - middle[here + c], target[first + e] - middle[here + e]
            total += x * x * metric[row] + y * (2.0 * metric[row + 2] * x + metric[row + 3] * y)
            continue
        for i in range(n):  # twice what is below the diagonal: the Gram matrix is symmetric
            c = truth.block_coords[base + i]
            x, part = target[first + c] - middle[here + c], 0.0
            away[i] = x
            for j in range(i):
                part += metric[row + j] * away[j]
            total += x * (2.0 * part + metric[row + i] * x)
            row += n
    return total
