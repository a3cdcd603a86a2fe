"""RowSelection: which rows of a database are meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import InvalidParameter, SourceUnreadable


@dataclass(frozen=True)
class RowSelection:
    """A table or view by name, or a query; neither, if the database has a single table."""

    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Check that at most one is given."""
        if self.table is not None and self.query is not None:
            raise InvalidParameter("table and query are given both. Say which table, or ask a query, not both.")


def pick_table(path: Path | str, tables: Sequence[str], wanted: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the table that is meant, and what was guessed.

    >>> pick_table(Path("clinic.sqlite"), ["visits"], None)
    ('visits', ('the only table is read: visits',))
    """
    if not tables:
        raise SourceUnreadable(f"{path} has no tables. Is this the right file?")
    if wanted is not None and wanted in tables:
        return wanted, ()
    if wanted is None and len(tables) == 1:
        return tables[0], (f"the only table is read: {tables[0]}",)
    listed = ", ".join(tables)
    if wanted is None:
        raise InvalidParameter(f"{path} has several tables: {listed}. Say which, for example {path}::{tables[0]}")
    near = difflib.get_close_matches(wanted, tables, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"It has: {listed}."
    raise SourceUnreadable(f"{path} has no table {wanted}. {hint}")
