"""The law of a choice, of floats or of lanes: logits, probabilities, expectations (:mod:`livarot.core.mnl`)."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from livarot.core.inner import inner
from livarot.core.lanes import exp, maximum


@inner
def logits(offset, phi, theta, z):
    """z_i = offset_i + phi_i . theta."""
    n, m = phi.shape
    for i in range(n):
        total = offset[i] + phi[i, 0] * theta[0]
        for j in range(1, m):
            total += phi[i, j] * theta[j]
        z[i] = total


@inner
def softmax(z, p):
    """p = exp(z) / sum exp(z)."""
    top = z[0]
    for i in range(1, len(z)):
        top = maximum(top, z[i])
    total = 0.0
    for i in range(len(z)):
        e = exp(z[i] - top)
        p[i] = e
        total += e
    inverse = 1.0 / total
    for i in range(len(z)):
        p[i] *= inverse


@inner
def expectation(p, v):
    """sum_i p_i V_i."""
    total = p[0] * v[0]
    for i in range(1, len(p)):
        total += p[i] * v[i]
    return total
