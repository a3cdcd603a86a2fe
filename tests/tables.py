"""Small tables for tests, read in batches of any size, and the slow way to count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.reading import parse
from incrowd.core.schema import OTHER, Column, Missing, Outside

LEFT_OUT = object()
"""What becomes of a row that is left out."""


@dataclass(frozen=True)
class Batches:
    """The rows of a table, so many at a time."""

    table: pa.Table
    size: int = 1000

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(list(columns)).to_batches(max_chunksize=self.size)


def text_table(columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """Return a table of text, as a CSV file is read."""
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def released(column: Column, level: int, text: str | None) -> object:
    """Return the label one value is released under, None for missing, or LEFT_OUT; by the rules, one by one."""
    hierarchy = column.hierarchy
    if text is not None and column.type is not Type.TEXT and not text.strip():
        text = None
    stored = None if text is None else parse(text, column.type)
    written = None if stored is None else hierarchy.generalize(_plain(stored), 0)
    if text is not None and written is None:
        if column.outside is Outside.DROP:
            return LEFT_OUT
        if column.has_other:
            return _other(column, level)
        written = _end(column, stored)
    if written is None:
        if column.missing == Missing.DROP:
            return LEFT_OUT
        written = column.fill
    if level == hierarchy.height:
        return "*"
    return None if written is None else hierarchy.generalize(written, level)


def tally(cells: Cells, table: pa.Table, kept: Sequence[bool] | None = None) -> Counter[tuple[object, ...]]:
    """Count a table of text row by row."""
    found: Counter[tuple[object, ...]] = Counter()
    for place, row in enumerate(table.to_pylist()):
        labels = tuple(released(r.column, r.level, row[r.column.name]) for r in cells.recodings)
        if LEFT_OUT not in labels and (kept is None or kept[place]):
            found[labels] += 1
    return found


def as_counter(counts: Counts) -> Counter[tuple[object, ...]]:
    """Return counts with labels in place of codes."""
    labels = [column.labels().to_pylist() for column in counts.classes]
    cells = zip(*counts.codes(), strict=True)
    return Counter(
        {
            tuple(names[code] for names, code in zip(labels, cell, strict=True)): int(times)
            for cell, times in zip(cells, counts.counts, strict=True)
        }
    )


def _plain(stored: object) -> str:
    return format(stored, ".17g") if isinstance(stored, float) else str(stored)


def _end(column: Column, stored: object) -> str | None:
    low, high = column.domain.bounds if column.rule_outside is Outside.ENDS else (None, None)  # type: ignore[union-attr]
    if stored is None or (low is None and high is None):
        return None
    beyond = high if low is None or (high is not None and stored > high) else low  # type: ignore[operator]
    return _plain(float(beyond) if column.type is Type.DECIMAL else beyond)  # type: ignore[arg-type]


def _other(column: Column, level: int) -> str:
    """Return the label of values outside: `other`, until a declared class of that name takes them in."""
    label = OTHER
    for step in range(level + 1):
        names = column.hierarchy.labels(step) or ()
        if label in names:
            code = names.index(label)
            above = column.hierarchy.labels(level) or ()
            return str(above[column.hierarchy.rise(step, level)[code]])
    return "*" if level == column.hierarchy.height else label
