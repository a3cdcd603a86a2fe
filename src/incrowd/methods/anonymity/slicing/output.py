"""Sliced: several tables, each over its own columns; which row of one belongs to which of another is not told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.errors import InvalidParameter
from incrowd.methods.outcomes.microdata import Microdata, exposure
from incrowd.methods.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

SLICE = "slice"
"""The column that numbers the tables from 1, where all of them are shown in one."""
_UNLINKED = (
    "identifiers are not released; rows are in the order of their values, and which row of one table belongs to which "
    "of another is not told"
)


@dataclass(frozen=True)
class Sliced(Outcome):
    """Several released tables over different columns: a file each, and in memory one below the other.

    `names` are all columns in order.  Seen as one table it has a first column `slice`, and a row is empty in the
    columns that its table does not have.
    """

    form: ClassVar[str] = "sliced"

    tables: tuple[Microdata, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        have = [name for table in self.tables for name in table.schema.names]
        if sorted(have) != sorted(self.names):
            raise InvalidParameter("slices have each of their columns once.")
        if SLICE in self.names:
            raise InvalidParameter(f"a column {SLICE!r} numbers the tables of a release: give yours another name.")

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def parts(self) -> tuple[Microdata, ...]:
        """The tables, in the order of their numbers."""
        return self.tables

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns of all tables, behind the number of the table."""
        fields = {field.name: field for table in self.tables for field in table.schema}
        return pa.schema([pa.field(SLICE, pa.int32()), *(fields[name] for name in self.names)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of the first table, then those of the second, and so on."""
        schema = self.schema
        for number, table in enumerate(self.tables, 1):
            for batch in table.batches():
                given = {SLICE: pa.repeat(pa.scalar(number, pa.int32()), len(batch))}
                given |= dict(zip(batch.schema.names, batch.columns, strict=True))
                columns = [given.get(each.name, pa.nulls(len(batch), each.type)) for each in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what all tables show together, the worst of them counting, and the size of each."""
        shown = exposure(np.concatenate([table.counts.counts for table in self.tables]), unit, private=private)
        each = [
            {"columns": list(table.schema.names), "rows": len(table), "classes": len(table.counts)}
            for table in self.tables
        ]
        return {**shown, **({"linkability": _UNLINKED} if len(self) else {}), "tables": each}
