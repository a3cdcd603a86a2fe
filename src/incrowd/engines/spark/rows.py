"""SparkRows: a source as Spark opened it; the rows stay on the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from incrowd.core.table import Rows
from incrowd.engines.columns import require
from incrowd.engines.spark.task import column
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from incrowd.engines.spark.pieces import FilePieces
    from incrowd.engines.spark.reading import PartitionReading

STAMP, ROW, ID = "stamp", "row", "id"


class SparkOrigin(Protocol):
    """Where rows come from, and how a task reads them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types in which tasks read the columns; a column that is not in it may hold anything."""

    @property
    def stable(self) -> bool:
        """Whether rows are told apart the same way every time they are read, as coins need it."""

    @property
    def pieces(self) -> FilePieces | None:
        """The files with their numbers of rows, where the rows lie in files that have an order."""

    def check_ids(self) -> None:
        """Raise unless every row has an id of its own, where rows are told apart by ids."""

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""

    @property
    def content(self) -> DataFrame:
        """The frame that holds everything there is, for a digest."""

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, PartitionReading]:
        """Return a frame with these columns and with what places rows, and how tasks read it."""


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Rows that Spark reads, opened and not read."""

    origin: SparkOrigin
    address: str | None
    settings: Mapping[str, str]
    notes: tuple[str, ...] = ()
    counted: bool = field(default=False)
    """Whether the number of rows is known without reading them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.origin.names

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""
        pieces = self.origin.pieces if self.counted else None
        return None if pieces is None else pieces.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refuse: rows on a cluster stay there."""
        del columns
        raise InvalidParameter("rows on a cluster stay there: ask the engine for counts, or use the local engine.")

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, PartitionReading]:
        """Return a frame with these columns and with what places rows, and how tasks read it."""
        require(self.names, columns)
        return self.origin.selected(columns)


def on_cluster(rows: Rows) -> SparkRows:
    """Return rows that this engine opened, or refuse others.

    >>> on_cluster(object())
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: these rows were opened by another engine. Open the source with the Spark engine.
    """
    if not isinstance(rows, SparkRows):
        raise InvalidParameter("these rows were opened by another engine. Open the source with the Spark engine.")
    return rows


def placeholders(frame: DataFrame, columns: Sequence[str]) -> list[Column]:
    """Return columns under plain names that stand in for theirs: `mapInArrow` knows no name with a dot in it."""
    return [column(frame, name).alias(f"c{place}") for place, name in enumerate(columns)]


def stored_types(frame: DataFrame) -> dict[str, pa.DataType]:
    """Return the Arrow type of each column of a frame; one that Arrow has no type for is left out."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    found = {}
    for each in frame.schema.fields:
        try:
            found[each.name] = to_arrow_type(each.dataType, timezone="UTC")
        except (PySparkException, ValueError):
            continue
    return found
