"""The theorem's terms as printed and as the proof gives them, the lower bound, and the table of rates."""

import json
import math
import time
from dataclasses import replace

import pytest

from livarot import envs
from livarot.confidence import radii
from livarot.errors import LivarotError
from livarot.theory import TheoryWarning
from livarot.theory import bounds as bnd
from livarot.theory.all_constants import Constants
from livarot.theory.lower import lower_bound
from livarot.theory.variance import sigma_bar_limit
from tests.support.theory import constants
from tests.twins import theory as twin

SIZES = [(2, 10, 1000, 2.2, 11.3, 0.8, 3.0, 0.1, 0.05), (5, 3, 7, 1.0, 4.0, 1.0, 0.5, 0.2, 0.01)]
SIZES += [(1, 30, 10**6, 4.0, 400.0, 0.3, 50.0, 0.01, 0.1), (20, 4, 2, 1.5, 9.0, 1.0, 1e-3, 0.05, 0.15)]


# ---------------------------------------------------------------- the terms


def test_the_printed_leading_term_is_below_what_is_proved():
    """E27: the 24 B sqrt(d) of the radius is lost; the print is right from about T = 1e10 on."""
    ratio = {}
    for T in (10**3, 10**8, 10**12):
        terms = [
            bnd.regret_bound(constants(), T, sigma_bar=0.1, reading=r).terms["variance"] for r in ("proof", "printed")
        ]
        ratio[T] = terms[0] / terms[1]
    assert ratio[10**3] > 3 and ratio[10**8] > 1 > ratio[10**12]


def test_the_radius_is_that_of_the_agents():
    for reading, horizon in (("proof", 7), ("printed", 1)):
        found = bnd.theory_settings(constants(d=3, H=7, B=1.3), 500, failure_level=0.02, reading=reading)
        exact = radii.livarot_radius(500, 3, horizon, 1.3, found.reg, 0.02)
        assert found.reg == 432.0 and found.radius == pytest.approx(exact, rel=1e-14)
    assert radii.livarot_radius_printed(500, 3, 1.3, 0.02) == pytest.approx(found.radius, rel=1e-14)


def test_printed_settings_are_those_of_the_radii():
    found = bnd.theory_settings(constants(), 1000, failure_level=0.05, reading="printed")
    tau = radii.exploration_length(1000, 2, 10, 2.5, 11.3, 0.8, 0.05)
    assert found.tau == pytest.approx(tau, rel=1e-10)
    assert found.exploration_radius == pytest.approx(radii.exploration_radius(tau, 2, 10, 2.5, 11.3, 0.8, 0.05))
    assert found.reg_explore == pytest.approx(math.sqrt(2 * math.log(tau * 10 / 0.05)))
    right = bnd.theory_settings(constants(), 1000, failure_level=0.05)
    assert right.reg_explore == pytest.approx(2 * math.log(right.tau * 10 / 0.05))  # E5: without the root


@pytest.mark.parametrize("kappa", [1.5, 11.3, 1e4])
def test_the_proof_s_exploration_gives_the_diameter_and_no_less_does(kappa):
    """E6: the diameter is 1/(3 sqrt 2) at the proof's tau; the printed one is too short by 1e5 and more."""
    sizes = (2, 10, 2.5, kappa, 0.8, 0.05)
    tau = bnd.theory_settings(constants(kappa=kappa), 1000).tau
    goal = 1 / (3 * math.sqrt(2))
    assert twin.exploration_diameter(tau, *sizes) == pytest.approx(goal, rel=1e-9)
    assert twin.exploration_diameter(2 * tau, *sizes) < goal
    printed = bnd.theory_settings(constants(kappa=kappa), 1000, reading="printed").tau
    assert printed < 1e-5 * tau
    assert twin.exploration_diameter(printed, *sizes) > 1


# ---------------------------------------------------------------- from models, and numbers that do not fit
def test_from_a_model():
    mdp = envs.hard_chain(10, param_bound="tight")
    found = Constants.of(mdp)
    assert Constants.of(found) is found
    one = bnd.regret_bound(mdp, 1000, sigma_bar=0.1)
    assert one == bnd.regret_bound(found, 1000, sigma_bar=0.1)
    assert bnd.regret_bound(mdp, 1000).sigma_bar == sigma_bar_limit(10)
    with pytest.raises(LivarotError, match="nu_max"):
        bnd.regret_bound(mdp.problem, 1000)
    known = bnd.regret_bound(mdp.problem, 1000, nu_max=found.nu_max, sigma_bar=0.1)
    assert known.log_terms == one.log_terms
    keys = {"U", "rho", "kappa", "kappa_bound", "kappa_star", "sigma_bar_star", "nu_max"}
    assert keys <= found.to_json().keys() and {"terms", "upper"} <= one.to_json().keys()
    assert "lower" in lower_bound(mdp, 1000).to_json()


def test_nothing_overflows_silently():
    mdp = envs.hard_chain(5, param_bound=300.0)
    found = bnd.regret_bound(mdp, 1000, sigma_bar=0.1)
    assert found.total == found.terms["exploration"] == math.inf
    assert 2400 < found.log_terms["exploration"] < 2600 and math.isfinite(found.log_total)
    assert math.isfinite(found.terms["curvature"]) and found.leading_from == math.inf
    for thing in (found, bnd.theory_settings(mdp, 1000), Constants.of(mdp)):
        json.dumps(thing.to_json(), allow_nan=False)
    assert found.to_json()["upper"] is None and found.to_json()["log_upper"] > 2400


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bnd.regret_bound(constants(), 10, failure_level=0.3), "failure_level"),
        (lambda: bnd.regret_bound(constants(B=0.5), 10, reading="printed"), "B >= 1"),
        (lambda: bnd.regret_bound(constants(rho=0.0), 10), "rho"),
        (lambda: bnd.regret_bound(constants(zero=False), 10), "E9"),
        (lambda: bnd.regret_bound(constants(), 10, sigma_bar=0.4), "sigma_bar"),
        (lambda: bnd.regret_bound(constants(), 10, n_explore=80), "n_explore = 80"),
        (lambda: lower_bound(constants(d=1), 1000), "d = 1"),
        (lambda: lower_bound(constants(H=2), 1000), "H = 2"),
        (lambda: lower_bound(constants(), 31), "T = 31"),
        (lambda: lower_bound(constants(B=1.0), 1000), "B = 1"),
    ],
)
def test_outside_the_conditions_there_is_a_number_and_a_warning(call, words):
    with pytest.warns(TheoryWarning, match=words.replace("(", r"\(")):
        found = call()
    assert len(found.failed) == 1 and words in found.failed[0]
    total = found.value if hasattr(found, "value") else found.log_total
    assert not math.isnan(total)
    assert json.dumps(found.to_json(), allow_nan=False)


def test_inside_the_conditions_there_is_no_warning():
    assert bnd.regret_bound(constants(), 1000).failed == () == lower_bound(constants(), 32).failed


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"n_episodes": 0}, "n_episodes"),
        ({"failure_level": 0.0}, "failure_level"),
        ({"sigma_bar": -0.1}, "sigma_bar"),
        ({"sigma_bar": math.nan}, "sigma_bar"),
        ({"nu_max": -1.0}, "nu_max"),
        ({"n_explore": -1}, "n_explore"),
        ({"reading": "mine"}, "reading"),
    ],
)
def test_bad_input(change, argument):
    with pytest.raises(LivarotError) as error:
        bnd.regret_bound(constants(), **({"n_episodes": 10} | change))
    assert error.value.argument == argument


# ---------------------------------------------------------------- constants that no model has
@pytest.mark.parametrize("reading", ["printed", "proof"])
@pytest.mark.parametrize(("kappa", "rho"), [(1.0, 1.0), (1.0, 1e6), (1.0 + 1e-12, 1e300), (1e300, 1e-300)])
def test_a_burn_in_of_less_than_an_episode(kappa, rho, reading):
    """rho is at most 1 for features of norm 1; a larger one makes tau < 1, not an error."""
    found = bnd.theory_settings(constants(kappa=kappa, rho=rho), 1000, reading=reading)
    assert found.reg_explore > 0.0 and math.isfinite(found.log_exploration_radius)
    begin = time.process_time()
    assert bnd.regret_bound(constants(kappa=kappa, rho=rho), 1000, reading=reading).total > 0.0
    assert time.process_time() - begin < 1.0


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_constants_are_numbers(wrong):
    """A NaN would defeat the cache of tau: its search would begin anew in each of a thousand steps of another one."""
    good = constants()
    for name in ("rho", "param_bound", "log_kappa_bound", "log_kappa_star", "sigma_bar_star", "nu_max"):
        with pytest.raises(LivarotError, match=f"^{name}: must be a finite number >= 0"):
            replace(good, **{name: wrong})
    for name in ("log_lower", "log_upper"):
        with pytest.raises(LivarotError, match=f"^{name}: must be a finite number >= 0"):
            replace(good.kappa, **{name: wrong})
