"""Machine code on disk belongs to one state of the sources; a damaged file costs a compilation, not the run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import livarot

CODE = """
import logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
from livarot.core.ellipsoid import Ellipsoid
print("width", Ellipsoid.ball(2, 3.0).width([0.0, 2.0]))
"""


def run(folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "width 6.0"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("cache")
    assert "cannot be read" not in run(made)
    return made


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "noise": lambda data: b"\x80\x04garbage" + data[9:],
    "text": lambda data: b"not a pickle",
    "one bit": lambda data: data[:-999] + bytes([data[-999] ^ 16]) + data[-998:],  # in machine code
}


@pytest.mark.parametrize(
    ("kind", "how"),
    [("nbi", "cut"), ("nbi", "empty"), ("nbi", "text"), ("nbc", "cut"), ("nbc", "noise"), ("nbc", "one bit")],
)
def test_damage_is_mended_and_told(folder, how, kind):
    files = list(folder.rglob(f"*.{kind}"))
    assert files
    for path in files:
        path.write_bytes(DAMAGE[how](path.read_bytes()))
    told = run(folder)
    assert "compiling again" in told and str(folder) in told
    assert "cannot be read" not in run(folder)  # mended


def test_a_folder_that_cannot_be_written_is_not_an_obstacle(folder):
    for path in folder.rglob("*.nbi"):
        path.unlink()
        path.mkdir()  # a folder in place of a file: even root cannot write there
    told = run(folder)
    assert "cannot be read" in told and "cannot be written" in told


CALLEE = """
from livarot.core.compiling.jit import jit

SCALE = 2.0

@jit
def scaled(x):
    return SCALE * x
"""
CALLER = """
from livarot.core.callee import scaled
from livarot.core.compiling.jit import jit

@jit
def total(x):
    return scaled(x) + scaled(x)
"""
SHOW = "from livarot.envs.caller import total; print(total(1.0))"
LOGGED = "import logging, sys; logging.basicConfig(level='INFO', stream=sys.stdout, format='%(message)s')\n"


class Copy:
    """A copy of the package with two additional kernels, one of which calls the other, and a cache of its own."""

    def __init__(self, folder):
        self.package, self.cache = folder / "livarot", folder / "cache"
        ignore = shutil.ignore_patterns("__pycache__", "*.nb?")
        shutil.copytree(Path(livarot.__file__).parent, self.package, ignore=ignore)
        self.callee, self.caller = self.package / "core" / "callee.py", self.package / "envs" / "caller.py"
        self.callee.write_text(CALLEE)
        self.caller.write_text(CALLER)

    def run(self, code=SHOW):
        """The number that ``code`` prints, and what it writes to standard error."""
        environment = {"PYTHONPATH": str(self.package.parent), "NUMBA_CACHE_DIR": str(self.cache)}
        command = [sys.executable, "-B", "-c", code]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.strip(), done.stderr.strip()

    def files(self):
        return sorted(path.name for path in self.cache.rglob("*.nb?"))


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copied"))


@pytest.fixture
def copy(copied):
    copied.callee.write_text(CALLEE)
    copied.caller.write_text(CALLER)
    shutil.rmtree(copied.cache, ignore_errors=True)
    return copied


@pytest.mark.parametrize(
    "edit", [("SCALE * x", "SCALE * x + 1.0", "6.0"), ("2.0", "4.0", "8.0")], ids=["code", "constant"]
)
def test_an_edit_in_another_module_compiles_its_callers_again(copy, edit):
    before, after, result = edit
    assert copy.run()[0] == "4.0"
    copy.callee.write_text(CALLEE.replace(before, after))
    assert copy.run()[0] == result
    copy.callee.write_text(CALLEE)  # and back again
    assert copy.run()[0] == "4.0"


def test_other_times_and_edits_in_the_layers_above_or_beside_compile_nothing(copy):
    assert "compiling" in copy.run()[1]
    for path in (copy.callee, copy.caller):
        os.utime(path, (1e9, 1e9))
    for folder in ("cli", "experiments", "agents"):
        (copy.package / folder / "more.py").write_text("MORE = 1")
    assert copy.run() == ("4.0", "")


def test_edits_do_not_fill_the_folder(copy):
    copy.run()
    files = copy.files()
    for path, text in ((copy.callee, CALLEE), (copy.caller, CALLER)):
        path.write_text("#\n" + text)
    assert copy.run()[0] == "4.0"
    assert copy.files() == files


def test_code_that_was_edited_since_it_was_imported_is_not_kept(copy):
    edit = f"text = {CALLEE.replace('2.0', '4.0')!r}; open({str(copy.callee)!r}, 'w').write(text)"
    assert copy.run(f"import livarot.envs.caller\n{edit}\n{SHOW}")[0] == "4.0"  # what was imported
    assert copy.run()[0] == "8.0"
    copy.callee.write_text(CALLEE)
    assert copy.run()[0] == "4.0"


def test_files_of_other_sources_are_not_taken_for_ours(copy):
    """Two versions share a folder: an index is read, then the other version writes the machine code."""
    copy.run()
    index = {path: path.read_bytes() for path in copy.cache.rglob("*.nbi")}
    copy.callee.write_text(CALLEE.replace("2.0", "4.0"))
    assert copy.run()[0] == "8.0"
    for path, content in index.items():
        path.write_bytes(content)
    copy.callee.write_text(CALLEE)
    assert copy.run()[0] == "4.0"


def test_a_cold_process_says_once_that_it_compiles_and_a_warm_one_nothing(copy):
    told = copy.run()[1].splitlines()
    assert len(told) == 1
    assert told[0].startswith("livarot: compiling, about ") and "once" in told[0]
    assert copy.run() == ("4.0", "")


def test_where_logging_is_set_up_the_line_goes_there_only(copy):
    told, errors = copy.run(LOGGED + SHOW)
    assert errors == ""
    first, *rest = told.splitlines()
    assert first.startswith("compiling, about ") and rest == ["4.0"]


def test_whoever_wants_warnings_only_gets_no_line(copy):
    assert copy.run(LOGGED.replace("INFO", "WARNING") + SHOW) == ("4.0", "")


def test_other_packages_may_have_compiled_something_first():
    """Then numba knows ``getitem`` and its like already, and ours are added to them."""
    code = (
        "import numba, numpy as np\n"
        "f = numba.njit(lambda x: x[0] + len(x))\n"
        "f(np.ones(2))\n"
        "import livarot.core.views\n"
        "print(numba.njit(lambda x: x[0] + len(x))(np.ones(3)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "4.0", done.stderr
