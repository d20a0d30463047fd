"""Readers of tables, labels, and what is refused in a column."""

import numpy as np
import pandas as pd
import pytest

from livarot.data import Labels
from livarot.data.reading.table import read_table
from livarot.errors import LivarotError

FRAME = pd.DataFrame({"name": ["b", "a", "b"], "x": [1.0, 2.0, 3.0], "k": [1, 2, 3], "flag": [True, False, True]})


def sources(tmp_path):
    polars, pa, pq = (pytest.importorskip(m) for m in ("polars", "pyarrow", "pyarrow.parquet"))
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "t.parquet")
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    return [
        FRAME, polars.from_pandas(FRAME), pa.Table.from_pandas(FRAME), FRAME.to_dict("list"),
        tmp_path / "t.parquet", str(tmp_path / "t.csv"),
        pa.Table.from_pandas(FRAME.astype({"name": "category"})), polars.from_pandas(FRAME).with_columns(
            polars.col("name").cast(polars.Categorical)),
    ]  # fmt: skip


def test_every_source_gives_the_same(tmp_path):
    for source in sources(tmp_path):
        table = read_table(source)
        assert table.names == ("name", "x", "k", "flag") and table.n_rows == 3
        np.testing.assert_array_equal(table.numbers("x"), [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(table.numbers("k"), [1, 2, 3])
        np.testing.assert_array_equal(table.flags("flag"), [True, False, True])
        codes, values = table.labels("name")
        np.testing.assert_array_equal(codes, [0, 1, 0])
        assert values == ["b", "a"]


def test_a_numeric_column_is_not_copied():
    frame = pd.DataFrame({"x": np.arange(3.0), "y": np.arange(3.0)})
    assert np.shares_memory(read_table(frame).numbers("x"), frame["x"].to_numpy())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, np.nan, np.nan], r"column 'x': missing values \(2 in all, first at index 1\); drop"),
        ([1.0, 2.0, np.inf], r"column 'x': infinite values \(1 in all, first at index 2\)"),
        (["a", "b", "c"], r"column 'x': must hold numbers.*C\(x\)"),
        ([None, 1.0, 2.0], r"column 'x': missing values \(1 in all, first at index 0\)"),
        (pd.array([1, None, 3], dtype="Int64"), r"column 'x': missing values \(1 in all, first at index 1\)"),
    ],
)
def test_bad_numbers(column, message):
    with pytest.raises(LivarotError, match=message):
        read_table(pd.DataFrame({"x": column})).numbers("x")


def test_large_finite_numbers_are_fine():
    assert read_table({"x": [1e308, 1e308]}).numbers("x")[0] == 1e308


def test_polars_nulls():
    polars = pytest.importorskip("polars")
    with pytest.raises(LivarotError, match=r"column 'x': missing values \(1 in all, first at index 1\)"):
        read_table(polars.DataFrame({"x": [1, None, 3]})).numbers("x")
    with pytest.raises(LivarotError, match=r"column 's': missing values \(1 in all, first at index 0\)"):
        read_table(polars.DataFrame({"s": [None, "a"]})).labels("s")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((2, 2)), "data: ndarray is not a table; give a pandas"),
        ("nowhere.csv", "there is no file"),
        ("model.xlsx", "is not a .parquet, .csv, .csv.gz, .feather or .arrow file"),
        ({"a": [1], "b": [1, 2]}, "different lengths"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are called 'a'"),
    ],
)
def test_bad_tables(data, message):
    with pytest.raises(LivarotError, match=message):
        read_table(data)


def test_a_damaged_file(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(LivarotError, match="cannot read"):
        read_table(tmp_path / "t.parquet")


def test_an_unknown_column_lists_the_known():
    with pytest.raises(LivarotError, match="there is no column 'y' in the table; its columns are 'name', 'x'"):
        read_table(FRAME).numbers("y")


@pytest.mark.parametrize(
    "values",
    [["b", "a"], [3, 1, 2], [(1, "x"), (0, "y")], ["a", 1, (2, 3), None.__class__], [True, False], [0.5, 0.25],
     [pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-01")], [frozenset({1}), frozenset({2})]],
)  # fmt: skip
def test_labels_of_any_hashable_kind_come_back(values):
    labels = Labels(values)
    codes = labels.encode(values)
    assert list(labels.decode(codes)) == values
    assert [labels.index(v) for v in values] == list(codes)
    assert all(v in labels for v in values)


def test_labels_refuse_what_they_do_not_know():
    labels = Labels(["a", "b"])
    with pytest.raises(
        LivarotError, match=r"states: 2 rows have a label that is not known, such as 'z' \(first at index 1"
    ):
        labels.encode(["a", "z", "z"], "states")
    with pytest.raises(LivarotError, match="'z' is not known"):
        labels.index("z")
    with pytest.raises(LivarotError, match="cannot be labels"):
        labels.encode([["list"]])
