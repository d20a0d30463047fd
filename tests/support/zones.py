"""Choices among three zones, with a covariate of any scale, and fits to them."""

import numpy as np
import pandas as pd

from livarot.data import MNLTransition


def table(n=400, scale=1.0):
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"choice": np.repeat(np.arange(n), 3), "zone": np.tile(["a", "b_c", "d"], n)})
    found["x"], found["wide"] = rng.normal(size=3 * n), scale * rng.normal(size=3 * n)
    u = 0.5 * found.x + 0.4 * found.wide / scale + rng.gumbel(size=3 * n)
    found["chosen"] = u == u.groupby(found.choice).transform("max")
    return found


def fitted(formula="~ C(zone) + x + wide", data=None, **options):
    return MNLTransition(formula=formula, **options).fit(table() if data is None else data)
