"""The terms of the regret bound, as printed and as the proof gives them."""

import math
import warnings

import pytest

from livarot.theory import TheoryWarning
from livarot.theory import bounds as bnd
from tests.support.theory import constants
from tests.twins import theory as twin

SIZES = [(2, 10, 1000, 2.2, 11.3, 0.8, 3.0, 0.1, 0.05), (5, 3, 7, 1.0, 4.0, 1.0, 0.5, 0.2, 0.01)]


@pytest.mark.parametrize(("d", "H", "T", "B", "kappa", "rho", "nu", "sigma", "delta"), SIZES)
def test_printed_terms(d, H, T, B, kappa, rho, nu, sigma, delta):
    found = bnd.regret_bound(
        constants(d, H, B, kappa, rho, nu), T, failure_level=delta, sigma_bar=sigma, reading="printed"
    )
    exact = twin.printed_terms(d, H, T, B, kappa, rho, nu, sigma, delta)
    assert list(found.terms) == list(bnd.TERMS) == list(exact)
    for name, value in exact.items():
        assert found.terms[name] == pytest.approx(value, rel=1e-12), name
    assert found.total == pytest.approx(sum(exact.values()), rel=1e-12)
    assert found.dominant == max(exact, key=exact.get)


@pytest.mark.parametrize(("d", "H", "T", "B", "kappa", "rho", "nu", "sigma", "delta"), SIZES)
def test_the_proof_s_terms_follow_from_its_quadratic_inequality(d, H, T, B, kappa, rho, nu, sigma, delta):
    """The learning terms are 2 b_1^2 + 2 b_2^2 + 2c; they bound every x^2 with x^2 <= b x + c."""
    found = bnd.regret_bound(constants(d, H, B, kappa, rho, nu), T, failure_level=delta, sigma_bar=sigma)
    b, c = twin.quadratic_bound(d, H, T, B, kappa, nu, sigma, delta)
    learning = sum(value for name, value in found.terms.items() if name != "exploration")
    largest = ((b + math.sqrt(b * b + 4 * c)) / 2) ** 2
    assert learning >= largest * (1 - 1e-12)
    squares = found.terms["gap_square"] + found.terms["value_error_square"]
    rest = sum(value for name, value in found.terms.items() if name != "exploration" and "square" not in name)
    assert rest == pytest.approx(2 * c, rel=1e-12)
    assert b * b <= squares * (1 + 1e-12) <= 2 * b * b * (1 + 1e-12)
    roots = [math.sqrt(found.terms[name] / 2) for name in ("gap_square", "value_error_square")]
    assert sum(roots) == pytest.approx(b, rel=1e-12)


@pytest.mark.parametrize("reading", ["proof", "printed"])
@pytest.mark.parametrize("n_explore", [0, 10**6])
def test_leading_from(reading, n_explore):
    """From that T on the leading term is the largest, the episode before it is not."""

    def leads(T):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TheoryWarning)
            found = bnd.regret_bound(constants(), T, sigma_bar=0.1, n_explore=n_explore, reading=reading)
        return found.dominant == bnd.LEADING, found

    first, found = leads(10**15)
    assert first and found.leading_from < 10**15 and found.reason.startswith("overtakes")
    T = int(found.leading_from)
    assert leads(int(T * (1 + 1e-9)) + 1)[0] and not leads(int(T * (1 - 1e-9)) - 1)[0]
    assert all(leads(int(T * factor))[0] for factor in (1.1, 2, 10, 1e6))


def test_leading_from_with_the_lemma_s_exploration():
    found = bnd.regret_bound(constants(), 1000, sigma_bar=0.1)
    assert found.dominant == "exploration" and found.vacuous and 1e40 < found.leading_from < 1e80
    assert found.leading_from == pytest.approx(math.exp(found.log_leading_from))
    tiny = bnd.regret_bound(constants(), 1000, sigma_bar=1e-9)
    assert tiny.leading_from == math.inf and tiny.log_leading_from > 1e3  # beyond every float, its logarithm is not
    assert tiny.reason == "overtakes martingale last"  # E27: both are of order sqrt T
    none = bnd.regret_bound(constants(), 1000, sigma_bar=0.0)
    assert none.leading_from is None and "0" in none.reason and none.terms["variance"] == 0.0


def test_the_second_root_t_term():
    """At sigma_bar_needed the two are equal; for d = 1 and large H it is 1/(d sqrt H) up to logarithms."""
    for d, H in ((1, 100), (4, 25), (2, 10)):
        needed = bnd.regret_bound(constants(d=d, H=H), 1000, sigma_bar=0.05).sigma_bar_needed
        equal = bnd.regret_bound(constants(d=d, H=H), 1000, sigma_bar=needed)
        assert equal.terms["variance"] == pytest.approx(equal.terms["martingale"])
        assert needed * d * math.sqrt(H) < 1
