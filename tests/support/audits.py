"""Results of runs made by hand."""

import numpy as np

from livarot.running.result import COLUMNS, RunResult


def by_hand(covered, bits, *, gap=None, loss=None, regret=None, agent=None, horizon=2):
    """A result with two parameters whose columns are given; None is masked, as are entries that are None."""
    shape = np.shape(covered)

    def column(values):
        values = np.full(shape, None) if values is None else np.array(values, dtype=object)
        mask = np.equal(values, None)
        return np.ma.MaskedArray(np.where(mask, 0.0, values).astype(float), mask=mask)

    columns = {name: column(None) for name in COLUMNS}
    columns["covered"] = column(covered)
    columns["optimism_gap"], columns["optimism_loss"] = column(gap), column(loss)
    columns["regret"] = column(np.full(shape, 0.5) if regret is None else regret)
    columns["variance"] = column(np.full(shape, 0.01))
    facts = {"agent": agent or {}}
    words = None if bits is None else np.array(bits, dtype=np.int32)[:, :, None]
    return RunResult("livarot", "by hand", np.arange(shape[0]), horizon, columns, facts, words)
