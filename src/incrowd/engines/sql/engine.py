"""Asked: what answers questions to rows, wherever they are; and what every such place is told and held to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.mechanism import Sample
    from incrowd.core.schema import Schema
    from incrowd.core.table import Opened

FAILED = "the rows could not be read to their end: the source is damaged, or changed in the meantime."
SLOW = "the question took longer than it may. Ask for less at once: fewer groups, fewer joins."


@dataclass(frozen=True)
class Limits:
    """What one question may take: seconds, memory for all at once, and threads (None: all there are)."""

    seconds: float = 600.0
    memory: str = "4GB"
    threads: int | None = None


@dataclass(frozen=True)
class Stored:
    """One table: rows that were opened, and what is declared about them."""

    source: Opened
    schema: Schema


@dataclass(frozen=True)
class Drawn:
    """A secret sample of the rows of one table, which takes the table's place in a question."""

    table: str
    sample: Sample


class Asked(Protocol):
    """Tables that can be asked by SQL trees, from many threads; the same trees have the same answers everywhere."""

    def require(self, query: exp.Query, *, sampled: bool = False) -> None:
        """Raise QuestionRefused if this place does not answer such a query; it hangs on the tree, never on rows.

        It is asked before anything is charged.
        """

    def collect(self, query: exp.Query, drawn: Drawn | None = None) -> pa.Table:
        """Run a query over the tables and return its rows; whatever goes wrong below is told in words without data."""


def asked_tables(query: exp.Query, declared: Collection[str]) -> list[str]:
    """Return the tables that a tree reads; it is a mistake of ours if it reads anything else.

    No files, no functions that return tables, no commands.

    >>> from sqlglot import select
    >>> asked_tables(select("COUNT(*)").from_(exp.to_table("people")), {"people", "wards"})
    ['people']
    """
    local = {cte.alias for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.db or table.name not in {*declared, *local}:
            raise AssertionError("a question reads declared tables only")
    return sorted({table.name for table in query.find_all(exp.Table) if table.name in declared})
