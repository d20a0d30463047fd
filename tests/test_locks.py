"""What is installed: wheels with hashes, complete, and nothing that is never imported."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-dev.lock")}
PIN = re.compile(r"([a-z0-9-]+)==([^ ]+) ")


def entries(text):
    """The lines of each requirement, without comments."""
    kept = "\n".join(line for line in text.splitlines() if line and not line.lstrip().startswith("#"))
    return [entry for entry in kept.replace("\\\n", " ").splitlines() if not entry.startswith("--")]


def pins(name):
    """Package and version of each requirement."""
    return {PIN.match(entry).groups() for entry in entries(LOCKS[name])}


def asked(requirements):
    return {re.match(r"[A-Za-z0-9._-]+", one).group().lower().replace("_", "-") for one in requirements}


@pytest.mark.parametrize("name", LOCKS)
def test_only_wheels_with_hashes_and_no_host(name):
    text = LOCKS[name]
    assert text.startswith("--only-binary :all:\n")
    assert re.findall(r"^--.*", text, re.MULTILINE) == ["--only-binary :all:"]
    assert "://" not in text and " @ " not in text
    assert len(entries(text)) > 30
    for entry in entries(text):
        assert PIN.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}( |$)", entry), entry


def test_the_locks_have_what_the_project_asks_for():
    run, develop = pins("requirements.lock"), pins("requirements-dev.lock")
    extras = PROJECT["optional-dependencies"]
    assert run < develop  # the same versions in both
    assert asked(PROJECT["dependencies"]) <= {name for name, _ in run}
    users = [one for extra in ("data", "report", "sweep", "gym", "cluster", "board") for one in extras[extra]]
    assert asked(users) - {"livarot"} <= {name for name, _ in run}
    assert asked(PROJECT["dependencies"] + extras["dev"] + users) - {"livarot"} <= {name for name, _ in develop}
    assert not {"pytest", "ruff", "icu-sepsis"} & {name for name, _ in run}


def test_gym_is_asked_for_by_nobody():
    """icu-sepsis requires it; a user's extra must not bring it, nor must the locks."""
    assert "gym" not in {name for lock in LOCKS for name, _ in pins(lock)}
    assert all(
        "icu-sepsis" not in asked(names) for extra, names in PROJECT["optional-dependencies"].items() if extra != "dev"
    )


def test_setup_installs_wheels_with_hashes_only():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    downloads = [line for line in recipe.splitlines() if "pip install" in line and "-e ." not in line]
    assert downloads and all("--only-binary :all:" in line for line in downloads)
    assert [line for line in downloads if "--require-hashes" in line and "-r requirements-dev.lock" in line]
