"""Plain arrays: of the many ways in which Arrow can store a column, the few that the engines handle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types

from incrowd.engines.readers.reader import attempt
from incrowd.errors import SourceUnreadable


def plain_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with every column plain, without metadata.

    >>> batch = pa.record_batch({"zip": pa.array(["01234", None], pa.large_string())})
    >>> plain_batch(batch).schema.field("zip").type
    DataType(string)
    """
    arrays = [plain(array, name) for array, name in zip(batch.columns, batch.schema.names, strict=True)]
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def plain(array: pa.Array, name: str) -> pa.Array:
    """Return the same values as text, a dictionary of text, a number, a truth value, a date, a time, or lists of text.

    Text is `string`; a dictionary has codes of 32 bits and text without nulls; bytes are text if they are valid UTF-8.
    A program can store other bytes as text: such a cell is missing, independently of the other rows.  A list of text is
    for set-valued columns only; validation refuses it in other columns.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage, name)
    if types.is_dictionary(kind):
        return _dictionary(array, name)
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(array), name)
    if types.is_null(kind):
        return array
    if types.is_string(kind):
        return _valid(array)
    if _is_text(kind):
        return _text(array, name)
    if types.is_float16(kind):
        return array.cast(pa.float32())
    if types.is_primitive(kind) or types.is_decimal(kind):
        return array
    if is_list(kind) and (_is_text(kind.value_type) or types.is_dictionary(kind.value_type)):
        return _valid(array.cast(pa.list_(pa.string())))
    raise several(name, kind)


def is_list(kind: pa.DataType) -> bool:
    """Whether a cell holds a list of values.

    >>> is_list(pa.list_(pa.string())), is_list(pa.string())
    (True, False)
    """
    return any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def several(name: str, kind: pa.DataType) -> SourceUnreadable:
    """Return the error of a column whose cells hold several values where one is needed."""
    return SourceUnreadable(
        f"column {name} is of type {kind}: a cell would hold more than one value. Split it into columns of single "
        "values, or leave it out; a list of text is read where the policy declares a separator."
    )


def _dictionary(array: pa.DictionaryArray, name: str) -> pa.Array:
    values = array.dictionary
    if values.null_count or not _is_text(values.type):
        return plain(array.dictionary_decode(), name)
    texts = plain(values, name)
    if texts.null_count:  # some were not valid text
        return texts.take(array.indices)
    if texts is values and types.is_int32(array.type.index_type):
        return array
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), texts)


def _valid(texts: pa.Array) -> pa.Array:
    """Return the texts, or lists of text; those that are not valid Unicode are missing."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        stored = texts.cast(pa.list_(pa.binary()) if is_list(texts.type) else pa.binary())
        return pa.array(map(_decoded, stored.to_pylist()), texts.type)
    return texts


def _decoded(content: Any) -> Any:
    if isinstance(content, list):
        return [_decoded(item) for item in content]
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _is_text(kind: pa.DataType) -> bool:
    tests = (types.is_string, types.is_large_string, types.is_string_view)
    bytewise = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return any(test(kind) for test in (*tests, *bytewise))


def _text(array: pa.Array, name: str) -> pa.Array:
    if types.is_large_string(array.type) or types.is_string_view(array.type):
        return _valid(array.cast(pa.string()))
    problem = f"column {name} holds bytes that are not text. Leave it out, or store it as text."
    return attempt(lambda: array.cast(pa.string()), (pa.ArrowInvalid,), problem)
