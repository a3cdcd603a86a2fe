"""Consenting on a cluster: tasks leave out the rows of everybody who was not admitted.

The people of the source are named to this process, which alone asks who of them takes part.  What goes back to the
workers is a keyed hash of each admitted person of the source, under a key that is drawn for this one set: neither the
key of pseudonyms, nor a pseudonym, nor anybody who has no row there.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from incrowd.core.schema import Column
from incrowd.engines.local.cell_people import PersonIds
from incrowd.engines.spark.places import hashed, people
from incrowd.engines.spark.reading import PartitionReading, Slice
from incrowd.engines.spark.rows import SparkOrigin, SparkRows
from incrowd.engines.spark.summaries import learn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from incrowd.core.table import PersonFilter
    from incrowd.engines.spark.pieces import FilePieces


@dataclass(frozen=True, eq=False)
class AdmittedReading:
    """Reads a partition, and passes on these columns of the rows of admitted people."""

    reading: PartitionReading
    columns: tuple[str, ...]
    person: Column
    key: bytes = field(repr=False)
    admitted: frozenset[bytes] = field(repr=False)

    def slices(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Slice]:
        """Return the rows of admitted people, with the places that they have among all rows."""
        for rows in self.reading.slices(batches):
            whose = people(self.key, rows.batch.column(self.person.name), self.person).to_pylist()
            mask = np.array([each in self.admitted for each in whose], np.bool_)
            places = None if rows.places is None else rows.places.where(mask)
            left_out = rows.left_out + len(mask) - int(mask.sum())
            yield Slice(rows.batch.filter(pa.array(mask)).select(list(self.columns)), places, left_out)


@dataclass(frozen=True, eq=False)
class ConsentingOrigin:
    """Rows of admitted people; files and ids are those of the whole source."""

    origin: SparkOrigin
    person: Column
    key: bytes = field(repr=False)
    admitted: frozenset[bytes] = field(repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.origin.names

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The types in which tasks read the columns."""
        return self.origin.types

    @property
    def stable(self) -> bool:
        """Whether rows are told apart the same way every time they are read."""
        return self.origin.stable

    @property
    def pieces(self) -> FilePieces | None:
        """The files with the numbers of all their rows."""
        return self.origin.pieces

    def stamps(self) -> frozenset[int]:
        """Look at the files once more, not into them, and return their stamps."""
        return self.origin.stamps()

    @property
    def content(self) -> DataFrame:
        """Everything there is, for a digest."""
        return self.origin.content

    def check_ids(self) -> None:
        """Raise unless ids tell all rows of the source apart."""
        self.origin.check_ids()

    def selected(self, columns: Sequence[str]) -> tuple[DataFrame, AdmittedReading]:
        """Return a frame with these columns and the person's, and how tasks read of it what they may."""
        frame, reading = self.origin.selected(tuple(dict.fromkeys((*columns, self.person.name))))
        return frame, AdmittedReading(reading, tuple(columns), self.person, self.key, self.admitted)


def admitted(rows: SparkRows, whose: PersonFilter) -> SparkRows:
    """Return the rows of admitted people: one pass names all people here, and those who may take part go back."""
    person, key = whose.person, secrets.token_bytes(32)
    found = learn(rows, [person.name], partial(PersonIds, person)).names
    known = frozenset(hashed(key, name) for name in whose.among(found))
    return replace(rows, origin=ConsentingOrigin(rows.origin, person, key, known), counted=False)
