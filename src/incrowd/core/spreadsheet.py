"""Spreadsheet: text that a spreadsheet program would run as a formula, behind an apostrophe and out again."""

from __future__ import annotations

from pathlib import PurePath

import pyarrow as pa
from pyarrow import compute as pc

from incrowd.core.domain import Categories
from incrowd.core.schema import Column, Schema

MARK = "spreadsheet"
"""What stands in a file's name before its ending where its text is guarded: data.spreadsheet.csv."""
_FORMULA = "[=+\\-@\t\r\n＝＋－＠]"


def is_guarded(path: PurePath) -> bool:
    """Return whether a file's name says that its text is guarded.

    >>> is_guarded(PurePath("out/data.spreadsheet.csv")), is_guarded(PurePath("out/data.csv"))
    (True, False)
    """
    return f".{MARK}" in path.suffixes[:-1]


def formulas_possible(schema: Schema) -> bool:
    """Return whether a released column can hold text that begins like a formula, by the schema alone.

    That is so for a column whose values or classes cannot be listed, and for one with such a label at some level.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> formulas_possible(Schema((Column("sex", hierarchy=Flat(Categories(("f", "m")))),)))
    False
    >>> formulas_possible(Schema((Column("change", hierarchy=Flat(Categories(("+1", "0")))),)))
    True
    """
    return any(_begins_formula(column) for column in schema.released)


def _begins_formula(column: Column) -> bool:
    text = column.domain.storage == pa.string() or isinstance(column.domain, Categories)
    # below the first level, numbers and days are no text
    labels = [column.hierarchy.labels(level) for level in range(0 if text else 1, column.hierarchy.height + 1)]
    if any(names is None for names in labels):
        return text
    texts = pa.array([name for names in labels for name in names or ()], pa.string())
    return bool(pc.any(pc.match_substring_regex(texts, f"^'*{_FORMULA}")).as_py())


def guard(texts: pa.Array) -> pa.Array:
    """Put an apostrophe before text that begins like a formula, or like one that has apostrophes in front already.

    So no two texts become the same, and what was done can be undone.

    >>> guard(pa.array(["=1+1", "'=1+1", "flu", "'tis", "-5 to 0", None])).to_pylist()
    ["'=1+1", "''=1+1", 'flu', "'tis", "'-5 to 0", None]
    """
    where = pc.match_substring_regex(texts, f"^'*{_FORMULA}")
    return pc.if_else(where, pc.binary_join_element_wise("'", texts, ""), texts)


def unguard(texts: pa.Array) -> pa.Array:
    """Undo `guard`; a dictionary stays one.

    >>> unguard(guard(pa.array(["=1+1", "'=1+1", "flu", "'tis", None]))).to_pylist()
    ['=1+1', "'=1+1", 'flu', "'tis", None]
    """
    if pa.types.is_dictionary(texts.type):
        return pa.DictionaryArray.from_arrays(texts.indices, unguard(texts.dictionary))
    if not pa.types.is_string(texts.type):
        return texts
    where = pc.match_substring_regex(texts, f"^'+{_FORMULA}")
    return pc.if_else(where, pc.utf8_slice_codeunits(texts, 1), texts)


def unguarded(table: pa.Table, path: PurePath) -> pa.Table:
    """Return a table as it was before it was written to a file of this name."""
    if not is_guarded(path):
        return table
    columns = [pa.chunked_array([unguard(chunk) for chunk in column.chunks], column.type) for column in table.columns]
    return pa.table(columns, names=table.column_names)
