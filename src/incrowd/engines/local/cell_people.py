"""Cell people: who of some people is in which cell; each person counts once in a cell, however many rows there are."""

from __future__ import annotations

from collections.abc import Mapping

from incrowd.core.cells import Cells
from incrowd.core.table import Rows
from incrowd.engines.local.consenting import Admitted
from incrowd.engines.local.encoding import Encoder

CellLabels = tuple[str | None, ...]


def people_in_cells(rows: Rows, cells: Cells, whose: Admitted) -> Mapping[CellLabels, frozenset[str]]:
    """Return the pseudonyms of admitted people in each cell that holds some; a row that is left out is in none.

    >>> import pyarrow as pa
    >>> from incrowd.core.schema import Column, Schema
    >>> from incrowd.core.subjects import SubjectKey
    >>> from incrowd.engines.readers.sources import open_source
    >>> key, schema = SubjectKey(bytes(32)), Schema((Column("zip"),))
    >>> rows = open_source(pa.table({"id": ["ann", "ann", "bob"], "zip": ["021", "021", "945"]}))
    >>> ann = Admitted(Column("id"), key, frozenset({key.pseudonym("ann")}))
    >>> {cell: len(people) for cell, people in people_in_cells(rows, Cells.of(schema, {}), ann).items()}
    {('021',): 1}
    """
    encoder, person = Encoder(cells), whose.person.name
    found: dict[tuple[int, ...], set[str]] = {}
    for batch in rows.batches(list(dict.fromkeys((*cells.reads, person)))):
        names = whose.pseudonyms(batch.column(person))
        codes = [column.tolist() for column in encoder.codes_of_all(batch)]
        for name, cell in zip(names, zip(*codes, strict=True), strict=True):
            if name in whose.subjects and min(cell) >= 0:
                found.setdefault(cell, set()).add(str(name))
    labels = [_labels(classes.labels().to_pylist(), table) for classes, table in encoder.classes()]
    named: dict[CellLabels, set[str]] = {}
    for cell, people in found.items():
        shown = tuple(names[code] for names, code in zip(labels, cell, strict=True))
        named.setdefault(shown, set()).update(people)
    return {cell: frozenset(people) for cell, people in named.items()}


def labels_in_cells(rows: Rows, cells: Cells) -> list[frozenset[str | None]]:
    """Return for each column the labels that it can have: those declared, or those of the rows where it is open."""
    encoder = Encoder(cells)
    if any(recoding.classes is None for recoding in cells.recodings):
        for batch in rows.batches(list(cells.reads)):
            encoder.codes_of_all(batch)
    return [frozenset(classes.labels().to_pylist()) for classes, _ in encoder.classes()]


def _labels(kept: list[str | None], table: object) -> list[str | None]:
    """Return the label of each code that was lent."""
    return kept if table is None else [kept[code] for code in table]  # type: ignore[attr-defined]
