"""The rows of a model as long arrays, before they are laid out: which exist, and one table per kind of stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.errors import bad


@dataclass(frozen=True, eq=False)
class Long:
    """Tables of pairs and their rows, pair after pair, table after table."""

    counts: IntArray  # (tables, S, A) rows of each pair
    next_state: IntArray  # (rows,)
    features: Any  # (rows, d), dense or sparse
    offset: FloatArray | None  # (rows,)
    stage_table: Int32Array  # (H,)

    @cached_property
    def complete(self) -> bool:
        """Does every pair have rows?"""
        return bool(self.counts.all())

    @cached_property
    def exists(self) -> BoolArray:
        """Which pairs have rows, (H, S, A)."""
        if self.complete:
            return np.broadcast_to(np.True_, (len(self.stage_table), *self.counts.shape[1:]))
        return np.asarray(self.counts[self.stage_table] > 0)

    def first(self, table: int) -> int:
        """Where the rows of a table begin."""
        return int(self.counts[:table].sum())

    def nexts(self, table: int) -> IntArray:
        """The next states of a table's rows."""
        begin = self.first(table)
        return self.next_state[begin : begin + int(self.counts[table].sum())]

    def pairs(self, table: int) -> IntArray:
        """The pair s A + a of each of a table's rows."""
        counts = self.counts[table].reshape(-1)
        return np.repeat(np.arange(len(counts)), counts)

    def only(self, allowed: BoolArray | None, terminal: BoolArray | None) -> Long:
        """Without the rows of pairs that are not allowed, (S, A) or (H, S, A); terminal states lead to themselves."""
        if allowed is None and terminal is None:
            return self
        mask = np.ones(self.counts.shape[1:], dtype=np.bool_) if allowed is None else allowed
        self._require_rows(mask, terminal)
        kinds: dict[tuple[int, bytes], int] = {}
        stage_table = self.stage_table.copy()
        counts: list[IntArray] = []
        source: list[IntArray] = []
        nexts: list[IntArray] = []
        for h, table in enumerate(self.stage_table.tolist()):
            own = mask[h] if mask.ndim == 3 else mask
            kind = (table, own.tobytes())
            if kind not in kinds:
                kinds[kind] = len(counts)
                for parts, part in zip((counts, source, nexts), self._kept(table, own, terminal), strict=True):
                    parts.append(part)
            stage_table[h] = kinds[kind]
        return self._taken(np.stack(counts), np.concatenate(source), np.concatenate(nexts), stage_table)

    def _require_rows(self, mask: BoolArray, terminal: BoolArray | None) -> None:
        """Refuse actions that are said to exist but lead nowhere."""
        lacking = np.broadcast_to(mask, (len(self.stage_table), *mask.shape[-2:])) & (
            self.counts[self.stage_table] == 0
        )
        if terminal is not None:
            lacking = lacking & ~terminal[:, None]
        if lacking.any() and not mask.all():
            at = np.argwhere(lacking)
            where = tuple(int(i) for i in at[0])
            cure = "give it features, or take it out of available"
            raise bad("available", "an action has no next state at (h, s, a)", index=where, count=len(at), cure=cure)

    def _kept(self, table: int, mask: BoolArray, terminal: BoolArray | None) -> tuple[IntArray, IntArray, IntArray]:
        """Counts, source rows (-1 for a terminal state's own row) and next states of the rows of a table that stay."""
        counts, begin, pair = self.counts[table].copy(), self.first(table), self.pairs(table)
        counts[~mask] = 0
        source = begin + np.flatnonzero(mask.reshape(-1)[pair])
        nexts = self.next_state[source]
        if terminal is None:
            return counts, source, nexts
        n_actions = counts.shape[1]
        ends = np.flatnonzero(terminal)
        keep = ~terminal[pair[source - begin] // n_actions]
        counts[ends] = 0
        counts[ends, 0] = 1
        owner = np.concatenate((pair[source[keep] - begin], ends * n_actions))
        order = np.argsort(owner, kind="stable")
        source = np.concatenate((source[keep], np.full(len(ends), -1)))[order]
        return counts, source, np.concatenate((nexts[keep], ends))[order]

    def _taken(self, counts: IntArray, source: IntArray, nexts: IntArray, stage_table: Int32Array) -> Long:
        offset = self.offset
        if offset is not None:
            offset = np.where(source >= 0, np.append(offset, 0.0)[source], 0.0)
        return Long(counts, nexts.astype(np.int64), _rows_of(self.features, source), offset, stage_table)

    def with_rows(self, per_stage: list[FloatArray]) -> tuple[Long, FloatArray]:
        """One number for each row: stages that share a table and differ in the numbers get tables of their own."""
        kinds: dict[tuple[int, bytes], int] = {}
        stage_table = self.stage_table.copy()
        tables: list[int] = []
        numbers: list[FloatArray] = []
        for h, table in enumerate(self.stage_table.tolist()):
            kind = (table, per_stage[h].tobytes())
            if kind not in kinds:
                kinds[kind] = len(tables)
                tables.append(table)
                numbers.append(per_stage[h])
            stage_table[h] = kinds[kind]
        if tables == list(range(len(self.counts))):
            return replace(self, stage_table=stage_table), np.concatenate(numbers)
        source = np.concatenate([self.first(t) + np.arange(int(self.counts[t].sum())) for t in tables])
        return self._taken(self.counts[tables], source, self.next_state[source], stage_table), np.concatenate(numbers)


def _rows_of(features: Any, source: IntArray) -> Any:
    """These rows of a matrix, zeros where the number of the row is -1."""
    if hasattr(features, "tocsr"):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([features.tocsr(), csr_array((1, features.shape[1]))]))[source]
    dense: NDArray[Any] = np.asarray(features)
    taken = dense[np.maximum(source, 0)] if len(dense) else np.zeros((len(source), *dense.shape[1:]))
    taken[source < 0] = 0.0
    return taken
