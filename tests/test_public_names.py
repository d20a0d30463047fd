"""Public names: one list per package, which Python, editors and type checkers read, and the only paths of the docs."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["livarot", *(f"livarot.{part}" for part in ["agents", "data", "envs", "experiments", "infinite", "theory"])]
PUBLIC = ["livarot.lanes"]  # a module, listed by its own __all__
DEPENDENCIES = {"numpy", "numba", "scipy", "pandas", "gymnasium", "pydantic", "matplotlib", "sklearn", "pyarrow"}
MAPS = ("design.md", "paper_map.md")  # these say where in the sources things are


def stub(package: str) -> Path:
    return ROOT.joinpath("src", *package.split("."), "__init__.pyi")


def listed(package: str) -> list[str]:
    """The names of a stub, in alphabetical order."""
    tree = ast.parse(stub(package).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return sorted(alias.asname for node in imports for alias in node.names)


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_listed_before_they_are_used_and_cost_nothing(package):
    """``dir``, ``__all__`` and the stub agree, in an interpreter that has imported the package and nothing else."""
    out = python(f"import sys, {package} as p; print(*dir(p)); print(*p.__all__); print(*sys.modules)").splitlines()
    assert out[1].split() == listed(package)
    assert set(listed(package)) <= set(out[0].split())
    assert not DEPENDENCIES & set(out[2].split())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_and_says_what_it_is(package):
    module = importlib.import_module(package)
    for name in listed(package):
        assert inspect.getdoc(getattr(module, name)), name
    star: dict[str, object] = {}
    exec(f"from {package} import *", star)  # noqa: S102
    assert set(listed(package)) <= star.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_name(package):
    """Importing ``package.name`` would replace a function of that name."""
    module = importlib.import_module(package)
    for name in listed(package):
        if importlib.util.find_spec(f"{package}.{name}"):
            assert isinstance(getattr(module, name), ModuleType), name


def test_what_is_not_listed():
    code = (
        "import livarot\n"
        "print(livarot.agents.base.__name__, livarot.envs.gymnasium.__name__)\n"
        "print(hasattr(livarot, 'nothing'), hasattr(livarot.agents, '_nothing'))\n"
        "try: livarot.agents.Livaro\n"
        "except AttributeError as error: print(error, error.name)\n"
    )
    assert python(code).splitlines() == [
        "livarot.agents.base livarot.envs.gymnasium",
        "False False",
        "module 'livarot.agents' has no attribute 'Livaro' Livaro",
    ]


def test_a_registered_name_does_not_import_the_others():
    code = (
        "import sys, livarot\n"
        "print('livarot' in livarot.agents.registry, len(livarot.envs.registry))\n"
        "livarot.agents.make('uniform')\n"
        "seen = ('livarot.agents.livarot', 'livarot.envs.problems.hard', 'numba')\n"
        "print([name for name in sys.modules if name in seen])\n"
    )
    assert python(code).splitlines() == ["True 18", "['numba']"]


def test_importing_takes_less_than_a_tenth_of_a_second():
    """The best of five: a busy machine takes longer."""
    clock = "import time; t = time.perf_counter(); import livarot; print(time.perf_counter() - t)"
    assert min(float(python(clock)) for _ in range(5)) < 0.1


@pytest.mark.slow
def test_type_checkers_know_every_name(tmp_path):
    uses = [(package, name) for package in PACKAGES for name in listed(package)]
    lines = [f"import {package}" for package in PACKAGES] + [f"reveal_type({package}.{name})" for package, name in uses]
    (tmp_path / "uses.py").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "uses.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert done.returncode == 0 and len(revealed) == len(uses), done.stdout[-2000:]
    assert [use for use, kind in zip(uses, revealed, strict=True) if kind in ("Any", "builtins.object")] == []


def public(path: str) -> bool:
    """Is a dotted name one of the lists, or an attribute of what is listed?"""
    for package in sorted([*PACKAGES, *PUBLIC], key=len, reverse=True):
        if path == package:
            return True
        if path.startswith(f"{package}."):
            return path[len(package) + 1 :].split(".")[0] in importlib.import_module(package).__all__
    return False


def paths_in(text: str) -> set[str]:
    """Names of the package that a page uses: dotted ones, and those of imports.  An error is shown by its full name."""
    text = re.sub(r"^livarot[\w.]+(?=: )", "", text, flags=re.MULTILINE)
    found = set(re.findall(r"(?<![\w/.-])livarot(?:\.[A-Za-z_]\w*)+(?![\w/]|\.(?:py|toml)\b)", text))
    for module, names in re.findall(r"from (livarot[\w.]*) import ([\w, ]+)", text):
        found |= {f"{module}.{name.strip()}" for name in names.split(",")}
    return found


def test_paths_are_found_and_judged():
    text = "`livarot.run(x)` and\n>>> from livarot.agents.base import Agent\nlivarot.errors.LivarotError: no\n"
    assert paths_in(text) == {"livarot.run", "livarot.agents.base", "livarot.agents.base.Agent"}
    assert public("livarot.RunResult.regret") and public("livarot.envs.hard_chain") and public("livarot.lanes.dot")
    assert not public("livarot.agents.base.Agent") and not public("livarot.sweeps") and not public("livarot.nothing")


PAGES = [path for path in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"] if path.name not in MAPS]
EXAMPLES = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "examples").rglob("*.md")]


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_docs_use_public_paths(path):
    assert {name for name in paths_in(path.read_text(encoding="utf-8")) if not public(name)} == set()


def test_the_lists_are_shipped(tmp_path):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)], cwd=ROOT, check=True)
    wanted = {"livarot/py.typed", *(stub(package).relative_to(ROOT / "src").as_posix() for package in PACKAGES)}
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(source) as archive:
        assert wanted <= {name.partition("/src/")[2] for name in archive.getnames()}
