"""Validate: one pass over the rows before anything is charged, so that a malformed line costs no budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Progress, Rows
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.engines.fingerprints import RowFingerprints
from incrowd.engines.local.encoding import MarksAndKeys, TextEncoder
from incrowd.engines.local.views import KeyedRows
from incrowd.engines.readers.plain import is_list, several
from incrowd.engines.readers.reader import LinedReader, SourceProblem, TypedReader
from incrowd.engines.readers.sources import Source, coded_batches
from incrowd.engines.readers.spelling import PLAIN, Spelling
from incrowd.errors import SourceChanged, SourceInvalid, SourceMisspelled, SourceUnreadable

_WORDS = {
    Type.INTEGER: ("a whole number", "whole numbers"),
    Type.DECIMAL: ("a number", "numbers"),
    Type.DATE: ("a date", "dates"),
    Type.BOOLEAN: ("yes or no", "yes or no"),
}
_SURELY_READ: Mapping[Type, tuple[Callable[[pa.DataType], bool], ...]] = {
    Type.TEXT: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    Type.INTEGER: (pa.types.is_integer,),
    Type.DECIMAL: (pa.types.is_integer,),
    Type.DATE: (pa.types.is_date32,),
    Type.BOOLEAN: (pa.types.is_boolean,),
}
"""Tests of stored types of which every value can be read as the declared type."""
FIRST = 3
"""How many places of a problem are named."""
_JUDGED = 1000
"""How many unreadable cells a remedy is judged by."""


@dataclass(frozen=True)
class ColumnCheck:
    """Which values of a column cannot be read as declared, and the declared type in words.

    `unreadable` returns a mask as long as the array, true where a value is not missing and cannot be read.  Without it,
    the column only has to exist and to be in the right encoding.
    """

    unreadable: Callable[[pa.Array], NDArray[np.bool_]] | None = None
    declared: str = "its declared type"

    def problem(self, times: int) -> str:
        """Return how many cells cannot be read, in words.

        >>> ColumnCheck(declared="integer").problem(1204), ColumnCheck(declared="date").problem(1)
        ('1,204 cells are not whole numbers', '1 cell is not a date')
        """
        words = None if self.kind is None else _WORDS.get(self.kind)
        if words is None:
            return f"{counted(times, 'cell')} cannot be read as {self.declared}"
        return f"1 cell is not {words[0]}" if times == 1 else f"{times:,} cells are not {words[1]}"

    def remedy(self, texts: pa.Array, spelling: Spelling | None) -> str:
        """Return what is expected, and what to declare if that would let these cells be read; no value is named."""
        if self.kind is None:
            return ""
        from incrowd.engines.readers.guess import advice

        declare = None if spelling is None else advice(texts, self.kind, spelling)
        example = f"; expected such as {(spelling or PLAIN).example(self.kind)}"
        return example if declare is None else f"{example}{_PERHAPS}{declare}"

    def misspelled(self, texts: pa.Array, spelling: Spelling | None) -> bool:
        """Whether another spelling would read one of these cells, where a spelling can be declared."""
        from incrowd.engines.readers.guess import in_another_spelling

        return spelling is not None and self.kind is not None and in_another_spelling(texts, self.kind)

    @property
    def kind(self) -> Type | None:
        """The declared type; None for a column of another kind, such as sets of items."""
        return Type(self.declared) if self.declared in tuple(Type) else None


_PERHAPS = "; perhaps the source needs "
EXPECTED_ONLY = re.compile(f"{_PERHAPS}.*")
"""The part of a remedy to cut where not all cells need the same."""


def checks_of(schema: Schema) -> dict[str, ColumnCheck]:
    """Return a check for each column that may be released, and for the person ID column.

    >>> from incrowd.core.schema import Column
    >>> checks_of(Schema((Column("age", type=Type.INTEGER), Column("zip"))))["age"].declared
    'integer'
    """
    people = [schema[schema.unit.column]] if schema.unit.column is not None else []
    return {column.name: _check(column) for column in (*schema.released, *people)}


def source_checks(source: Source, schema: Schema) -> dict[str, ColumnCheck]:
    """Return the checks that the rows could fail; a column whose stored type is always readable needs none.

    A source without stored types (text, a workbook) is always read, for its structure.

    >>> from incrowd.core.schema import Column
    >>> from incrowd.engines.readers.sources import open_source
    >>> source = open_source(pa.table({"age": [41], "zip": ["01234"], "paid": [1.5]}))
    >>> whole = [Column(name, type=Type.INTEGER) for name in ("age", "paid")]
    >>> list(source_checks(source, Schema((Column("zip"), *whole))))
    ['paid']
    """
    return uncertain_checks(schema, source.reader.types if isinstance(source.reader, TypedReader) else {})


def uncertain_checks(schema: Schema, types: Mapping[str, pa.DataType]) -> dict[str, ColumnCheck]:
    """Return the checks of columns that could be unreadable, by the types in which columns are stored.

    >>> list(uncertain_checks(Schema((Column("zip"), Column("age", type=Type.INTEGER))), {"zip": pa.string()}))
    ['age']
    """
    checks = checks_of(schema)
    return {name: check for name, check in checks.items() if not _surely_read(schema[name].type, types.get(name))}


def _surely_read(kind: Type, stored: pa.DataType | None) -> bool:
    if stored is None:
        return False
    plain = stored.value_type if pa.types.is_dictionary(stored) else stored
    return any(test(plain) for test in _SURELY_READ[kind])


def _check(column: Column) -> ColumnCheck:
    if column.separator is not None:
        return ColumnCheck(None, "sets of items")
    if column.type is Type.TEXT:
        return ColumnCheck(partial(_refuse_lists, column.name), str(column.type))
    return ColumnCheck(Recoding(column, 0).unreadable, str(column.type))


def _refuse_lists(name: str, array: pa.Array) -> NDArray[np.bool_]:
    """Accept all text; a list needs a column that declares a separator."""
    if is_list(array.type):
        raise several(name, array.type)
    return np.zeros(len(array), np.bool_)


@dataclass(frozen=True)
class RepeatedProblem:
    """One kind of problem in a source: how often it occurs, and where first.

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
        places = ", ".join(f"{place}" for place in self.places)
        if self.column is None and self.times == 1:
            return f"{self.unit} {places}: {self.what}" if places else self.what
        if self.column is None:
            return f"{self.what}: {counted(self.times, self.unit)}" + (f", first {places}" if places else "")
        units = f"{self.unit}s" if len(self.places) > 1 else self.unit
        where = "" if not places else f", {'first ' if self.times > len(self.places) else ''}in {units} {places}"
        return f"column {self.column}: {self.what}{where}{self.remedy}"


@dataclass(frozen=True)
class Findings:
    """The result of the pass: for the data holder only, since it depends on the rows."""

    rows: int | None
    """The number of rows; None if the structure is broken."""
    problems: tuple[RepeatedProblem, ...] = ()

    @property
    def total(self) -> int:
        """The number of faulty cells or lines."""
        return sum(problem.times for problem in self.problems)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return self.total == 0

    def raise_if_any(self, limit: int = 20) -> None:
        """Raise with the first problems, one a line, and their number.

        >>> Findings(3, (RepeatedProblem("1 cell is not a whole number", 1, "age", (2,)),)).raise_if_any()
        Traceback (most recent call last):
        ...
        incrowd.errors.SourceInvalid: 1 problem in the source; nothing was released and nothing was charged.
          column age: 1 cell is not a whole number, in line 2
        """
        if self.ok:
            return
        more = [f"and {len(self.problems) - limit:,} more of other kinds"] if len(self.problems) > limit else []
        listed = "".join(f"\n  {line}" for line in [*self.problems[:limit], *more])
        kind = SourceMisspelled if any(problem.misspelled for problem in self.problems) else SourceInvalid
        raise kind(
            f"{counted(self.total, 'problem')} in the source; nothing was released and nothing was charged.{listed}"
        )


def refuse_crowded(unit: Unit, people: int) -> None:
    """Raise if some people have more rows than the unit of privacy allows."""
    if people:
        some = f"{people:,} people have" if people > 1 else "1 person has"
        raise SourceInvalid(
            f"{some} more than {counted(unit.max_rows, 'row')} by the column {unit.column!r}, and the policy says "
            "more: refuse; nothing was released and nothing was charged. Correct the source, or write more: drop, "
            "which leaves such people out."
        )


def validate(
    rows: Rows,
    checks: Mapping[str, ColumnCheck],
    *,
    progress: Progress | None = None,
    marks: RowFingerprints | MarksAndKeys | None = None,
) -> Findings:
    """Read the checked columns once: structure, encoding, and whether each value can be read as declared.

    Equal problems are reported once, with their first places.  Fingerprints are gathered in the same pass.

    >>> import pyarrow.compute as pc
    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"age": ["41", "forty"]}))
    >>> digits = ColumnCheck(lambda ages: pc.invert(pc.match_substring_regex(ages, "^[0-9]+$")), "integer")
    >>> [str(problem) for problem in validate(rows, {"age": digits}).problems]
    ['column age: 1 cell is not a whole number, in row 2; expected such as 42']
    """
    lined, expected = _lined(rows), expected_rows(rows)
    spelling = None if lined is None else lined.spelling
    done, bad = 0, {column: BadCells(check, spelling) for column, check in checks.items()}
    try:
        columns = list(dict.fromkeys((*checks, *(marks.columns if marks else ()))))
        for batch in rows.batches(columns) if marks is None else map(TextEncoder(), coded_batches(rows, columns)):
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


def expected_rows(rows: Rows) -> int | None:
    """Return the number of rows, or an estimate from the size of the file: for progress bars only."""
    lined = _lined(rows)
    return rows.rows if rows.rows is not None else lined.expected() if lined else None


def _lined(rows: Rows) -> LinedReader | None:
    source = rows.source if isinstance(rows, KeyedRows) else rows
    return source.reader if isinstance(source, Source) and isinstance(source.reader, LinedReader) else None


@dataclass(frozen=True, eq=False)
class BadCells:
    """The cells of one column that cannot be read: how many, the positions of the first, and a remedy."""

    check: ColumnCheck
    spelling: Spelling | None
    times: int = 0
    first: tuple[int, ...] = ()
    remedy: str = ""
    misspelled: bool = False

    def more(self, array: pa.Array, numbers: Sequence[int] | NDArray[np.int64] | None) -> BadCells:
        """Return these cells and those of more rows; `numbers` are the positions of the rows, if they have any."""
        if self.check.unreadable is None:
            return self
        places = np.flatnonzero(np.asarray(self.check.unreadable(array), dtype=bool))
        if not len(places):
            return self
        remedy, first, bad = self.remedy, self.first, array.take(pa.array(places))
        if not self.times:
            remedy = self.check.remedy(bad.slice(0, _JUDGED), self.spelling)
        misspelled = self.misspelled or self.check.misspelled(bad, self.spelling)
        if numbers is not None:
            candidates = places[:FIRST] if isinstance(numbers, range) else places  # a range is sorted
            first = tuple(sorted([*first, *(int(numbers[place]) for place in candidates)])[:FIRST])
        return replace(self, times=self.times + len(places), first=first, remedy=remedy, misspelled=misspelled)

    def problem(self, column: str, lined: LinedReader | None) -> RepeatedProblem:
        """Return the problem, by lines where the source has lines."""
        lines = [line for line in lined.lines(self.first) if line is not None] if lined else []
        places, unit = (lines, "line") if lines else ([place + 1 for place in self.first], "row")
        what = self.check.problem(self.times)
        return RepeatedProblem(what, self.times, column, tuple(places), unit, self.remedy, self.misspelled)


def _structure(lined: LinedReader | None) -> Findings | None:
    """Return the lines that break the structure, if the source has lines."""
    folded = fold(lined.problems()) if lined is not None else ()
    return Findings(None, folded) if folded else None


def fold(problems: Iterable[SourceProblem]) -> tuple[RepeatedProblem, ...]:
    """Return the problems of lines, each kind once.

    >>> [str(problem) for problem in fold([SourceProblem("too long", line=3), SourceProblem("too long", line=5)])]
    ['too long: 2 lines, first 3, 5']
    """
    times, first = Counter[str](), dict[str, tuple[int, ...]]()
    for problem in problems:
        times[problem.what] += 1
        places = first.get(problem.what, ())
        first[problem.what] = (*places, problem.line)[:FIRST] if problem.line is not None else places
    return tuple(RepeatedProblem(what, count, places=first[what]) for what, count in times.items())
