"""The doctor's checks: folders that cannot be written, packages that are missing."""

import importlib.metadata

from livarot.sweeps import doctor


def by_name(checks):
    return {check.name: check for check in checks}


def test_a_store_that_is_not_there_yet_is_looked_for_above(tmp_path):
    found = by_name(doctor.examine(tmp_path / "not" / "yet"))
    assert found["store"].good and not (tmp_path / "not").exists() and list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    told = by_name(doctor.examine(tmp_path / "file" / "below"))["store"]
    assert told.good is False and "'file' is not a folder" in told.found and told.cure


def test_a_full_disk_is_not_good(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 10**6}))
    told = by_name(doctor.examine(tmp_path))["free disk"]
    assert told.good is False and told.found == "0.0 GB"


def test_missing_packages_are_bad_if_they_are_needed_and_noted_if_not(tmp_path, monkeypatch):
    known = importlib.metadata.version

    def version(name):
        if name in ("numba", "plotly"):
            raise importlib.metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)
    found = by_name(doctor.examine(tmp_path))
    assert (found["numba"].good, found["numba"].cure) == (False, "pip install numba")
    assert found["plotly"].good is None and "livarot[report]" in found["plotly"].cure
    assert found["numpy"].good is True


def test_an_empty_cache_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    told = by_name(doctor.examine(tmp_path))["numba cache"]
    assert told.good is None and "livarot warmup" in told.cure
    (tmp_path / "one.nbi").write_bytes(b"")
    assert by_name(doctor.examine(tmp_path))["numba cache"].found == "NUMBA_CACHE_DIR: 1 compiled functions"


def test_kernels_beside_the_packages_are_counted(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "livarot" / "sweeps" / "doctor.py"))
    for package in ("core", "planning"):
        folder = tmp_path / "livarot" / package / "__pycache__"
        folder.mkdir(parents=True)
        (folder / "one.nbi").write_bytes(b"")
    assert by_name(doctor.examine(tmp_path))["numba cache"].found == "beside the package: 2 compiled functions"
