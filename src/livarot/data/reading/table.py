"""Tables in, columns and labels out: pandas, Polars, Arrow, a dict of arrays, or the path of a file: Parquet, CSV (also
packed, .csv.gz), Feather.

Every refusal names the column, the first bad row (counted from 0), how many there are, and the cure.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, IntArray
from livarot.errors import LivarotError, bad
from livarot.model.labels import Labels, factorise, refuse
from livarot.system.sizes import memory_limit

ALWAYS_READ = 1 << 28  # bytes: a larger table ...
MOST_PACKED = 1000  # ... may have at most so many bytes per byte of its file
FILES = (".parquet", ".csv", ".csv.gz", ".feather", ".arrow")
NUMBER = 8  # bytes of a number, or of a reference to a label


class DataWarning(UserWarning):
    """The data can be used, but the user should know this about them."""


def warn(message: str) -> None:
    """A :class:`DataWarning` at the line that called into this package."""
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("livarot."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, DataWarning, stacklevel=depth)


def named(column: str) -> str:
    """The name of a column in messages."""
    return f"column {column!r}"


class Table:
    """Columns by name, taken from the source only when they are asked for, and without a copy where possible."""

    def __init__(self, names: Sequence[str], n_rows: int, get: Callable[[str], Any]) -> None:
        self.names = tuple(names)
        self.n_rows = n_rows
        self._get = get

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def with_column(self, name: str, values: Any) -> Table:
        """The same table with another column (in place of one of that name)."""
        names = self.names if name in self.names else (*self.names, name)
        return Table(names, self.n_rows, lambda wanted: values if wanted == name else self._get(wanted))

    def raw(self, name: str, argument: str = "column") -> Any:
        """A column as the source has it (a pandas Series or an array)."""
        if name not in self.names:
            known = ", ".join(map(repr, self.names[:12]))
            raise bad(argument, f"there is no column {name!r} in the table", cure=f"its columns are {known}")
        return self._get(name)

    def numbers(self, name: str, argument: str = "column") -> NDArray[Any]:
        """A column of finite numbers; float64 columns are not copied."""
        column = self.raw(name, argument)
        if isinstance(column, pd.Series):
            if isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and pd.api.types.is_numeric_dtype(column):
                column = column.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                column = column.to_numpy()
        values = np.asarray(column)
        if values.dtype == object:
            lost = np.asarray(pd.isna(column), dtype=bool)
            refuse(named(name), "missing values", lost, "drop those rows or fill them in")
        if values.dtype.kind not in "fiub":
            cure = f"convert it, or write C({name}) for one column per category"
            raise bad(named(name), f"must hold numbers, has {values.dtype}", cure=cure)
        numbers = values.astype(np.float64) if values.dtype.kind == "f" and values.dtype != np.float64 else values
        with np.errstate(all="ignore"):
            suspect = numbers.dtype.kind == "f" and not np.isfinite(numbers.sum())  # a sum needs no memory
        if suspect:
            refuse(named(name), "missing values", np.isnan(numbers), "drop those rows or fill them in")
            refuse(named(name), "infinite values", np.isinf(numbers), "drop those rows or cap the value")
        return numbers

    def labels(self, name: str, argument: str = "column") -> tuple[IntArray, list[Any]]:
        """Codes and labels of a column, in order of appearance."""
        return factorise(self.raw(name, argument), named(name))

    def order(self, name: str) -> list[Any] | None:
        """The categories of a pandas Categorical in their order; None for other columns."""
        column = self.raw(name)
        return list(column.cat.categories) if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype) else None

    def is_text(self, name: str) -> bool:
        """Does a column hold categories: text, or a pandas Categorical?"""
        column = self.raw(name)
        kind = getattr(column, "dtype", None)
        if isinstance(kind, pd.CategoricalDtype | pd.StringDtype):
            return True
        return getattr(kind, "kind", "O") in "US" or pd.api.types.infer_dtype(column, skipna=True) == "string"

    def flags(self, name: str) -> BoolArray:
        """A column of 0 and 1, or of truth values."""
        values = self.numbers(name)
        if values.dtype.kind == "b":
            return values
        wrong = (values != 0) & (values != 1)
        refuse(named(name), "must be 0 or 1", wrong, "mark the chosen row with 1 and the others with 0")
        return np.asarray(values != 0)


def labels_in_order(table: Table, *names: str) -> Labels:
    """The labels of some columns: in the order of their categories if all are pandas Categoricals, else sorted."""
    orders = [table.order(name) for name in names]
    seen = [label for name in names for label in table.labels(name)[1]]
    if any(order is None for order in orders):
        return Labels(seen)
    met = set(seen)
    return Labels([label for order in orders for label in order or () if label in met], ordered=True)


def read_table(data: Any) -> Table:
    """A :class:`Table` of whatever holds columns.

    >>> read_table({"state": ["a", "b"], "age": [1.0, 2.0]}).numbers("age")
    array([1., 2.])
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, str | Path):
        return _read_file(Path(data))
    if isinstance(data, pd.DataFrame):
        names = [str(name) for name in data.columns]
        _no_repeats(names)
        keys = dict(zip(names, data.columns, strict=True))
        return Table(names, len(data), lambda name: data[keys[name]])
    if isinstance(data, dict):
        columns = {str(name): np.asarray(values) for name, values in data.items()}
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise bad("data", f"columns have different lengths: {sorted(lengths)}")
        return Table(list(columns), lengths.pop(), columns.__getitem__)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "column_names"):
        import pyarrow as pa

        return _arrow(data if isinstance(data, pa.Table) else pa.table(data))
    if callable(getattr(data, "collect", None)) and callable(getattr(data, "collect_schema", None)):
        return read_table(data.collect())  # a Polars LazyFrame
    raise bad(
        "data",
        f"{type(data).__name__} is not a table",
        cure=f"give a pandas, Polars or Arrow table, a dict of columns, or the path of a {', '.join(FILES)} file",
    )


def _read_file(path: Path) -> Table:
    kind = "".join(path.suffixes[-2:]).lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if kind not in FILES:
        names = f"{', '.join(FILES[:-1])} or {FILES[-1]}"
        raise bad("data", f"{str(path)!r} is not a {names} file", cure="convert it, or hand over a table")
    if not path.is_file():
        raise bad("data", f"there is no file {str(path)!r}")
    with _reading(path):
        if kind in (".csv", ".csv.gz"):
            from pyarrow.csv import read_csv

            _check_size(path, _unzipped_size(path) if kind == ".csv.gz" else path.stat().st_size)
            return _arrow(read_csv(path))  # unpacks what is packed
        if kind in (".feather", ".arrow"):
            return _feather(path)
        from pyarrow.parquet import ParquetFile

        names = ParquetFile(path).schema_arrow.names
        file = ParquetFile(path, read_dictionary=names)  # a long text that occurs often stays one text
        _no_repeats(names)
        _check_size(path, _unpacked_size(file.metadata))
        rows = int(file.metadata.num_rows)

    def get(name: str) -> Any:
        with _reading(path):
            column = file.read(columns=[name]).column(0)
            if len(column) != rows:
                raise ValueError(f"column {name!r} has {len(column)} rows, the file {rows}")
            return _arrow_column(column)

    return Table(list(names), rows, get)


def _feather(path: Path) -> Table:
    """An Arrow (Feather) file: mapped, so that its size is known before its columns are read."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        opened = pa.ipc.open_file(source)
        rows = sum(opened.get_batch(i).num_rows for i in range(opened.num_record_batches))
        size = sum(opened.get_batch(i).nbytes for i in range(opened.num_record_batches))
        _check_size(path, max(size, NUMBER * rows))
        return _arrow(opened.read_all())


def _unzipped_size(path: Path) -> int:
    """Bytes of a packed file, counted without keeping them, and no further than the limit."""
    import gzip

    total, most = 0, min(memory_limit(), max(ALWAYS_READ, MOST_PACKED * path.stat().st_size))
    with gzip.open(path) as file:
        while total <= most and (part := file.read(1 << 20)):
            total += len(part)
    return total


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever is found wrong with a file, when it is opened or later, into a `LivarotError`."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, ValueError, LookupError, MemoryError, NotImplementedError) as error:
        if isinstance(error, LivarotError):
            raise
        raise bad("data", f"cannot read {str(path)!r}: {' '.join(str(error).split())[:200]}") from error


def _unpacked_size(metadata: Any) -> int:
    """Bytes that a Parquet file takes in memory, according to its footer: runs of equal numbers are unrolled."""
    total = 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            total += max(column.total_uncompressed_size, NUMBER * column.num_values, NUMBER * group.num_rows)
    return int(max(total, NUMBER * metadata.num_rows))


def _check_size(path: Path, size: int) -> None:
    """Refuse a file that would fill the memory, before it is read; a small one that makes a huge table is suspect."""
    on_disk = path.stat().st_size
    if size > min(memory_limit(), max(ALWAYS_READ, MOST_PACKED * on_disk)):
        problem = f"{str(path)!r} has {on_disk} bytes and would take {size / 2**20:.0f} MiB of memory"
        raise bad("data", problem, cure="if that is right, read it yourself and hand over the table")


def _no_repeats(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise bad("data", f"two columns are called {twice!r}", cure="rename one of them")


def _arrow(table: Any) -> Table:
    names = list(table.column_names)
    _no_repeats(names)
    return Table(names, int(table.num_rows), lambda name: _arrow_column(table.column(name)))


def _arrow_column(column: Any) -> Any:
    """Numbers without a copy where they lie in one piece; anything else as a pandas Series."""
    import pyarrow as pa

    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return column.to_numpy()  # nulls become NaN
    if pa.types.is_dictionary(column.type):
        if column.type.ordered and column.num_chunks:
            return pd.Series(_ordered(column))
        return pd.Series(_decoded(column), dtype=object)  # pandas would make strings of its own, one for every row
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column.to_pandas()


def _ordered(column: Any) -> Any:
    """A dictionary column whose order means something (a Polars Enum, an ordered pandas Categorical)."""
    whole = column.unify_dictionaries().combine_chunks() if column.num_chunks > 1 else column.chunk(0)
    chunk = whole.chunk(0) if hasattr(whole, "num_chunks") else whole
    codes = np.asarray(chunk.indices.cast("int64").fill_null(-1))
    return pd.Categorical.from_codes(codes, chunk.dictionary.to_pylist(), ordered=True)


def _decoded(column: Any) -> Any:
    """A dictionary column as an array of objects (Arrow cannot cast all of them)."""
    parts = [np.empty(0, dtype=object)]
    for chunk in column.chunks:
        names = np.empty(len(chunk.dictionary) + 1, dtype=object)  # the last one is None
        names[:-1] = chunk.dictionary.to_pylist()
        parts.append(names[np.asarray(chunk.indices.fill_null(len(chunk.dictionary)))])
    return np.concatenate(parts)
