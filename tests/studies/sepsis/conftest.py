"""A small study that the tests of this folder share."""

import pytest

from livarot.studies.sepsis.experiment import sepsis_study


@pytest.fixture(scope="package")
def study():
    """Two seeds, four patients, three treatments each: the shape of the real study."""
    calls = []
    found = sepsis_study(2, 4, horizon=3, progress=lambda done, total: calls.append((done, total)))
    return found, calls
