"""Cells: the tuples that may be released; names behind pseudonyms and free text are refused."""

from __future__ import annotations

from collections.abc import Mapping

from incrowd.core.cells import Cells
from incrowd.core.domain import Text
from incrowd.core.schema import Schema
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
            raise InvalidParameter(
                f"the column {recoding.column.name!r} has a pseudonym: level 0 would release the name behind it."
            )
        if recoding.level == 0 and isinstance(recoding.column.domain, Text):
            raise InvalidParameter(
                f"the column {recoding.column.name!r} would be released as free text. List its categories, give it "
                "a hierarchy and a level above 0, or make it an identifier, which is never released."
            )
