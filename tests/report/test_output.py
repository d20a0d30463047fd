"""Folders for reports."""

import pytest

import livarot
from livarot.report.output import check_folder


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(livarot.LivarotError, match="is not a folder"):
            check_folder(wrong)
    assert check_folder(tmp_path / "new" / "deep") == tmp_path / "new" / "deep"
    assert not (tmp_path / "new").exists()
