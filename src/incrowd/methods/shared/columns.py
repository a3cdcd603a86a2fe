"""Columns: which may be released, the labels that steps list of them, and how many rows of a person are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.domain import Text
from incrowd.core.recoding import Classes
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import BinColumn
from incrowd.core.table import RowFilter, Table
from incrowd.errors import InvalidParameter


def released_cells(schema: Schema, levels: Mapping[str, int]) -> Cells:
    """Return the tuples over all released columns at their levels, or refuse names and free text among them."""
    cells = Cells.of(schema, levels)
    refuse_names(cells)
    return cells


def refuse_names(cells: Cells) -> None:
    """Refuse columns that would be released as they are and could name people."""
    for recoding in cells.recodings:
        if recoding.level == 0 and recoding.column.pseudonymous:
            raise InvalidParameter(f"level 0 would release the names behind pseudonyms in {recoding.column.name!r}.")
        if recoding.level == 0 and isinstance(recoding.column.domain, Text):
            raise InvalidParameter(
                f"the column {recoding.column.name!r} would be released as free text. List its categories, give it "
                "a hierarchy and a level above 0, or make it an identifier, which is never released."
            )


_LABELS = 1000  # a longer list of labels is stated by its hash


def text_of(labels: pa.Array) -> pa.Array:
    """Return labels as the text by which certificates and files are compared.

    >>> text_of(pa.array([1, None])).to_pylist()
    ['1', None]
    """
    if pa.types.is_dictionary(labels.type):
        return text_of(labels.dictionary).take(labels.indices)
    return pc.cast(labels, pa.string())


def digest_of(labels: list[str | None]) -> str:
    """Return the SHA-256 of a list of labels as JSON text.

    >>> digest_of(["F", "M", None])[:8]
    'a0f1a88e'
    """
    return hashlib.sha256(json.dumps(labels, ensure_ascii=True).encode()).hexdigest()


def bin_column(name: str, classes: Classes | None) -> BinColumn:
    """Return the labels of a column as steps list them; at an open level, that they are those that occur."""
    if classes is None:
        return BinColumn(name)
    labels = text_of(classes.values()).to_pylist()
    if len(labels) <= _LABELS:
        return BinColumn(name, tuple(labels))
    return BinColumn(name, number=len(labels), sha256=digest_of(labels))


def row_limits(table: Table, coins: Coins) -> tuple[RowFilter, ...]:
    """Return what keeps at most so many rows of each person, as the unit says; none where rows are units.

    They are drawn among the person's own, or people with more rows are left out: also where a source with such people
    is refused, so that nobody who slipped through counts.  What is counted twice for one release is counted under the
    same limits.
    """
    unit = table.schema.unit
    if unit.column is None:
        return ()
    keep = table.engine.limit if unit.more is None else table.engine.exclude
    return (keep(table.rows, table.schema[unit.column], unit.max_rows, coins),)
