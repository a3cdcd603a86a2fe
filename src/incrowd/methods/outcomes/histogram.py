"""Histograms: tables with one row for each bin, all of them with their counts or the most common ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.methods.outcomes.outcome import Outcome, ReleasedTuples, text_of

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


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


COUNT = "count"
EXACT = "exact"


@dataclass(frozen=True, eq=False)
class Histogram(Tabular):
    """Bins in the order of the declared classes: a column for each label, then `count`, then perhaps `exact`."""

    form: ClassVar[str] = "histogram"

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name the bins."""
        return tuple(name for name in self.table.column_names if name not in (COUNT, EXACT))

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts, bin by bin."""
        counts: NDArray[np.int64] = self.table[COUNT].to_numpy()
        return counts

    @property
    def exact(self) -> NDArray[np.bool_] | None:
        """Which counts are exact, if that was released."""
        if EXACT not in self.table.column_names:
            return None
        exact: NDArray[np.bool_] = self.table[EXACT].to_numpy()
        return exact

    def shown(self) -> tuple[ReleasedTuples, ...]:
        """Return the bins with their counts; noise may have taken them below zero, where nothing is shown."""
        return (ReleasedTuples(text_of(self.table.select(self.labels)), np.maximum(self.counts, 0), faithful=False),)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - rows of people are not counted here
        """Return what the published counts show of themselves, and the three tests of the EU's Opinion 05/2014."""
        counts = self.counts
        above = counts[counts > 0]
        told = {} if self.exact is None else {"exact counts": int(self.exact.sum())}
        return {
            "bins": len(self),
            "bins above zero": len(above),
            **({"smallest count above zero": int(above.min())} if len(above) else {}),
            **told,
            "singling out": "no rows are published, only how many there are in each bin",
            "linkability": "no rows are published: there is nothing to link but the counts of bins",
            "inference": (
                "bounded by the claims above, for every attribute, whatever the attacker knows"
                if private
                else "not bounded: this release has no epsilon"
            ),
        }


RANK = "rank"


@dataclass(frozen=True, eq=False)
class Selection(Tabular):
    """The most common bins: `rank`, a column for each label, then perhaps a noisy `count`."""

    form: ClassVar[str] = "selection"

    def shown(self) -> tuple[ReleasedTuples, ...]:
        """Return the winning bins; how many rows they have is not told, or only with noise and of a few bins."""
        labels = [name for name in self.table.column_names if name not in (RANK, COUNT)]
        return (ReleasedTuples(text_of(self.table.select(labels)), None, faithful=False),)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a guarantee always bounds it
        """Return what a list of winners shows of itself."""
        return {
            "ranks": len(self),
            "singling out": "no rows are published, only which bins are among the most common",
            "linkability": "no rows are published: there is nothing to link but names of bins",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }
