"""Validate on a cluster: one pass before anything is charged, in which each task checks its own rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.fingerprints import RowFingerprints
from incrowd.engines.local import validate as local
from incrowd.engines.local.validate import BadCells, ColumnCheck, RepeatedProblem
from incrowd.engines.readers.delimited import Delimited
from incrowd.engines.readers.plain import plain_batch
from incrowd.engines.spark.count import require_stable
from incrowd.engines.spark.limit import crowded
from incrowd.engines.spark.origins import TextFiles
from incrowd.engines.spark.places import Positions, name_of, unchanged
from incrowd.engines.spark.rows import PartitionReading, Texts
from incrowd.engines.spark.task import Work, collect, map_partitions
from incrowd.errors import SourceUnreadable

if TYPE_CHECKING:
    from incrowd.core.schema import Schema
    from incrowd.engines.spark.rows import SparkRows

_FIELDS = (
    "problems bigint, name string, file string, what string, remedy string, misspelled boolean, places array<bigint>, "
    "marks binary"
)


@dataclass(frozen=True)
class TaskReport:
    """What a task reports: one kind of problem of a column or file, or the pickled fingerprints of its rows."""

    problems: int = 0
    name: str | None = None
    file: str | None = None
    what: str | None = None
    remedy: str = ""
    misspelled: bool = False
    places: Sequence[int] = ()
    marks: bytes | None = None


def marks_of(rows: SparkRows, schema: Schema, key: bytes) -> SourceFingerprint:
    """Return the fingerprint of rows; raise if they have no places, or values that cannot be read as declared."""
    require_stable(rows, "a release")
    rows.origin.check_ids()
    before = rows.origin.stamps()
    empty = partial(RowFingerprints, schema, key)
    reports = _reports(rows, local.uncertain_checks(schema, rows.origin.types), empty)
    _findings(reports, local.checks_of(schema)).raise_if_any()
    if schema.unit.more is ExtraRowsRule.REFUSE and schema.unit.column is not None:
        local.refuse_crowded(schema.unit, crowded(rows, schema[schema.unit.column], schema.unit.max_rows))
    unchanged(rows.origin.pieces, before)  # later passes compare the files with this listing
    gathered = empty()
    for report in reports:
        if report.marks is not None:
            gathered.merge(pickle.loads(report.marks))  # noqa: S301  made by our own task on our own worker
    return gathered.marks()


def _reports(
    rows: SparkRows, checks: Mapping[str, ColumnCheck], empty: Callable[[], RowFingerprints]
) -> list[TaskReport]:
    work: Work
    columns = tuple(dict.fromkeys((*checks, *empty().columns)))
    if isinstance(rows.origin, TextFiles) and not rows.filters:
        frame, texts = rows.origin.unplaced(columns)
        work = TextValidating(texts, checks, empty, several=rows.origin.files > 1)
    else:
        frame, reading = rows.selected(columns)
        work = Validating(reading, checks, empty)
    return [TaskReport(**report) for report in collect(map_partitions(frame, work, _FIELDS)).to_pylist()]


def _findings(reports: Sequence[TaskReport], checks: Mapping[str, ColumnCheck]) -> local.Findings:
    """Combine the reports of tasks: each kind of problem once for each file."""
    order = {name: place for place, name in enumerate(checks)}
    kinds: dict[tuple[str, int, str], list[TaskReport]] = {}
    for report in reports:
        if report.problems:
            kind = (report.file or "", order.get(report.name or "", -1), report.what or "")
            kinds.setdefault(kind, []).append(report)
    return local.Findings(None, tuple(_problem(kinds[kind], checks) for kind in sorted(kinds)))


def _problem(reports: Sequence[TaskReport], checks: Mapping[str, ColumnCheck]) -> RepeatedProblem:
    first = reports[0]
    times = sum(report.problems for report in reports)
    places = sorted(place for report in reports for place in report.places)[: local.FIRST]
    remedies = {report.remedy for report in reports}
    remedy = remedies.pop() if len(remedies) == 1 else local.EXPECTED_ONLY.sub("", remedies.pop())
    what = first.what or checks[first.name or ""].problem(times)
    if first.file is not None:
        misspelled = any(report.misspelled for report in reports)
        return RepeatedProblem(what, times, first.name, tuple(places), "line", remedy, misspelled)
    return RepeatedProblem(what, times, first.name, tuple(place + 1 for place in places), "row", remedy)


@dataclass(frozen=True, eq=False)
class Validating:
    """Reports the first values of a partition that cannot be read, and the fingerprint of its rows."""

    reading: PartitionReading
    checks: Mapping[str, ColumnCheck]
    empty: Callable[[], RowFingerprints]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bad, gathered = {name: BadCells(check, None) for name, check in self.checks.items()}, self.empty()
        for rows in self.reading.slices(batches):
            numbers = rows.places.numbers if isinstance(rows.places, Positions) else None
            for name, cells in bad.items():
                bad[name] = cells.more(rows.batch.column(name), numbers)
            gathered.add(rows.batch)
        yield _sent([TaskReport(marks=pickle.dumps(gathered))])
        unreadable = [(name, cells) for name, cells in bad.items() if cells.times]
        yield _sent([TaskReport(c.times, name, remedy=c.remedy, places=c.first) for name, c in unreadable])


@dataclass(frozen=True, eq=False)
class TextValidating:
    """Reports the first faulty lines of each text file, and the fingerprint of its rows."""

    texts: Texts
    checks: Mapping[str, ColumnCheck]
    empty: Callable[[], RowFingerprints]
    several: bool

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, path, reader in self.texts.files(batches):
            try:
                yield _sent(self._values(path, reader))
            except SourceUnreadable:
                yield _sent(self._structure(path, reader))

    def _values(self, path: str, reader: Delimited) -> list[TaskReport]:
        bad = {name: BadCells(check, reader.spelling) for name, check in self.checks.items()}
        done, gathered = 0, self.empty()
        for batch in reader.read(self.texts.columns):
            for name, cells in bad.items():
                bad[name] = cells.more(batch.column(name), range(done, done + batch.num_rows))
            gathered.add(plain_batch(batch))
            done += batch.num_rows
        problems = [(name, cells.problem(name, reader)) for name, cells in bad.items() if cells.times]
        listed = [self._listed(path, problem, name) for name, problem in problems]
        return [*listed, TaskReport(marks=pickle.dumps(gathered))]

    def _structure(self, path: str, reader: Delimited) -> list[TaskReport]:
        problems = local.fold(reader.problems())
        if not problems:
            raise SourceUnreadable(f"{name_of(path)} does not parse as delimited text.")
        return [self._listed(path, problem, None) for problem in problems]

    def _listed(self, path: str, problem: RepeatedProblem, name: str | None) -> TaskReport:
        inside = f" (in {name_of(path)})" if self.several else ""
        what = f"{problem.what}{inside}" if name is None or inside else None
        return TaskReport(problem.times, name, path, what, problem.remedy, problem.misspelled, problem.places)


def _sent(reports: list[TaskReport]) -> pa.RecordBatch:
    kinds = (pa.int64(), *[pa.string()] * 4, pa.bool_(), pa.list_(pa.int64()), pa.binary())
    schema = pa.schema(list(zip(TaskReport.__dataclass_fields__, kinds, strict=True)))
    return pa.RecordBatch.from_pylist([asdict(report) for report in reports], schema=schema)
