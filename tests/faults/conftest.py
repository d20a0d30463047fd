"""Tests marked ``long`` (tens of minutes) run only when asked for: ``pytest -m long tests/faults``."""

import pytest

collect_ignore = ["plugin.py"]  # imported for doctests, it would register agents that kill their process


def pytest_configure(config):
    config.addinivalue_line("markers", "long: tens of minutes; run only by `pytest -m long`")


def pytest_collection_modifyitems(config, items):
    if "long" not in (config.option.markexpr or ""):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: pytest -m long tests/faults"))
