"""One run as one Parquet file: numbers per episode, provenance, and digests that notice damage.

Columns: ``episode`` (from 1), those of :class:`livarot.running.result.RunResult` (null where an agent has none),
and ``stages_0, stages_1, ...``, the coverage of each confidence set as bits.  Pages carry checksums.  The footer of a
Parquet file has none, so its one entry ``livarot`` is a canonical JSON object with

    content     what was run: the text the key is the SHA-256 of
    columns     SHA-256 of all columns
    provenance  versions, commit and hashes of sources (no host, user, path or environment variable)
    summary     totals for tables, computed from the columns
    digest      SHA-256 of the four above

Equal runs of one version give equal bytes: nothing in the file depends on time, place or order.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from livarot.errors import LivarotError, bad
from livarot.running.result import COLUMNS
from livarot.storage import parse_json, read_regular
from livarot.sweeps.experiment.keys import RUN_SCHEMA, Cell, Run, canonical, digest
from livarot.sweeps.experiment.sources import source_of
from livarot.sweeps.store.provenance import provenance

FILE_SCHEMA = 1
MAX_BYTES = 1 << 31
MAX_HEAD = 1 << 20
WORDS = "stages_"
SHORT = 2048  # episodes; a shorter file is mostly its head, and opening zstd costs more than all the rest
LAYOUT: dict[str, Any] = {
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_checksum": True,
    "store_schema": False,
}
MAX_SEED = 1 << 63
PLUGIN = "plugin"  # the entry of a provenance for sources that are not livarot's
_ENTRY = b"livarot"
_KEY = re.compile("[0-9a-f]{64}")
_COVERED = COLUMNS.index("covered")
_SEED = ',"seed":'  # before the seed, the last of a content
_HEAD = re.compile(
    rb'\{"columns":"([0-9a-f]{64})","content":(\{.*\}),"digest":"([0-9a-f]{64})",("file":.*\})', re.DOTALL
)
_FIELDS = {"columns", "content", "file", "provenance", "summary", "words"}


@dataclass(frozen=True, eq=False)
class Record:
    """A run that was read back: ``columns`` (T,) each, NaN where the agent has none, and ``bits`` (T, words)."""

    run: Run
    columns: dict[str, NDArray[np.float64]] = field(repr=False)
    bits: NDArray[np.int32] = field(repr=False)
    provenance: dict[str, Any]
    summary: dict[str, Any]


def summaries_of(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Totals over the episodes, of each run in (R, T) columns.

    Regret, realised regret, sigma_bar, coverage, least optimism, largest inner gap.  A run's totals do not depend on
    the others: numpy adds each row of contiguous memory as it adds a row alone.
    """
    covered = _of_known(columns["covered"], np.mean)
    gap = _of_known(columns["inner_gap"], np.max)
    optimism = _of_known(columns["optimism_gap"], np.min)
    regret, realised = (columns[name].sum(axis=1).tolist() for name in ("regret", "realised_regret"))
    variance = columns["variance"].mean(axis=1).tolist()
    return [
        {
            "covered": covered[run],
            "inner_gap": gap[run],
            "optimism_gap": optimism[run],
            "realised_regret": realised[run],
            "regret": regret[run],
            "sigma_bar": math.sqrt(variance[run]),
        }
        for run in range(len(regret))
    ]


def _of_known(column: NDArray[Any], total: Callable[..., Any]) -> list[float | None]:
    """``total`` of the numbers in each row that are not missing, None where all are."""
    missing = np.isnan(column)
    if not missing.any():
        return list(total(column, axis=1).tolist())
    return [None if gone.all() else float(total(row[~gone])) for row, gone in zip(column, missing, strict=True)]


def summary_of(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The totals of one run, whose columns are (T,)."""
    return summaries_of({name: column[None] for name, column in columns.items()})[0]


NO_SUMMARY = dict.fromkeys(("covered", "inner_gap", "optimism_gap", "realised_regret", "regret", "sigma_bar"))


def encode(
    run: Run,
    columns: Mapping[str, NDArray[Any]],
    bits: NDArray[np.int32],
    summary: dict[str, Any] | None = None,
    made_by: str | None = None,
) -> bytes:
    """The bytes of a run's file; ``summary`` is :func:`summary_of` its columns, if it is known already.

    ``made_by`` is the provenance as text; that of this code if it is not given.
    """
    block = {name: columns[name][None] for name in COLUMNS}
    return encode_block([run], block, bits[None], [summary or summary_of(columns)], made_by)[0]


def encode_block(
    runs: Sequence[Run],
    columns: Mapping[str, NDArray[Any]],
    bits: NDArray[np.int32],
    summaries: Sequence[dict[str, Any]],
    made_by: str | None = None,
) -> list[bytes]:
    """The bytes of the files of R runs of one cell, of T episodes each: columns (R, T), bits (R, T, words).

    Each step is done for all runs before the next one: run by run takes a third longer (the processor's caches).
    """
    if not runs:
        return []
    block = _Block.of(columns, bits)
    words = [block.words(row) for row in range(len(runs))]
    digests = [block.digest(row, count) for row, count in enumerate(words)]
    text = made_by or _provenance_text(source_of(runs[0].cell))
    heads = [
        _head_text(run, found, summary, count, text).encode()
        for run, found, summary, count in zip(runs, digests, summaries, words, strict=True)
    ]
    length = block.columns[0].shape[1]
    whole = {count: block.table(count) for count in set(words)}
    tables = [whole[count].slice(row * length, length) for row, count in enumerate(words)]
    compression = "zstd" if length > SHORT else "lz4"
    sinks = [pa.BufferOutputStream() for _ in runs]
    writers = [
        pq.ParquetWriter(sink, table.schema, compression=compression, **LAYOUT)
        for sink, table in zip(sinks, tables, strict=True)
    ]
    for writer, table in zip(writers, tables, strict=True):
        writer.write_table(table, row_group_size=1 << 20)
    for writer, head in zip(writers, heads, strict=True):
        writer.add_key_value_metadata({_ENTRY: head})
        writer.close()
    return [bytes(sink.getvalue()) for sink in sinks]


class _Block(NamedTuple):
    """Columns of R runs, (R, T) each, with one fixed NaN where a number is missing; bits of coverage, (words, R, T)."""

    columns: list[NDArray[np.float64]]
    missing: list[NDArray[np.bool_] | None]
    stages: NDArray[np.int32]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], bits: NDArray[np.int32]) -> _Block:
        known, missing = zip(*(_with_one_nan(columns[name]) for name in COLUMNS), strict=True)
        return cls(list(known), list(missing), np.ascontiguousarray(bits.transpose(2, 0, 1)))

    def words(self, row: int) -> int:
        """How many columns the coverage of a run takes: 0 if its agent has no confidence sets."""
        missing = self.missing[_COVERED]
        return 0 if missing is not None and missing[row].all() else len(self.stages)

    def table(self, words: int) -> pa.Table:
        """All runs, one below the other, on the memory of the block."""
        runs, length = self.columns[0].shape
        values = [_arrow(pa.int32(), np.tile(np.arange(1, length + 1, dtype=np.int32), runs))]
        for column, missing in zip(self.columns, self.missing, strict=True):
            values.append(_arrow(pa.float64(), column, missing))
        values += [_arrow(pa.int32(), stage) for stage in self.stages[:words]]
        return pa.Table.from_arrays(values, schema=_schema(words))

    def digest(self, row: int, words: int) -> str:
        return _digest([column[row] for column in self.columns], [stage[row] for stage in self.stages[:words]])


def _digest(columns: Iterable[NDArray[np.float64]], stages: Iterable[NDArray[np.int32]]) -> str:
    """SHA-256 of the numbers of a run alone, little-endian."""
    total = hashlib.sha256()
    for name, column in zip(COLUMNS, columns, strict=True):
        total.update(f"{name}\n".encode())
        total.update(column.astype("<f8", copy=False).data)
    for stage in stages:
        total.update(b"stages\n")
        total.update(stage.astype("<i4", copy=False).data)
    return total.hexdigest()


def _with_one_nan(column: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """A column with one fixed NaN for all missing numbers, and where they are."""
    numbers = np.ascontiguousarray(column, dtype=np.float64)
    missing = np.isnan(numbers)
    return (np.where(missing, np.nan, numbers), missing) if missing.any() else (numbers, None)


def _arrow(kind: pa.DataType, numbers: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """Arrow's array on the memory of ``numbers``; `pa.array` would import pandas, a third of a second per worker."""
    present = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, numbers.size, [present, pa.py_buffer(numbers)])


def encode_again(record: Record) -> bytes:
    """The bytes of a file that was read, as the same versions would write it."""
    return encode(record.run, record.columns, record.bits, record.summary, canonical(record.provenance))


def _head_text(run: Run, columns: str, summary: dict[str, Any], words: int, made_by: str) -> str:
    """Canonical JSON of the head; ``digest`` is the SHA-256 of the same without it."""
    before = f'{{"columns":"{columns}","content":{run.text},'
    after = f'"file":{FILE_SCHEMA},"provenance":{made_by},"summary":{canonical(summary)},"words":{words}}}'
    return f'{before}"digest":"{hashlib.sha256((before + after).encode()).hexdigest()}",{after}'


@cache
def _provenance_text(plugin: str | None) -> str:
    return canonical(provenance() if plugin is None else provenance() | {PLUGIN: plugin})


@cache
def _schema(words: int) -> pa.Schema:
    fields = [pa.field("episode", pa.int32(), nullable=False)]
    fields += [pa.field(name, pa.float64()) for name in COLUMNS]
    fields += [pa.field(f"{WORDS}{word}", pa.int32(), nullable=False) for word in range(words)]
    return pa.schema(fields)


def is_key(text: str) -> bool:
    """Can the text be the key of a run?  Files of other names in a folder of runs are not read, moved or deleted."""
    return _KEY.fullmatch(text) is not None


def read_file(path: Path) -> tuple[bytes, os.stat_result]:
    """The bytes of a run's file, and its status when it was read; `Damaged` if it cannot be one."""
    try:
        return read_regular(path, MAX_BYTES)
    except LivarotError as error:  # a link, a pipe, a folder, or too large
        damage = Damaged(str(path), "it is not a file that livarot writes")
        damage.seen = path.lstat()
        raise damage from error


def read_head(path: Path) -> dict[str, Any]:
    """The verified head of a file, without its columns; a `LivarotError` of one line if it is not a run's."""
    head = _head(path, _open(path))
    return head | {"content": parse_json(head["content"])}


def decode(path: Path, data: bytes | None = None) -> Record:
    """The run in a file (or in its bytes, if they were read already), every number verified."""
    file = _open(path, data)
    head = _head(path, file)
    try:
        run = _run(head["content"])
        rows, words = run.cell.episodes, head["words"]
        _check_head(run, rows, words, head["summary"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _damaged(path, "its head does not say what a run is", error)
    # memory is bounded by rows x width as the verified head has them: a damaged footer may claim anything
    if file.metadata.num_rows != rows or rows * (len(COLUMNS) * 8 + 4 + 4 * words) > MAX_BYTES:
        _damaged(path, "it has another number of rows than its head says")
    try:
        if not file.schema_arrow.equals(_schema(words)):
            _damaged(path, "its columns are not those of a run")
        table = file.read(use_threads=False)  # one small file: handing it to threads costs more than reading it
        episode, *numbers = map(_numbers, table.columns)
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        _damaged(path, str(error)[:200].splitlines()[0] if str(error) else type(error).__name__, error)
    columns = dict(zip(COLUMNS, numbers[: len(COLUMNS)], strict=True))
    stages = numbers[len(COLUMNS) :]
    if head["columns"] != _digest(columns.values(), stages) or (episode != _episodes(rows)).any():
        _damaged(path, "its columns do not match their SHA-256")
    bits = stages[0][:, None] if words == 1 else np.array(stages, dtype=np.int32).reshape(words, rows).T
    return Record(run, columns, bits, head["provenance"], head["summary"])


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column, NaN where it has no value; `to_numpy` would import pandas, a third of a second, and is not needed."""
    whole = column.num_chunks == 1 and column.null_count == 0
    return np.from_dlpack(column.chunk(0)) if whole else np.asarray(column.to_numpy())


def _run(content: str) -> Run:
    """The run of a canonical content; runs of one cell share the `Cell`, and what it has computed."""
    common, _, seed = content.rpartition(_SEED)
    return _shared(common)[0].run(int(seed[:-1]))


def _run_schema(content: str) -> int:
    found: int = _shared(content.rpartition(_SEED)[0])[1]
    return found


@lru_cache(maxsize=4096)
def _shared(common: str) -> tuple[Cell, Any]:
    """The cell of a content, less its seed, and the schema: read once for all runs of the cell."""
    content = parse_json(f"{common}}}")
    return Cell.from_content(content), content["schema"]


@lru_cache(maxsize=16)
def _episodes(rows: int) -> NDArray[np.int32]:
    return np.arange(1, rows + 1, dtype=np.int32)


def _check_head(run: Run, rows: Any, words: Any, summary: Any) -> None:
    """A head with a right digest may still be forged: refuse wrong types in what is computed with later."""
    whole = all(type(value) is int and value >= 0 for value in (run.seed, rows, words)) and run.seed < MAX_SEED
    named = isinstance(run.cell.environment, str) and isinstance(run.cell.agent, str)
    settings = isinstance(run.cell.environment_settings, dict) and isinstance(run.cell.agent_settings, dict)
    totals = summary.keys() == NO_SUMMARY.keys() and all(x is None or type(x) is float for x in summary.values())
    if not (whole and named and settings and totals):
        raise ValueError("not the head of a run")


def _open(path: Path, data: bytes | None = None) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(
            pa.BufferReader(read_file(path)[0] if data is None else data),
            page_checksum_verification=True,
            thrift_string_size_limit=2 * MAX_HEAD,
            thrift_container_size_limit=100_000,
        )
    except FileNotFoundError as error:
        raise bad("path", f"there is no file {str(path)!r}") from error
    except Damaged:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        _damaged(path, (str(error) or type(error).__name__).splitlines()[0][:200], error)


def _head(path: Path, file: pq.ParquetFile) -> dict[str, Any]:
    """The head; its content is still text, whose hash is the key."""
    try:
        head, whole = _parsed((file.metadata.metadata or {}).get(_ENTRY, b"null"))
    except (ValueError, TypeError, RecursionError) as error:
        _damaged(path, "its head is not livarot's", error)
    if not whole:
        _damaged(path, "its head does not match its SHA-256")
    try:
        later = head["file"] > FILE_SCHEMA or _run_schema(head["content"]) > RUN_SCHEMA
        writer = head["provenance"].get("livarot")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        _damaged(path, "its head does not say what a run is", error)
    if later:
        raise bad("path", f"{str(path)!r} was written by livarot {writer}, a later one", cure="upgrade livarot")
    return head


def _parsed(text: bytes) -> tuple[dict[str, Any], bool]:
    """The head and whether it matches its digest.

    In the order written here, the digest is the hash of the text without it, and the content, by far the longest part,
    need not be parsed; another order of the fields comes from a later version.
    """
    usual = _HEAD.fullmatch(text)
    if usual is not None:
        columns, content, claimed, rest = (part.decode() for part in usual.groups())
        head = parse_json(f"{{{rest}") | {"columns": columns, "content": content}
        before = f'{{"columns":"{columns}","content":{content},'
        if hashlib.sha256(f"{before}{rest}".encode()).hexdigest() == claimed:
            return head, head.keys() == _FIELDS
    head = parse_json(text)
    if not isinstance(head, dict):
        raise TypeError("no head")
    claimed = head.pop("digest", None)
    whole = digest(head) == claimed and head.keys() == _FIELDS
    return head | {"content": canonical(head.get("content"))}, whole


def _damaged(path: Path, how: str, error: BaseException | None = None) -> NoReturn:
    raise Damaged(str(path), how) from error


class Damaged(LivarotError):
    """A file that is not what was written."""

    def __init__(self, path: str, how: str) -> None:
        super().__init__(f"path: {path!r} is damaged: {how}", argument="path", cure="run the experiment again")
        self.seen: os.stat_result | None = None  # the file that was read
