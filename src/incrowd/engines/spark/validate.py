"""Validate on a cluster: one pass before anything is charged, each task looking at its own rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.local.validate import (
    EXPECTED_ONLY,
    BadCells,
    Check,
    Findings,
    RepeatedProblem,
    checks_of,
    fold,
    refuse_crowded,
    uncertain_checks,
)
from incrowd.engines.readers.delimited import Delimited
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.row_fingerprints import RowFingerprints
from incrowd.engines.spark.limit import crowded
from incrowd.engines.spark.origins import TextFiles
from incrowd.engines.spark.pieces import name_of, unchanged
from incrowd.engines.spark.places import Positions
from incrowd.engines.spark.reading import PartitionReading, Texts
from incrowd.engines.spark.task import Work, collect, map_partitions
from incrowd.errors import InvalidParameter, SourceUnreadable

if TYPE_CHECKING:
    from incrowd.core.schema import Schema
    from incrowd.engines.spark.rows import SparkRows

_FIRST = 3
_FIELDS = (
    "name string, file string, what string, remedy string, misspelled boolean, problems bigint, places array<bigint>, "
    "marks binary"
)
_NAMES = ("name", "file", "what", "remedy", "misspelled", "problems", "places", "marks")
_TYPES = (*[pa.string()] * 4, pa.bool_(), pa.int64(), pa.list_(pa.int64()), pa.binary())
_Bad = dict[str, Any]


def marks_of(rows: SparkRows, schema: Schema, key: bytes) -> SourceFingerprint:
    """Return the marks of rows; raise if they could not be told apart, or hold what cannot be read as declared."""
    if not rows.origin.stable:
        raise InvalidParameter(
            "a release needs to know rows apart, and nothing tells those of this source apart. Name a unique id column "
            "for the Spark engine, or write the table as Parquet files."
        )
    rows.origin.check_ids()
    before = rows.origin.stamps()
    empty = partial(RowFingerprints, schema, key)
    found = _found(rows, uncertain_checks(schema, rows.origin.types), empty)
    _findings(found, checks_of(schema)).raise_if_any()
    if schema.unit.more is ExtraRowsRule.REFUSE and schema.unit.column is not None:
        refuse_crowded(schema.unit, crowded(rows, schema[schema.unit.column], schema.unit.max_rows))
    unchanged(rows.origin.pieces, before)  # the files are listed for good: whatever reads them later holds to this
    gathered = empty()
    for each in found:
        if each["marks"] is not None:
            gathered.merge(pickle.loads(each["marks"]))  # noqa: S301  made by our own task on our own worker
    return gathered.marks()


def _found(rows: SparkRows, checks: Mapping[str, Check], empty: Callable[[], RowFingerprints]) -> list[_Bad]:
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
    """Put together what tasks found: each kind of problem once, for each file."""
    order = {name: place for place, name in enumerate(checks)}
    kinds: dict[tuple[str, int, str], list[_Bad]] = {}
    for each in found:
        if each["problems"]:
            kinds.setdefault((each["file"] or "", order.get(each["name"], -1), each["what"] or ""), []).append(each)
    return Findings(None, tuple(_problem(kinds[kind], checks) for kind in sorted(kinds)))


def _problem(found: Sequence[_Bad], checks: Mapping[str, Check]) -> RepeatedProblem:
    name, file = found[0]["name"], found[0]["file"]
    times = sum(each["problems"] for each in found)
    places = sorted(place for each in found for place in each["places"])[:_FIRST]
    remedies = {each["remedy"] or "" for each in found}
    remedy = remedies.pop() if len(remedies) == 1 else EXPECTED_ONLY.sub("", remedies.pop())
    what = found[0]["what"] or checks[name].problem(times)
    if file is not None:
        misspelled = any(each["misspelled"] for each in found)
        return RepeatedProblem(what, times, name, tuple(places), "line", remedy, misspelled)
    return RepeatedProblem(what, times, name, tuple(place + 1 for place in places), "row", remedy)


@dataclass(frozen=True, eq=False)
class Validating:
    """Lists the first values of a partition that cannot be read, by position where there is one."""

    reading: PartitionReading
    checks: Mapping[str, Check]
    empty: Callable[[], RowFingerprints]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the first problems, how many there are, and the marks of the rows."""
        bad, gathered = {name: BadCells(check, None) for name, check in self.checks.items()}, self.empty()
        for rows in self.reading.slices(batches):
            numbers = rows.places.numbers if isinstance(rows.places, Positions) else None
            for name, cells in bad.items():
                bad[name] = cells.more(rows.batch.column(name), numbers)
            gathered.add(rows.batch)
        yield _sent([_bad(0, marks=pickle.dumps(gathered))])
        found = [(name, cells) for name, cells in bad.items() if cells.times]
        yield _sent(
            [_bad(cells.times, name=name, places=list(cells.first), remedy=cells.remedy) for name, cells in found]
        )


@dataclass(frozen=True, eq=False)
class TextValidating:
    """Lists the first lines of text files that are not as they should be."""

    texts: Texts
    checks: Mapping[str, Check]
    empty: Callable[[], RowFingerprints]
    several: bool

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the first problems of each file, how many there are, and the marks of the rows."""
        for _, path, reader in self.texts.files(batches):
            try:
                yield _sent(self._values(path, reader))
            except SourceUnreadable:
                yield _sent(self._structure(path, reader))

    def _values(self, path: str, reader: Delimited) -> list[_Bad]:
        bad = {name: BadCells(check, reader.spelling) for name, check in self.checks.items()}
        done, gathered = 0, self.empty()
        for batch in reader.read(self.texts.columns):
            for name, cells in bad.items():
                bad[name] = cells.more(batch.column(name), range(done, done + batch.num_rows))
            gathered.add(plain_batch(batch))
            done += batch.num_rows
        found = [(name, cells.problem(name, reader)) for name, cells in bad.items() if cells.times]
        listed = [self._listed(path, problem, name) for name, problem in found]
        return [*listed, _bad(0, marks=pickle.dumps(gathered))]

    def _structure(self, path: str, reader: Delimited) -> list[_Bad]:
        problems = fold(reader.problems())
        if not problems:
            raise SourceUnreadable(f"{name_of(path)} does not parse as delimited text.")
        return [self._listed(path, each, None) for each in problems]

    def _listed(self, path: str, problem: RepeatedProblem, name: str | None) -> _Bad:
        inside = f" (in {name_of(path)})" if self.several else ""
        what = f"{problem.what}{inside}" if name is None or inside else None
        told = {"remedy": problem.remedy, "misspelled": problem.misspelled}
        return _bad(problem.times, what, name=name, places=list(problem.places), file=path, **told)


def _bad(problems: int, what: str | None = None, **where: Any) -> _Bad:
    return {"name": None, "file": None, "remedy": None, "misspelled": False, "places": [], "marks": None, **where} | {
        "what": what,
        "problems": problems,
    }


def _sent(found: list[_Bad]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(found, schema=pa.schema(list(zip(_NAMES, _TYPES, strict=True))))
