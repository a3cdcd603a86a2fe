"""Validate: one pass over the rows before anything is charged, so that a ragged line costs nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Schema
from incrowd.core.words import counted
from incrowd.engines.local.row_keys import KeyedRows, MarksAndKeys, encoded
from incrowd.engines.readers.plain import is_list, several
from incrowd.engines.readers.reader import LinedReader, SourceProblem, TypedReader
from incrowd.engines.readers.sources import Source
from incrowd.engines.readers.spelling import PLAIN, Spelling
from incrowd.errors import SourceChanged, SourceInvalid, SourceMisspelled, SourceUnreadable

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.table import Progress, Rows
    from incrowd.core.unit import Unit
    from incrowd.engines.row_fingerprints import RowFingerprints


_WORDS = {
    Type.INTEGER: ("a whole number", "whole numbers"),
    Type.DECIMAL: ("a number", "numbers"),
    Type.DATE: ("a date", "dates"),
    Type.BOOLEAN: ("yes or no", "yes or no"),
}
_FIRST, _JUDGED = 3, 1000


@dataclass(frozen=True)
class Check:
    """Which values of a column cannot be read as what was declared, and what that is, in words.

    `unreadable` returns a mask as long as the array, true where a value is there and cannot be read; without it, the
    column only has to be there and to be in the right encoding.
    """

    unreadable: Callable[[pa.Array], Any] | None = None
    declared: str = "its declared type"

    def problem(self, times: int) -> str:
        """Say how many cells cannot be read.

        >>> Check(declared="integer").problem(1204), Check(declared="date").problem(1)
        ('1,204 cells are not whole numbers', '1 cell is not a date')
        """
        words = _WORDS.get(Type(self.declared)) if self.declared in tuple(Type) else None
        if words is None:
            return f"{counted(times, 'cell')} cannot be read as {self.declared}"
        return f"1 cell is not {words[0]}" if times == 1 else f"{times:,} cells are not {words[1]}"

    def remedy(self, texts: pa.Array, spelling: Spelling | None) -> str:
        """Say what is expected, and what to declare if that would let these cells be read; no cell is shown."""
        if self.declared not in tuple(Type):
            return ""
        from incrowd.engines.readers.guess import advice

        kind = Type(self.declared)
        told = None if spelling is None else advice(texts, kind, spelling)
        example = f"; expected such as {(spelling or PLAIN).example(kind)}"
        return example if told is None else f"{example}{_PERHAPS}{told}"

    def misspelled(self, texts: pa.Array, spelling: Spelling | None) -> bool:
        """Return whether another spelling would read one of these cells, where one can be declared."""
        from incrowd.engines.readers.guess import in_another_spelling

        typed = spelling is not None and self.declared in tuple(Type)
        return typed and in_another_spelling(texts, Type(self.declared))


_PERHAPS = "; perhaps the source needs "
EXPECTED_ONLY = re.compile(f"{_PERHAPS}.*")
"""What is left out of a remedy where not all cells need the same."""


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
class RepeatedProblem:
    """One thing that is wrong in a source, however often: how often, and where first.

    >>> print(RepeatedProblem("1,204 cells are not whole numbers", 1204, "age", (3, 17, 22)))
    column age: 1,204 cells are not whole numbers, first in lines 3, 17, 22
    >>> print(RepeatedProblem("1 cell where the header has 2", 5, places=(3, 4, 9)))
    1 cell where the header has 2: 5 lines, first 3, 4, 9
    """

    what: str
    times: int
    column: str | None = None
    places: tuple[int, ...] = ()
    unit: str = "line"
    remedy: str = ""
    misspelled: bool = False
    """Whether another spelling than the declared one would read some of the cells."""

    def __str__(self) -> str:
        """Say what, how often, and where."""
        some = ", ".join(f"{place}" for place in self.places)
        if self.column is None and self.times == 1:
            return f"{self.unit} {some}: {self.what}" if some else self.what
        if self.column is None:
            return f"{self.what}: {counted(self.times, self.unit)}" + (f", first {some}" if some else "")
        units = f"{self.unit}s" if len(self.places) > 1 else self.unit
        where = "" if not some else f", {'first ' if self.times > len(self.places) else ''}in {units} {some}"
        return f"column {self.column}: {self.what}{where}{self.remedy}"


@dataclass(frozen=True)
class Findings:
    """What the pass found: for the data holder only, since it depends on the rows."""

    rows: int | None
    """How many rows there are; None if the structure is broken."""
    problems: tuple[RepeatedProblem, ...] = ()

    @property
    def total(self) -> int:
        """How many cells or lines are not as they should be."""
        return sum(each.times for each in self.problems)

    @property
    def ok(self) -> bool:
        """Whether there is nothing to complain about."""
        return self.total == 0

    def raise_if_any(self, limit: int = 20) -> None:
        """Raise with the first problems, one a line, and how many there are in all.

        >>> Findings(3, (RepeatedProblem("1 cell is not a whole number", 1, "age", (2,)),)).raise_if_any()
        Traceback (most recent call last):
        ...
        incrowd.errors.SourceInvalid: 1 problem in the source; nothing was released and nothing was charged.
          column age: 1 cell is not a whole number, in line 2
        """
        if self.ok:
            return
        more = [f"and {len(self.problems) - limit:,} more of other kinds"] if len(self.problems) > limit else []
        listed = "".join(f"\n  {each}" for each in [*self.problems[:limit], *more])
        kind = SourceMisspelled if any(each.misspelled for each in self.problems) else SourceInvalid
        raise kind(
            f"{counted(self.total, 'problem')} in the source; nothing was released and nothing was charged.{listed}"
        )


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
    progress: Progress | None = None,
    marks: RowFingerprints | MarksAndKeys | None = None,
) -> Findings:
    """Read the checked columns once: structure, encoding, and whether each value can be read as declared.

    A thousand equal problems are one, with its first places.  Marks are gathered in the same pass.

    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"age": ["41", "forty"]}))
    >>> digits = Check(lambda ages: pc.invert(pc.match_substring_regex(ages, "^[0-9]+$")), "integer")
    >>> [str(problem) for problem in validate(rows, {"age": digits}).problems]
    ['column age: 1 cell is not a whole number, in row 2; expected such as 42']
    """
    lined, expected = _lined(rows), expected_rows(rows)
    done, bad = 0, {column: BadCells(check, spelling_of(lined)) for column, check in checks.items()}
    try:
        columns = list(dict.fromkeys((*checks, *(marks.columns if marks else ()))))
        batches = rows.batches(columns)
        for batch in batches if marks is None else map(encoded, batches):
            for column, cells in bad.items():
                bad[column] = cells.more(batch.column(column), range(done, done + batch.num_rows))
            done += batch.num_rows
            if marks is not None and not any(cells.times for cells in bad.values()):
                marks.add(batch)
            if progress is not None:
                progress(done, None if expected is None else max(expected, done))
    except SourceChanged:
        raise
    except SourceUnreadable:
        listed = _structure(lined)
        if listed is None:
            raise
        return listed
    return Findings(done, tuple(cells.problem(column, lined) for column, cells in bad.items() if cells.times))


def spelling_of(reader: object) -> Spelling | None:
    """Return how numbers and days are spelled where a reader reads, if that can be declared there."""
    spelling = getattr(reader, "spelling", None)
    return spelling if isinstance(spelling, Spelling) else None


def expected_rows(rows: Rows) -> int | None:
    """Return how many rows there are, or a guess from the size of the file: for progress bars only."""
    lined = _lined(rows)
    return rows.rows if rows.rows is not None else lined.expected() if lined else None


def _lined(rows: Rows) -> LinedReader | None:
    source = rows.source if isinstance(rows, KeyedRows) else rows
    return source.reader if isinstance(source, Source) and isinstance(source.reader, LinedReader) else None


@dataclass(frozen=True, eq=False)
class BadCells:
    """The cells of one column that cannot be read: how many, the positions of the first, and what may help."""

    check: Check
    spelling: Spelling | None
    times: int = 0
    first: tuple[int, ...] = ()
    remedy: str = ""
    misspelled: bool = False

    def more(self, array: pa.Array, numbers: Sequence[int] | NDArray[np.int64] | None) -> BadCells:
        """Return these and those of some more rows, of which the positions are given if they are known."""
        import pyarrow as pa

        if self.check.unreadable is None:
            return self
        places = np.flatnonzero(np.asarray(self.check.unreadable(array), dtype=bool))
        if not len(places):
            return self
        told, first, bad = self.remedy, self.first, array.take(pa.array(places))
        if not self.times:
            told = self.check.remedy(bad.slice(0, _JUDGED), self.spelling)
        misspelled = self.misspelled or self.check.misspelled(bad, self.spelling)
        if numbers is not None:
            some_first = places[:_FIRST] if isinstance(numbers, range) else places
            first = tuple(sorted([*first, *(int(numbers[place]) for place in some_first)])[:_FIRST])
        return replace(self, times=self.times + len(places), first=first, remedy=told, misspelled=misspelled)

    def problem(self, column: str, lined: LinedReader | None) -> RepeatedProblem:
        """Return what is wrong, by lines where there are some."""
        lines = [line for line in lined.lines(self.first) if line is not None] if lined else []
        places, unit = (lines, "line") if lines else ([place + 1 for place in self.first], "row")
        what = self.check.problem(self.times)
        return RepeatedProblem(what, self.times, column, tuple(places), unit, self.remedy, self.misspelled)


def _structure(lined: LinedReader | None) -> Findings | None:
    """Name the lines by which the structure is broken, if there are lines."""
    folded = fold(lined.problems()) if lined is not None else ()
    return Findings(None, folded) if folded else None


def fold(problems: Iterable[SourceProblem]) -> tuple[RepeatedProblem, ...]:
    """Return what is wrong with lines, each kind once.

    >>> [str(each) for each in fold([SourceProblem("too long", line=3), SourceProblem("too long", line=5)])]
    ['too long: 2 lines, first 3, 5']
    """
    times, first = Counter[str](), dict[str, tuple[int, ...]]()
    for each in problems:
        times[each.what] += 1
        found = first.get(each.what, ())
        first[each.what] = (*found, each.line)[:_FIRST] if each.line is not None else found
    return tuple(RepeatedProblem(what, count, places=first[what]) for what, count in times.items())
