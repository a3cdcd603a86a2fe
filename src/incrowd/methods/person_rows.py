"""Rows of a person: of everyone as many rows are read as the unit of privacy allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import RowFilter, Table


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
