"""Rows: frames and arrays of scikit-learn's callers as tables, and how to know them again."""

from __future__ import annotations

from hashlib import blake2b
from secrets import token_bytes
from typing import Any
from warnings import warn

import numpy as np
import pyarrow as pa
from sklearn.exceptions import DataConversionWarning

from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import InvalidParameter

_KEY = token_bytes(32)  # of this process: a digest says nothing to anyone else


def table_of(rows: object, names: list[str], estimator: str) -> pa.Table:
    """Return a frame as it is, and an array with the columns that the policy declares, in that order."""
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "to_arrow"):
        return _named(_whole(open_source(rows)), rows, names)
    if hasattr(rows, "toarray"):
        raise InvalidParameter("sparse rows are not read: give a frame with named columns, or a dense array.")
    array = np.asarray(rows)
    if array.dtype.kind == "c":
        raise InvalidParameter("Complex data not supported: a column is of numbers, texts or days.")
    if array.ndim != 2:
        raise InvalidParameter("Expected 2D array. Reshape your data: a line for each row, a column for each declared.")
    if array.shape[1] != len(names):
        mismatch = f"X has {array.shape[1]} features, but {estimator} is expecting {len(names)} features as input"
        empty = "" if array.shape[1] else f" (0 feature(s) (shape={array.shape}) while a minimum of 1 is required)"
        raise InvalidParameter(
            f"{mismatch}{empty}: those that the policy declares, {', '.join(names)}. Give a frame with named "
            "columns, or such an array."
        )
    return pa.table({name: _column(array[:, place]) for place, name in enumerate(names)})


def _named(table: pa.Table, rows: object, names: list[str]) -> pa.Table:
    """Return a table as it is; one of a frame whose columns have numbers for names is taken as an array is."""
    labels = list(getattr(rows, "columns", ()))
    numbered = labels and not any(isinstance(label, str) for label in labels)
    return table.rename_columns(names) if numbered and len(labels) == len(names) else table


def _whole(source: Source) -> pa.Table:
    batches = list(source.batches(source.names))
    empty = {name: pa.array([], pa.string()) for name in source.names}
    return pa.Table.from_batches(batches) if batches else pa.table(empty)


def target_of(values: object) -> pa.Array:
    """Return a target as a column; one that is a single column of a table is taken with a warning."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        array = array[:, 0]
    return _column(array)


def _column(values: object) -> pa.Array:
    """Return values as a frame would hold them: NaN and the like are missing, several kinds together are text.

    >>> [_column(np.array(values, object)).to_pylist() for values in (["a", float("nan")], [1, None], [2, "b"])]
    [['a', None], [1, None], ['2', 'b']]
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidParameter("a target is one column.")
    if array.dtype.kind in "biuf":
        return pa.array(array)
    plain = (array.astype(str) if array.dtype.kind == "S" else array).tolist()
    try:
        return pa.array(plain, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if _missing(value) else str(value) for value in plain], pa.string())


def _missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, NaT, or pandas.NA, which has no truth value."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN alone differs from itself
    except TypeError:
        return True


def digest_of_rows(table: pa.Table) -> bytes:
    """Return the keyed digest of rows."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema.remove_metadata()) as writer:
        writer.write_table(table.replace_schema_metadata(None).combine_chunks())
    return blake2b(stream.getvalue(), key=_KEY).digest()
