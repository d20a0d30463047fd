"""Pages print what a bootstrap gave; one binomial draw in some thousands is another one from NumPy 2.5 on."""

import numpy as np
import pytest

SAME_BINOMIALS = np.random.Generator(np.random.Philox(0)).binomial(1000, 0.3, 8000)[7892] == 278  # 275 from 2.5 on
same_binomials = pytest.mark.skipif(not SAME_BINOMIALS, reason="the page was printed with NumPy before 2.5")
