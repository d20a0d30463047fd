"""The bounds by which pairs are left out hold, and no pair that may be best is left out."""

import numpy as np
import pytest

import livarot
from livarot.core.mnl import softmax
from tests.support.rivals import known, rivals


def test_the_bounds_that_choose_the_pairs_hold():
    """B(V) = m + sum s|V - m| / sum p e^-b  is above the corners of the box, and close to them where it is narrow; and
    aF(V) + B(V' - aV)  is above the maximum F(V') over the ball, whatever a >= 0."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, beta = int(rng.integers(2, 9)), float(rng.choice((0.01, 0.1, 0.5, 1.5)))
        y, z = rng.standard_normal((n, 2)), 2.0 * rng.standard_normal(n)
        p = softmax(z)
        b = beta * np.linalg.norm(y - p @ y, axis=1)

        def bound(v, p=p, b=b):
            mean = p * np.cosh(b) @ v / (p @ np.cosh(b))
            return mean + p * np.sinh(b) @ np.abs(v - mean) / (p @ np.exp(-b))

        angle = np.linspace(0.0, 2.0 * np.pi, 400)
        ball = np.concatenate([r * beta * np.stack((np.cos(angle), np.sin(angle)), axis=1) for r in (0.0, 0.4, 1.0)])
        laws = softmax(z + ball @ y.T)
        v, later = rng.random(n), rng.random(n)
        order = np.argsort(v)
        corners = [softmax(z + np.where(np.isin(np.arange(n), order[k:]), b, -b)) @ v for k in range(n)]
        assert (laws @ v).max() <= max(corners) + 1e-12 <= bound(v) + 2e-12
        assert bound(v) - max(corners) <= 3.0 * b.max() * (max(corners) - p @ v) + 1e-12 or b.max() > 0.5
        for a in (0.0, 0.3, 1.0, 1.7):
            assert (laws @ v).max() <= a * (laws @ later).max() + bound(v - a * later) + 1e-12


# five outcomes, four of them with orthogonal features: the box moves all logits at once, by sd(V) (sum p b^2)^(1/2),
# which the ellipsoid cannot; the fifth, rare and far away, spoils the other upper bound
FIVE, RARE, WORTH = np.diag([0.1, 0.1, 0.1, 0.1, 1.0]), np.array([0.0, 0.0, 0.0, 0.0, -14.0]), [1.0, 1.0, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("radius", [0.2, 1.0])
def test_a_pair_is_not_left_out_whose_curvature_makes_it_best(radius):
    """V = (1, 0, 1), y = (-1, 0, 1): the slope at the centre is 0 and f'' = (max V - f) Var is the bound itself, so
    that the maximum takes all the growth that the variance allows.  The rival has a far larger upper bound, and a value
    just below."""
    values, features = [1.0, 0.0, 1.0], [[-0.1], [0.0], [0.1]]
    best = float(softmax(np.array([-0.1, 0.0, 0.1]) * radius) @ values)
    other = livarot.inner_max(FIVE, np.array(WORTH) / 2, livarot.Ellipsoid.ball(5, radius), offset=RARE)
    gain = best - 0.1 * (best - 2 / 3) - other.value
    for made in rivals([(np.array(WORTH) / 2, FIVE, RARE, gain), (values, features, np.zeros(3), 0.0)], radius):
        assert made.start_value[0] == pytest.approx(best, abs=1e-9)
        assert made.policy[0, 0, 0] == 1
        assert made.upper[0] > best + 0.005 * radius


def test_a_pair_is_not_left_out_whose_box_is_the_largest_bound():
    """A known outcome lies between the maximum and the box of the five."""
    radius = 0.2
    b = radius * np.linalg.norm(FIVE - softmax(RARE) @ FIVE, axis=1)
    box = float(softmax(RARE + b * [1, 1, -1, -1, -1]) @ WORTH)
    between = box - 0.05 * (box - 0.5)
    for made in rivals([known(between), (WORTH, FIVE, RARE, 0.0)], radius):
        assert made.start_value[0] == pytest.approx(between, abs=1e-12)  # the ellipsoid of the five does not reach it
        assert made.upper[0] == pytest.approx(box, abs=1e-9)


def test_a_set_wider_than_weights_can_tell_leaves_nothing_out():
    """The weight e^-2000 of the third outcome, which cannot be told from e^-700, moves to e^1000."""
    far = ([0.0, 0.0, 1.0], [[0.0], [0.0], [1.0]], [0.0, 0.0, -2000.0], 0.0)
    for made in rivals([known(0.9), far], 3000.0):
        assert made.upper[0] == pytest.approx(1.0, abs=1e-9)
        assert made.start_value[0] == pytest.approx(1.0, abs=1e-9)
        assert made.policy[0, 0, 0] == 1
