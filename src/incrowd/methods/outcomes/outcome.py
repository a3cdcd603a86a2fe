"""Outcome: what a method lets out, as one table that people and libraries can work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from incrowd.errors import PackageMissing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from incrowd.core.unit import Unit

_SHOWN = 10


class Outcome(ABC):
    """A released table: its form, its columns, its rows in an order that tells nothing, and what it shows of itself."""

    form: ClassVar[str]
    """The name of the form, by which the certificate's last step is read and the file is checked again."""

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
        head = self.to_arrow().slice(0, _SHOWN) if len(self) else self.to_arrow()
        names = "".join(f"<th>{escape(name)}</th>" for name in head.column_names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in head.to_pylist()
        )
        return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{len(self):,} rows</p>"
