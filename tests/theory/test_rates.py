"""The table of published rates."""

import json
import math

import pytest

from livarot import envs
from livarot.theory.rates import RATES, Sizes, compare


def test_rates_by_hand():
    sizes = Sizes(d=4, H=3, T=100, log_kappa=math.log(7), log_kappa_star=math.log(9), sigma_bar=0.1, B=2.0)
    expected = {
        "UCRL-MNL": 7 * 4 * 9 * 10,
        "UCRL-MNL-OL": 4 * 9 * 10 + 7 * 16 * 9,
        "UCRL-MNL-OL (conference)": 7 * 4 * 9 * 10,
        "RRL-MNL": 7 * 8 * 9 * 10,
        "ORRL-MNL": 8 * 9 * 10 + 7 * 16 * 9,
        "UCRL-MNL+": 4 * 9 * 10 + 7 * 16 * 9,
        "LIVAROT, as claimed": 2 * 0.1 * 4 * 9 * 10,
        "LIVAROT, both sqrt(T) terms": 2 * 0.1 * 4 * 9 * 10 + 3**1.5 * 10,
        "lower bound (Li et al.)": 4 * 3 * 10 / 3,
        "lower bound (Park et al.)": 4 * 3**1.5 * 10,
    }
    assert {rate.name: pytest.approx(rate.function(sizes)) for rate in RATES} == expected
    assert all(rate.tag in ("certain", "likely") and rate.source for rate in RATES)


def test_the_table_of_rates():
    mdp = envs.hard_chain(10, param_bound="tight")
    table = compare(mdp, 1000)
    assert [row["name"] for row in table] == [rate.name for rate in RATES]
    assert json.dumps(table, allow_nan=False)
    worst = {row["name"]: row["rate"] for row in compare(mdp.problem, 1000)}
    here = {row["name"]: row["rate"] for row in table}
    assert worst["LIVAROT, as claimed"] > here["LIVAROT, as claimed"] and worst["UCRL-MNL"] == here["UCRL-MNL"]
    huge = compare(envs.hard_chain(5, param_bound=800.0), 1000)
    assert huge[0]["rate"] is None
