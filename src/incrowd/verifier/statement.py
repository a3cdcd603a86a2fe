"""Statement: what a certificate says; MethodCheck: how files are held against it; Finding: what a check found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.core.claims.claim import Claim
from incrowd.core.steps.step import ClaimBasis, Step

if TYPE_CHECKING:
    from incrowd.core.plan import Output
    from incrowd.core.schema import Role


@dataclass(frozen=True)
class Problem:
    """Why something does not hold, or why it could not be decided."""

    text: str
    undecided: bool = False


@dataclass(frozen=True)
class CheckOutcome:
    """One look at a release: what was looked at, what is wrong (None: nothing), and what holds otherwise."""

    about: str
    problem: Problem | None
    otherwise: str


class Verdict(StrEnum):
    """What a check found."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot be known here"


@dataclass(frozen=True)
class CheckResult:
    """One check: what was looked at, what was found, and why."""

    about: str
    verdict: Verdict
    why: str


def finding(look: CheckOutcome) -> CheckResult:
    """Return what a look found: its problem, or what holds otherwise."""
    if look.problem is None:
        return CheckResult(look.about, Verdict.PASSED, look.otherwise)
    verdict = Verdict.UNKNOWN if look.problem.undecided else Verdict.FAILED
    return CheckResult(look.about, verdict, look.problem.text)


@dataclass(frozen=True)
class Statement:
    """What is said about a release: the grounds of its claims, the claims, the columns released, and the evidence.

    `roles` are those of the declared columns.
    """

    grounds: ClaimBasis
    claims: tuple[Claim, ...]
    released: tuple[str, ...]
    evidence: Mapping[str, Any] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What happened to the rows."""
        return self.grounds.steps

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Return the released columns that count as a role, in order."""
        return tuple(name for name in self.released if role.covers(self.roles.get(name)))


class MethodCheck(Protocol):
    """What a method's `check.py` holds: which steps and claims it knows, and how its files are looked into.

    The looks are taken twice: before a release appears, where a problem stops it, and whenever somebody verifies it.
    Nothing in it may import an accountant or the method itself.
    """

    STEPS: tuple[type[Step], ...]
    CLAIMS: tuple[type[Claim], ...]
    ORDER: tuple[Place, ...]

    def contradiction(self, statement: Statement) -> Problem | None:
        """Return where steps, claims and columns contradict each other beyond what the fold finds, or None."""

    def looks(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        """Read the written files and hold them against the statement."""

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        """Hold an output that stays in memory against the statement."""

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Output:
        """Read what was published, as anyone can."""

    def recompute(self, claim: Claim, grounds: ClaimBasis) -> Problem | None:
        """Derive the numbers of a claim of the method's own again, slowly; claims of privacy are not asked here."""

    def hidden(self, claim: Claim) -> Problem | None:
        """Return what of a claim without such numbers no published file can show, or None."""


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
