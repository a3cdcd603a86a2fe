"""People: the ids of people in rows, and summaries of them that every engine can learn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Rows
from incrowd.core.words import counted
from incrowd.engines.local.encoding import Encoder

CellLabels = tuple[str | None, ...]


def ids_of(array: pa.Array, column: Column) -> pa.Array:
    """Return the ids in a person ID column, read as its declared type; null where there is none."""
    values, indices = as_dictionary(array)
    stored = read(values, column.type).values
    return stored if indices is None else stored.take(pa.array(indices, mask=indices == len(values)))


def names_of(array: pa.Array, column: Column) -> pa.DictionaryArray:
    """Return the ids as text, in the one way in which an id is written; each different one is in the dictionary once.

    >>> names_of(pa.array(["ann", None, "ann"]), Column("id")).dictionary.to_pylist()
    ['ann']
    """
    return canonical(ids_of(array, column)).dictionary_encode()


@dataclass
class MissingIds:
    """Counts the rows whose id is missing, or cannot be read as its declared type.

    >>> ids = MissingIds(Column("patient"))
    >>> ids.add(pa.record_batch({"patient": ["a", None, "a"]}))
    >>> ids.rows
    1
    """

    column: Column
    rows: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += ids_of(batch.column(self.column.name), self.column).null_count

    def merge(self, other: MissingIds) -> None:
        self.rows += other.rows


def missing_ids(engine: Engine, rows: Rows, schema: Schema) -> tuple[str, ...]:
    """Return a note for the data holder: how many rows without an id are left out; nothing if there are none."""
    name = schema.unit.column
    missing = 0 if name is None else engine.learn(rows, [name], partial(MissingIds, schema[name])).rows
    return (
        (f"left out: {counted(missing, 'row')} without a value in {name!r}, the person ID column",) if missing else ()
    )


@dataclass
class PersonIds:
    """The people who have a row, by their ids as text.

    >>> ids = PersonIds(Column("id"))
    >>> ids.add(pa.record_batch({"id": ["ann", None, "ann"]}))
    >>> ids.names
    {'ann'}
    """

    person: Column
    names: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        self.names.update(names_of(batch.column(self.person.name), self.person).dictionary.to_pylist())

    def merge(self, other: PersonIds) -> None:
        self.names |= other.names


@dataclass
class CellPeople:
    """The people in each cell; a row that the recoding leaves out is in no cell.

    >>> cells = CellPeople(Cells.of(Schema((Column("zip"),)), {}), Column("id"))
    >>> cells.add(pa.record_batch({"id": ["ann", "ann", None], "zip": ["021", "021", "945"]}))
    >>> cells.people
    {('021',): {'ann'}}
    """

    cells: Cells
    person: Column
    people: dict[CellLabels, set[str]] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        encoder, by_codes = Encoder(self.cells), dict[tuple[int, ...], set[str]]()
        codes = [column.tolist() for column in encoder.codes_of_all(batch)]
        names = names_of(batch.column(self.person.name), self.person).to_pylist()
        for name, cell in zip(names, zip(*codes, strict=True), strict=True):
            if name is not None and min(cell) >= 0:
                by_codes.setdefault(cell, set()).add(name)
        labels = [
            texts if final is None else [texts[code] for code in final]
            for classes, final in encoder.classes()
            for texts in [classes.labels().to_pylist()]
        ]
        for cell, people in by_codes.items():
            label = tuple(texts[code] for texts, code in zip(labels, cell, strict=True))
            self.people.setdefault(label, set()).update(people)

    def merge(self, other: CellPeople) -> None:
        for cell, names in other.people.items():
            self.people.setdefault(cell, set()).update(names)

    def labels(self) -> Iterator[frozenset[str | None]]:
        """Yield the labels that each column can have: the declared ones, or for an open level those of people."""
        for place, recoding in enumerate(self.cells.recodings):
            declared = recoding.classes
            yield frozenset(
                (cell[place] for cell in self.people) if declared is None else declared.labels().to_pylist()
            )


def people_in_cells(engine: Engine, rows: Rows, cells: Cells, person: Column) -> CellPeople:
    """Return the people in each cell; their ids come to this process, and nothing is sent to the rows."""
    columns = list(dict.fromkeys((*cells.reads, person.name)))
    return engine.learn(rows, columns, partial(CellPeople, cells, person))
