"""Check: how the certificates and files of one method are judged; CheckOutcome: what one check says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.claims.claim import Claim
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate


STATED = "stated by the maker"
"""What findings about evidence are called that a step paid for and that no file shows."""


class Verdict(StrEnum):
    """What a check says in one word."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot be known here"


@dataclass(frozen=True)
class Problem:
    """Why something does not hold, or why it could not be decided."""

    text: str
    undecided: bool = False


@dataclass(frozen=True)
class CheckOutcome:
    """One check: what it is about, what is wrong (None: nothing), and what holds otherwise."""

    about: str
    problem: Problem | None
    otherwise: str

    @property
    def verdict(self) -> Verdict:
        """Whether it passed, failed or could not be decided."""
        if self.problem is None:
            return Verdict.PASSED
        return Verdict.UNKNOWN if self.problem.undecided else Verdict.FAILED

    @property
    def why(self) -> str:
        """The problem in words, or what holds."""
        return self.otherwise if self.problem is None else self.problem.text


def passed(about: str, why: str) -> CheckOutcome:
    """Return the outcome of a check that found nothing wrong."""
    return CheckOutcome(about, None, why)


def failed(about: str, why: str) -> CheckOutcome:
    """Return the outcome of a check that failed."""
    return CheckOutcome(about, Problem(why), "")


def undecided(about: str, why: str) -> CheckOutcome:
    """Return the outcome of a check that cannot be decided here."""
    return CheckOutcome(about, Problem(why, undecided=True), "")


@dataclass(frozen=True)
class Place:
    """A place in the order of steps: which classes may stand there, and whether it may be empty or repeated."""

    classes: tuple[type[Step], ...]
    optional: bool = False
    repeated: bool = False


def one(*classes: type[Step]) -> Place:
    """Return a place that one step takes."""
    return Place(classes)


def maybe(*classes: type[Step]) -> Place:
    """Return a place that one step takes, or none."""
    return Place(classes, optional=True)


def some(*classes: type[Step]) -> Place:
    """Return a place that any number of steps take."""
    return Place(classes, optional=True, repeated=True)


def in_order(steps: tuple[Step, ...], order: tuple[Place, ...]) -> bool:
    """Whether steps stand in an order, each at a place of its own.

    >>> from incrowd.core.steps.suppression import Suppress
    >>> in_order((Suppress(5),), (one(Suppress),)), in_order((Suppress(5), Suppress(5)), (one(Suppress),))
    (True, False)
    """
    if not order:
        return not steps
    place, rest = order[0], order[1:]
    if steps and type(steps[0]) in place.classes and in_order(steps[1:], order if place.repeated else rest):
        return True
    return place.optional and in_order(steps, rest)


@dataclass(frozen=True, kw_only=True)
class Check:
    """How the certificates and files of a method are judged; a method's module holds one as `CHECK`.

    `order` says which steps stand where in a certificate, `nested` which others may stand inside them, `claims` which
    classes of claims it may hold, `version` the version of these.  `statistics_formats` says whether files of Stata,
    SPSS and SAS are read here.

    A release is inspected twice: before it appears, where a problem stops it, and whenever somebody verifies it.  A
    check uses nothing of the method's algorithm and no accountant: a fault there would be repeated here.
    """

    order: tuple[Place, ...]
    claims: tuple[type[Claim], ...]
    nested: tuple[type[Step], ...] = ()
    version: int = 1
    statistics_formats: bool = False
    stated: frozenset[str] = frozenset()
    """Keys of the evidence that a step paid for and that no file shows: nobody but the maker can know them."""

    @property
    def steps(self) -> tuple[type[Step], ...]:
        """The classes of steps that a certificate of this method may hold."""
        return tuple(dict.fromkeys((*(step for place in self.order for step in place.classes), *self.nested)))

    def contradiction(self, statement: Statement) -> Problem | None:
        """Return where steps, claims and columns contradict each other beyond what the fold finds, or None."""
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        """Read the written files and compare them with the statement."""
        raise NotImplementedError

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        """Compare an output that stays in memory with the statement."""
        raise NotImplementedError

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        """Read what was published, as anyone can."""
        raise NotImplementedError

    def recompute(self, claim: Claim, basis: ClaimBasis) -> Problem | None:
        """Compute the numbers of a claim of the method's own again, slowly; claims of privacy are not asked here."""
        return Problem("its numbers are not recomputed here", undecided=True)

    def undecidable(self, claim: Claim) -> Problem | None:
        """Return what of a claim without such numbers no published file can show, or None."""
        return None

    @property
    def has_parent(self) -> bool:
        """Whether releases are made from another release, which `compare_parent` compares them with."""
        return False

    def compare_parent(self, release: Certified, parent: Certified) -> Problem | None:
        """Compare a release with the one it was made from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Certified:
    """A certificate with its files."""

    certificate: Certificate
    files: tuple[Path, ...]
