"""Microdata: the released rows, as the frame a person works with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.certificate import Release
from incrowd.core.counts import Counts
from incrowd.errors import InvalidParameter, PackageMissing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

WEIGHT = "weight"
_SHOWN = 10


@dataclass(frozen=True)
class Microdata:
    """Released rows in the order of their values, held as counts and unfolded when asked for.

    `weight` is 1/rate where the policy asked for weights: a constant, so it tells nothing about anyone.
    """

    counts: Counts
    weight: Fraction | None = None

    def __post_init__(self) -> None:
        if self.weight is not None and WEIGHT in self.counts.names:
            raise InvalidParameter(f"a column {WEIGHT!r} is released already: leave weights out.")

    def __len__(self) -> int:
        return self.counts.total

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns, known before a row is read."""
        schema = self.counts.schema
        return schema if self.weight is None else schema.append(pa.field(WEIGHT, pa.float64()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the rows batch by batch."""
        for batch in self.counts.batches():
            columns = batch.columns
            if self.weight is not None:
                columns = [*columns, pa.repeat(pa.scalar(float(self.weight)), len(batch))]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

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
        from html import escape

        head = self.to_arrow().slice(0, _SHOWN) if len(self) else self.to_arrow()
        names = "".join(f"<th>{escape(name)}</th>" for name in head.column_names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in head.to_pylist()
        )
        return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{len(self):,} rows</p>"


@dataclass(frozen=True)
class Released(Release[Microdata]):
    """A release in memory: `result` and `certificate`, and the report that explains both."""

    def report(self) -> str:
        """Return the public report as one self-contained HTML page."""
        from incrowd.workflows.report import public_report

        return public_report(self.certificate, self.result.counts)

    def _repr_html_(self) -> Any:
        from incrowd.workflows.report import summary_html

        return summary_html(self.certificate) + self.result._repr_html_()
