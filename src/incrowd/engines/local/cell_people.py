"""Cell people: who is in the data, and in which cells; each person counts once, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.keys import Codes
from incrowd.core.reading import canonical
from incrowd.core.schema import Column
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.contributions import ids_of
from incrowd.engines.local.encoding import Encoder

CellLabels = tuple[str | None, ...]


@dataclass
class PersonIds:
    """Who has a row, each named by the one way in which their id is written.

    >>> found = PersonIds(Column("id"))
    >>> found.add(pa.record_batch({"id": ["ann", None, "ann"]}))
    >>> found.names
    {'ann'}
    """

    person: Column
    names: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        self.names.update(name for name in _names(batch, self.person) if name is not None)

    def merge(self, other: PersonIds) -> None:
        """Learn who was met elsewhere."""
        self.names |= other.names


@dataclass
class CellPeople:
    """Who is in which cell; a row that is left out is in none.

    >>> from incrowd.core.schema import Schema
    >>> found = CellPeople(Cells.of(Schema((Column("zip"),)), {}), Column("id"))
    >>> found.add(pa.record_batch({"id": ["ann", "ann", None], "zip": ["021", "021", "945"]}))
    >>> found.people
    {('021',): {'ann'}}
    """

    cells: Cells
    person: Column
    people: dict[CellLabels, set[str]] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        encoder, met = Encoder(self.cells), dict[tuple[int, ...], set[str]]()
        codes = [column.tolist() for column in encoder.codes_of_all(batch)]
        for name, cell in zip(_names(batch, self.person), zip(*codes, strict=True), strict=True):
            if name is not None and min(cell) >= 0:
                met.setdefault(cell, set()).add(name)
        labels = [_labels(classes.labels().to_pylist(), table) for classes, table in encoder.classes()]
        for cell, names in met.items():
            shown = tuple(each[code] for each, code in zip(labels, cell, strict=True))
            self.people.setdefault(shown, set()).update(names)

    def merge(self, other: CellPeople) -> None:
        """Learn who was met elsewhere."""
        for cell, names in other.people.items():
            self.people.setdefault(cell, set()).update(names)

    def labels(self) -> Iterator[frozenset[str | None]]:
        """Yield for each column the labels that it can have: those declared, or those of people where it is open."""
        for place, recoding in enumerate(self.cells.recodings):
            declared = recoding.classes
            yield frozenset(
                (cell[place] for cell in self.people) if declared is None else declared.labels().to_pylist()
            )


def people_in_cells(engine: Engine, rows: Rows, cells: Cells, person: Column) -> CellPeople:
    """Return who is in which cell; names come here from wherever the rows are, and nothing is sent there."""
    columns = list(dict.fromkeys((*cells.reads, person.name)))
    return engine.learn(rows, columns, _Empty(cells, person))


@dataclass(frozen=True)
class _Empty:
    """Starts a summary wherever rows are."""

    cells: Cells
    person: Column

    def __call__(self) -> CellPeople:
        return CellPeople(self.cells, self.person)


def _names(batch: pa.RecordBatch, person: Column) -> list[str | None]:
    found: list[str | None] = canonical(ids_of(batch.column(person.name), person)).to_pylist()
    return found


def _labels(kept: list[str | None], table: Codes | None) -> list[str | None]:
    """Return the label of each code that was lent."""
    return kept if table is None else [kept[code] for code in table]
