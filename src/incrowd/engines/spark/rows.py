"""SparkRows: a source that Spark opened; its rows stay on the cluster, where tasks read them with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.schema import Column
from incrowd.core.table import PeriodChoice, Rows, SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.readers.delimited import Delimited, open_delimited
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.spark.places import FilePieces, Places, Positions, ids_of, name_of, people
from incrowd.engines.spark.task import column
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

STAMP, ROW, ID = "stamp", "row", "id"


@dataclass(frozen=True, eq=False)
class Slice:
    """Some rows and their places (None if they have none), and how many rows were read with them and left out."""

    batch: pa.RecordBatch
    places: Places | None
    left_out: int = 0

    @property
    def read(self) -> int:
        """How many rows were read, including those left out."""
        return int(self.batch.num_rows) + self.left_out


class PartitionReading(Protocol):
    """How a task reads a partition."""

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of a partition, some at a time."""


@dataclass(frozen=True)
class StoredColumns:
    """Columns as Spark read them, followed by the stamp of each row's file and the row's number in that file."""

    columns: tuple[str, ...]
    pieces: FilePieces

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        for raw in batches:
            stamps, rows = (raw.column(index).to_numpy(zero_copy_only=False) for index in (-2, -1))
            yield Slice(_named(raw, self.columns), Positions(self.pieces.positions(stamps, rows)))


@dataclass(frozen=True)
class Identified:
    """Columns as Spark read them, followed by the id of each row if there is one."""

    columns: tuple[str, ...]
    has_id: bool

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        for raw in batches:
            yield Slice(_named(raw, self.columns), ids_of(raw.column(-1)) if self.has_id else None)


@dataclass(frozen=True)
class Texts:
    """Whole text files, each a row of stamp, path and bytes, parsed by the reader that the local engine uses.

    One task reads a file from its first byte on.  So quoted line breaks, encodings and ragged lines are treated as on
    a single machine, and the number of a row in its file is certain.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    options: SourceOptions
    pieces: FilePieces | None = None

    def files(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, str, Delimited]]:
        """Return each file's stamp and path with a reader of its bytes, which stay in memory."""
        for raw in batches:
            for index in range(raw.num_rows):
                stamp, path, content = (raw.column(place)[index].as_py() for place in range(3))
                yield stamp, path, self._opened(Path(name_of(path)), content)

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        for stamp, _, reader in self.files(batches):
            done = 0
            for batch in reader.read(self.columns):
                yield Slice(plain_batch(batch), self._positions(stamp, done, batch.num_rows))
                done += batch.num_rows

    def _positions(self, stamp: int, done: int, rows: int) -> Positions | None:
        if self.pieces is None:
            return None
        start = self.pieces.start(stamp, done + rows) + done
        return Positions(np.arange(start, start + rows))

    def _opened(self, name: Path, content: bytes) -> Delimited:
        reader = open_delimited(name, self.options, content)
        if reader.names != self.names:
            raise SourceUnreadable(
                f"{name} has other columns than the first file, or in another order. Files in one folder need the same "
                "columns."
            )
        return reader


def _named(raw: pa.RecordBatch, columns: tuple[str, ...]) -> pa.RecordBatch:
    return plain_batch(raw.select(list(range(len(columns)))).rename_columns(list(columns)))


@dataclass(frozen=True, eq=False)
class AdmittedPeople:
    """The people of a source whose rows take part, as keyed hashes: all that a worker learns of a consent decision."""

    column: Column
    key: bytes = field(repr=False)
    hashes: frozenset[bytes] = field(repr=False)

    def of(self, cells: pa.Array) -> NDArray[np.bool_]:
        """Return which person IDs are those of admitted people."""
        hashes = people(self.key, cells, self.column).to_pylist()
        return np.array([value in self.hashes for value in hashes], np.bool_)


@dataclass(frozen=True, eq=False)
class ChosenReading:
    """Reads a partition and passes on these columns of the rows of chosen people and periods, at their places."""

    reading: PartitionReading
    columns: tuple[str, ...]
    filters: tuple[AdmittedPeople | PeriodChoice, ...]

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        for rows in self.reading.slices(batches):
            masks = [chosen.of(rows.batch.column(chosen.column.name)) for chosen in self.filters]
            mask: NDArray[np.bool_] = np.logical_and.reduce(masks)
            places = None if rows.places is None else rows.places.where(mask)
            left_out = rows.left_out + len(mask) - int(mask.sum())
            yield Slice(rows.batch.filter(pa.array(mask)).select(list(self.columns)), places, left_out)


class SparkOrigin(Protocol):
    """Where rows come from, and how a task reads them."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types in which tasks read the columns; a column without an entry may hold anything."""

    @property
    def stable(self) -> bool:
        """Whether a row has the same place in every pass, as its coin needs it."""

    @property
    def pieces(self) -> FilePieces | None:
        """The files with their numbers of rows, where the rows lie in files that have an order."""

    def check_ids(self) -> None:
        """Raise unless every row has an id of its own, where ids identify rows."""

    def stamps(self) -> frozenset[int]:
        """List the files once more, without reading them, and return their stamps."""

    @property
    def content(self) -> DataFrame:
        """The frame of everything that the digest covers."""

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, PartitionReading]:
        """Return a frame with these columns and what places rows, and how tasks read it."""


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Rows that Spark reads, opened and not read; only those of `admitted` people and of one `period` are passed on."""

    origin: SparkOrigin
    address: str | None
    settings: Mapping[str, str]
    notes: tuple[str, ...] = ()
    counted: bool = False
    """Whether the number of rows is known without reading them."""
    admitted: AdmittedPeople | None = None
    period: PeriodChoice | None = None

    @property
    def filters(self) -> tuple[AdmittedPeople | PeriodChoice, ...]:
        """What chooses among the rows; nothing where all of them take part."""
        return tuple(chosen for chosen in (self.admitted, self.period) if chosen is not None)

    @property
    def names(self) -> tuple[str, ...]:
        return self.origin.names

    @property
    def rows(self) -> int | None:
        pieces = self.origin.pieces if self.counted else None
        return None if pieces is None else pieces.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refuse: rows on a cluster stay there."""
        raise InvalidParameter("rows on a cluster stay there: count them with the Spark engine, or use the local one.")

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, PartitionReading]:
        """Return a frame with these columns and what places rows, and how tasks read of it what they may."""
        require(self.names, columns)
        if not self.filters:
            return self.origin.selected(columns)
        deciding = [chosen.column.name for chosen in self.filters]
        frame, reading = self.origin.selected(tuple(dict.fromkeys((*columns, *deciding))))
        return frame, ChosenReading(reading, tuple(columns), self.filters)


def on_cluster(rows: Rows) -> SparkRows:
    """Return rows that the Spark engine opened; refuse others.

    >>> on_cluster(object())
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: these rows were opened by another engine. Open the source with the Spark engine.
    """
    if not isinstance(rows, SparkRows):
        raise InvalidParameter("these rows were opened by another engine. Open the source with the Spark engine.")
    return rows


def placeholders(frame: DataFrame, columns: Sequence[str]) -> list[SparkColumn]:
    """Return columns under plain names: `mapInArrow` cannot handle a name with a dot in it."""
    return [column(frame, name).alias(f"c{place}") for place, name in enumerate(columns)]


def stored_types(frame: DataFrame) -> dict[str, pa.DataType]:
    """Return the Arrow type of each column of a frame; a column for which Arrow has no type is left out."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    types = {}
    for item in frame.schema.fields:
        try:
            types[item.name] = to_arrow_type(item.dataType, timezone="UTC")
        except (PySparkException, ValueError):
            continue
    return types
