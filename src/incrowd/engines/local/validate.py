"""Validate: one pass over the rows before anything is charged, so that a ragged line costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Schema
from incrowd.core.words import counted
from incrowd.engines.readers.plain import is_list, several
from incrowd.engines.readers.reader import LinedReader, SourceProblem, TypedReader
from incrowd.engines.readers.sources import Source
from incrowd.errors import SourceChanged, SourceInvalid, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.table import Progress, Rows
    from incrowd.core.unit import Unit
    from incrowd.engines.row_marks import RowMarks


@dataclass(frozen=True)
class Check:
    """Which values of a column cannot be read as what was declared, and what that is, in words.

    `unreadable` returns a mask as long as the array, true where a value is there and cannot be read; without it, the
    column only has to be there and to be in the right encoding.
    """

    unreadable: Callable[[pa.Array], Any] | None = None
    declared: str = "its declared type"


def checks_of(schema: Schema) -> dict[str, Check]:
    """Return a check for each column of which something may leave, and for the one that tells people apart.

    >>> from incrowd.core.schema import Column
    >>> checks_of(Schema((Column("age", type=Type.INTEGER), Column("zip"))))["age"].declared
    'integer'
    """
    people = [schema[schema.unit.column]] if schema.unit.column is not None else []
    return {column.name: _check(column) for column in (*schema.released, *people)}


def source_checks(source: Source, schema: Schema) -> dict[str, Check]:
    """Return the checks that reading the rows could fail; columns whose stored type cannot be misread need none.

    A source without stored types (text, a workbook) is always read, for its structure.

    >>> import pyarrow as pa
    >>> from incrowd.core.schema import Column
    >>> from incrowd.engines.readers.sources import open_source
    >>> source = open_source(pa.table({"age": [41], "zip": ["01234"], "paid": [1.5]}))
    >>> whole = [Column(name, type=Type.INTEGER) for name in ("age", "paid")]
    >>> list(source_checks(source, Schema((Column("zip"), *whole))))
    ['paid']
    """
    return uncertain_checks(schema, source.reader.types if isinstance(source.reader, TypedReader) else {})


def uncertain_checks(schema: Schema, types: Mapping[str, pa.DataType]) -> dict[str, Check]:
    """Return the checks of columns that could be misread, given the types in which columns are stored.

    >>> import pyarrow as pa
    >>> list(uncertain_checks(Schema((Column("zip"), Column("age", type=Type.INTEGER))), {"zip": pa.string()}))
    ['age']
    """
    checks = checks_of(schema)
    return {name: check for name, check in checks.items() if not _surely_read(schema[name].type, types.get(name))}


def _surely_read(kind: Type, stored: pa.DataType | None) -> bool:
    import pyarrow as pa

    if stored is None:
        return False
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    sure: dict[Type, bool] = {
        Type.TEXT: pa.types.is_string(stored) or pa.types.is_large_string(stored) or pa.types.is_string_view(stored),
        Type.INTEGER: pa.types.is_integer(stored),
        Type.DECIMAL: pa.types.is_integer(stored),
        Type.DATE: pa.types.is_date32(stored),
        Type.BOOLEAN: pa.types.is_boolean(stored),
    }
    return sure[kind]


def _check(column: Column) -> Check:
    if column.separator is not None:
        return Check(None, "sets of items")
    if column.type is Type.TEXT:
        return Check(partial(_refuse_lists, column.name), str(column.type))
    return Check(Recoding(column, 0).unreadable, str(column.type))


def _refuse_lists(name: str, array: pa.Array) -> NDArray[np.bool_]:
    """Return that all text can be read; lists are for columns that declare a separator."""
    if is_list(array.type):
        raise several(name, array.type)
    return np.zeros(len(array), np.bool_)


@dataclass(frozen=True)
class Findings:
    """What the pass found: for the data holder only, since it depends on the rows."""

    rows: int | None
    """How many rows there are; None if the structure is broken."""
    total: int
    problems: tuple[SourceProblem, ...]
    """The first of them."""

    @property
    def ok(self) -> bool:
        """Whether there is nothing to complain about."""
        return self.total == 0

    def raise_if_any(self) -> None:
        """Raise with the first problems, one a line, and how many there are in all.

        >>> Findings(3, 1, (SourceProblem("cannot be read as integer", line=2, column="age"),)).raise_if_any()
        Traceback (most recent call last):
        ...
        incrowd.errors.SourceInvalid: 1 problem in the source; nothing was released and nothing was charged.
          line 2, column age: cannot be read as integer
        """
        if self.ok:
            return
        several = f"{self.total} problems" if self.total > 1 else "1 problem"
        more = [f"and {self.total - len(self.problems)} more"] if self.total > len(self.problems) else []
        listed = "".join(f"\n  {each}" for each in [*self.problems, *more])
        raise SourceInvalid(f"{several} in the source; nothing was released and nothing was charged.{listed}")


def refuse_crowded(unit: Unit, people: int) -> None:
    """Raise if some people have more rows than the unit of privacy lets a source have."""
    if people:
        some = f"{people:,} people have" if people > 1 else "1 person has"
        raise SourceInvalid(
            f"{some} more than {counted(unit.max_rows, 'row')} by the column {unit.column!r}, and the policy says "
            "more: refuse; nothing was released and nothing was charged. Mend the source, or write more: drop, which "
            "leaves such people out."
        )


def validate(
    rows: Rows,
    checks: Mapping[str, Check],
    *,
    limit: int = 20,
    progress: Progress | None = None,
    marks: RowMarks | None = None,
) -> Findings:
    """Read the checked columns once: structure, encoding, and whether each value can be read as declared.

    The first `limit` problems are kept, the others only counted.  Marks are gathered in the same pass.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"age": ["41", "forty"]}))
    >>> digits = Check(lambda ages: pc.invert(pc.match_substring_regex(ages, "^[0-9]+$")), "integer")
    >>> [str(problem) for problem in validate(rows, {"age": digits}).problems]
    ['row 2, column age: cannot be read as integer']
    """
    lined = rows.reader if isinstance(rows, Source) and isinstance(rows.reader, LinedReader) else None
    expected = rows.rows if rows.rows is not None else lined.expected() if lined else None
    done, total, first = 0, 0, list[_Cell]()
    try:
        for batch in rows.batches(list(dict.fromkeys((*checks, *(marks.columns if marks else ()))))):
            cells, count = _bad_cells(batch, checks, limit - len(first))
            first += [(done + place, column) for place, column in cells]
            total += count
            done += batch.num_rows
            if marks is not None and not total:
                marks.add(batch)
            if progress is not None:
                progress(done, None if expected is None else max(expected, done))
    except SourceChanged:
        raise
    except SourceUnreadable:
        listed = _structure(lined, limit)
        if listed is None:
            raise
        return listed
    return Findings(done, total, _described(first, checks, lined))


_Cell = tuple[int, str]


def _bad_cells(batch: pa.RecordBatch, checks: Mapping[str, Check], limit: int) -> tuple[list[_Cell], int]:
    """Return the first bad cells of a batch, row by row, and how many there are."""
    cells: list[_Cell] = []
    total = 0
    for column, check in checks.items():
        if check.unreadable is None:
            continue
        places = np.flatnonzero(np.asarray(check.unreadable(batch.column(column)), dtype=bool))
        total += len(places)
        cells += [(int(place), column) for place in places[:limit]]
    return sorted(cells, key=lambda cell: cell[0])[:limit], total


def _described(cells: list[_Cell], checks: Mapping[str, Check], lined: LinedReader | None) -> tuple[SourceProblem, ...]:
    places = [place for place, _ in cells]
    lines = lined.lines(places) if lined and places else [None] * len(places)
    return tuple(
        SourceProblem(f"cannot be read as {checks[column].declared}", line=line, row=place + 1, column=column)
        for line, (place, column) in zip(lines, cells, strict=True)
    )


def _structure(lined: LinedReader | None, limit: int) -> Findings | None:
    """Name the lines by which the structure is broken, if there are lines."""
    if lined is None:
        return None
    total, first = 0, list[SourceProblem]()
    for problem in lined.problems():
        total += 1
        first += [problem] if len(first) < limit else []
    return Findings(None, total, tuple(first)) if total else None
