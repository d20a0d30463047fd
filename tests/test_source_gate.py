"""No code out of data, no printing, no trace of a machine, nothing too long to read: files, functions, kernels."""

import ast
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

FORBIDDEN_MODULES = {
    "pickle",
    "_pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "jsonpickle",
    "yaml",
}
FORBIDDEN_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "os.system",
    "os.popen",
    "yaml.load",
    "joblib.load",
}
FORBIDDEN_CALLS |= {"pd.read_pickle", "pandas.read_pickle", "torch.load", "pydoc.locate"}
LOADERS = {"np.load", "numpy.load"}

HOSTS = re.compile(
    r"https?://[a-z0-9.-]*(pypi|pythonhosted|npmjs|deb\.debian)|\b(pypi\.org|pythonhosted\.org|npmjs\.(org|com))",
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(root|work|farm|tmp|home|Users|opt)/[A-Za-z0-9._-]+")
MADE_FOLDERS = re.compile(r"\.(?!ci$|github$).*|__pycache__|build|dist")


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty if it is not such a chain."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (base := dotted(node.value)):
        return f"{base}.{node.attr}"
    return ""


def offences(tree: ast.AST, *, may_print: bool = False) -> list[str]:
    found = []
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "joblib" and any(alias.name == "load" for alias in node.names):
                found.append(f"{node.lineno}: import of joblib.load")
        found += [f"{node.lineno}: import {n}" for n in names if n.split(".")[0] in FORBIDDEN_MODULES]
        if isinstance(node, ast.Call):
            call = dotted(node.func).removeprefix("builtins.")
            if call in FORBIDDEN_CALLS or (call == "print" and not may_print):
                found.append(f"{node.lineno}: {call}(")
            for keyword in node.keywords:
                off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if (keyword.arg == "allow_pickle" and not off) or (keyword.arg is None and call in LOADERS):
                    found.append(f"{node.lineno}: {call} with allow_pickle")
                if keyword.arg == "shell" and not off:
                    found.append(f"{node.lineno}: {call} with a shell")
            if call in LOADERS and len(node.args) > 2:  # numpy.load(file, mmap_mode, allow_pickle)
                found.append(f"{node.lineno}: {call} with allow_pickle")
    return found


def project_files() -> list[Path]:
    """The files that git tracks or would track; without git, all files except those in generated folders."""
    git = shutil.which("git")
    if git and (ROOT / ".git").exists():
        command = [git, "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=False)
        if listed.returncode == 0:
            names = listed.stdout.decode().split("\0")
            return [path for name in names if name and (path := ROOT / name).is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(map(MADE_FOLDERS.fullmatch, path.relative_to(ROOT).parent.parts))
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml",
        "def f():\n    import dill as safe",
        "from joblib import load",
        "import joblib; joblib.load('x')",
        "eval('1')",
        "exec(text)",
        "import builtins; builtins.eval('1')",
        "import numpy as np; np.load('x', allow_pickle=True)",
        "import numpy as np; np.load('x', allow_pickle=flag)",
        "import numpy as np; np.load('x', None, True)",
        "import numpy as np; np.load('x', **options)",
        "import subprocess; subprocess.run('x', shell=True)",
        "print('x')",
    ],
)
def test_the_gate_sees(source):
    assert offences(ast.parse(source))


def test_the_gate_lets_pass():
    harmless = "import re, numpy as np; re.compile('x'); np.load('x', allow_pickle=False); log.info('print(x)')"
    assert offences(ast.parse(harmless)) == []
    assert offences(ast.parse("print('x')"), may_print=True) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_code_from_data_and_no_printing(path):
    may_print = path.relative_to(ROOT / "src" / "livarot").parts[0] in {"cli", "cli.py", "__main__.py"}
    assert offences(ast.parse(path.read_text(encoding="utf-8")), may_print=may_print) == []


LONGEST, MOST_ARGUMENTS = 60, 10


def is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Is it compiled?  Its arguments are then the arrays that it reads and writes."""
    return not {dotted(mark) for mark in node.decorator_list}.isdisjoint({"jit", "inner"})


def unwieldy(tree: ast.AST) -> list[str]:
    """Compiled functions that are too long to read at once, or take too many arguments."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_kernel(node):
            assert node.end_lineno is not None
            lines, given = node.end_lineno - node.lineno + 1, node.args
            arguments = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
            if lines > LONGEST or arguments > MOST_ARGUMENTS or given.vararg is not None:
                found.append(f"{node.name}: {lines} lines, {arguments} arguments")
    return found


def test_the_limits_of_kernels_are_seen():
    for mark in ("jit", "inner"):
        long = f"def make():\n    @{mark}\n    def f(a):\n" + "        a += 1\n" * LONGEST
        many = f"@{mark}\ndef f({', '.join(f'a{n}' for n in range(MOST_ARGUMENTS))}, more): pass"
        for source in (long, many, f"@{mark}\ndef f(*a): pass"):
            assert len(unwieldy(ast.parse(source))) == 1
    assert unwieldy(ast.parse(many.replace(", more", ""))) == []
    assert unwieldy(ast.parse(long.removesuffix("        a += 1\n"))) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_kernel_is_one_screen_with_few_arguments(path):
    assert unwieldy(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("name", ["pypi", "files.pythonhosted", "registry.npmjs"])
def test_the_patterns_find_hosts(name):
    assert HOSTS.search(f"see {name}.org for more")
    assert HOSTS.search(f"https://{name}.example/simple")


@pytest.mark.parametrize("folder", ["root", "work", "tmp", "home", "opt"])
def test_the_patterns_find_machine_paths(folder):
    assert MACHINE_PATHS.search(f'path = "/{folder}/x.txt"')
    assert not MACHINE_PATHS.search(f"src/{folder}/x.txt")


def test_no_host_and_no_machine_path_in_any_file():
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if HOSTS.search(line) or MACHINE_PATHS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


# ---------------------------------------------------------------- sizes
MOST_LINES, MOST_CODE, MOST_PARAMETERS = 400, 60, 8
MOST_MODULES = 13  # in one folder of the package, besides __init__.py
# Functions with more than eight parameters, and why they may have them.
KEYWORDS = "users call it with keywords, one for each thing that can be said"
OPTIONS = "one parameter per option of a command"
BEHIND = "what stands behind such a function, with the same keywords"
EXEMPT = {
    "cli/app.py:theory": OPTIONS,
    "cli/app.py:tune": OPTIONS,
    "cli/app.py:fit": OPTIONS,
    "cli/app.py:plan": OPTIONS,
    "cli/app.py:evaluate": OPTIONS,
    "cli/evaluate.py:command": OPTIONS,
    "cli/plan.py:command": OPTIONS,
    "cli/sweep.py:run": OPTIONS,
    "cli/theory.py:command": OPTIONS,
    "cli/tune.py:command": OPTIONS,
    "data/estimator.py:__init__": KEYWORDS,
    "data/estimator.py:to_mdp": KEYWORDS,
    "data/evaluation/evaluate.py:evaluate_policy": KEYWORDS,
    "data/evaluation/logged.py:read_episodes": KEYWORDS,
    "data/use/intervals.py:value_interval": KEYWORDS,
    "envs/features.py:mdp": KEYWORDS,
    "envs/random_model.py:random_mdp": KEYWORDS,
    "envs/robust_embedding.py:kl_robust": KEYWORDS,
    "envs/tabular.py:from_tabular": KEYWORDS,
    "infinite/build.py:from_arrays": KEYWORDS,
    "infinite/interval.py:value_interval": KEYWORDS,
    "model/building/build.py:from_arrays": BEHIND,
    "model/building/build.py:from_function": BEHIND,
    "model/building/build.py:model_from_function": KEYWORDS,
    "model/building/build.py:model_from_arrays": KEYWORDS,
    "planning/optimistic/rule.py:rule": KEYWORDS,
    "running/learn.py:learn": KEYWORDS,
    "running/tune.py:tune": KEYWORDS,
    "sweeps/driver.py:sweep": KEYWORDS,
}
LONG_FILES = {"core/lanes.py": "the primitives of all lanes"}


class Size(NamedTuple):
    """A function: the lines of its code, without its docstring, and its parameters, without self."""

    lines: int
    parameters: int


def sizes(tree: ast.AST) -> dict[str, Size]:
    """Every function in Python by its name, the largest of those that share it."""
    found: dict[str, Size] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_kernel(node):
            continue
        given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        docstring = node.body[0] if ast.get_docstring(node) is not None else None
        lines = node.end_lineno - node.lineno + 1
        lines -= docstring.end_lineno - docstring.lineno + 1 if docstring is not None else 0
        own = Size(lines, len(given) - (given[:1] in (["self"], ["cls"])))
        found[node.name] = Size(*map(max, own, found.get(node.name, own)))
    return found


def sizes_in(path: Path) -> dict[str, Size]:
    """The functions of a module, as module:function."""
    name = path.relative_to(ROOT / "src" / "livarot").as_posix()
    return {f"{name}:{key}": size for key, size in sizes(ast.parse(path.read_text(encoding="utf-8"))).items()}


def test_sizes_are_measured():
    parameters = ", ".join("abcdefghi")
    long = "def f(self):\n    '''One.\n\n    Two.\n    '''\n" + 70 * "    x = 1\n"
    assert sizes(ast.parse(long)) == {"f": Size(71, 0)}
    assert sizes(ast.parse(f"class A:\n    def g(self, {parameters}): pass")) == {"g": Size(1, 9)}
    assert sizes(ast.parse(f"@jit\ndef k({parameters}): pass")) == {}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_are_short(path):
    name = path.relative_to(ROOT / "src" / "livarot").as_posix()
    assert len(path.read_text(encoding="utf-8").splitlines()) < MOST_LINES or name in LONG_FILES
    found = sizes_in(path)
    assert [key for key, size in found.items() if size.lines >= MOST_CODE] == []
    assert [key for key, size in found.items() if size.parameters > MOST_PARAMETERS and key not in EXEMPT] == []


def test_nothing_is_exempt_without_need():
    known = {key: size for path in SOURCES for key, size in sizes_in(path).items()}
    assert [key for key in EXEMPT if key not in known or known[key].parameters <= MOST_PARAMETERS] == []
    long = {name: (ROOT / "src" / "livarot" / name).read_text(encoding="utf-8").splitlines() for name in LONG_FILES}
    assert [name for name, lines in long.items() if len(lines) < MOST_LINES] == []


def test_packages_are_small():
    modules = Counter(path.parent for path in SOURCES if path.stem != "__init__")
    assert {folder.name: number for folder, number in modules.items() if number > MOST_MODULES} == {}
