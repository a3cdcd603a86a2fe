"""Rebuilt: a table in pieces of a fixed size, and arrays that remember nothing but their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types

Released: TypeAlias = "pa.Table | pa.RecordBatchReader"
"""What can be written: a table, or a stream of batches with its schema."""


def pieces(data: Released, rows: int) -> Iterator[pa.Table]:
    """Cut into pieces of exactly that many rows (the last one has what is left).

    How the data was cut before makes no difference: the same values give the same pieces.

    >>> table = pa.table({"sex": ["F", "M", "F"]})
    >>> [piece.num_rows for piece in pieces(table, 2)]
    [2, 1]
    """
    waiting: list[pa.Table] = []
    have = 0
    for batch in data.to_batches() if isinstance(data, pa.Table) else data:
        rest = pa.Table.from_batches([batch])
        while have + rest.num_rows >= rows:
            yield pa.concat_tables([*waiting, rest.slice(0, rows - have)])
            rest = rest.slice(rows - have)
            waiting, have = [], 0
        waiting, have = [*waiting, rest], have + rest.num_rows
    if have:
        yield pa.concat_tables(waiting)


def rebuild(table: pa.Table) -> pa.Table:
    """Return the same values without metadata, in one chunk, with dictionaries that hold the used values, sorted.

    A dictionary keeps the values of rows that were filtered away, and the order in which they first appeared: Parquet
    files would show both.

    >>> sexes = pa.array(["M", "secret", "F"]).dictionary_encode()
    >>> rebuild(pa.table({"sex": sexes.take(pa.array([0, 2]))}))["sex"].chunk(0).dictionary.to_pylist()
    ['F', 'M']
    """
    arrays = [_array(column) for column in table.columns]
    schema = pa.schema([(name, array.type) for name, array in zip(table.column_names, arrays, strict=True)])
    return pa.Table.from_arrays(arrays, schema=schema)


def bare(schema: pa.Schema) -> pa.Schema:
    """Return the schema that rebuilt pieces have."""
    return pa.schema([(field.name, _kind(field.type)) for field in schema])


def _kind(kind: pa.DataType) -> pa.DataType:
    if not types.is_dictionary(kind):
        return kind
    text = types.is_string(kind.value_type) or types.is_large_string(kind.value_type)
    return pa.dictionary(pa.int32(), pa.string()) if text else kind.value_type


def _array(column: pa.ChunkedArray) -> pa.Array:
    kind = _kind(column.type)
    if not types.is_dictionary(column.type):
        return _one(column)
    if not types.is_dictionary(kind):
        return _one(column.cast(kind))
    coded = _one(column.unify_dictionaries())
    values = coded.dictionary.cast(pa.string())
    if values.null_count:
        return _one(column.cast(column.type.value_type)).cast(pa.string()).dictionary_encode()
    used = np.bincount(coded.indices.drop_null().to_numpy(), minlength=len(values)) > 0
    kept = np.flatnonzero(used)
    kept = kept[pc.sort_indices(values.take(pa.array(kept))).to_numpy()]
    places = np.zeros(len(values), dtype=np.int32)
    places[kept] = np.arange(len(kept), dtype=np.int32)
    codes = pa.array(places).take(coded.indices) if len(values) else coded.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(codes, values.take(pa.array(kept)))


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
