"""How often 95 % intervals of `livarot.experiments.statistics` hold the truth, over 2,000 invented experiments.

    python -m benchmarks.coverage [--seeds 20] [--experiments 2000]

Each experiment draws its seeds from a named law.  The table of docs/report.md is this one.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.stats
from scipy.integrate import quad

from livarot.experiments.statistics import band

LAWS = {
    "normal": scipy.stats.norm(),
    "uniform *": scipy.stats.uniform(),
    "exponential": scipy.stats.expon(),
    "gamma, shape 2": scipy.stats.gamma(2.0),
    "lognormal, σ = 0.5": scipy.stats.lognorm(0.5),
    "lognormal, σ = 1 *": scipy.stats.lognorm(1.0),
    "Student, 3 degrees *": scipy.stats.t(3),
}


def coverage(law, statistic: str, seeds: int, experiments: int) -> float:
    """The share of columns whose interval holds the law's own mean or interquartile mean."""
    sample = law.rvs(size=(seeds, experiments), random_state=np.random.Generator(np.random.Philox(7)))
    truth = law.mean() if statistic == "mean" else 2.0 * quad(law.ppf, 0.25, 0.75)[0]
    found = band(sample, statistic=statistic)
    return float(np.mean((found.low <= truth) & (truth <= found.high)))


def student(law, seeds: int, experiments: int) -> float:
    """The same for Student's interval of the mean."""
    sample = law.rvs(size=(seeds, experiments), random_state=np.random.Generator(np.random.Philox(7)))
    half = scipy.stats.t.ppf(0.975, seeds - 1) * sample.std(axis=0, ddof=1) / np.sqrt(seeds)
    return float(np.mean(np.abs(sample.mean(axis=0) - law.mean()) <= half))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--experiments", type=int, default=2000)
    given = parser.parse_args()
    print("| law | mean | interquartile mean | Student's interval of the mean |")
    print("|---|---|---|---|")
    for name, law in LAWS.items():
        found = [coverage(law, statistic, given.seeds, given.experiments) for statistic in ("mean", "iqm")]
        found.append(student(law, given.seeds, given.experiments))
        print(f"| {name} | " + " | ".join(f"{100 * x:.1f} %" for x in found) + " |")


if __name__ == "__main__":
    main()
