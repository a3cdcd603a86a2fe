"""Outcome: what a method lets out, as one table that people and libraries can work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.drawing.card import FIRST_ROWS, grid
from incrowd.errors import PackageMissing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from incrowd.core.unit import Unit

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
        """Return what the output itself shows, for the certificate; `private` tells whether some ε bounds it."""

    @property
    def tuples(self) -> int | None:
        """How many different rows there are, where rows of people are released; None where none are."""
        return None

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """The tables that are written to a file each: this one, unless the outcome is several."""
        return (self,)

    def shown(self) -> tuple[ReleasedTuples, ...]:
        """Return the tables as they can be held against original rows."""
        if self.parts != (self,):
            return tuple(each for part in self.parts for each in part.shown())
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

    def _repr_html_(self) -> str:
        head = self.to_arrow().slice(0, FIRST_ROWS)
        return str(grid(head.column_names, [list(row.values()) for row in head.to_pylist()], len(self)))
