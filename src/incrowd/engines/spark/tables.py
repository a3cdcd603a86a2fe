"""Tables, views and frames of Spark: rows without an order, told apart by a declared id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from incrowd.engines.columns import require
from incrowd.engines.readers.reader import distinct
from incrowd.engines.spark.reading import Identified
from incrowd.engines.spark.rows import ID, stood_in, stored_types
from incrowd.engines.spark.task import collected, column, functions_of, is_remote
from incrowd.errors import InvalidParameter, SourceInvalid

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Tabled:
    """Whatever Spark can read; without an id it can be counted, not sampled."""

    frame: DataFrame
    id: str | None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return distinct(self.frame.columns)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types of the columns."""
        return stored_types(self.frame)

    @property
    def stable(self) -> bool:
        """A row is told by its id."""
        return self.id is not None

    @property
    def pieces(self) -> None:
        """There is no order, and hence no position."""
        return

    def stamps(self) -> frozenset[int]:
        """There are no files to look at."""
        return frozenset()

    @property
    def content(self) -> DataFrame:
        """All columns."""
        return self.frame

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, Identified]:
        """Return the columns, and behind them the id."""
        ids = [] if self.id is None else [column(self.frame, self.id).alias(ID)]
        chosen = [*stood_in(self.frame, columns), *ids] or stood_in(self.frame, self.names[:1])
        return self.frame.select(*chosen), Identified(tuple(columns), has_id=self.id is not None)

    def check_ids(self) -> None:
        """Raise unless every row has an id and no two rows the same: distinct rows never share a coin."""
        functions = functions_of(self.frame)
        if self.id is None:
            return
        each = self.frame.groupBy(column(self.frame, self.id).alias(ID)).count()
        bad = each.where(functions.col(ID).isNull() | (functions.col("count") > 1)).limit(1)
        if collected(bad.select("count")).num_rows:
            raise SourceInvalid(
                f"the id column {self.id} does not tell rows apart: some rows have none, or the same as others. Rows "
                "that share an id would share a coin. Name a column that is unique."
            )


def open_table(frame: DataFrame, id_column: str | None) -> Tabled:
    """Take a frame as it is; its id is a column of whole numbers or of text."""
    from pyspark.sql.types import IntegralType, StringType

    if id_column is not None:
        require(frame.columns, [id_column])
        kind = frame.schema[id_column].dataType
        if not isinstance(kind, IntegralType | StringType):
            raise InvalidParameter(f"the id column {id_column} must hold whole numbers or text.")
        _require_steady(frame)
    return Tabled(frame, id_column)


def _require_steady(frame: DataFrame) -> None:
    """Raise if rows or ids are drawn or numbered anew whenever they are read; over Spark Connect none of it shows."""
    if not is_remote(frame) and not frame._jdf.queryExecution().analyzed().deterministic():  # noqa: SLF001  no public way
        raise InvalidParameter(
            "rows or ids of this frame come out differently whenever it is read (rand, uuid, "
            "monotonically_increasing_id, a function of your own): coins could not hold to them. Write it to Parquet "
            "first."
        )
