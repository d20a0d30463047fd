"""Who was observed, how often, and with which weight: what the counts of the likelihood do not keep of a log.

``count`` says how often an observation occurred (a frequency: n equal rows), ``weights`` how many of the population
it stands for (a sampling weight: one row, whose score counts w times).  Both multiply the log-likelihood, but n scores
have n times the variance of one score, and a score counted w times has w^2 times the variance: so they are kept apart.
``cluster`` says which observations belong together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from livarot.core.arrays import IntArray
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns, counts_of
from livarot.data.reading.table import Table, named
from livarot.errors import bad


def logged(
    choices: Choices, row: IntArray, table_row: IntArray, table: Table, columns: Columns, *, needed: bool = True
) -> Choices:
    """``choices`` with observations that chose ``row`` and stand in ``table_row`` of a table.

    Unless ``needed``, columns of weights and clusters that the table does not have are passed over (predictions)."""
    frequency = None if columns.count is None else counts_of(table, columns.count)[table_row]
    weight, cluster = None, None
    if columns.weights is not None and (needed or columns.weights in table):
        every = np.asarray(table.numbers(columns.weights, "weights"), dtype=np.float64)
        if (every < 0).any():
            wrong = every < 0
            raise bad(named(columns.weights), "negative weights", index=int(wrong.argmax()), count=int(wrong.sum()))
        weight = every[table_row]
        if not weight.sum() > 0.0:
            raise bad(named(columns.weights), "are all zero", cure="give positive weights")
    if columns.cluster is not None and (needed or columns.cluster in table):
        cluster = table.labels(columns.cluster, "cluster")[0][table_row]
    total = frequency
    if weight is not None:
        total = weight if frequency is None else weight * frequency
    count = np.bincount(row, weights=total, minlength=choices.n_rows).astype(np.float64)
    return replace(choices, count=count, log_row=row, log_count=frequency, log_weight=weight, cluster=cluster)
