"""Compile the kernels of this package once, on tiny data; later processes load them from the cache."""

from __future__ import annotations

import numpy as np

from livarot.data.choices import Choices
from livarot.data.model import MNLTransition


def warmup() -> None:
    """Fit four choices, from an array and from columns, and ask for both confidence sets."""
    features = np.array([[[0.0], [1.0]]] * 4)
    whole = Choices.from_arrays(features, chosen=[0, 1, 1, 1], offset=np.zeros((4, 2)))
    in_columns = Choices(whole.start, (features.reshape(-1),), whole.count, whole.columns)
    for choices in (whole, in_columns):
        fit = MNLTransition(covariance="sandwich").fit(choices)
        fit.confidence_set(kind="finite-sample")
        fit.predict_proba(choices)


if __name__ == "__main__":
    warmup()
