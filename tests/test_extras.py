"""The core works without any extra, and what needs one says which."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from livarot.errors import LivarotError, MissingExtra
from livarot.extras import EXTRAS, extras_explained, require_extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTION = {"sklearn": "scikit-learn", "tomli_w": "tomli-w"}
BLOCKED = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import livarot
from livarot import agents, envs, infinite, theory
"""


def without_extras(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process in which no package of an extra can be imported."""
    command = [sys.executable, "-c", BLOCKED + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)


def test_modelling_planning_running_and_simulating_need_no_extra(tmp_path):
    code = """
mdp = envs.hard_chain(3)
solution = livarot.solve(mdp)
livarot.evaluate(mdp, solution.policy), livarot.simulate(mdp, solution.policy, 3), livarot.solve_robust(mdp, radius=0.1)
result = livarot.run(mdp, agents.Livarot(), 5, seed=range(2))
mdp.save(sys.argv[1] + "/model"), livarot.MNLMDP.load(sys.argv[1] + "/model"), result.save(sys.argv[1] + "/result")
theory.Constants.of(mdp), theory.audit(result, mdp)
infinite.solve_discounted(infinite.InfiniteMDP.from_mdp(envs.park_two_state()), 0.9)
for name in envs.registry:
    if name not in envs.LARGE:
        envs.make(name)
for name in agents.registry:
    agents.registry.summary(name), getattr(agents, "Livarot")
print("done")
"""
    done = without_extras(code, str(tmp_path))
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize(
    ("use", "extra"),
    [
        ("livarot.run(envs.hard_chain(2, gap=0.1), agents.Uniform(), 2).to_pandas()", "data"),
        ("livarot.run(envs.hard_chain(2, gap=0.1), agents.Uniform(), 2).plot()", "report"),
        ("livarot.MNLTransition", "data"),
        ("livarot.learn", "gym"),
        ("livarot.experiments.sweep", "sweep"),
        ("livarot.experiments.Store", "sweep"),
        ("from livarot.experiments import Experiment", "sweep"),
    ],
)
def test_what_needs_an_extra_says_which(use, extra):
    done = without_extras(f"{use}\n")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("livarot.errors.MissingExtra: ") and last.endswith(f"pip install 'livarot[{extra}]'")


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["reproduce", "--out", "never"], "report"),
        (["fit", "log.csv"], "data"),
        (["run", "experiment.toml"], "sweep"),
        (["report", "store"], "report,sweep"),
        (["board", "store"], "board"),
    ],
)
def test_a_command_says_all_that_it_needs_in_one_line(command, extra):
    done = without_extras(f"from livarot.cli import main\nsys.argv = ['livarot', *{command!r}]\nmain()")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("livarot: ") and line.endswith(f"comes with an extra: pip install 'livarot[{extra}]'")


def test_a_star_imports_what_is_there():
    done = without_extras("from livarot import *\nprint(solve.__name__, MNLMDP.__name__, 'learn' in globals())")
    assert done.stdout == "solve MNLMDP False\n", done.stderr


def test_the_error_is_ours_and_an_import_error():
    with pytest.raises(MissingExtra) as found, extras_explained():
        raise ModuleNotFoundError("No module named 'pyarrow.csv'", name="pyarrow.csv")
    assert isinstance(found.value, LivarotError) and isinstance(found.value, ImportError)
    assert found.value.argument == "pyarrow" and found.value.cure == "pip install 'livarot[data]'"


def test_other_failures_stay_what_they_are():
    with pytest.raises(ModuleNotFoundError, match="nowhere"), extras_explained():
        raise ModuleNotFoundError("nowhere", name="nowhere")
    require_extra("json")


def test_each_package_is_in_the_extra_that_is_named():
    for package, extra in EXTRAS.items():
        wanted = DISTRIBUTION.get(package, package)
        listed = PROJECT["optional-dependencies"][extra]
        assert any(line.startswith(wanted) for line in listed), f"{wanted} is not in [{extra}]"


def test_every_package_that_is_imported_is_a_dependency_or_comes_with_an_extra():
    core = {line.split(">")[0] for line in PROJECT["dependencies"]}
    # llvmlite comes with numba, starlette with streamlit
    known = core | set(EXTRAS) | {"llvmlite", "livarot", "starlette"} | set(sys.stdlib_module_names)
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                assert name.partition(".")[0] in known, f"{path.name} imports {name}"
