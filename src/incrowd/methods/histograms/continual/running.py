"""Running rows: the rows of one period, and what earlier periods left behind: counts that stay secret, and results.

Counts of earlier periods are frozen.  A corrected file does not change them: a row that moved from one period to
another would otherwise leave the one and enter the other in all later results, which is dearer than what was priced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.table import Table
from incrowd.engines.people import names_of
from incrowd.methods.histograms.continual.strategies import ContributionPattern
from incrowd.methods.shared.outcome import Tabular, inference

if TYPE_CHECKING:
    from incrowd.core.schema import Column
    from incrowd.core.unit import Unit

PERIOD, NUMBER, MEASURED = "period", "number", "measured"
KINDS = ("periods", "totals", "windows")
COLUMNS = {"periods": "count", "totals": "total", "windows": "window"}
WITHIN = {kind: f"{name}_within" for kind, name in COLUMNS.items()}
"""The columns with the half width of the 95 % interval of each number."""
OWN = (PERIOD, NUMBER, MEASURED, *COLUMNS.values(), *WITHIN.values())
"""All columns but those that name the cells."""
DIGITS = 3
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PastPeriod:
    """One earlier period: its number from 1, its label, its secret counts, what was published, and who took part.

    `people` are keyed digests: they enforce how often somebody is counted, and stay with the data.  `mark` says which
    key made them, without showing it: under another key nobody would be known again.
    """

    number: int
    label: str
    counts: Whole = field(repr=False)
    measured: Whole = field(repr=False)
    people: frozenset[str] = field(default=frozenset(), repr=False)
    mark: str = field(default="", repr=False)
    cells: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Where people can withdraw: the cell in which each of them was counted."""
    subjects: Mapping[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    """And their pseudonyms in the consent registry."""
    withdrawn: frozenset[tuple[int, str]] = field(default=frozenset(), repr=False)
    """Who was subtracted in this period, and of which earlier one."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that the data holder keeps."""
        places = {digest: [cell, *self.subjects[digest]] for digest, cell in self.cells.items()}
        own = {"cells": places, "withdrawn": sorted(map(list, self.withdrawn))} if places or self.withdrawn else {}
        return {
            "number": self.number,
            "label": self.label,
            "counts": self.counts.tolist(),
            "measured": self.measured.tolist(),
            "people": sorted(self.people),
            "mark": self.mark,
            **own,
        }

    @classmethod
    def from_json(cls, plain: Any) -> PastPeriod:
        """Read what `to_json` wrote."""
        counts, measured = (np.array(plain[name], np.int64) for name in ("counts", "measured"))
        own = (
            int(plain["number"]),
            str(plain["label"]),
            counts,
            measured,
            frozenset(plain["people"]),
            str(plain["mark"]),
        )
        places = plain.get("cells", {})
        return cls(
            *own,
            {digest: int(place[0]) for digest, place in places.items()},
            {digest: (str(place[1]), str(place[2])) for digest, place in places.items()},
            frozenset((int(number), str(digest)) for number, digest in plain.get("withdrawn", ())),
        )


@dataclass(frozen=True)
class ConsentAnswers:
    """What a consent registry says of people: the pseudonyms of an id, and whether consent of such a person stands."""

    linked: Callable[[str], tuple[str, str]]
    stands: Callable[[str, str], bool]


@dataclass(frozen=True, eq=False)
class RunningRows:
    """The rows of a period, its number and label, and the periods published before; `key` makes digests of people."""

    table: Table
    number: int = 1
    label: str = "1"
    past: tuple[PastPeriod, ...] = ()
    key: bytes = field(default=bytes(32), repr=False)
    consent: ConsentAnswers | None = None

    @classmethod
    def of(cls, rows: Any) -> RunningRows:
        """Return rows that come with their past; a table alone is the first period."""
        return rows if isinstance(rows, RunningRows) else cls(rows)

    @property
    def mark(self) -> str:
        """What says which key makes the digests of people."""
        return mark_of(self.key)

    def admitted(self, pattern: ContributionPattern) -> CountablePeople | None:
        """Return who may still be counted in this period by a pattern; None where everybody may."""
        column = self.table.schema.unit.column
        if column is None or (pattern.participations is None and pattern.apart == 1):
            return None
        times: dict[str, int] = {}
        recent: set[str] = set()
        for period in self.past:
            for digest in period.people:
                times[digest] = times.get(digest, 0) + 1
            if self.number - period.number < pattern.apart:
                recent |= period.people
        most = pattern.participations
        spent = {digest for digest, number in times.items() if most is not None and number >= most}
        return CountablePeople(self.table.schema[column], self.key, frozenset(recent | spent))


@dataclass(eq=False)
class CountablePeople:
    """People who may still be counted: all but those who were counted too often or too recently; it notes who came."""

    person: Column
    key: bytes = field(repr=False)
    excluded: frozenset[str] = field(repr=False)
    seen: set[str] = field(default_factory=set, repr=False)

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return for each id whether its rows are counted."""
        names = names_of(ids, self.person)
        digests = [self.digest(name) for name in names.dictionary.to_pylist()]
        free = [digest not in self.excluded for digest in digests]
        self.seen.update(digest for digest, admitted in zip(digests, free, strict=True) if admitted)
        codes = names.indices.fill_null(len(free)).to_numpy(zero_copy_only=False)
        mask: NDArray[np.bool_] = np.append(np.array(free, np.bool_), np.False_)[codes]
        return mask

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """Return who of some people with rows is counted, and note that they came."""
        digests = {name: self.digest(name) for name in names}
        counted = {name: digest for name, digest in digests.items() if digest not in self.excluded}
        self.seen.update(counted.values())
        return frozenset(counted)

    def to_json(self) -> dict[str, Any]:
        """Return who took part, as the data holder keeps it."""
        return {"people": sorted(self.seen), "mark": mark_of(self.key)}

    def digest(self, name: str) -> str:
        """Return the keyed digest of a person's id."""
        return hashlib.blake2b(name.encode(), key=self.key, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class RunningCounts(Tabular):
    """All periods published so far: what was measured in each, and the counts, totals and windows computed from it."""

    form: ClassVar[str] = "running counts"

    past: tuple[PastPeriod, ...] = field(default=(), repr=False)

    @property
    def holder(self) -> dict[str, Any]:
        """What the data holder keeps of the newest period for the next ones; as secret as the rows."""
        return {"running": self.past[-1].to_json()} if self.past else {}

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name the cells."""
        return tuple(name for name in self.table.column_names if name not in OWN)

    def released_tuples(self) -> tuple[Any, ...]:
        return ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the published numbers show of themselves."""
        periods = len(set(self.table[NUMBER].to_pylist()))
        return {"periods": periods, "cells": len(self) // max(1, periods)}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no rows are published, only noisy counts of cells over periods",
            "linkability": "no rows are published: there is nothing to link but counts of cells",
            "inference": inference(private=private),
        }


def mark_of(key: bytes) -> str:
    """Return what says which key makes digests of people, without showing it."""
    return hashlib.blake2b(b"people of running counts", key=key, digest_size=16).hexdigest()


def stacked(columns: Sequence[Whole]) -> Whole:
    """Return vectors as the rows of a matrix, with none as well."""
    return np.stack(columns) if columns else np.zeros((0, 0), np.int64)
