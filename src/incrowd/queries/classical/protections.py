"""Protections: four ways to answer that were tried before noise was measured, each with what it does not guarantee."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from incrowd.core.loss import Syntactic
from incrowd.core.rounding import Number, exact
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Exposure, Theorem
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.classical.sets import QuerySet
from incrowd.queries.question import AggregateKind

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

_FINE = 2**64


class Protection(Protocol):
    """A way to answer a question about a query set, with a name, parameters, and an honest word about it."""

    name: ClassVar[str]
    source: ClassVar[Theorem]
    broken_by: ClassVar[Exposure]

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What it was asked to do."""
        ...

    def answer(self, asked: QuerySet, secret: bytes) -> Fraction | None:
        """Return the answer, or refuse."""
        ...


@dataclass(frozen=True)
class SizeControl:
    """Exact answers about sets of at least k and at most n − k of the n rows.

    >>> SizeControl(2).answer(QuerySet("", AggregateKind.SUM, 9, {0: Fraction(5), 3: Fraction(6)}), b"")
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

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What it was asked to do."""
        return (("k", str(self.k)),)

    def answer(self, asked: QuerySet, secret: bytes) -> Fraction | None:  # noqa: ARG002 (every protection takes both)
        """Return the exact answer, unless the set or its complement is too small."""
        if not self.k <= len(asked.values) <= asked.size - self.k:
            raise QuestionRefused(
                f"fewer than {self.k} rows fit the condition, or fewer than {self.k} do not: ask about another set."
            )
        return asked.read_off(asked.total, Fraction(len(asked.values)))


@dataclass(frozen=True)
class PerturbedCopy:
    """Answers about a copy of the table in which every number was moved once, by up to ±width.

    The copy is kept as the secret and the rule that make it: the same rows have the same copy for good.
    """

    width: Fraction
    name: ClassVar[str] = "perturbed-copy"
    source: ClassVar[Theorem] = Theorem("traub-1984", "Traub, Yemini and Woźniakowski 1984")
    broken_by: ClassVar[Exposure] = Exposure(
        "question-about-one-row",
        "a question about one row: it gives that row's value to within ±width, and how many rows fit is exact",
    )

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise InvalidParameter("a copy is perturbed by a positive width: write perturbed-copy=100.")

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What it was asked to do."""
        return (("width", str(self.width)),)

    def answer(self, asked: QuerySet, secret: bytes) -> Fraction | None:
        """Return the exact answer about the copy; counts are those of the rows."""
        rows = Fraction(len(asked.values))
        if asked.kind is AggregateKind.ROWS:
            return rows
        if asked.column is None:
            raise QuestionRefused(
                "the copy holds columns, and nothing that is computed from them: ask for SUM(column)."
            )
        numbers = (2 * chance(secret, "copy", asked.column, place) - 1 for place in asked.values)
        return asked.read_off(asked.total + self.width * sum(numbers, Fraction(0)), rows)


@dataclass(frozen=True)
class RandomSample:
    """Answers about a sample of the set, which is drawn anew for every question and scaled up.

    Whether a row is in the sample of a question is decided by the row and the question: asking again changes nothing.
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

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What it was asked to do."""
        return (("rate", str(self.rate)),)

    def answer(self, asked: QuerySet, secret: bytes) -> Fraction | None:
        """Return the answer about the sample; a count or a sum is divided by the rate."""
        drawn = [
            value for place, value in asked.values.items() if chance(secret, "sample", asked.text, place) < self.rate
        ]
        return asked.read_off(sum(drawn, Fraction(0)) / self.rate, len(drawn) / self.rate)


@dataclass(frozen=True)
class Audited:
    """Exact sums of a sensitive column, as long as no value follows from all sums answered so far.

    Its history is kept by whoever asks; see `Auditor`.
    """

    name: ClassVar[str] = "audited"
    source: ClassVar[Theorem] = Theorem("chin-1982", "Chin and Özsoyoğlu 1982")
    broken_by: ClassVar[Exposure] = Exposure(
        "knowing-more-than-answers",
        "whoever knows more than the answers: bounds of the values, a value or two, or that values are 0 or 1",
    )

    @property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """What it was asked to do."""
        return ()

    def answer(self, asked: QuerySet, secret: bytes) -> Fraction | None:  # noqa: ARG002 (every protection takes both)
        """Return the exact answer; whether it may be given was decided before."""
        return asked.total


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
        raise InvalidParameter(
            "classical answers are size-control=K, audited, perturbed-copy=WIDTH or random-sample=RATE: choose one."
        )
    return makers[name](number)


def chance(secret: bytes, use: str, text: str, place: int) -> Fraction:
    """Return a number in [0, 1) that looks random to all who do not know the secret.

    >>> chance(b"s", "copy", "pay", 1) == chance(b"s", "copy", "pay", 1) != chance(b"s", "copy", "pay", 2)
    True
    """
    told = "\0".join((use, text, str(place))).encode()
    return Fraction(int.from_bytes(hmac.new(secret, told, hashlib.sha256).digest()[:8]), _FINE)


def _whole(written: Number) -> int:
    value = exact(written, "k")
    if value.denominator != 1:
        raise InvalidParameter("k is a whole number of rows.")
    return int(value)


@dataclass(frozen=True)
class AnswerClassically(Step):
    """A question is answered in a way that was tried before noise was measured."""

    kind: ClassVar[str] = "answer classically"
    title: ClassVar[str] = "A classical answer"

    question: str
    protection: str
    parameters: tuple[tuple[str, str], ...]
    source: Theorem
    broken_by: Exposure

    @classmethod
    def of(cls, question: str, protection: Protection) -> AnswerClassically:
        """Return the step that answers a question by a protection.

        >>> from incrowd.core.unit import Unit
        >>> from incrowd.queries.classical.protections import SizeControl
        >>> step = AnswerClassically.of("SELECT COUNT(*) FROM t", SizeControl(5))
        >>> step.around(StepGuarantee(), Unit()).loss.criterion
        'classical answer by size-control'
        """
        return cls(question, protection.name, protection.parameters, protection.source, protection.broken_by)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"The question is answered by {self.protection} ({self.source}). It is broken by {self.broken_by}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - without an epsilon it is the same for all
        """Guarantee a form, and no epsilon."""
        loss = Syntactic(f"classical answer by {self.protection}", self.parameters)
        return StepGuarantee(loss, (self.source,))
