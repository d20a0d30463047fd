"""Gymnasium knows the environments, in whatever order the two are imported."""

import subprocess
import sys

import gymnasium
import pytest

import livarot
from livarot.gymnasium_ids import OWN_MODEL, env_id, register

NAMES = livarot.envs.registry.names()


def test_every_environment_has_an_id():
    assert len({env_id(name) for name in NAMES}) == len(NAMES)
    assert {env_id(name) for name in NAMES} | {OWN_MODEL} <= set(gymnasium.registry)
    assert env_id("hard-chain") == "livarot/HardChain-v0"


ORDERS = {
    "livarot first": "import livarot\nassert not {'gymnasium', 'numpy'} & set(sys.modules)\nimport gymnasium",
    "gymnasium first": "import gymnasium\nimport livarot",
    "only asked for": "import livarot, importlib.util\nassert importlib.util.find_spec('gymnasium')\nimport gymnasium",
    "a part of it": "import livarot\nfrom gymnasium.spaces import Discrete\nimport gymnasium",
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_ids_are_there_in_any_order_of_imports(order):
    code = (
        f"import sys\nbefore = len(sys.meta_path)\n{ORDERS[order]}\n"
        "assert len(sys.meta_path) == before, 'the finder has left'\n"
        "assert 'numba' not in sys.modules, 'registering is cheap'\n"
        "print(gymnasium.spec('livarot/RiverSwim-v0').entry_point)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("livarot.envs.gymnasium.env:MNLEnv\n", "")


def test_a_name_that_imports_the_package():
    code = "import gymnasium; print(gymnasium.make('livarot:livarot/RiverSwim-v0').unwrapped.mdp.problem.n_states)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_names_that_are_added_later():
    livarot.envs.registry.register("my-own_world", livarot.envs.hard_chain, "mine")
    register()  # the others are there already
    try:
        assert gymnasium.spec("livarot/MyOwnWorld-v0").kwargs == {"mdp": "my-own_world"}
    finally:
        del livarot.envs.registry._entries["my-own_world"], gymnasium.registry["livarot/MyOwnWorld-v0"]


def test_the_command_line_does_not_import_gymnasium():
    code = "import sys, livarot.cli.app; sys.exit('gymnasium' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
