"""Compile the kernels of this package once, on tiny data; later processes load them from the cache."""

from __future__ import annotations

import numpy as np

from livarot.core.kernel import transition_kernel
from livarot.data.choices import Choices
from livarot.data.intervals import value_and_gradient
from livarot.data.model import MNLTransition
from livarot.envs import hard_chain


def warmup() -> None:
    """Fit four choices, from an array and from columns, ask for both confidence sets, and differentiate a value."""
    features = np.array([[[0.0], [1.0]]] * 4)
    whole = Choices.from_arrays(features, chosen=[0, 1, 1, 1], offset=np.zeros((4, 2)))
    in_columns = Choices(whole.start, (features.reshape(-1),), whole.count, whole.columns)
    for choices in (whole, in_columns):
        fit = MNLTransition(covariance="sandwich").fit(choices)
        fit.confidence_set(kind="finite-sample")
        fit.predict_proba(choices)
    mdp = hard_chain(2, gap=0.1)
    policy = np.full((2, mdp.problem.n_states, mdp.problem.n_actions), 1.0 / mdp.problem.n_actions)
    value_and_gradient(mdp.problem, transition_kernel(mdp), policy)


if __name__ == "__main__":
    warmup()
