"""Outcome: what a method releases, as one table that people and libraries can work with; histograms among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.unit import Unit
from incrowd.drawing.card import FIRST_ROWS, grid
from incrowd.errors import PackageMissing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


_ROWS = "rows of a tuple"


@dataclass(frozen=True, eq=False)
class ReleasedTuples:
    """A released table as it can be held against original rows: different tuples of labels, and the rows of each.

    `rows` is None where a release does not tell.  In a `faithful` table each row is one of the data, made coarser or
    left empty and not changed otherwise; with `blanks` an empty cell may hide any value.

    >>> ReleasedTuples.of(pa.table({"sex": ["F", "F", None]}), faithful=True).rows.tolist()
    [2, 1]
    """

    labels: pa.Table
    rows: NDArray[np.int64] | None
    faithful: bool
    blanks: bool = False

    @classmethod
    def of(cls, table: pa.Table, *, faithful: bool, blanks: bool = False) -> ReleasedTuples:
        """Count the different rows of a table; every column becomes text."""
        names = table.column_names
        counted = text_of(table).group_by(names).aggregate([([], "count_all")]).rename_columns([*names, _ROWS])
        counted = counted.sort_by([(name, "ascending") for name in names])
        return cls(counted.select(names), counted[_ROWS].to_numpy(), faithful, blanks)


def text_of(table: pa.Table) -> pa.Table:
    """Return a table whose columns are all text."""
    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table([column.cast(pa.string()) for column in plain], names=table.column_names)


def inference(*, private: bool) -> str:
    """Return what is known of inference about one person, the third test of the EU's Opinion 05/2014."""
    bounded = "bounded by the claims above, for every attribute, whatever the attacker knows"
    return bounded if private else "not bounded: this release has no epsilon"


class Outcome(ABC):
    """A released table: its form, its columns, its rows in an order that tells nothing, and what it shows of itself."""

    form: ClassVar[str]
    """The name of the form, by which the certificate's last step is read and the file is checked again."""

    faithful: ClassVar[bool] = False
    """Whether each row is a row of the data, made coarser or left empty, and not changed otherwise."""

    blanks: ClassVar[bool] = False
    """Whether an empty cell may hide any value."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The names and types of the columns, known before a row is read."""

    @abstractmethod
    def __len__(self) -> int:
        """How many rows the table has."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows batch by batch, the same every time."""

    @abstractmethod
    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output itself shows, for the certificate: numbers, and names of columns."""

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        """Return the three tests of the EU's Opinion 05/2014 in words; `private` tells whether some ε bounds it."""
        return {}

    @property
    def tuples(self) -> int | None:
        """How many different rows there are, where rows of people are released; None where none are."""
        return None

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """The tables that are written to a file each: this one, unless the outcome is several."""
        return (self,)

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        """Return the tables as they can be held against original rows."""
        if self.parts != (self,):
            return tuple(tuples for part in self.parts for tuples in part.released_tuples())
        return (ReleasedTuples.of(self.to_arrow(), faithful=self.faithful, blanks=self.blanks),)

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return pa.Table.from_batches(self.batches(), schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame; text columns are categoricals."""
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError:
            raise PackageMissing("pandas is not installed: install it, or use to_arrow().") from None
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a Polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise PackageMissing("Polars is not installed: install it, or use to_arrow().") from None
        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that speaks Arrow."""
        return self.reader().__arrow_c_stream__(requested_schema)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Keep the short text: a dataclass would print every row and every class."""
        super().__init_subclass__(**keywords)
        cls.__repr__ = Outcome.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        return f"<{self.form}: {len(self):,} rows of {', '.join(self.schema.names)}>"

    def _repr_html_(self) -> str:
        head = self.to_arrow().slice(0, FIRST_ROWS)
        return str(grid(head.column_names, [list(row.values()) for row in head.to_pylist()], len(self)))


_BATCH_ROWS = 2**17


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
        yield from self.table.to_batches(max_chunksize=_BATCH_ROWS)


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

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        """Return the bins with their counts; noise may have taken them below zero, where nothing is shown."""
        return (ReleasedTuples(text_of(self.table.select(self.labels)), np.maximum(self.counts, 0), faithful=False),)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the published counts show of themselves."""
        counts = self.counts
        above = counts[counts > 0]
        exact = {} if self.exact is None else {"exact counts": int(self.exact.sum())}
        return {
            "bins": len(self),
            "bins above zero": len(above),
            **({"smallest count above zero": int(above.min())} if len(above) else {}),
            **exact,
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no rows are published, only how many there are in each bin",
            "linkability": "no rows are published: there is nothing to link but the counts of bins",
            "inference": inference(private=private),
        }


RANK = "rank"


@dataclass(frozen=True, eq=False)
class Selection(Tabular):
    """The most common bins: `rank`, a column for each label, then perhaps a noisy `count`."""

    form: ClassVar[str] = "selection"

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        """Return the winning bins; how many rows they have is not told, or only with noise and of a few bins."""
        labels = [name for name in self.table.column_names if name not in (RANK, COUNT)]
        return (ReleasedTuples(text_of(self.table.select(labels)), None, faithful=False),)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what a list of winners shows of itself."""
        return {"ranks": len(self)}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no rows are published, only which bins are among the most common",
            "linkability": "no rows are published: there is nothing to link but names of bins",
            "inference": inference(private=True),
        }
