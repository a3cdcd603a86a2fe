"""The engine of this process: Arrow batches and NumPy, in one pass that stores only counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.keys import Layout, grouped, translated
from incrowd.core.schema import Column, Schema
from incrowd.core.table import (
    DEFAULTS,
    IN_ENGINE,
    Learned,
    PeriodChoice,
    PersonFilter,
    Progress,
    RowFilter,
    Rows,
    SourceOptions,
)
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.fingerprints import RowFingerprints, content_digest
from incrowd.engines.local.contributions import RowLimit, crowded, exclude, limit
from incrowd.engines.local.counting import CountingLimits, CountTally, Disk
from incrowd.engines.local.encoding import Encoder, MarksAndKeys, RowKeys
from incrowd.engines.local.validate import checks_of, expected_rows, refuse_crowded, source_checks, validate
from incrowd.engines.local.views import Consenting, KeyedRows, PeriodRows, SourceView
from incrowd.engines.readers.reader import TypedReader
from incrowd.engines.readers.sources import Source, coded_batches, open_source
from incrowd.errors import InvalidParameter, SourceChanged, SourceInvalid, SourceUnreadable

_NO_TEXT = "the source holds text that is not valid Unicode; nothing was released or charged."


@dataclass(frozen=True, eq=False)
class ProgressRows(SourceView):
    """Rows that report after each batch how many have been read.

    >>> reports = []
    >>> source = open_source(pa.table({"zip": ["02139", "94305"]}))
    >>> rows = ProgressRows(source, lambda done, total: reports.append((done, total)))
    >>> [len(batch) for batch in rows.batches(["zip"])], reports
    ([2], [(2, 2)])
    """

    progress: Progress

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        done, expected = 0, expected_rows(self.source)
        for batch in self.source.batches(columns):
            yield batch
            done += len(batch)
            self.progress(done, None if expected is None else max(expected, done))


@dataclass(frozen=True)
class LocalEngine:
    """Rows in this process, read in batches."""

    limits: CountingLimits = field(default_factory=CountingLimits)

    def open(self, source: object, options: SourceOptions = DEFAULTS) -> Source:
        if isinstance(source, str) and source.startswith(IN_ENGINE):
            raise SourceUnreadable(f"{source} is a table of a cluster: choose its engine, for example --engine spark.")
        return open_source(source, options)

    def types(self, rows: Rows, columns: Sequence[str]) -> Mapping[str, pa.DataType]:
        """Return the type of each column in the first batch; no value is read.

        Of a column that files store by several types it is text, or one with a time zone if some file names one.
        """
        first = next(iter(rows.batches(list(columns))), None)
        own = {name: pa.string() if first is None else first.column(name).type for name in columns}
        if isinstance(rows, Source) and isinstance(rows.reader, TypedReader):
            stored = rows.reader.types
            own |= {name: pa.string() for name in columns if name not in stored}
            own |= {name: stored[name] for name in columns if name in stored and pa.types.is_timestamp(stored[name])}
        return own

    def keyed(self, rows: Rows, cells: Cells | None) -> Rows:
        """Return the same rows; validation stores the keys of these cells, so that text is parsed once."""
        if cells is None or not isinstance(rows, Source) or isinstance(rows.reader, TypedReader):
            return rows
        return KeyedRows(rows, RowKeys(cells))

    def marks(self, rows: Rows, schema: Schema, key: bytes, progress: Progress | None = None) -> SourceFingerprint:
        gathered, learner, findings = RowFingerprints(schema, key), None, None
        if isinstance(rows, KeyedRows):
            learner, rows = MarksAndKeys(schema, gathered, rows.keys), rows.source
        checks = source_checks(rows, schema) if isinstance(rows, Source) else checks_of(schema)
        with suppress(UnicodeError, pa.ArrowException):  # the error's own text holds a piece of the source
            findings = validate(rows, checks, progress=progress, marks=learner or gathered)
        if findings is None:
            raise SourceInvalid(_NO_TEXT)
        findings.raise_if_any()
        if schema.unit.more is ExtraRowsRule.REFUSE and schema.unit.column is not None:
            refuse_crowded(schema.unit, crowded(rows, schema[schema.unit.column], schema.unit.max_rows))
        return gathered.marks()

    def admitted(self, rows: Rows, people: PersonFilter) -> Consenting:
        return Consenting(rows, people)

    def in_period(self, rows: Rows, period: PeriodChoice) -> PeriodRows:
        return PeriodRows(rows, period)

    def digest(self, rows: Rows) -> bytes:
        """Return the SHA-256 of the bytes of the source's files, or of the values of a frame."""
        if not isinstance(rows, Source):
            raise InvalidParameter("only an opened source has a digest: open it first.")
        content = None
        with suppress(UnicodeError):  # the error's own text holds a piece of the source
            content = content_digest(rows)
        if content is None:
            raise SourceInvalid(_NO_TEXT)
        return content

    def count(self, rows: Rows, cells: Cells, *filters: RowFilter, at_least: int = 1) -> Counts:
        """Count in one pass, in each cell, the rows that all filters keep.

        Cells with fewer than `at_least` rows are left out.  Memory is a few batches, and either 4 bytes per cell (up
        to 2^26 cells) or about 300 MB.  To that add some 60 bytes for each returned cell, and the labels of open
        levels.

        >>> rows = LocalEngine().open(pa.table({"zip": ["02139", "94305", "02139"]}))
        >>> LocalEngine().count(rows, Cells.of(Schema((Column("zip"),)), {}), at_least=2).to_table().to_pylist()
        [{'zip': '02139', 'count': 2}]
        """
        keys = _keys_of(rows, cells)
        if keys is not None:
            return self._count_keys(keys, filters, at_least)
        encoder, start = Encoder(cells), 0
        with Disk() as disk:
            tally = CountTally(self.limits, encoder.sizes, disk)
            for batch in coded_batches(rows, cells.reads or rows.names[:1]):
                chosen = _chosen(filters, start, start + len(batch))
                start += len(batch)
                if chosen is None or len(chosen):
                    codes = encoder.codes(batch, chosen)
                    tally.add(codes, encoder.sizes)
            return _counts(encoder, tally, at_least)

    def _count_keys(self, keys: RowKeys, filters: Sequence[RowFilter], at_least: int) -> Counts:
        start = 0
        with Disk() as disk:
            tally = CountTally(self.limits, keys.encoder.sizes, disk)
            for layout, piece in keys.pieces():
                chosen = _chosen(filters, start, start + len(piece))
                start += len(piece)
                retained = piece if chosen is None else piece[chosen]
                tally.add_keys(retained[retained >= 0].astype(np.int64), layout.sizes)
            return _counts(keys.encoder, tally, at_least)

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> RowLimit:
        return limit(rows, column, at_most, coins)

    def exclude(self, rows: Rows, column: Column, beyond: int, coins: Coins) -> RowLimit:
        return exclude(rows, column, beyond)

    def learn(self, rows: Rows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        """Read these columns once and return what one summary learned.

        >>> class Rows(list):
        ...     def add(self, batch):
        ...         self.append(len(batch))
        ...     def merge(self, other):
        ...         self.extend(other)
        >>> LocalEngine().learn(LocalEngine().open(pa.table({"zip": ["02139", "94305"]})), ["zip"], Rows)
        [2]
        """
        summary = empty()
        for batch in rows.batches(list(columns)):
            summary.add(batch)
        return summary

    def watched(self, rows: Rows, progress: Progress) -> ProgressRows:
        return ProgressRows(rows, progress)


LOCAL = LocalEngine()
"""The default engine."""


def _keys_of(rows: Rows, cells: Cells) -> RowKeys | None:
    """Return the stored keys of rows, if they are keys of these cells."""
    if isinstance(rows, ProgressRows):
        return _keys_of(rows.source, cells)
    keys = rows.keys if isinstance(rows, KeyedRows) else None
    return keys if isinstance(keys, RowKeys) and keys.complete and keys.cells == cells else None


def _chosen(filters: Sequence[RowFilter], start: int, stop: int) -> NDArray[np.intp] | None:
    """Return which rows of a batch take part, or None if all do."""
    if not filters:
        return None
    masks = [row_filter.at(start, stop) for row_filter in filters]
    if any(len(mask) != stop - start for mask in masks):
        raise SourceChanged(
            "there are more rows than when they were first read. Start again when nobody writes to them."
        )
    chosen = np.flatnonzero(np.logical_and.reduce(masks))
    return None if len(chosen) == stop - start else chosen


def _counts(encoder: Encoder, tally: CountTally, at_least: int) -> Counts:
    layout, (keys, counts) = tally.result(at_least)
    classes = encoder.classes()
    if any(table is not None for _, table in classes):
        target = Layout(tuple(len(column) for column, _ in classes))
        keys = translated(keys, layout, target, [(place, table) for place, (_, table) in enumerate(classes)])
        keys, counts = grouped(keys, counts)
    return Counts(tuple(column for column, _ in classes), keys, counts).pruned()
