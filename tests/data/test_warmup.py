"""After the warm-up no kernel of livarot.data is left to compile."""

import os
import subprocess
import sys

import pytest

WARM = """
import importlib, pkgutil, livarot.data
from numba.core.dispatcher import Dispatcher
from livarot.data.warmup import warmup
warmup()
for module in pkgutil.iter_modules(livarot.data.__path__, "livarot.data."):
    for thing in vars(importlib.import_module(module.name)).values():
        if isinstance(thing, Dispatcher) and thing.py_func.__module__ == module.name:
            assert thing.signatures, thing.py_func.__qualname__
"""


@pytest.mark.slow
def test_the_warm_up_compiles_every_kernel(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", WARM], check=True, env=environment)
