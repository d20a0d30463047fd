"""ICU-Sepsis as an MNL mixture MDP: 716 states, 25 treatments, 1,528,600 transitions estimated from real records.

The package ``icu-sepsis`` (MIT-licensed data of Choudhary et al.) gives p0(s'|s, a), the distribution of the first
state and the mean SOFA score (organ failure) of each state.  States 713, 714 and 715 are death, survival and "over".
The hospital here has patients who respond differently to doses,

    p(s'|s, a) proportional to p0(s'|s, a) exp(w . x(s, a, s')),
    x = (death vaso, death fluid, SOFA vaso, SOFA fluid),

where death is 1 if s' is death, SOFA is the score of s' over the largest one, and vaso and fluid are the levels 0..4
of the treatment over 4.  One parameter serves all stages.  log p0 is a known offset, so d = 4 and theta = 0 is the
nominal model; with ``learn_nominal`` a fifth feature log p0 / max|log p0| is added, whose true coefficient is 0: the
power of p0 is learned as a deviation from 1.

**A demonstration on a public simulator; not medical advice.**

Readings
--------
- A patient gets ``horizon`` treatments; survival pays 1 once, in the stage *after* the treatment that brought it.  So
  the model has ``horizon + 1`` stages; nothing is decided in the last one.  The value is the probability of survival
  within ``horizon`` treatments.
- All 25 treatments may be given in every state.  A treatment that the records do not support has, in the package's
  data, the mean law of those that they do (its default strategy "mean").  Hence **the nominal optimum is not unique**:
  treatments that no doctor chose tie exactly with each other, and in a state with one supported treatment all 25 tie.
- The number of a treatment is 5 i + j.  ``vasopressor_first`` reads i as the vasopressor level; of all readings that
  were tried only that one gives the reference value .884 of the optimal policy (docs/sepsis.md).  The package does not
  say which it is; its clinicians' policy has j = 0 in 84 % of the cases, which speaks for i = fluid.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray, Int32Array, IntArray
from livarot.errors import bad, require_finite
from livarot.model.problem import MNLMDP
from livarot.system.sizes import require_memory

N_STATES, N_ACTIONS, LEVELS = 716, 25, 5
DEATH, SURVIVAL, OVER = 713, 714, 715
FEATURES = ("death x vasopressor", "death x fluid", "SOFA x vasopressor", "SOFA x fluid")
WEIGHTS = (3.0, -2.0, 1.0, -1.0)


class SepsisData(NamedTuple):
    """The package's numbers: the possible transitions, pair after pair (s * 25 + a), and what is known of states."""

    outcomes: IntArray  # (S, A) possible next states
    next_state: Int32Array  # (rows,) ascending within a pair
    nominal: FloatArray  # (rows,) p0
    start: FloatArray  # (S,)
    sofa: FloatArray  # (S,)


def load_sepsis() -> SepsisData:
    """Read the data files of ``icu-sepsis`` without importing it, so that its dependencies need not be installed."""
    spec = find_spec("icu_sepsis")
    folder = Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None
    file = folder / "envs" / "assets" / "dynamics.npz" if folder else None
    if file is None or not file.is_file():
        raise bad(
            "icu-sepsis",
            "the package is not installed, or has no dynamics.npz",
            cure="pip install --no-deps icu-sepsis",
        )
    with np.load(file, allow_pickle=False) as found:
        missing = [name for name in ("tx_mat", "d_0", "sofa_scores") if name not in found.files]
        shape = (N_STATES, N_ACTIONS, N_STATES)
        if missing or found["tx_mat"].shape != shape:
            raise bad(
                "icu-sepsis",
                f"dynamics.npz has no {missing[0]}" if missing else f"tx_mat is not {shape}",
                cure="pip install --no-deps icu-sepsis==2.0.1",
            )
        dense = found["tx_mat"]
        start, sofa = found["d_0"].astype(np.float64), found["sofa_scores"].astype(np.float64)
    at = np.flatnonzero(dense)
    return SepsisData(
        outcomes=np.count_nonzero(dense, axis=2).astype(np.int64),
        next_state=(at % N_STATES).astype(np.int32),
        nominal=dense.reshape(-1)[at],
        start=start / start.sum(),
        sofa=sofa,
    )


def doses(vasopressor_first: bool = True) -> tuple[FloatArray, FloatArray]:
    """The vasopressor and fluid doses in [0, 1] of the 25 treatments."""
    first, second = np.divmod(np.arange(N_ACTIONS), LEVELS)
    vaso, fluid = (first, second) if vasopressor_first else (second, first)
    return vaso / (LEVELS - 1.0), fluid / (LEVELS - 1.0)


@checked
def icu_sepsis(
    horizon: int = 20,
    weights: Sequence[float] = WEIGHTS,
    learn_nominal: bool = False,
    *,
    vasopressor_first: bool = True,
    param_bound: float | None = None,
) -> MNLMDP:
    """A hospital with ICU-Sepsis patients who respond to doses by ``weights`` (see the module); not medical advice.

    ``weights`` are w, in the order of ``FEATURES``; all zero is the nominal model.  ``param_bound`` bounds the weights
    as given (None is |w|); features and weights are rescaled so that features have norm at most 1.

    >>> mdp = icu_sepsis(weights=(0, 0, 0, 0))                                   # doctest: +SKIP
    >>> round(float(mdp.problem.start @ livarot.solve(mdp).value[0]), 4)         # doctest: +SKIP
    0.7922
    """
    require_memory("horizon", "the rewards", 2 * (horizon + 1) * N_STATES * N_ACTIONS)
    tilt = require_finite("weights", weights)
    if tilt.shape != (len(FEATURES),):
        raise bad("weights", f"have shape {tilt.shape}, expected ({len(FEATURES)},)", cure=", ".join(FEATURES))
    data = load_sepsis()
    log_nominal = np.log(data.nominal)
    action = np.repeat(np.tile(np.arange(N_ACTIONS), N_STATES), data.outcomes.reshape(-1))
    death = data.next_state == DEATH
    severity = (data.sofa / data.sofa.max())[data.next_state]
    features = np.zeros((len(action), len(FEATURES) + bool(learn_nominal)))
    for j, dose in enumerate(doses(vasopressor_first)):
        features[:, j] = death * dose[action]
        features[:, 2 + j] = severity * dose[action]
    if learn_nominal:
        features[:, 4] = log_nominal / np.abs(log_nominal).max()
        tilt = np.append(tilt, 0.0)
    levels = (LEVELS - 1) * np.transpose(doses(vasopressor_first))
    reward = np.zeros((horizon + 1, N_STATES, N_ACTIONS))
    reward[:, SURVIVAL] = 1.0
    return MNLMDP.from_arrays(
        horizon + 1,
        N_STATES,
        N_ACTIONS,
        outcomes=data.outcomes,
        next_state=data.next_state,
        features=features,
        offset=log_nominal,
        reward=reward,
        theta=tilt,
        start=data.start,
        stage_table=np.zeros(horizon + 1, dtype=np.int32),
        param_bound=param_bound,
        normalise=True,
        states=[*range(DEATH), "death", "survival", "over"],
        actions=[f"vasopressor {vaso:g}, fluid {fluid:g}" for vaso, fluid in levels],
    )
