"""Protections: four ways to answer that were tried before noise was measured, each with what it does not guarantee."""

from __future__ import annotations

import hashlib
import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.rounding import Number, exact
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Exposure, Theorem
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.query import AggregateKind
from incrowd.queries.query_sets import QuerySet

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


_FINE = 2**64  # eight bytes of an HMAC, read as a number between 0 and 1


class Protection(ABC):
    """A way to answer a query about a set of rows, without a guarantee; its fields are its parameters."""

    name: ClassVar[str]
    source: ClassVar[Theorem]
    broken_by: ClassVar[Exposure]

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Its parameters and their values, as certificates write them."""
        return tuple((name, str(value)) for name, value in vars(self).items())

    @abstractmethod
    def answer(self, query: QuerySet) -> Fraction | None:
        """Return the answer, or refuse."""


@dataclass(frozen=True)
class SizeControl(Protection):
    """Exact answers about sets of at least k and at most n − k of the n rows.

    >>> SizeControl(2).answer(QuerySet("", AggregateKind.SUM, 9, {0: Fraction(5), 3: Fraction(6)}))
    Fraction(11, 1)
    """

    k: int = 5
    name: ClassVar[str] = "size-control"
    source: ClassVar[Theorem] = Theorem("denning-1979", "Denning, Denning and Schwartz 1979")
    broken_by: ClassVar[Exposure] = Exposure(
        "tracker",
        "a tracker: two sets of allowed size whose answers, added and subtracted, give the answer about any set, "
        "however small",
    )

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("size control needs sets of at least one row: write size-control=5.")

    def answer(self, query: QuerySet) -> Fraction | None:
        """Return the exact answer, unless the set or its complement is too small."""
        if not self.k <= len(query.values) <= query.size - self.k:
            raise QueryRefused(f"fewer than {self.k} rows fit the condition, or do not: ask about another set.")
        return query.read_off(query.total, Fraction(len(query.values)))


@dataclass(frozen=True)
class PerturbedCopy(Protection):
    """Answers about a copy of the table in which every number was moved once, by up to ±width.

    The copy is kept as the secret and the rule that make it: the same rows have the same copy for good.
    """

    width: Fraction
    name: ClassVar[str] = "perturbed-copy"
    source: ClassVar[Theorem] = Theorem("traub-1984", "Traub, Yemini and Woźniakowski 1984")
    broken_by: ClassVar[Exposure] = Exposure(
        "question-about-one-row",
        "a query about one row: it gives that row's value to within ±width, and how many rows fit is exact",
    )

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise InvalidParameter("a copy is perturbed by a positive width: write perturbed-copy=100.")

    def answer(self, query: QuerySet) -> Fraction | None:
        """Return the exact answer about the copy; counts are those of the rows."""
        rows = Fraction(len(query.values))
        if query.kind is AggregateKind.ROWS:
            return rows
        if query.column is None:
            raise QueryRefused("only columns of the table are perturbed: ask for SUM(column).")
        numbers = (2 * chance(query.secret, "copy", query.column, place) - 1 for place in query.values)
        return query.read_off(query.total + self.width * sum(numbers, Fraction(0)), rows)


@dataclass(frozen=True)
class RandomSample(Protection):
    """Answers about a sample of the set, which is drawn anew for every query and scaled up.

    Whether a row is in the sample of a query is decided by the row and the query: asking again changes nothing.
    """

    rate: Fraction
    name: ClassVar[str] = "random-sample"
    source: ClassVar[Theorem] = Theorem("denning-1980", "Denning 1980")
    broken_by: ClassVar[Exposure] = Exposure(
        "averaging-samples",
        "averaging: the same set written in other words has another sample, and many of them average to the truth",
    )

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidParameter("the rate of a sample lies between 0 and 1: write random-sample=0.9.")

    def answer(self, query: QuerySet) -> Fraction | None:
        """Return the answer about the sample; a count or a sum is divided by the rate."""
        places = [place for place in query.values if chance(query.secret, "sample", query.text, place) < self.rate]
        sample = [query.values[place] for place in places]
        return query.read_off(sum(sample, Fraction(0)) / self.rate, len(sample) / self.rate)


@dataclass(frozen=True)
class Audited(Protection):
    """Exact sums of a sensitive column, as long as no value follows from all sums answered so far.

    Its history is kept by whoever asks; see `Auditor`.
    """

    name: ClassVar[str] = "audited"
    source: ClassVar[Theorem] = Theorem("chin-1982", "Chin and Özsoyoğlu 1982")
    broken_by: ClassVar[Exposure] = Exposure(
        "knowing-more-than-answers",
        "someone who knows more than the answers: bounds of the values, a value or two, or that values are 0 or 1",
    )

    def answer(self, query: QuerySet) -> Fraction | None:
        """Return the exact answer; whether it may be given was decided before."""
        return query.total


def protection_of(written: str) -> Protection:
    """Return a protection from its name and number, as they are written on the command line.

    >>> protection_of("size-control=3")
    SizeControl(k=3)
    """
    name, _, number = written.partition("=")
    makers: dict[str, Callable[[Number], Protection]] = {
        SizeControl.name: lambda k: SizeControl(_whole(k)),
        PerturbedCopy.name: lambda width: PerturbedCopy(exact(width, "the width")),
        RandomSample.name: lambda rate: RandomSample(exact(rate, "the rate")),
    }
    if name == Audited.name and not number:
        return Audited()
    if name not in makers or not number:
        raise InvalidParameter("choose size-control=K, audited, perturbed-copy=WIDTH or random-sample=RATE.")
    return makers[name](number)


def chance(secret: bytes, use: str, text: str, place: int) -> Fraction:
    """Return a number in [0, 1) that looks random to all who do not know the secret.

    >>> chance(b"s", "copy", "pay", 1) == chance(b"s", "copy", "pay", 1) != chance(b"s", "copy", "pay", 2)
    True
    """
    message = "\0".join((use, text, str(place))).encode()
    return Fraction(int.from_bytes(hmac.new(secret, message, hashlib.sha256).digest()[:8]), _FINE)


def _whole(written: Number) -> int:
    value = exact(written, "k")
    if value.denominator != 1:
        raise InvalidParameter("k is a whole number of rows.")
    return int(value)


@dataclass(frozen=True)
class AnswerClassically(Step):
    """A query is answered in a way that was tried before noise was measured."""

    kind: ClassVar[str] = "answer classically"
    title: ClassVar[str] = "A classical answer"

    question: str
    protection: str
    parameters: tuple[tuple[str, str], ...]
    source: Theorem
    broken_by: Exposure

    @classmethod
    def of(cls, query: str, protection: Protection) -> AnswerClassically:
        """Return the step that answers a query by a protection.

        >>> from incrowd.core.unit import Unit
        >>> from incrowd.queries.classical_answers import SizeControl
        >>> step = AnswerClassically.of("SELECT COUNT(*) FROM t", SizeControl(5))
        >>> step.around(StepGuarantee(), Unit()).loss.criterion
        'classical answer by size-control'
        """
        return cls(query, protection.name, protection.parameters, protection.source, protection.broken_by)

    @property
    def sentence(self) -> str:
        return f"The query is answered by {self.protection} ({self.source}). It is broken by {self.broken_by}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a form, and no epsilon."""
        loss = Syntactic(f"classical answer by {self.protection}", self.parameters)
        return super().around(replace(inner, loss=loss, because=(self.source,)), unit)


MOST_AUDITED = 200
"""The most rows of a table whose sums are audited: the work grows with their third power."""

Equation = dict[int, Fraction]
"""A linear form in the values of the rows: the coefficient of each, zeros left out."""


@dataclass(frozen=True)
class Auditor:
    """What the sums answered so far determine, as a basis in reduced echelon form over the rational numbers.

    Each answered sum is a linear equation in the unknown values.  A value is determined by equations (of which nothing
    else is known, neither bounds nor wholeness) exactly if its unit vector e_i is a combination of them.  In a reduced
    basis R_1, …, R_r with pivots p_1, …, p_r the coefficients of a combination are its own entries at the pivots.  If
    e_i is a combination, one of its entries at a pivot must not be 0, so i = p_k for some k, all other coefficients
    are 0, and e_i = R_k.  So a value is determined exactly if a basis vector has one entry only.

    Whether a sum is answered depends on the sets asked for and not on values: a refusal tells nothing.

    Source: Chin and Özsoyoğlu 1982 (the audit of sums); Kenthapadi, Mishra and Nissim 2005 (what refusals tell).

    >>> auditor = Auditor().after({0, 1, 2})
    >>> auditor.determined({1, 2}), auditor.determined({3, 4})
    (frozenset({0}), frozenset())
    """

    basis: tuple[tuple[int, tuple[tuple[int, Fraction], ...]], ...] = ()

    @classmethod
    def replay(cls, sets: Iterable[Iterable[int]]) -> Auditor:
        """Return the auditor after sums over these sets were answered."""
        auditor = cls()
        for places in sets:
            auditor = auditor.after(places)
        return auditor

    def after(self, places: Iterable[int]) -> Auditor:
        """Return the auditor after one more sum.

        >>> Auditor().after({0, 1}).after({1, 0}) == Auditor().after({0, 1})
        True
        """
        rest: Equation = dict.fromkeys(places, Fraction(1))
        for pivot, vector in self.basis:
            if pivot in rest:
                _subtract(rest, dict(vector), rest[pivot])
        if not rest:
            return self
        pivot = min(rest)
        lead = rest[pivot]
        new = {place: value / lead for place, value in rest.items()}
        reduced = [(pivot, new)]
        for other, vector in self.basis:
            changed = dict(vector)
            if pivot in changed:
                _subtract(changed, new, changed[pivot])
            reduced.append((other, changed))
        return Auditor(
            tuple((lead_place, tuple(sorted(vector.items()))) for lead_place, vector in sorted(reduced, key=_pivot))
        )

    def determined(self, places: Iterable[int]) -> frozenset[int]:
        """Return the rows whose values would be known after the sum over these places was answered too."""
        return frozenset(pivot for pivot, vector in self.after(places).basis if len(vector) == 1)


def _subtract(vector: Equation, other: Equation, times: Fraction) -> None:
    for place, value in other.items():
        left = vector.get(place, Fraction(0)) - times * value
        if left:
            vector[place] = left
        else:
            vector.pop(place, None)


def _pivot(entry: tuple[int, Equation]) -> int:
    return entry[0]
