"""CSV files: UTF-8, quoted only where needed, the same bytes for the same values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types

from incrowd.engines.writers.rebuilt import Released, pieces
from incrowd.errors import InvalidParameter

_ROWS = 1 << 16


@dataclass(frozen=True)
class CsvStyle:
    """How a CSV file is written.

    Spreadsheet programs run a cell that begins with = + - or @ as a formula, which somebody may have planted in the
    data.  `formulas` decides: `keep` (the default) leaves every value as it was released, which is what programs that
    read data need; `defuse` puts an apostrophe before such text, for files meant to be opened in a spreadsheet.
    """

    delimiter: str = ","
    formulas: str = "keep"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.delimiter not in {",", ";", "\t", "|"}:
            raise InvalidParameter("delimiter must be a comma, a semicolon, a tab or a bar.")
        if self.formulas not in {"keep", "defuse"}:
            raise InvalidParameter("formulas must be keep or defuse.")


COMMAS = CsvStyle()


def write_csv(data: Released, path: Path, style: CsvStyle = COMMAS) -> None:
    r"""Write a header and one line a row, ended by \n.

    A missing value is an empty field and an empty text is a quoted one; in a file of a single column, where an empty
    line would be no row at all, both are quoted.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(pa.table({"zip": ["01234", None], "note": ["a, b", ""]}), Path(folder, "t.csv"))
    ...     Path(folder, "t.csv").read_text()
    'zip,note\n01234,"a, b"\n,""\n'
    """
    header = style.delimiter.join(_cells(pa.array(data.schema.names, pa.string()), style).to_pylist())
    with path.open("wb") as file:
        file.write(f"{header}\n".encode())
        for piece in pieces(data, _ROWS):
            for batch in piece.to_batches():
                file.write(_lines(batch.columns, style))


def _lines(columns: Sequence[pa.Array], style: CsvStyle) -> pa.Buffer:
    cells = [_column(column, style) for column in columns]
    empty = '""' if len(cells) == 1 else ""
    *most, last = [pc.fill_null(cell, empty) for cell in cells]
    ended = pc.binary_join_element_wise(last, "", "\n")
    joined = pc.binary_join_element_wise(*most, ended, style.delimiter)
    _, offsets, characters = joined.buffers()
    return characters[: pa.Array.from_buffers(pa.int32(), len(joined) + 1, [None, offsets])[len(joined)].as_py()]


def _column(column: pa.Array, style: CsvStyle) -> pa.Array:
    if types.is_dictionary(column.type):
        if len(column.dictionary) <= len(column):
            return _cells(column.dictionary.cast(pa.string()), style).take(column.indices)
        column = column.dictionary_decode()
    text = column.cast(pa.string())
    return _cells(text, style) if types.is_string(column.type) or types.is_large_string(column.type) else text


def _cells(texts: pa.Array, style: CsvStyle) -> pa.Array:
    if style.formulas == "defuse":
        texts = _prefixed(texts, pc.match_substring_regex(texts, "^[=+\\-@\t\r]"), "'")
    special = pc.match_substring_regex(texts, f'^$|["\r\n{re.escape(style.delimiter)}]')
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _prefixed(texts: pa.Array, where: pa.Array, prefix: str) -> pa.Array:
    return pc.if_else(where, pc.binary_join_element_wise(prefix, texts, ""), texts)
