"""Settings shared by all tests."""

import importlib

import pytest


@pytest.fixture(autouse=True)
def _threads_even_for_small_problems(monkeypatch):
    """`livarot.run` keeps small problems on one thread; the tests of workers need the threads they ask for."""
    monkeypatch.setattr(importlib.import_module("livarot.running.run"), "THREAD_TERMS", 1)
