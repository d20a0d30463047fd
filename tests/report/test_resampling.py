"""Resamples of seeds: every one has as many seeds as there are, and scales do not matter."""

import numpy as np
import pytest

from livarot import LivarotError
from livarot.report.resampling import Band, check_level, divided, resample_counts, scaled, slopes_of, unscaled


def test_resamples_have_as_many_seeds_as_there_are():
    counts = resample_counts(7, 500, 3)
    assert counts.shape == (500, 7) and (counts.sum(axis=1) == 7).all()
    assert counts.mean() == 1.0 and not counts.flags.writeable
    np.testing.assert_array_equal(counts, resample_counts.__wrapped__(7, 500, 3))
    assert (counts != resample_counts(7, 500, 3, "another purpose")).any()


def test_powers_of_two_are_taken_out_and_put_back_exactly():
    values = np.array([[3e300, 1e-310, 0.0], [-1e299, 2e-310, 0.0]])
    small, exponents = scaled(values)
    largest = np.abs(small).max(axis=0)
    assert ((largest[:2] >= 0.5) & (largest[:2] < 1.0)).all() and largest[2] == 0.0
    back = unscaled(Band(small[0], small[1], 1e9 * small[0]), exponents)
    np.testing.assert_array_equal(back.center, values[0])
    np.testing.assert_array_equal(back.low, values[1])
    assert np.isinf(back.high[0])


def test_no_spread_divides_to_zero_and_small_errors_are_held_up():
    found = divided(np.array([1.0, 1.0, 0.0]), np.array([0.01, 2.0, 0.0]), np.array([4.0, 4.0, 0.0]))
    np.testing.assert_array_equal(found, [1.0, 0.5, 0.0])


@pytest.mark.parametrize("paired", [True, False])
def test_slopes_and_errors_by_hand(paired):
    rng = np.random.default_rng(0)
    samples = [np.exp(rng.normal(size=20) * 0.1) * scale for scale in (1.0, 4.0)]
    weights = np.array([-1.0, 1.0]) / np.log(4.0)  # the slope between abscissae 1 and 4
    slopes, errors = slopes_of(samples, weights, 100, 0, paired)
    means = [sample.mean() for sample in samples]
    assert slopes.shape == errors.shape == (101,)
    assert slopes[0] == pytest.approx(np.log(means[1] / means[0]) / np.log(4.0), rel=1e-14)
    relative = [sample / mean - 1.0 for sample, mean in zip(samples, means, strict=True)]
    if paired:
        variance = np.mean((weights[0] * relative[0] + weights[1] * relative[1]) ** 2)
    else:
        variance = sum(w**2 * np.mean(part**2) for w, part in zip(weights, relative, strict=True))
    assert errors[0] == pytest.approx(np.sqrt(variance / 19), rel=1e-12)


def test_levels_that_resamples_cannot_resolve_are_refused():
    check_level(0.95, 200)
    with pytest.raises(LivarotError, match=r"100 cannot resolve level 0\.95"):
        check_level(0.95, 100)
