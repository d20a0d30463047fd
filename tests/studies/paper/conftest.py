"""A small reproduction that the tests of this folder share."""

import pytest

from livarot.studies.paper.experiment import Reproduction, reproduce


@pytest.fixture(scope="package")
def small() -> Reproduction:
    return reproduce(n_seeds=3, n_episodes=20, horizons=(3, 4), workers=2)
