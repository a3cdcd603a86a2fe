"""Steps: tables of few columns are measured with noise, and new rows are drawn from a model of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, checked, proved
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.days import DayRule
from incrowd.core.domain import Type
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.steps.bins import BinColumn
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Exposure, Theorem, joined
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.budget import MANY_CLASSES, ErrorScope, Sensitivity, choice_rho, table_rho
from incrowd.methods.synthesis.marginals.constraints import NumberConstraint
from incrowd.methods.synthesis.marginals.junction import Columns
from incrowd.methods.synthesis.marginals.patterns import ValuePattern

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


_TRIPLES = 200  # candidates share ε: more of them make each choice noisier


def workload_tables(workload: Sequence[Sequence[str]] | None, names: Sequence[str]) -> tuple[Columns, ...]:
    """Return the workload by the numbers of columns: what is named, or all pairs and, if there are few, triples.

    >>> workload_tables(None, ["age", "sex", "zip"])
    ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    >>> workload_tables([["zip", "age"]], ["age", "sex", "zip"])
    ((0, 2),)
    """
    if workload is None:
        numbers = range(len(names))
        triples = math.comb(len(names), 3) <= _TRIPLES
        return (*combinations(numbers, 2), *(combinations(numbers, 3) if triples else ()))
    place = {name: number for number, name in enumerate(names)}
    unknown = [name for table in workload for name in table if name not in place]
    if unknown:
        raise InvalidParameter(f"the workload names {unknown[0]!r}, which is not released.")
    if any(not 2 <= len(set(table)) == len(table) <= 4 for table in workload):
        raise InvalidParameter("a table of the workload has two to four different columns.")
    return tuple(dict.fromkeys(tuple(sorted(place[name] for name in table)) for table in workload))


def table_names(tables: Sequence[Columns], names: Sequence[str]) -> list[list[str]]:
    """Return tables by the names of their columns."""
    return [[names[column] for column in table] for table in tables]


_CHOICES = Theorem(
    "exponential-concentrated",
    "Rogers & Steinke 2021: a choice by the exponential mechanism with ε is ε²/8-zero-concentrated",
)
_TABLES = Theorem("gaussian-noise-theorem-4", "Canonne, Kamath & Steinke 2020, Theorem 4: integer Gaussian noise")
_FILTER = Theorem("rho-filter", "Feldman & Zrnic 2021: what is spent adaptively within ρ is ρ-zero-concentrated")
_CONVERTED = Theorem("rho-converted", "Canonne, Kamath & Steinke 2020, Corollary 13, for ε at δ")
_INSIDE = Condition(
    "rho-paid-before", "every table and every choice was paid from ρ before it was made, whatever came out"
)
_DRAWN = Condition("rows-from-noisy-tables", "rows are drawn from noisy tables alone")
_SHOWN = Condition("measured-within-rho", "the tables that were measured, with their noise, cost no more than ρ")
_INDEPENDENT = Exposure(
    "rows-of-one-person-modelled", "rows of one person as such: they are modelled as if they were of different people"
)
_ZEROS = Exposure("declared-zeros", "that nobody has the combinations that are named as impossible: declared")
_CONSTRAINTS = Exposure(
    "declared-constraints", "that numbers of every row fulfil the constraints that are named: declared"
)
_DAYS = Exposure("declared-days", "that days are such as are named: declared")
_TOTAL = Exposure("declared-total", "how many rows there are: declared")
_NUMBER = Exposure("number-of-rows", "how many rows there are: a replaced row leaves their number as it is")


class Strategy(StrEnum):
    """How tables are chosen."""

    ADAPTIVE = "adaptive"
    TREE = "tree"


_WORDS = {
    Strategy.ADAPTIVE: "then, again and again, the table about which the model seems most wrong",
    Strategy.TREE: "then a tree of pairs that depend on each other most",
}


@dataclass(frozen=True)
class MeasuredTable:
    """One table that was measured: its columns, the scale of its noise, and the ε of its choice, if it was chosen."""

    columns: tuple[str, ...]
    scale: Fraction
    epsilon: Fraction | None = None

    def rho(self, reach: Sensitivity) -> Fraction:
        """Return what it cost."""
        return table_rho(self.scale, reach) + (Fraction(0) if self.epsilon is None else choice_rho(self.epsilon))


def pattern_sentence(patterns: Sequence[ValuePattern]) -> str:
    """Return what is counted of patterns, as a sentence; nothing where there are none."""
    return f" Counted besides: {'; '.join(pattern.words for pattern in patterns)}." if patterns else ""


@dataclass(frozen=True)
class DeclaredZero:
    """Labels of some columns that are declared never to occur together, None for missing values."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str | None, ...], ...]

    def __str__(self) -> str:
        parts = (" or ".join("missing" if label is None else label for label in labels) for labels in self.labels)
        return " with ".join(f"{name} {part}" for name, part in zip(self.columns, parts, strict=True))


class Contradictions(StrEnum):
    """How a row counts that contradicts a constraint, by its classes alone: like any other, or not at all."""

    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True)
class MeasureTables(Step):
    """Tables of few columns are counted with Gaussian noise, which ones is chosen privately, within ρ in all.

    `workload` are tables that matter, all pairs and triples of columns if there are few; `rounds` and `cells` bound the
    work.  `zeros`, `constraints` and `total` are public: what never occurs, what holds between numbers, and how many
    rows there are; `contradictions` says what becomes of rows that differ.  `errors` says that the error of each table
    of the workload is told, beside the mean of all pairs.  Tables with the `target`
    weigh more.  `details` are columns that are also measured in finer pieces than their classes, `patterns`
    small tables of days of the week, round numbers and distances.
    """

    kind: ClassVar[str] = "measure tables"
    title: ClassVar[str] = "Measure tables"
    glyph: ClassVar[str | None] = "coarser"

    strategy: Strategy
    rho: Fraction
    columns: tuple[BinColumn, ...]
    rounds: int
    cells: int
    workload: tuple[tuple[str, ...], ...] | None = None
    zeros: tuple[DeclaredZero, ...] | None = None
    total: int | None = None
    errors: ErrorScope | None = None
    constraints: tuple[NumberConstraint, ...] | None = None
    contradictions: Contradictions | None = None
    target: str | None = None
    details: tuple[BinColumn, ...] | None = None
    patterns: tuple[ValuePattern, ...] | None = None

    def __post_init__(self) -> None:
        if self.rho <= 0 or self.rounds < 1 or self.cells < 1:
            raise InvalidParameter(
                "tables are measured within a budget above 0, in a round at least, of a cell at least."
            )
        if any(column.size is None for column in (*self.columns, *(self.details or ()))):
            raise InvalidParameter("every column of a model has a list of labels.")

    @property
    def evaluation(self) -> str:
        """The share of ρ for saying how good the result is."""
        return str((self.errors or ErrorScope.PAIRS).share)

    @property
    def evaluated(self) -> tuple[Columns, ...]:
        """The tables of which the error is told one by one."""
        return workload_tables(self.workload, self.names) if self.errors is ErrorScope.TABLES else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.column for column in self.columns)

    @property
    def size(self) -> int:
        """How many combinations of labels there are."""
        return math.prod(column.size or 0 for column in self.columns)

    @property
    def sentence(self) -> str:
        tables = counted(len(self.evaluated), "table")
        evaluated = f" The error of each of {tables} is released with noise, within the same ρ."
        errors = evaluated if self.evaluated else ""
        public = f" Taken as public: {joined(self.public)}." if self.public else ""
        weighed = "" if self.target is None else f" Tables with “{self.target}” weigh more in the choice."
        left_out = " A row whose classes contradict a constraint is not counted." if self.contradictions else ""
        pieces = ", ".join(f"“{item.column}” ({counted(item.size or 0, 'piece')})" for item in self.details or ())
        fine = f" Counted once more, in finer pieces: {pieces}." if self.details else ""
        fine += pattern_sentence(self.patterns or ()) + self._together
        return (
            f"Each of {counted(len(self.columns), 'column')} is counted by itself, {_WORDS[self.strategy]}: all with "
            f"integer Gaussian noise, chosen by the exponential mechanism, within ρ = {float(self.rho):.4g}.{fine} A "
            f"model is fitted to the noisy tables alone.{errors}{left_out}{public}{weighed}"
        )

    @property
    def _together(self) -> str:
        """What becomes of rare classes of large columns, as a sentence."""
        large = any((column.size or 0) > MANY_CLASSES for column in self.columns)
        rule = f" Of a column with more than {MANY_CLASSES} classes, those that its own counts do not show above noise"
        return f"{rule} may be counted together, and drawn alike." if large else ""

    @property
    def public(self) -> tuple[Exposure, ...]:
        """What was declared of the rows, and is therefore not protected."""
        return (
            *(() if self.zeros is None else (_ZEROS,)),
            *(() if self.constraints is None else (_CONSTRAINTS,)),
            *(() if self.total is None else (_TOTAL,)),
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            raise InvalidParameter("nothing else is released from the rows beside the tables of a model.")
        return StepGuarantee(ZeroConcentrated(self.rho), (_TABLES, _CHOICES, _FILTER), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit = basis.unit
        several = (_INDEPENDENT,) if unit.max_rows > 1 else ()
        number = (_NUMBER,) if unit.adjacency is Adjacency.REPLACE else ()
        open_ = (GROUPS, *several, *number, *self.public, *day_exposure(basis.need(DrawRows).numbers))
        return (
            ApproximatePrivacy(
                epsilon=basis.epsilon,
                delta=basis.guarantee.delta,
                rho=self.rho,
                adjacency=unit.adjacency,
                max_rows=unit.max_rows,
                unit=unit,
                theorem=(_TABLES, _CHOICES, _FILTER, _CONVERTED),
                preconditions=(*proved(_INSIDE, _DRAWN), *checked(_SHOWN), *assumed(basis.guarantee.assumes)),
                not_protected=open_,
            ),
        )


@dataclass(frozen=True)
class DrawnColumn:
    """A column of numbers or days, which are drawn between the ends of their class.

    Decimals have so many digits; days are `allowed` ones alone, where these are declared.
    """

    column: str
    type: Type
    low: str
    high: str
    decimals: int | None = None
    allowed: DayRule | None = None


def day_sentence(numbers: Sequence[DrawnColumn]) -> str:
    """Return which days are drawn, as sentences; nothing where none are declared."""
    own = [f"“{item.column}”: {item.allowed.words}" for item in numbers if item.allowed is not None]
    rule = "A row with another day counts in its class."
    return f" Declared days only are drawn of {'; '.join(own)}. {rule}" if own else ""


def day_exposure(numbers: Sequence[DrawnColumn]) -> tuple[Exposure, ...]:
    """Return that days were declared, where they were."""
    return (_DAYS,) if any(item.allowed for item in numbers) else ()


@dataclass(frozen=True)
class DrawRows(Step):
    """New rows are drawn from the model: so many, or about as many as there are; the model is published with them."""

    documents: ClassVar[tuple[str, ...]] = ("model.json",)
    kind: ClassVar[str] = "draw rows"
    title: ClassVar[str] = "Draw rows"
    glyph: ClassVar[str | None] = "sorted"

    rows: int | None = None
    numbers: tuple[DrawnColumn, ...] = ()

    @property
    def sentence(self) -> str:
        many = "about as many as there are" if self.rows is None else counted(self.rows, "row")
        inside = (
            " Numbers and days lie in their class, more often where finer counts are larger." if self.numbers else ""
        )
        return (
            f"New rows are drawn from the model, {many}, in a random order; none is copied from the data.{inside}"
            f"{day_sentence(self.numbers)} The model is published too: rows can be drawn from it again."
        )


def spent(evidence: Mapping[str, Any], reach: Sensitivity) -> Fraction:
    """Return what the tables that an output names cost, and the errors that it tells."""
    tables = [
        MeasuredTable(
            tuple(item["columns"]), Fraction(item["scale"]), Fraction(item["epsilon"]) if "epsilon" in item else None
        )
        for item in evidence["tables"]
    ]
    pairs, errors = int(evidence["pairs"]), evidence.get("errors of tables", [])
    mean = table_rho(Fraction(evidence["error scale"]), Sensitivity((pairs * reach.score) ** 2, 1))
    scale = Fraction(evidence["scale of each table"]) if errors else Fraction(1)
    each_one = table_rho(scale, Sensitivity(reach.score**2, 1), len(errors))
    return sum((table.rho(reach) for table in tables), mean + each_one)
