"""Parquet and CSV files that hold only the released values; the same values give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute as pc
from pyarrow import parquet as pq
from pyarrow import types

from incrowd.core.spreadsheet import guard
from incrowd.engines.columns import DELIMITERS
from incrowd.errors import InvalidParameter

Released: TypeAlias = "pa.Table | pa.RecordBatchReader"
"""Released rows: a table, or a stream of batches with its schema."""


def pieces(data: Released, rows: int) -> Iterator[pa.Table]:
    """Cut into pieces of exactly `rows` rows; the last one may be shorter.

    The same values give the same pieces, however the data was cut before.

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

    A dictionary still holds the values of rows that were filtered out, and the order of their first appearance:
    Parquet files would reveal both.

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
    order = np.flatnonzero(used)
    order = order[pc.sort_indices(values.take(pa.array(order))).to_numpy()]
    places = np.zeros(len(values), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    codes = pa.array(places).take(coded.indices) if len(values) else coded.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(codes, values.take(pa.array(order)))


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


ROW_GROUP = 1 << 20  # Parquet's usual size


def write_parquet(data: Released, path: Path) -> None:
    """Write the data; row groups, dictionaries and statistics are computed from its values.

    The file holds no metadata of other programs, no Arrow schema, no time and no path.  Values in a dictionary are
    sorted, so that the order of codes reveals nothing about the order of the input.

    >>> from tempfile import TemporaryDirectory
    >>> import pyarrow as pa
    >>> with TemporaryDirectory() as folder:
    ...     write_parquet(pa.table({"zip": ["01234"]}, metadata={"note": "internal"}), Path(folder, "t.parquet"))
    ...     pq.read_metadata(Path(folder, "t.parquet")).metadata is None
    True
    """
    schema = bare(data.schema)
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, store_schema=False) as file:
        for piece in pieces(data, ROW_GROUP):
            file.write_table(rebuild(piece).cast(schema), row_group_size=ROW_GROUP)


_ROWS = 1 << 16  # rows written at a time


@dataclass(frozen=True)
class CsvStyle:
    """How a CSV file is written.

    Spreadsheet programs run a cell that begins with = + - or @ as a formula, which an attacker may have planted in the
    data.  `formulas: keep` (the default) writes every value as it was released, for programs that read data; `guard`
    puts an apostrophe before such text, for files that people open in a spreadsheet.  Names of columns come from the
    policy, and are unchanged.
    """

    delimiter: str = ","
    formulas: str = "keep"

    def __post_init__(self) -> None:
        if self.delimiter not in DELIMITERS:
            raise InvalidParameter("delimiter must be a comma, a semicolon, a tab or a bar.")
        if self.formulas not in {"keep", "guard"}:
            raise InvalidParameter("formulas must be keep or guard.")


COMMAS = CsvStyle()


def write_csv(data: Released, path: Path, style: CsvStyle = COMMAS) -> None:
    r"""Write a header and one line a row, ended by \n.

    A missing value is an empty field, and an empty text is a quoted one.  In a file of a single column, where an empty
    line would not be a row, both are quoted.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(pa.table({"zip": ["01234", None], "note": ["a, b", ""]}), Path(folder, "t.csv"))
    ...     Path(folder, "t.csv").read_text()
    'zip,note\n01234,"a, b"\n,""\n'
    """
    header = style.delimiter.join(_quoted(pa.array(data.schema.names, pa.string()), style).to_pylist())
    with path.open("wb") as file:
        file.write(f"{header}\n".encode())
        for piece in pieces(data, _ROWS):
            for batch in piece.to_batches():
                file.write(_lines(batch.columns, style))


def _lines(columns: Sequence[pa.Array], style: CsvStyle) -> pa.Buffer:
    starts = _runs(columns)
    if starts is None:
        lines = _joined(columns, style)
    else:
        first, times = pa.array(starts), np.diff(starts, append=len(columns[0]))
        once = _joined([column.take(first) for column in columns], style)
        lines = once.take(pa.array(np.repeat(np.arange(len(starts)), times)))
    _, offsets, characters = lines.buffers()
    return characters[: pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets])[len(lines)].as_py()]


def _runs(columns: Sequence[pa.Array]) -> NDArray[np.intp] | None:
    """Return where rows start that differ from the one before, if most do not: rows of a class follow each other.

    >>> _runs([pa.array(["a", "a", None, None]).dictionary_encode()]).tolist()
    [0, 2]
    """
    if not all(types.is_dictionary(column.type) for column in columns):
        return None
    changes = np.zeros(len(columns[0]), np.bool_)
    changes[:1] = True
    for column in columns:
        codes = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        changes[1:] |= codes[1:] != codes[:-1]
    starts = np.flatnonzero(changes)
    return starts if 2 * len(starts) <= len(changes) else None


def _joined(columns: Sequence[pa.Array], style: CsvStyle) -> pa.Array:
    cells = [_column(column, style) for column in columns]
    empty = '""' if len(cells) == 1 else ""
    *most, last = [pc.fill_null(cell, empty) for cell in cells]
    ended = pc.binary_join_element_wise(last, "", "\n")
    return pc.binary_join_element_wise(*most, ended, style.delimiter)


def _column(column: pa.Array, style: CsvStyle) -> pa.Array:
    if types.is_dictionary(column.type):
        if len(column.dictionary) <= len(column):
            return _cells(column.dictionary.cast(pa.string()), style).take(column.indices)
        column = column.dictionary_decode()
    text = column.cast(pa.string())
    return _cells(text, style) if types.is_string(column.type) or types.is_large_string(column.type) else text


def _cells(texts: pa.Array, style: CsvStyle) -> pa.Array:
    return _quoted(guard(texts) if style.formulas == "guard" else texts, style)


def _quoted(texts: pa.Array, style: CsvStyle) -> pa.Array:
    special = pc.match_substring_regex(texts, f'^$|["\r\n{re.escape(style.delimiter)}]')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
