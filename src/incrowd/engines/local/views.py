"""Views: the rows of a source as a release sees them: of admitted people, of one period, without a holdout group."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.calendar import PeriodCalendar
from incrowd.core.domain import Type
from incrowd.core.reading import as_dictionary, read
from incrowd.core.schema import Column
from incrowd.core.subjects import SubjectKey
from incrowd.core.table import PeriodChoice, PersonFilter, Rows
from incrowd.engines.local.encoding import RowGatherer
from incrowd.engines.people import names_of
from incrowd.noise.positioned import PositionedSample


@dataclass(frozen=True, eq=False)
class SourceView:
    """Rows that are read from other rows, with the same columns."""

    source: Rows

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    @property
    def rows(self) -> int | None:
        return self.source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.source.batches(columns)


@dataclass(frozen=True, eq=False)
class KeyedRows(SourceView):
    """Rows that are expensive to read, with what their validation gathers: keys for the count, or ends of edges."""

    keys: RowGatherer


@dataclass(frozen=True, eq=False)
class PseudonymFilter:
    """People whose pseudonym is in a set: their rows take part; a row without a person takes part nowhere.

    >>> key = SubjectKey(bytes(32))
    >>> ann = PseudonymFilter(Column("id"), key, frozenset({key.pseudonym("ann")}))
    >>> ann.of(pa.array(["ann", "bob", None, "ann"])).tolist()
    [True, False, False, True]
    """

    person: Column
    key: SubjectKey
    subjects: frozenset[str] = field(repr=False)
    excluded: Callable[[str, str], bool] | None = field(default=None, repr=False)
    """Whether the pseudonym of an id, and that of all ids written alike, leave a person out who is in the set."""

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        names = names_of(ids, self.person)
        return _by_name(names, np.array(list(map(self.admits, names.dictionary.to_pylist())), np.bool_))

    def admits(self, name: str) -> bool:
        """Whether the rows of an id take part."""
        if self.key.pseudonym(name) not in self.subjects:
            return False
        if self.excluded is None:
            return True
        person = self.key.linked(name)
        return not self.excluded(person.pseudonym, person.alike)

    def among(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(filter(self.admits, names))


@dataclass(frozen=True, eq=False)
class RowIdFilter:
    """Rows whose key names one of some rows above them: those of people who take part.

    >>> RowIdFilter(Column("stay"), frozenset({"s1"})).of(pa.array(["s1", "s2", None, "s1"])).tolist()
    [True, False, False, True]
    """

    person: Column
    """The key, which leads to a person."""
    names: frozenset[str] = field(repr=False)

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        names = names_of(ids, self.person)
        return _by_name(names, np.array([name in self.names for name in names.dictionary.to_pylist()], np.bool_))

    def among(self, names: Iterable[str]) -> frozenset[str]:
        return self.names.intersection(names)


def _by_name(names: pa.DictionaryArray, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each row what was chosen for its name; false where there is none."""
    codes = names.indices.fill_null(len(chosen)).to_numpy(zero_copy_only=False)
    mask: NDArray[np.bool_] = np.append(chosen, np.False_)[codes]
    return mask


@dataclass(frozen=True, eq=False)
class Consenting(SourceView):
    """Rows of admitted people, in the order of their source; positions are counted among these rows.

    Where rows are between people, such as edges, `people` names their columns: all of them must be admitted.

    >>> from incrowd.engines.readers.sources import open_source
    >>> key = SubjectKey(bytes(32))
    >>> source = open_source(pa.table({"id": ["ann", "bob"], "zip": ["021", "945"]}))
    >>> rows = Consenting(source, PseudonymFilter(Column("id"), key, frozenset({key.pseudonym("bob")})))
    >>> [batch.to_pylist() for batch in rows.batches(["zip"])]
    [[{'zip': '945'}]]
    """

    admitted: PersonFilter
    people: tuple[str, ...] = ()
    address: str | None = field(default=None, init=False)
    settings: Mapping[str, str] = field(default_factory=dict, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)

    @property
    def rows(self) -> None:
        """Unknown before the rows are read."""
        return

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        people = self.people or (self.admitted.person.name,)
        for batch in self.source.batches(list(dict.fromkeys((*columns, *people)))):
            mask = np.logical_and.reduce([self.admitted.of(batch.column(name)) for name in people])
            yield batch.filter(pa.array(mask)).select(list(columns))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The holdout group: people by the value of their column, or rows by their position where there is none.

    Each coin is a function of a secret key, so key and share determine the group: nobody without them and the rows can
    tell who is in it.  A row without a person is not in the group; it takes part nowhere.

    >>> group = HeldOut(Fraction(1, 2), bytes(32), Column("patient"))
    >>> mask = group.of(pa.record_batch({"patient": ["a", "b", "a", None]}), 0)
    >>> bool(mask[0] == mask[2]), bool(mask[3])
    (True, False)
    """

    share: Fraction
    key: bytes = field(repr=False)
    person: Column | None = None

    def of(self, batch: pa.RecordBatch, start: int) -> NDArray[np.bool_]:
        """Return which rows of a batch are in the group; `start` is the position of its first row."""
        if self.person is None:
            return self._sample.at(start, start + batch.num_rows)
        names = names_of(batch.column(self.person.name), self.person)
        key = self._keys[2]
        hashes = [
            hashlib.blake2b(name.encode(), key=key, digest_size=16).digest() for name in names.dictionary.to_pylist()
        ]
        words = np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2).astype(np.uint64)
        return _by_name(names, self._sample.of(words))

    @cached_property
    def _keys(self) -> tuple[bytes, ...]:
        return tuple(
            hashlib.blake2b(what, key=self.key, digest_size=32).digest() for what in (b"row", b"id", b"person")
        )

    @cached_property
    def _sample(self) -> PositionedSample:
        return PositionedSample(self.share, *self._keys[:2])


@dataclass(frozen=True, eq=False)
class DividedRows(SourceView):
    """Rows without those of the holdout group, or (`alone`) the rows of that group only.

    >>> from incrowd.engines.readers.sources import open_source
    >>> source, group = open_source(pa.table({"zip": ["02139"] * 64})), HeldOut(Fraction(1, 2), bytes(32))
    >>> sum(len(batch) for alone in (True, False) for batch in DividedRows(source, group, alone).batches(["zip"]))
    64
    """

    group: HeldOut
    alone: bool = False

    @property
    def rows(self) -> None:
        """Unknown before the rows are read."""
        return

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        person, start = self.group.person, 0
        read = columns if person is None else dict.fromkeys((*columns, person.name))
        for batch in self.source.batches(list(read)):
            belongs = self.group.of(batch, start) == self.alone
            start += batch.num_rows
            yield batch.filter(pa.array(belongs)).select(list(columns))


@dataclass(frozen=True)
class PeriodFilter:
    """The rows of one period: each is judged by its own cell in the deciding column, and by nothing else."""

    calendar: PeriodCalendar
    label: str
    column: Column

    def of(self, cells: pa.Array) -> NDArray[np.bool_]:
        """Return which cells of the deciding column lie in the period."""
        values, indices = as_dictionary(cells)
        if pa.types.is_timestamp(values.type) and self.column.type is Type.TEXT:
            moments: list[Any] = values.to_pylist()  # a frame delivers moments as such
        else:
            moments = read(values, self.column.type).values.to_pylist()
        inside = np.array([self.calendar.period_of(moment) == self.label for moment in moments], np.bool_)
        if indices is None:
            return inside
        undated = self.calendar.period_of(None) == self.label
        mask: NDArray[np.bool_] = np.append(inside, undated)[indices]
        return mask


@dataclass
class UnreadMoments:
    """Counts cells of a column of moments that hold something, and those among them that are no moment.

    >>> from incrowd.core.calendar import Every
    >>> years = PeriodCalendar("at", Every.YEAR, "2025", "2026", "UTC")
    >>> cells = UnreadMoments(years, "at")
    >>> cells.add(pa.record_batch({"at": ["2025-03-31T12:00:00Z", "31.03.2025 12:00", "", None]}))
    >>> cells.unread
    1
    """

    calendar: PeriodCalendar
    name: str
    unread: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        counts = pc.value_counts(batch.column(self.name)).to_pylist()
        self.unread += sum(
            one["counts"]
            for one in counts
            if one["values"] is not None and str(one["values"]).strip() and not self.calendar.reads(one["values"])
        )

    def merge(self, other: UnreadMoments) -> None:
        self.unread += other.unread


@dataclass(frozen=True, eq=False)
class PeriodRows(SourceView):
    """The rows of one period, in the order of their source; positions are counted among these rows.

    >>> from incrowd.core.calendar import Every
    >>> from incrowd.engines.readers.sources import open_source
    >>> source = open_source(pa.table({"day": ["2025-01-31", "2025-02-01", None], "zip": ["021", "945", "100"]}))
    >>> months = PeriodCalendar("day", Every.MONTH, "2025-01", "2025-12")
    >>> rows = PeriodRows(source, PeriodFilter(months, "2025-02", Column("day", type=Type.DATE)))
    >>> [batch.to_pylist() for batch in rows.batches(["zip"])]
    [[{'zip': '945'}]]
    """

    period: PeriodChoice
    address: str | None = field(default=None, init=False)
    settings: Mapping[str, str] = field(default_factory=dict, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)

    @property
    def rows(self) -> None:
        """Unknown before the rows are read."""
        return

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        name = self.period.column.name
        for batch in self.source.batches(list(dict.fromkeys((*columns, name)))):
            yield batch.filter(pa.array(self.period.of(batch.column(name)))).select(list(columns))
