"""Ragged storage of the reachable sets: which next states, with which features.

For a stage ``h``, state ``s`` and action ``a`` the reachable set is a short list of next states, each with a
feature row ``phi_i`` and a known offset ``o_i``; its logit under a parameter is ``o_i + phi_i . theta``.
All lists of all *tables* are kept in flat arrays (CSR): stages whose features are the same share one table,
so that a model with features independent of the stage stores them once.

Conventions
-----------
``pair``   one (table, s, a); its number is ``(table * n_states + s) * n_actions + a``.
``row``    one reachable next state of a pair; rows of a pair are contiguous.
``block``  a set of coordinates of theta that never share a pair with coordinates outside it (found by
           union-find).  Gram matrices are sums of Hessians of single pairs, hence block diagonal, and are kept
           *packed*: block after block, each dense and row-major.  A dense model has one block; one-hot features
           have blocks as small as a reachable set, and then nothing costs ``d^2``.
``cols``   the positions, inside the pair's block, of the coordinates where the pair has a non-zero feature.

A pair with one outcome (or with all-zero features) says nothing about theta and has block -1.  A pair without any row
does not exist: the action is not available in that state.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from livarot.core.arrays import BoolArray, FloatArray, Int32Array, IntArray
from livarot.errors import bad

NO_BLOCK = -1


class Graph(NamedTuple):
    """The flat arrays a compiled loop needs, in one argument (see :class:`Rows` for their meaning)."""

    row_start: IntArray
    next_state: Int32Array
    offset: FloatArray
    pair_block: Int32Array
    pair_shape: Int32Array
    col_start: IntArray
    col_count: Int32Array
    cols: Int32Array
    feat_start: IntArray
    feat: FloatArray
    block_start: IntArray
    block_coords: Int32Array
    gram_start: IntArray


STORED = tuple(name for name in Graph._fields if name != "pair_shape")  # the arrays of a file; pair_shape is derived


@dataclass(frozen=True, eq=False)
class Rows:
    """The flat arrays of a model with ``n_tables`` tables (see the module's conventions)."""

    n_states: int
    n_actions: int
    dim: int
    row_start: IntArray  # (pairs + 1,) rows of pair p are row_start[p]:row_start[p+1]
    next_state: Int32Array  # (rows,)
    offset: FloatArray  # (rows,)
    pair_block: Int32Array  # (pairs,) or NO_BLOCK
    col_start: IntArray  # (pairs,) where the pair's columns begin in `cols`
    col_count: Int32Array  # (pairs,)
    cols: Int32Array  # positions inside the block
    feat_start: IntArray  # (pairs,) where the pair's features begin in `feat`
    feat: FloatArray  # row-major (rows of the pair, col_count)
    block_start: IntArray  # (blocks + 1,) coordinates of a block in `block_coords`
    block_coords: Int32Array  # (d,) coordinates of theta, block after block
    gram_start: IntArray  # (blocks + 1,) where a block begins in a packed Gram matrix

    @property
    def n_pairs(self) -> int:
        return len(self.row_start) - 1

    @property
    def n_tables(self) -> int:
        return self.n_pairs // (self.n_states * self.n_actions)

    @property
    def n_rows(self) -> int:
        return len(self.next_state)

    @property
    def n_blocks(self) -> int:
        return len(self.block_start) - 1

    @property
    def gram_size(self) -> int:
        """Numbers in a packed Gram matrix."""
        return int(self.gram_start[-1])

    @property
    def outcomes(self) -> IntArray:
        """Reachable next states of each pair, N_{h,s,a}."""
        return np.diff(self.row_start)

    @cached_property
    def pair_shape(self) -> Int32Array:
        """Pairs with equal numbers of outcomes, columns and block coordinates have the same number, (pairs,)."""
        sizes = np.append(np.diff(self.block_start), 0)[self.pair_block]
        shapes = np.stack((self.outcomes, self.col_count, sizes), axis=1)
        return np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int32)

    @cached_property
    def graph(self) -> Graph:
        return Graph(*(getattr(self, name) for name in Graph._fields))

    def validate(self) -> None:
        """Refuse arrays that do not fit together: a file is data, and no index in it may lead outside an array.

        Types, lengths and the ranges of arrays were checked before (:data:`livarot.model.file.LAYOUT`).  Checked here:
        rows, features and columns lie pair after pair (or all pairs share the columns 0..d-1), blocks are a partition
        of the coordinates, a pair has a block if and only if it says something about theta, its columns increase and
        lie in its block, and next states of a pair differ.
        """
        outcomes, counts, sizes = self.outcomes, self.col_count.astype(np.int64), np.diff(self.block_start)
        sound = (
            self.n_pairs >= 1
            and counts.max() <= self.dim  # checked before products and sums of counts are formed
            and self.n_pairs % (self.n_states * self.n_actions) == 0
            and _is_partition(self.row_start, self.n_rows)
            and _is_partition(self.block_start, self.dim)
            and np.array_equal(np.sort(self.block_coords), np.arange(self.dim))
            and np.array_equal(self.gram_start, _starts(sizes**2))
            and np.array_equal(self.feat_start, _starts(outcomes * counts)[:-1])
            and len(self.feat) == int((outcomes * counts).sum())
            and np.array_equal(self.pair_block != NO_BLOCK, (outcomes >= 2) & (counts > 0))
        )
        shared = bool((counts == self.dim).all() and not self.col_start.any() and len(self.cols) == self.dim)
        if sound and not (shared and self.n_blocks == 1 and np.array_equal(self.cols, np.arange(self.dim))):
            sound = np.array_equal(self.col_start, _starts(counts)[:-1]) and len(self.cols) == int(counts.sum())
            if sound:
                widths = np.where(self.pair_block == NO_BLOCK, self.dim, sizes[self.pair_block])
                sound = bool((self.cols < np.repeat(widths, counts)).all())
                rises = np.diff(np.repeat(np.arange(self.n_pairs) * self.dim, counts) + self.cols) > 0
                sound = sound and bool(rises.all())
        if not sound:
            raise bad("rows", "arrays do not fit together")
        pair_of_row = np.repeat(np.arange(self.n_pairs), outcomes)
        _check_next_states(self.next_state.astype(np.int64), pair_of_row, self.n_states, self.n_actions)

    def pair(self, table: int, state: int, action: int) -> int:
        return (table * self.n_states + state) * self.n_actions + action

    def features(self, pair: int) -> FloatArray:
        """The dense feature matrix (rows, d) of one pair."""
        begin, end = self.row_start[pair], self.row_start[pair + 1]
        count = int(self.col_count[pair])
        dense = np.zeros((int(end - begin), self.dim))
        if count:
            local = self.feat[self.feat_start[pair] : self.feat_start[pair] + (end - begin) * count]
            dense[:, self.columns(pair)] = local.reshape(-1, count)
        return dense

    def successors(self, table: int, states: BoolArray) -> BoolArray:
        """Which states can follow one of these, (S,)."""
        starts, after = self.row_start[self.pair(table, 0, 0) : self.pair(table + 1, 0, 0) + 1], np.zeros_like(states)
        taken = np.repeat(np.repeat(states, self.n_actions), np.diff(starts))
        after[self.next_state[starts[0] : starts[-1]][taken]] = True
        return after

    def columns(self, pair: int) -> IntArray:
        """The coordinates of theta that a pair's features touch."""
        start = self.col_start[pair]
        positions = self.cols[start : start + self.col_count[pair]]
        block = self.pair_block[pair]
        if block == NO_BLOCK:  # without a block, positions are the coordinates themselves
            return np.asarray(positions, dtype=np.int64)
        return np.asarray(self.block_coords[self.block_start[block] + positions], dtype=np.int64)

    def norms(self) -> FloatArray:
        """Euclidean norm of every feature row, (rows,)."""
        if len(self.feat) == self.n_rows * self.dim:  # dense: saves an index array of the features' size
            dense = self.feat.reshape(self.n_rows, self.dim)
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", dense, dense)))
        counts = np.repeat(self.col_count, self.outcomes).astype(np.int64)
        owner = np.repeat(np.arange(self.n_rows), counts)
        return np.sqrt(np.bincount(owner, weights=self.feat**2, minlength=self.n_rows))

    def scaled(self, factor: float) -> Rows:
        """The same rows with all features multiplied by ``factor``."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["feat"] = self.feat * factor
        return Rows(**values)

    def pack_identity(self, scale: float = 1.0) -> FloatArray:
        """``scale * I`` as a packed Gram matrix, (gram_size,)."""
        return self.pack(np.eye(self.dim) * scale) if self.n_blocks == 1 else self._pack_diagonal(scale)

    def _pack_diagonal(self, scale: float) -> FloatArray:
        packed = np.zeros(self.gram_size)
        for block in range(self.n_blocks):
            size = int(self.block_start[block + 1] - self.block_start[block])
            packed[self.gram_start[block] : self.gram_start[block + 1] : size + 1] = scale
        return packed

    def pack(self, dense: FloatArray) -> FloatArray:
        """A block-diagonal matrix (..., d, d) in packed form (..., gram_size)."""
        parts = []
        for block in range(self.n_blocks):
            coords = self.block_coords[self.block_start[block] : self.block_start[block + 1]]
            part = dense[..., coords[:, None], coords[None, :]]
            parts.append(part.reshape(*dense.shape[:-2], -1))
        return np.ascontiguousarray(np.concatenate(parts, axis=-1))

    def unpack(self, packed: FloatArray) -> FloatArray:
        """A packed matrix (..., gram_size) as a dense one (..., d, d)."""
        dense = np.zeros((*packed.shape[:-1], self.dim, self.dim))
        for block in range(self.n_blocks):
            coords = self.block_coords[self.block_start[block] : self.block_start[block + 1]]
            part = packed[..., self.gram_start[block] : self.gram_start[block + 1]]
            dense[..., coords[:, None], coords[None, :]] = part.reshape(*packed.shape[:-1], len(coords), len(coords))
        return dense


def _starts(counts: IntArray) -> IntArray:
    """Where parts of these lengths begin, and the end of the last, (n + 1,)."""
    return np.concatenate(([0], np.cumsum(counts)))


def _is_partition(starts: IntArray, total: int) -> bool:
    """0 = starts[0] <= starts[1] <= ... = total?"""
    return len(starts) >= 2 and starts[0] == 0 and starts[-1] == total and bool(np.all(np.diff(starts) >= 0))


def build_rows(
    n_states: int,
    n_actions: int,
    dim: int,
    outcomes: IntArray,
    next_state: IntArray,
    features: FloatArray | tuple[IntArray, IntArray, FloatArray],
    offset: FloatArray | None = None,
) -> Rows:
    """Assemble :class:`Rows` from long arrays, pair after pair.

    ``outcomes`` (pairs,) counts the rows of each pair; ``next_state`` (rows,) and ``features`` list them.
    Features are dense (rows, d) or sparse ``(row_index, column, value)`` triplets.
    """
    n_rows = int(outcomes.sum())
    row_start = np.concatenate(([0], np.cumsum(outcomes))).astype(np.int64)
    pair_of_row = np.repeat(np.arange(len(outcomes)), outcomes)
    _check_next_states(next_state, pair_of_row, n_states, n_actions)
    own: dict[str, Any] = {"n_states": n_states, "n_actions": n_actions, "dim": dim, "row_start": row_start}
    own["next_state"] = next_state.astype(np.int32)
    own["offset"] = np.zeros(n_rows) if offset is None else np.ascontiguousarray(offset, dtype=np.float64)
    if isinstance(features, tuple):
        row, column, value = (np.asarray(part) for part in features)
        keep = value != 0.0
        row, column, value = row[keep].astype(np.int64), column[keep].astype(np.int64), value[keep]
    else:
        if features.shape != (n_rows, dim):
            raise bad("features", f"have shape {features.shape}, expected {(n_rows, dim)}")
        if np.count_nonzero(features) > 0.5 * features.size:  # dense: every pair uses all columns
            return _dense_rows(dim, row_start, features, own)
        row, column = np.nonzero(features)
        value = features[row, column]
    # the distinct columns of each pair, and the position of each entry among them
    owner = pair_of_row[row]
    unique, inverse = np.unique(owner * dim + column, return_inverse=True)
    unique_pair, unique_column = unique // dim, unique % dim
    col_count = np.bincount(unique_pair, minlength=len(outcomes)).astype(np.int64)
    col_start = np.concatenate(([0], np.cumsum(col_count)))[:-1].astype(np.int64)
    feat_count = col_count * outcomes
    feat_start = np.concatenate(([0], np.cumsum(feat_count)))[:-1].astype(np.int64)
    feat = np.zeros(int(feat_count.sum()))
    place = inverse - col_start[owner]
    feat[feat_start[owner] + (row - row_start[owner]) * col_count[owner] + place] = value
    informative = (outcomes >= 2) & (col_count > 0)
    block_of, block_start, block_coords = _components(dim, unique_pair, unique_column, informative)
    position = np.empty(dim, dtype=np.int64)
    position[block_coords] = np.arange(dim) - block_start[block_of[block_coords]]
    cols = np.where(informative[unique_pair], position[unique_column], unique_column)
    pair_block = np.full(len(outcomes), NO_BLOCK, dtype=np.int32)
    if len(unique):
        first_column = unique_column[np.minimum(col_start, len(unique) - 1)]
        pair_block[informative] = block_of[first_column[informative]]
    return Rows(
        **own,
        pair_block=pair_block,
        col_start=col_start,
        col_count=col_count.astype(np.int32),
        cols=cols.astype(np.int32),
        feat_start=feat_start,
        feat=feat,
        block_start=block_start,
        block_coords=block_coords.astype(np.int32),
        gram_start=np.concatenate(([0], np.cumsum(np.diff(block_start) ** 2))).astype(np.int64),
    )


def _dense_rows(dim: int, row_start: IntArray, features: FloatArray, own: dict[str, Any]) -> Rows:
    """Dense features: there is one block, all pairs share one list of columns, and features are stored as they are."""
    n_pairs = len(row_start) - 1
    single = np.diff(row_start) < 2
    return Rows(
        **own,
        pair_block=np.where(single, NO_BLOCK, 0).astype(np.int32),
        col_start=np.zeros(n_pairs, dtype=np.int64),
        col_count=np.full(n_pairs, dim, dtype=np.int32),
        cols=np.arange(dim, dtype=np.int32),
        feat_start=row_start[:-1] * dim,
        feat=np.ascontiguousarray(features, dtype=np.float64).reshape(-1),
        block_start=np.array([0, dim], dtype=np.int64),
        block_coords=np.arange(dim, dtype=np.int32),
        gram_start=np.array([0, dim * dim], dtype=np.int64),
    )


def _components(
    dim: int, entry_pair: IntArray, entry_column: IntArray, informative: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Connected components of the coordinates that share a pair; coordinates come back grouped by component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    keep = informative[entry_pair]
    pair, column = entry_pair[keep], entry_column[keep]
    same = np.flatnonzero(pair[1:] == pair[:-1])  # consecutive columns of one pair are linked
    links = coo_array((np.ones(len(same)), (column[same], column[same + 1])), shape=(dim, dim))
    n_blocks, block_of = connected_components(links, directed=False)
    block_coords = np.argsort(block_of, kind="stable")
    block_start = np.concatenate(([0], np.cumsum(np.bincount(block_of, minlength=n_blocks))))
    return block_of.astype(np.int64), block_start.astype(np.int64), block_coords.astype(np.int64)


def _check_next_states(next_state: IntArray, pair_of_row: IntArray, n_states: int, n_actions: int) -> None:
    def where(row: int) -> tuple[int, int, int, int]:
        pair = int(pair_of_row[row])
        table, rest = divmod(pair, n_states * n_actions)
        return table, rest // n_actions, rest % n_actions, int(row - np.flatnonzero(pair_of_row == pair)[0])

    outside = np.flatnonzero((next_state < 0) | (next_state >= n_states))
    if len(outside):
        raise bad(
            "next_states",
            f"next state {next_state[outside[0]]} is outside 0..{n_states - 1} at (table, state, action, outcome)",
            index=where(int(outside[0])),
            count=len(outside),
            cure="number the states from 0 to n_states - 1",
        )
    key = pair_of_row * np.int64(n_states) + next_state
    if bool((np.diff(key) > 0).all()):  # sorted, as most are
        return
    order = np.argsort(key, kind="stable")
    repeated = order[1:][key[order][1:] == key[order][:-1]]
    if len(repeated):
        raise bad(
            "next_states",
            f"next state {next_state[repeated.min()]} is repeated at (table, state, action, outcome)",
            index=where(int(repeated.min())),
            count=len(repeated),
            cure="list every next state once; add up the weights of repeated ones first",
        )
