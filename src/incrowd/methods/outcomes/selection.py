"""Selection: the bins that were chosen, in the order of their ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from incrowd.methods.outcomes.outcome import Outcome

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

RANK = "rank"


@dataclass(frozen=True, eq=False)
class Selection(Outcome):
    """The most common bins: `rank`, a column for each label, then perhaps a noisy `count`."""

    form: ClassVar[str] = "selection"

    table: pa.Table

    def __len__(self) -> int:
        rows: int = self.table.num_rows
        return rows

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns, known before a row is read."""
        return self.table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the ranks in order."""
        yield from self.table.to_batches()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what a list of winners shows of itself."""
        return {
            "ranks": len(self),
            "singling out": "no rows are published, only which bins are among the most common",
            "linkability": "no rows are published: there is nothing to link but names of bins",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }
