"""Validate on a cluster: one pass before anything is charged, each task looking at its own rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.marks import SourceMarks
from incrowd.core.unit import More
from incrowd.engines.local.validate import Check, Findings, checks_of, refuse_crowded, uncertain_checks
from incrowd.engines.readers.delimited import Delimited
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.readers.reader import SourceProblem
from incrowd.engines.row_marks import RowMarks
from incrowd.engines.spark.limit import crowded
from incrowd.engines.spark.origins import SparkTable, TextFiles
from incrowd.engines.spark.pieces import name_of, unchanged
from incrowd.engines.spark.places import Positions
from incrowd.engines.spark.reading import PartitionReading, Texts
from incrowd.engines.spark.task import Work, collect, map_partitions
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from incrowd.core.schema import Schema
    from incrowd.engines.spark.rows import SparkRows

_LISTED = 20
_FIELDS = "place bigint, name string, file string, what string, problems bigint, marks binary"
_NAMES = ("place", "name", "file", "what", "problems", "marks")
_TYPES = (pa.int64(), pa.string(), pa.string(), pa.string(), pa.int64(), pa.binary())
_Bad = dict[str, Any]


def marks_of(rows: SparkRows, schema: Schema, key: bytes) -> SourceMarks:
    """Return the marks of rows; raise if they could not be told apart, or hold what cannot be read as declared."""
    if not rows.origin.stable:
        raise InvalidParameter(
            "a release needs to know rows apart, and nothing tells those of this source apart. Name a unique id column "
            "for the Spark engine, or write the table as Parquet files."
        )
    if isinstance(rows.origin, SparkTable):
        rows.origin.check_ids()
    before = rows.origin.stamps()
    empty = partial(RowMarks, schema, key)
    found = _found(rows, uncertain_checks(schema, rows.origin.types), empty)
    _findings(found, checks_of(schema)).raise_if_any()
    if schema.unit.more is More.REFUSE and schema.unit.column is not None:
        refuse_crowded(schema.unit, crowded(rows, schema[schema.unit.column], schema.unit.max_rows))
    unchanged(rows.origin.pieces, before)  # the files are listed for good: whatever reads them later holds to this
    gathered = empty()
    for each in found:
        if each["marks"] is not None:
            gathered.merge(pickle.loads(each["marks"]))  # noqa: S301  made by our own task on our own worker
    return gathered.marks()


def _found(rows: SparkRows, checks: Mapping[str, Check], empty: Callable[[], RowMarks]) -> list[_Bad]:
    work: Work
    columns = tuple(dict.fromkeys((*checks, *empty().columns)))
    if isinstance(rows.origin, TextFiles):
        frame, texts = rows.origin.unplaced(columns)
        work = TextValidating(texts, checks, empty, several=rows.origin.files > 1)
    else:
        frame, reading = rows.selected(columns)
        work = Validating(reading, checks, empty)
    found: list[_Bad] = collect(map_partitions(frame, work, _FIELDS)).to_pylist()
    return found


def _findings(found: Sequence[_Bad], checks: Mapping[str, Check]) -> Findings:
    order = {name: place for place, name in enumerate(checks)}
    listed = sorted(
        (each for each in found if each["what"] is not None),
        key=lambda each: (each["file"] or "", each["place"] or 0, order.get(each["name"], -1)),
    )
    total = sum(each["problems"] for each in found)
    return Findings(None, total, tuple(_problem(each) for each in listed[:_LISTED]))


def _problem(found: Mapping[str, Any]) -> SourceProblem:
    what, place = str(found["what"]), found["place"]
    if found["file"] is not None:
        return SourceProblem(what, line=place, column=found["name"])
    return SourceProblem(what, row=None if place is None else place + 1, column=found["name"])


@dataclass(frozen=True, eq=False)
class Validating:
    """Lists the first values of a partition that cannot be read, by position where there is one."""

    reading: PartitionReading
    checks: Mapping[str, Check]
    empty: Callable[[], RowMarks]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the first problems, for the others how many there are, and the marks of the rows."""
        first: list[tuple[int, str]] = []
        totals = dict.fromkeys(self.checks, 0)
        placed, gathered = False, self.empty()
        for rows in self.reading.slices(batches):
            for name, where in bad_cells(rows.batch, self.checks):
                totals[name] += len(where)
                if isinstance(rows.places, Positions):
                    placed = True
                    first += [(int(place), name) for place in np.sort(rows.places.numbers[where])[:_LISTED]]
            first = sorted(first, key=lambda cell: cell[0])[:_LISTED]
            gathered.add(rows.batch)
        yield _sent([_bad(0, marks=pickle.dumps(gathered))])
        if placed:
            rest = sum(totals.values()) - len(first)
            listed = [_bad(1, self._what(name), place=place, name=name) for place, name in first]
            yield _sent([*listed, _bad(rest)])
        else:
            yield _sent([_bad(bad, self._what(name), name=name) for name, bad in totals.items() if bad])

    def _what(self, name: str) -> str:
        return f"cannot be read as {self.checks[name].declared}"


@dataclass(frozen=True, eq=False)
class TextValidating:
    """Lists the first lines of text files that are not as they should be."""

    texts: Texts
    checks: Mapping[str, Check]
    empty: Callable[[], RowMarks]
    several: bool

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the first problems of each file, for the others how many there are, and the marks of the rows."""
        for _, path, reader in self.texts.files(batches):
            try:
                yield _sent(self._values(path, reader))
            except SourceUnreadable:
                yield _sent(self._structure(path, reader))

    def _values(self, path: str, reader: Delimited) -> list[_Bad]:
        first: list[tuple[int, str]] = []
        total, done, gathered = 0, 0, self.empty()
        for batch in reader.read(self.texts.columns):
            found = list(bad_cells(batch, self.checks))
            gathered.add(plain_batch(batch))
            total += sum(len(where) for _, where in found)
            first += [(done + int(place), name) for name, where in found for place in where[:_LISTED]]
            first = sorted(first, key=lambda cell: cell[0])[:_LISTED]
            done += batch.num_rows
        lines = reader.lines(sorted({place for place, _ in first})) if first else ()
        on = dict(zip(sorted({place for place, _ in first}), lines, strict=True))
        listed = [self._listed(path, self._what(name), on[place], name) for place, name in first]
        return [*listed, _bad(total - len(listed), marks=pickle.dumps(gathered))]

    def _structure(self, path: str, reader: Delimited) -> list[_Bad]:
        problems = list(reader.problems())
        if not problems:
            raise SourceUnreadable(f"{name_of(path)} does not parse as delimited text.")
        listed = [self._listed(path, each.what, each.line, each.column) for each in problems[:_LISTED]]
        return [*listed, _bad(len(problems) - len(listed))]

    def _what(self, name: str) -> str:
        return f"cannot be read as {self.checks[name].declared}"

    def _listed(self, path: str, what: str, line: int | None, name: str | None) -> _Bad:
        return _bad(1, f"{what} (in {name_of(path)})" if self.several else what, place=line, name=name, file=path)


def bad_cells(batch: pa.RecordBatch, checks: Mapping[str, Check]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Return for each column that can be misread which rows of the batch are."""
    for name, each in checks.items():
        if each.unreadable is not None:
            yield name, np.flatnonzero(np.asarray(each.unreadable(batch.column(name)), dtype=bool))


def _bad(problems: int, what: str | None = None, **where: Any) -> _Bad:
    return {"place": None, "name": None, "file": None, "marks": None, **where, "what": what, "problems": problems}


def _sent(found: list[_Bad]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(found, schema=pa.schema(list(zip(_NAMES, _TYPES, strict=True))))
