"""Parquet files that are damaged, or that would fill the memory, are refused by ``fit`` with a `LivarotError`."""

import random
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from livarot import LivarotError
from livarot.data import MNLTransition
from livarot.data.reading.table import read_table
from tests.support.machine_logs import make_log

LOG = make_log(300, 0)
LOG["wear"] = LOG["next_state"].map({"new": 0.0, "used": 1.0, "worn": 2.0, "broken": 4.0})


def fit(path):
    return MNLTransition(features=["wear"], reachable="all").fit(path)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_damaged_tables_are_refused(tmp_path, compression):
    path = tmp_path / "log.parquet"
    LOG.to_parquet(path, compression=None if compression == "none" else compression)
    whole = path.read_bytes()
    assert np.isfinite(fit(path).theta_).all()
    draw, refused = random.Random(compression), 0
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 3, 20))):
            damaged[draw.randrange(4, len(whole))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice((len(whole), draw.randrange(len(whole))))])
        try:
            fit(path)
        except LivarotError:
            refused += 1
    assert refused > 20


def bomb(path, column):
    pages = {"compression": "zstd", "row_group_size": len(column), "data_page_size": 1 << 30}
    table = pa.table({"state": column})
    try:
        pq.write_table(table, path, max_rows_per_page=len(column), **pages)
    except TypeError:  # before pyarrow had that limit
        pq.write_table(table, path, **pages)
    return path


def test_a_small_file_of_many_equal_rows_is_refused_before_it_is_read(tmp_path):
    path = bomb(tmp_path / "bomb.parquet", pa.repeat(pa.scalar(1, pa.int8()), 110_000_000))
    assert path.stat().st_size < 20_000
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    with pytest.raises(LivarotError, match="would take 839 MiB of memory"):
        fit(path)
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 10**7


def test_a_long_text_in_many_rows_stays_one_text(tmp_path):
    codes = pa.array(np.zeros(2_000, dtype=np.int32))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 500_000, "y"]))  # 1 GB if it is unrolled
    pq.write_table(pa.table({"state": text}), tmp_path / "text.parquet", compression="zstd", store_schema=False)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()  # the peak may be that of another test
    column = read_table(tmp_path / "text.parquet").raw("state")
    assert len(column) == 2_000 and len(column.iloc[7]) == 500_000
    assert pool.bytes_allocated() - before < 10**8


def test_well_packed_tables_are_read(tmp_path):
    path = bomb(tmp_path / "packed.parquet", pa.repeat(pa.scalar(1.5), 2_000_000))
    assert read_table(path).numbers("state").sum() == 3_000_000.0


def test_columns_come_as_before(tmp_path):
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 3], "c": [1.5, None, 2.5], "d": [True, False, True]})
    frame["e"] = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])
    frame["f"] = pd.Categorical(["u", "v", "u"])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    for name in frame:
        found = pd.Series(table.raw(name))
        assert found.isna().equals(frame[name].isna())
        assert [x for x in found if not pd.isna(x)] == [x for x in frame[name] if not pd.isna(x)]
    assert table.labels("e")[1] == list(frame["e"])
