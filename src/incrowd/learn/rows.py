"""Rows: frames and arrays of scikit-learn's callers as tables, and how to know them again."""

from __future__ import annotations

from hashlib import blake2b
from secrets import token_bytes
from typing import Any
from warnings import warn

import numpy as np
import pyarrow as pa
from sklearn.exceptions import DataConversionWarning

from incrowd.core.reading import canonical
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import InvalidParameter

_KEY = token_bytes(32)  # of this process: a digest says nothing to anyone else


def table_of(rows: object, names: list[str], estimator: str) -> pa.Table:
    """Return a frame as it is, and an array with the columns that the policy declares, in that order."""
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "to_arrow"):
        return _named(_whole(open_source(rows)), rows, names)
    if hasattr(rows, "toarray"):
        raise InvalidParameter("sparse rows are not read: give a frame with named columns, or a dense array.")
    array = _array_of(rows)
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
    array = _array_of(values)
    if array.ndim == 2 and array.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        array = array[:, 0]
    return _column(array)


def kind_of(values: object) -> pa.DataType:
    """Return the type of labels; of objects that of the first which is no text, as each is judged by itself.

    >>> str(kind_of(["yes", 1])), str(kind_of(["yes", None])), str(kind_of(np.array([True])))
    ('int64', 'string', 'bool')
    """
    array = _array_of(values).ravel()
    if array.dtype.kind != "O":
        return _column(array).type
    other = next((value for value in array.tolist() if not isinstance(value, str) and not _missing(value)), "")
    try:
        return pa.array([other]).type
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.string()


def _array_of(values: object) -> np.ndarray[Any, np.dtype[Any]]:
    """Return values as an array; in a list each stays what it is, where NumPy would give all of them one type."""
    return np.asarray(values) if hasattr(values, "__array__") else np.asarray(values, dtype=object)


def _column(array: np.ndarray[Any, np.dtype[Any]]) -> pa.Array:
    """Return values as a column: objects as text, each by itself, so that no row changes how another one is read.

    >>> [_column(np.array(values, object)).to_pylist() for values in (["a", float("nan")], [1.0, None], [1.0, "b"])]
    [['a', None], ['1', None], ['1', 'b']]
    """
    if array.ndim != 1:
        raise InvalidParameter("a target is one column.")
    if array.dtype.kind in "biufM":
        return pa.array(array)
    if array.dtype.kind == "S":
        array = array.astype(str)
    texts: dict[tuple[type, Any], str | None] = {}
    return pa.array([_text(value, texts) for value in array.tolist()], pa.string())


def _text(value: Any, texts: dict[tuple[type, Any], str | None]) -> str | None:
    """Return a value as it is written where a column holds values of its kind alone; equal ones are written once."""
    if isinstance(value, str):
        return value
    try:
        if (type(value), value) not in texts:
            texts[type(value), value] = _written(value)
        return texts[type(value), value]
    except TypeError:  # it has no hash
        return _written(value)


def _written(value: Any) -> str | None:
    if _missing(value):
        return None
    try:
        (text,) = canonical(pa.array([value], from_pandas=True)).to_pylist()
    except (pa.ArrowException, TypeError, OverflowError):
        return str(value)
    return text  # type: ignore[no-any-return]


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
