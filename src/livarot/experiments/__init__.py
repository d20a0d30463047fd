"""Runs, sweeps, their store and their statistics, under one name: what a study of learners is written with."""

from __future__ import annotations

from livarot.report.resampling import Band
from livarot.report.statistics import (
    Interval,
    Paired,
    band,
    bands,
    iqm,
    iqm_interval,
    log_log_slope,
    mean_interval,
    paired_difference,
    probability_of_improvement,
    proportion_interval,
)
from livarot.running.result import RunResult
from livarot.sweeps.driver import sweep
from livarot.sweeps.keys import Cell, Run
from livarot.sweeps.spec import AgentSpec, EnvironmentSpec, Experiment, SeedRange
from livarot.sweeps.store.store import Store

__all__ = [
    "AgentSpec",
    "Band",
    "Cell",
    "EnvironmentSpec",
    "Experiment",
    "Interval",
    "Paired",
    "Run",
    "RunResult",
    "SeedRange",
    "Store",
    "band",
    "bands",
    "iqm",
    "iqm_interval",
    "log_log_slope",
    "mean_interval",
    "paired_difference",
    "probability_of_improvement",
    "proportion_interval",
    "sweep",
]
