"""What is claimed of a table with missing cells, in which sense rows agree, and how its file is counted again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Arrange
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Exposure, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.criteria.demand import BECAUSE, COUNTED, HOMOGENEITY, Form, form_assumptions, spelled
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.shared.classes import columns_in, recoding_problem, reopen_table
from incrowd.methods.shared.microdata import Blanked
from incrowd.verifier.check import Check, CheckOutcome, Problem

CHOICE = Exposure(
    "minimality-of-missing-cells",
    "minimality: which cells are missing was chosen by looking at all rows, so somebody who "
    "knows the method and the others' rows can conclude from a missing cell what it was not",
)
MATCHES = Exposure(
    "matching",
    "matching: a missing cell counts as if it could be any value; somebody who knows what it "
    "was sees fewer rows that could be a person's, perhaps only one",
)
BLANK = Exposure(
    "optimism",
    "optimism: a row that shows little counts for everyone, so rows that show everything may "
    "be counted in a crowd and yet be the only ones of their kind",
)
_SOME = Theorem(
    "subset-anonymity-counted",
    "counted: every combination of values in any so many of the quasi-identifiers occurs at least k times",
)
_WILD = Theorem(
    "wildcard-anonymity-counted",
    "counted as in statistical disclosure control: at least k rows match each row, a missing cell matching anything",
)
_WILD_SOME = Theorem(
    "subset-wildcard-anonymity-counted",
    "counted: in any so many of the quasi-identifiers at least k rows match each row, missing matching anything",
)
_ANY = "k of any "


class MissingCells(StrEnum):
    """In which sense rows with missing cells agree with others."""

    VALUE = "value"
    MATCHES = "matches"


@dataclass(frozen=True, kw_only=True)
class SubsetsClaim(Claim):
    """Nothing that is published in a few columns is rare."""

    kind = "k-anonymity of subsets"
    sentence = "Each combination of values in any so many of the named columns occurs at least k times."
    rank: ClassVar[int] = 31

    k: int
    size: int
    columns: tuple[str, ...]
    people: int | None = None


@dataclass(frozen=True, kw_only=True)
class WildcardsClaim(Claim):
    """Each row matches others, if a missing cell could be anything."""

    kind = "k-anonymity with wildcards"
    sentence = (
        "At least k rows match each row, if an empty cell matches anything. Someone who knows what an empty cell was "
        "sees fewer."
    )
    rank: ClassVar[int] = 30

    k: int
    columns: tuple[str, ...]
    people: int | None = None


@dataclass(frozen=True, kw_only=True)
class WildSubsetsClaim(SubsetsClaim):
    """Each row matches others in a few columns, if a missing cell could be anything."""

    kind = "k-anonymity of subsets with wildcards"
    sentence = "At least k rows match each row in any so many of the named columns, if an empty cell matches anything."


@dataclass(frozen=True)
class LeaveOutCells(Step):
    """Cells are left empty until so many rows agree, in all columns and in any so many of them."""

    kind: ClassVar[str] = "leave out cells"
    title: ClassVar[str] = "Leave out cells"

    columns: tuple[str, ...]
    until: Mapping[str, int]
    missing: MissingCells
    importance: Mapping[str, Fraction]

    def __post_init__(self) -> None:
        sizes = self.subsets
        if dict(self.until) != self.terms or min(self.until.values()) < 1:
            raise InvalidParameter("k below 1 says nothing, and something else is demanded that is not known here.")
        if any(not 1 <= size <= len(self.columns) for size in sizes):
            raise InvalidParameter("subsets have from one column to all of them.")
        if not set(self.importance) <= set(self.columns) or any(weight <= 0 for weight in self.importance.values()):
            raise InvalidParameter("the importance of a column is above 0, and of no other columns.")

    @property
    def k(self) -> int:
        """How many rows agree in all columns."""
        return self.until["k"]

    @property
    def subsets(self) -> dict[int, int]:
        """How many rows agree in any so many columns, by their number."""
        named = {name.removeprefix(_ANY): k for name, k in self.until.items() if name.startswith(_ANY)}
        return {size: named[str(size)] for size in sorted(map(int, named))}

    @property
    def wild(self) -> bool:
        """Whether a missing cell matches every value."""
        return self.missing is MissingCells.MATCHES

    @property
    def terms(self) -> dict[str, int]:
        """What is demanded, in order."""
        return demanded(self.k, self.subsets)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        columns = counted(len(self.columns), "quasi-identifier")
        sense = "matches anything" if self.wild else "is a value of its own"
        return (
            f"Cells of {columns} are left empty until {spelled(self.terms)}, where an empty cell {sense}. Which cells "
            "those are was chosen by looking at all rows; all others stay as they are."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        name = WildcardsClaim.kind if self.wild else Anonymity.kind
        terms = tuple((key, str(value)) for key, value in self.terms.items())
        return StepGuarantee(Syntactic(name, terms), (BECAUSE,), form_assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim it of all quasi-identifiers and of each size of subsets; beside these, k of 1 is no claim."""
        wild = (MATCHES, BLANK) if self.wild else ()
        form = Form(self.columns, basis.unit, (CHOICE,)).basis(COUNTED, (*wild, HOMOGENEITY))
        subsets = (self._subset(size, k, basis.unit, form) for size, k in self.subsets.items())
        whole = (self._whole(basis.unit, form),) if self.k > 1 or not self.subsets else ()
        return (*whole, *subsets)

    def _whole(self, unit: Unit, form: Mapping[str, Any]) -> Claim:
        people = people_of(self.k, unit)
        if self.wild:
            return WildcardsClaim(k=self.k, people=people, theorem=(_WILD,), **form)
        return Anonymity(k=self.k, people=people, theorem=(KAnonymity.theorem,), **form)

    def _subset(self, size: int, k: int, unit: Unit, form: Mapping[str, Any]) -> Claim:
        people = people_of(k, unit)
        if self.wild:
            return WildSubsetsClaim(k=k, size=size, people=people, theorem=(_WILD_SOME,), **form)
        return SubsetsClaim(k=k, size=size, people=people, theorem=(_SOME,), **form)


@dataclass(frozen=True)
class ArrangeBlanks(Arrange):
    """Rows are published in the order of their values, missing cells last."""

    kind: ClassVar[str] = "arrange with missing cells"


def demanded(k: int, subsets: Mapping[int, int]) -> dict[str, int]:
    """Return how many rows agree, in all columns and in any so many, as steps say it.

    >>> demanded(5, {2: 9})
    {'k': 5, 'k of any 2': 9}
    """
    return {"k": k, **{f"{_ANY}{size}": subsets[size] for size in sorted(subsets)}}


def people_of(k: int, unit: Unit) -> int | None:
    """Return how few people k rows may be; None where each has one row."""
    return math.ceil(k / unit.max_rows) if unit.max_rows > 1 else None


@dataclass(frozen=True, kw_only=True)
class CellsCheck(Check):
    """Counts a file with missing cells: the released columns, and for every claim how many rows agree."""

    def contradiction(self, statement: Statement) -> Problem | None:
        if statement.basis.need(LeaveOutCells).columns != statement.of_role(Role.QUASI):
            return Problem("the columns whose cells are left out are not the quasi-identifiers")
        return recoding_problem(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        columns = columns_in(statement, file)
        yield columns
        if columns.problem is None:
            quasi = list(statement.basis.need(LeaveOutCells).columns)
            yield from _agreements(statement, tuples_of(open_source(str(file)).batches(quasi), quasi))

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, Blanked):
            return Problem("it is not a table with missing cells")
        tuples = tuples_of(output.batches(), statement.basis.need(LeaveOutCells).columns)
        return next((outcome.problem for outcome in _agreements(statement, tuples) if outcome.problem), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Blanked:
        return reopen_table(statement, files[0], Blanked, statement.basis.need(LeaveOutCells).columns)


def _agreements(statement: Statement, tuples: pa.Table) -> Iterator[CheckOutcome]:
    """Count every claim about the columns again."""
    for claim in statement.claims:
        if not isinstance(claim, Anonymity | WildcardsClaim | SubsetsClaim):
            continue
        size = claim.size if isinstance(claim, SubsetsClaim) else None
        if isinstance(claim, WildcardsClaim | WildSubsetsClaim):
            rows, text = fewest_matching(tuples, claim.k, size), "{} rows or more match each row, k is {}"
        else:
            rows, text = fewest_alike(tuples, size), "the rarest combination occurs {} times, k is {}"
        text = "there are no rows" if rows is None else text.format(rows, claim.k)
        about = "" if size is None else f" of any {size}"
        problem = Problem(text) if rows is not None and rows < claim.k else None
        yield CheckOutcome(f"{claim.kind}{about} in the file", problem, text)


_ROWS = "n"


def tuples_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    """Return each combination that some columns show, once, and how often; columns are named by their place.

    >>> tuples_of(pa.table({"sex": ["F", "F", None]}).to_batches(), ["sex"]).to_pylist()
    [{'0': 'F', 'n': 2}, {'0': None, 'n': 1}]
    """
    names = [str(place) for place in range(len(columns))]
    schema = pa.schema([*((name, pa.string()) for name in names), (_ROWS, pa.int64())])
    tables = [schema.empty_table()]
    for batch in batches:
        texts = [_text(batch.column(batch.schema.get_field_index(name))) for name in columns]
        tables.append(
            _grouped(pa.table([*texts, pa.repeat(pa.scalar(1, pa.int64()), len(batch))], schema=schema), names)
        )
    return _grouped(pa.concat_tables(tables), names)


def fewest_alike(tuples: pa.Table, size: int | None = None) -> int | None:
    """Return how often the rarest combination occurs, in all columns or in any so many of them; None without rows.

    >>> table = tuples_of(pa.table({"sex": ["F", "F", "M"], "zip": ["1", None, "1"]}).to_batches(), ["sex", "zip"])
    >>> fewest_alike(table), fewest_alike(pa.Table.slice(table, 0, 0))
    (1, None)
    """
    if not len(tuples):
        return None
    return min(int(pc.min(_grouped(tuples, list(chosen))[_ROWS]).as_py()) for chosen in _subsets(tuples, size))


def fewest_matching(tuples: pa.Table, enough: int, size: int | None = None) -> int | None:
    """Return how many rows match the row that fewest match, a missing cell matching anything; at most `enough`.

    Two rows match if they show the same in all columns that both show; in any so many columns, if a size is given.

    >>> table = tuples_of(pa.table({"sex": ["F", "F", "M"], "zip": ["1", None, "2"]}).to_batches(), ["sex", "zip"])
    >>> fewest_matching(table, 9), fewest_matching(table, 1)
    (1, 1)
    """
    if not len(tuples):
        return None
    return min(_matching(_grouped(tuples, list(chosen)), list(chosen), enough) for chosen in _subsets(tuples, size))


def _matching(tuples: pa.Table, names: list[str], enough: int) -> int:
    kinds: dict[tuple[bool, ...], list[int]] = {}
    absent = zip(*(tuples[name].is_null().to_pylist() for name in names), strict=True)
    for place, missing in enumerate(absent):
        kinds.setdefault(missing, []).append(place)
    parts = {missing: tuples.take(pa.array(places)) for missing, places in kinds.items()}
    least = enough
    for missing, part in parts.items():
        waiting, rows = part, np.zeros(len(part), np.int64)
        for absent_there, other in sorted(parts.items(), key=lambda kind: -int(pc.sum(kind[1][_ROWS]).as_py())):
            if not len(waiting):
                break
            both = [name for name, a, b in zip(names, missing, absent_there, strict=True) if not a and not b]
            rows = rows + _agreeing(waiting, other, both)
            waiting, rows = waiting.filter(pa.array(rows < enough)), rows[rows < enough]
        least = min([least, *rows.tolist()])
    return least


def _agreeing(tuples: pa.Table, others: pa.Table, names: list[str]) -> np.ndarray:
    """Return for each tuple how many rows of the others show the same in some columns."""
    if not names:
        return np.full(len(tuples), int(pc.sum(others[_ROWS]).as_py()), np.int64)
    numbered = tuples.select(names).append_column("place", pa.array(np.arange(len(tuples))))
    joined = numbered.join(_grouped(others, names), keys=names, join_type="left outer").sort_by("place")
    agreeing: np.ndarray = joined[_ROWS].fill_null(0).to_numpy()
    return agreeing


def _subsets(tuples: pa.Table, size: int | None) -> Iterable[tuple[str, ...]]:
    names = [name for name in tuples.column_names if name != _ROWS]
    return combinations(names, len(names) if size is None else size)


def _grouped(table: pa.Table, names: list[str]) -> pa.Table:
    return table.group_by(names, use_threads=False).aggregate([(_ROWS, "sum")]).rename_columns([*names, _ROWS])


def _text(column: pa.Array) -> pa.Array:
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return plain.cast(pa.string())
