"""Tabular: an outcome that is a table already, a row for each bin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from incrowd.methods.outcomes.outcome import Outcome

_ROWS = 2**17


@dataclass(frozen=True, eq=False)
class Tabular(Outcome):
    """A released table that is held whole: it has few rows, one for each bin."""

    table: pa.Table

    def __len__(self) -> int:
        rows: int = self.table.num_rows
        return rows

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self.table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows, so many at a time."""
        yield from self.table.to_batches(max_chunksize=_ROWS)
