"""Tuples: how a cell travels between tasks, as one key and, for open levels, the values themselves.

Codes of an open level are given while reading, so that two tasks would give them differently.  There the key says
only whether the value is an ordinary one, outside or missing, and a column of its own holds the mark.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.core.recoding import Classes, Recoding
from incrowd.engines.spark.places import fixed

_ORDINARY, _OTHER, _MISSING = range(3)
_NAMES = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double", pa.date32(): "date"}


def names(cells: Cells) -> list[str]:
    """Return the names of the columns in which cells travel."""
    return ["key", *(f"mark{place}" for place, _ in _open(cells))]


def fields(cells: Cells) -> str:
    """Return the columns in which cells travel, with their types, as Spark spells them.

    >>> from incrowd.core.schema import Column, Schema
    >>> fields(Cells.of(Schema((Column("zip"),)), {}))
    'key bigint, mark0 string'
    """
    key = "bigint" if _layout(cells).dtype == np.int64 else "binary"
    kinds = [key, *(_NAMES[recoding.column.domain.storage] for _, recoding in _open(cells))]
    return ", ".join(f"{name} {kind}" for name, kind in zip(names(cells), kinds, strict=True))


def cell_arrays(
    cells: Cells, codes: Sequence[Codes], classes: Sequence[tuple[Classes, Codes | None]]
) -> list[pa.Array]:
    """Return tuples of codes as columns that mean the same in every task."""
    parts, marks = [], []
    for column, (known, kept), recoding in zip(codes, classes, cells.recodings, strict=True):
        if recoding.classes is not None or kept is None:
            parts.append(column)
            continue
        places = kept[column]
        ordinary = len(known.marks)
        parts.append(np.maximum(places - ordinary + 1, _ORDINARY).astype(np.int32))
        marks.append(known.marks.take(pa.array(places, mask=places >= ordinary)))
    return [_sent(_layout(cells).pack(parts)), *marks]


def empty_cell_arrays(cells: Cells, length: int) -> list[pa.Array]:
    """Return as many rows without a cell."""
    key = pa.int64() if _layout(cells).dtype == np.int64 else pa.binary()
    return [pa.nulls(length, kind) for kind in (key, *(r.column.domain.storage for _, r in _open(cells)))]


def counts_of(cells: Cells, found: pa.Table) -> Counts:
    """Return the counts that travelled as key, marks and `count`: the same value that one process counts."""
    keys = _received(found.column("key").combine_chunks(), _layout(cells))
    classes: list[Classes] = []
    columns: list[Codes] = []
    for place, (recoding, codes) in enumerate(zip(cells.recodings, _layout(cells).unpack(keys), strict=True)):
        if recoding.classes is not None:
            classes.append(recoding.classes)
            columns.append(codes)
        else:
            met, renumbered = _met(recoding, codes, found.column(f"mark{place}").combine_chunks())
            classes.append(met)
            columns.append(renumbered)
    layout = Layout(tuple(len(column) for column in classes))
    ordered, sums = grouped(layout.pack(columns), found.column("count").to_numpy().astype(np.int64))
    return Counts(tuple(classes), ordered, sums).pruned()


def _met(recoding: Recoding, codes: Codes, marks: pa.Array) -> tuple[Classes, Codes]:
    unique = pc.unique(marks.drop_null())
    ordered = unique.take(pc.array_sort_indices(unique))
    places = pc.fill_null(pc.index_in(marks, value_set=ordered), 0).to_numpy(zero_copy_only=False)
    special = len(ordered) + codes - _OTHER
    classes = Classes(recoding, ordered, has_other=True, has_missing=True)
    return classes, np.where(codes == _ORDINARY, places, special).astype(np.int32)


def _open(cells: Cells) -> list[tuple[int, Recoding]]:
    return [(place, recoding) for place, recoding in enumerate(cells.recodings) if recoding.classes is None]


def _layout(cells: Cells) -> Layout:
    return Layout(tuple(_MISSING + 1 if r.classes is None else len(r.classes) for r in cells.recodings))


def _sent(keys: Keys) -> pa.Array:
    return pa.array(keys) if keys.dtype == np.int64 else fixed(np.ascontiguousarray(keys).tobytes(), len(keys))


def _received(keys: pa.Array, layout: Layout) -> Keys:
    if layout.dtype == np.int64:
        numbers: Keys = keys.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers
    return np.frombuffer(b"".join(keys.to_pylist()), layout.dtype)
