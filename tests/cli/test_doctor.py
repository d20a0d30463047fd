"""The command that looks at the machine and the store."""

import json

import pytest
from typer.testing import CliRunner

from livarot.cli.app import app


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_doctor(tmp_path):
    result = call("doctor", "--store", tmp_path)
    assert result.exit_code == 0, result.output
    for name in ("python", "processors", "BLAS threads", "numba cache", "store", "free disk", "distributed"):
        assert name in result.output
    checks = {check["name"]: check for check in json.loads(call("doctor", "--store", tmp_path, "--json").output)}
    assert checks["store"]["good"] is True
    lacking = checks["distributed"]
    assert "pip install 'livarot[cluster]'" in lacking["cure"] or lacking["found"][0].isdigit()


def test_doctor_says_how_to_get_the_sepsis_data(monkeypatch):
    from livarot.sweeps import doctor as module

    def version(name):
        if name == "icu-sepsis":
            raise module.importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(module.importlib.metadata, "version", version)
    (line,) = [line for line in call("doctor").output.splitlines() if "icu-sepsis" in line]
    assert line.startswith("--") and line.endswith("the sepsis environment; pip install --no-deps icu-sepsis")


@pytest.mark.parametrize("name", ["file", "file/inside"])
def test_doctor_wants_a_folder(tmp_path, name):
    (tmp_path / "file").write_text("x")
    result = call("doctor", "--store", tmp_path / name)
    assert result.exit_code == 1
    assert "'file' is not a folder" in result.output
    assert call("doctor", "--store", "").exit_code == 2


def test_doctor_says_what_is_wrong(tmp_path, monkeypatch):
    from livarot.sweeps import doctor as module

    monkeypatch.setattr(module, "_unwritable", lambda folder: "cannot be written (Read-only file system)")
    result = call("doctor", "--store", tmp_path)
    assert result.exit_code == 1
    assert "NO  store" in result.output
    assert "choose another folder" in result.output
