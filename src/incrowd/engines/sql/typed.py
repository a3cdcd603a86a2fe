"""Rows in the storage of their declared types: what a question is computed on, whatever file they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Type
from incrowd.core.mechanism import Sample
from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Rows

SQL_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.DECIMAL: "DOUBLE",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
}


def storage(kind: Type) -> pa.DataType:
    """Return the Arrow type in which values of a declared type are asked about.

    >>> storage(Type.BOOLEAN)
    DataType(bool)
    """
    return pa.bool_() if kind is Type.BOOLEAN else kind.storage


def fields(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of typed rows."""
    return pa.schema([(column.name, storage(column.type)) for column in columns])


def typed_batches(rows: Rows, schema: Schema, sample: Sample | None = None) -> Iterator[pa.RecordBatch]:
    """Read all declared columns, each value as its declared type; what is missing or cannot be read is null.

    With a sample, only the rows in it: a row's coin hangs on its position in the source.
    """
    columns, start = schema.columns, 0
    for batch in rows.batches(schema.names):
        stop = start + batch.num_rows
        chosen = batch if sample is None else batch.filter(pa.array(sample.at(start, stop)))
        start = stop
        values = typed_arrays(chosen, [column.type for column in columns])
        yield pa.RecordBatch.from_arrays(values, schema=fields(columns))


def typed_arrays(batch: pa.RecordBatch, kinds: Sequence[Type]) -> list[pa.Array]:
    """Return the columns of a batch, each in the storage of its declared type.

    >>> typed_arrays(pa.record_batch({"age": ["41", "none"]}), [Type.INTEGER])[0].to_pylist()
    [41, None]
    """
    return [_typed(array, kind) for array, kind in zip(batch.columns, kinds, strict=True)]


def _typed(array: pa.Array, kind: Type) -> pa.Array:
    values, indices = as_dictionary(array)
    stored = read(values, kind).values
    if kind is Type.BOOLEAN:
        stored = pc.equal(stored, "true")
    whole = stored if indices is None else stored.take(pa.array(indices, mask=indices == len(values)))
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
