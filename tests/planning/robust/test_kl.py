"""The adversary of one pair: fifty digits, duality, and the edges of the ball."""

import math

import numpy as np
import pytest

from livarot.core.compiling.jit import jit
from livarot.core.lanes import W, lanes
from livarot.planning.robust import kl as softmin
from livarot.planning.robust.kl import worst_case
from tests.twins import robust as ref


@jit
def exp_and_change(x, grown, change):
    for i in range(len(x)):
        lanes(grown)[i], lanes(change)[i] = softmin.exp_and_change(lanes(x)[i])


@jit
def log_of(change, total, out):
    for i in range(len(change)):
        lanes(out)[i] = softmin.log_of(lanes(change)[i], lanes(total)[i])


def in_lanes(function, n_results, *numbers):
    arrays = [np.resize(x, (-(-len(x) // W), W)) for x in numbers]
    results = [np.empty_like(arrays[0]) for _ in range(n_results)]
    function(*arrays, *results)
    return [result.reshape(-1)[: len(numbers[0])] for result in results]


def test_exp_and_log_in_vectorisable_operations():
    x = np.concatenate((-np.logspace(-17, math.log10(699), 4000), np.linspace(0, 30, 1000), [0.0, -701.0, -1e300]))
    grown, change = in_lanes(exp_and_change, 2, x)
    np.testing.assert_allclose(grown[:-2], np.exp(x[:-2]), rtol=5e-16)
    np.testing.assert_allclose(change[:-2], np.expm1(x[:-2]), rtol=5e-16, atol=0)
    assert grown[-2:].tolist() == [0.0, 0.0] and change[-2:].tolist() == [-1.0, -1.0]
    y = np.concatenate((-np.logspace(-17, -1e-9, 3000), np.logspace(-17, 12, 3000)))
    np.testing.assert_allclose(in_lanes(log_of, 1, y, 1.0 + y)[0], np.log1p(y), rtol=5e-16)
    tiny = np.array([1e-290])
    np.testing.assert_allclose(in_lanes(log_of, 1, tiny - 1.0, tiny)[0], math.log(1e-290), rtol=1e-15)


def draw(rng):
    """Values and nominal probabilities of very different sizes, with ties and impossible outcomes now and then."""
    n = int(rng.integers(1, 8))
    p = rng.dirichlet(np.full(n, 10.0 ** rng.uniform(-1.3, 1)))
    if rng.random() < 0.2:
        p = np.maximum(p, 10.0 ** rng.uniform(-300, -5))
    p = np.where(p < 1e-305, 0.0, p)
    v = rng.random(n) * 10.0 ** rng.uniform(-3, 1.3) + (10 * rng.normal() if rng.random() < 0.3 else 0.0)
    if n > 2 and rng.random() < 0.3:
        v[1] = v[0]
    return v, p / p.sum()


def span(v, p):
    return float(np.ptp(v[p > 0])) or 1.0


@pytest.mark.parametrize("product", [0.0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 1.0, 30.0, 1e3, 1e6])
def test_the_soft_min_to_fifty_digits(product):
    rng = np.random.default_rng(int(1e6 * product) % 2**32)
    for _ in range(25):
        v, p = draw(rng)
        eta = product / span(v, p)
        found, (value, worst) = worst_case(v, p, penalty=eta), ref.soft_min(v, p, eta)
        assert abs(float(value - found.value)) <= 1e-15 * np.abs(v).max()
        np.testing.assert_allclose(found.probabilities, [float(q) for q in worst], rtol=0, atol=2e-15)
        assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-14)
        assert found.dual == eta and found.gap == 0.0


@pytest.mark.parametrize("radius", [1e-30, 1e-20, 1e-12, 1e-8, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 30.0, 1e6])
def test_the_ball_to_fifty_digits(radius):
    rng = np.random.default_rng(int(-math.log(radius) * 1000) % 2**32)
    for _ in range(8):
        v, p = draw(rng)
        found, (value, worst, dual) = worst_case(v, p, radius=radius), ref.ball_min(v, p, radius)
        scale = np.abs(v).max()
        assert abs(float(value - found.value)) <= 2e-14 * scale
        assert found.gap <= 2e-14 * scale
        np.testing.assert_allclose(found.probabilities, [float(q) for q in worst], rtol=0, atol=1e-12)
        assert found.divergence <= radius * (1 + 1e-12) + 1e-15
        if math.isinf(found.dual):
            assert float(dual) == math.inf or radius >= (1 - 1e-13) * found.divergence
        elif found.dual > 0 and radius >= 1e-12:
            kl = float(ref.divergence([q for q in worst], p))
            assert kl == pytest.approx(radius, rel=1e-9)


def test_the_ball_next_to_its_ceiling():
    v, p = np.array([0.0, 0.3, 1.0]), np.array([0.2, 0.3, 0.5])
    ceiling = math.log(5.0)
    for rest in (1e-1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-13, 1e-15, 0.0, -1e-3):
        found, (value, worst, _) = worst_case(v, p, radius=ceiling - rest), ref.ball_min(v, p, ceiling - rest)
        assert abs(float(value - found.value)) <= 1e-14
        np.testing.assert_allclose(found.probabilities, [float(q) for q in worst], rtol=0, atol=1e-13)
    assert found.dual == math.inf and found.value == 0.0 and found.probabilities.tolist() == [1.0, 0.0, 0.0]


def test_a_minimiser_that_is_almost_sure():
    v, p = np.array([0.0, 1.0]), np.array([1.0 - 3e-13, 3e-13])
    ceiling = -math.log1p(-3e-13)  # log(1/p0(argmin)), to all its digits
    for share in (1e-6, 0.1, 0.9, 1.0 - 1e-4, 1.0 - 1e-6):
        found, (_, worst, _) = worst_case(v, p, radius=share * ceiling), ref.ball_min(v, p, share * ceiling)
        assert found.probabilities[1] == pytest.approx(float(worst[1]), rel=0.01, abs=1e-20)
        assert not math.isinf(found.dual)


def test_two_minimisers_share_the_mass_as_before():
    found = worst_case([1.0, 1.0, 2.0, 0.5], [0.1, 0.3, 0.6, 0.0], radius=50.0)
    np.testing.assert_allclose(found.probabilities, [0.25, 0.75, 0.0, 0.0], rtol=1e-15)
    assert found.value == 1.0 and found.divergence == pytest.approx(math.log(2.5))


def test_equal_values_leave_nothing_to_the_adversary():
    for level in ({"radius": 0.3}, {"penalty": 7.0}):
        found = worst_case([3.0, 3.0], [0.25, 0.75], **level)
        assert found.value == 3.0 and found.probabilities.tolist() == [0.25, 0.75] and found.divergence == 0.0
    assert worst_case([3.0, 3.0 + 4e-16], [0.25, 0.75], radius=1.0).dual == 0.0


@pytest.mark.parametrize("radius", [0.001, 0.03, 0.2, 0.6])
def test_the_ball_without_duality(radius):
    for v, p in (([0.0, 1.0], [0.5, 0.5]), ([2.0, 1.0], [0.3, 0.7])):
        assert worst_case(v, p, radius=radius).value == pytest.approx(ref.brute_ball_min(v, p, radius), abs=2e-5)
