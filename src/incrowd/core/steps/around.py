"""Around: steps that the road of a release puts in front of any method's own: people held out, failed runs, a check.

None of them changes what is guaranteed.  A certificate has each of them at most once, in the order of `AROUND`, before
the first step of its method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Precondition, Status, assumed
from incrowd.core.steps.consent import ConsentGate
from incrowd.core.steps.step import ONCE, Step
from incrowd.core.terms import Assumption, Exposure
from incrowd.core.words import share
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim

REFUSABLE = Exposure(
    "refusable",
    "what publication itself shows: this release was held against earlier ones of the same "
    "people, and would have been refused if in a cell that both show the numbers of rows "
    "differed by fewer than k",
)
THRESHOLD_FAILED = Exposure(
    "threshold-failed", "what it shows of the rows that a threshold failed: the holder's attack read them"
)


@dataclass(frozen=True)
class HoldOut(Step):
    """An own coin leaves each person out, with all rows, before anything else happens.

    Guarantee: unchanged.  Whoever is held out is as if removed, whoever is not stands where every other set of held-out
    people leaves the guarantee of what follows; it earns no amplification, because the list is kept.
    """

    kind: ClassVar[str] = "hold out"
    title: ClassVar[str] = "Held out"
    glyph: ClassVar[str | None] = "fewer"

    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidParameter("the share that is held out lies between 0 and 1, such as 10%.")

    @property
    def design(self) -> str:
        """How people are held out."""
        return "Poisson, one coin per person (per row where rows are protected); the holder keeps the list"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"An own coin for each person leaves out {share(self.share)} on average, before anything else, as a "
            "control for attacks. The holder keeps the list, so this protects nobody further; everybody is charged."
        )


@dataclass(frozen=True)
class Rerun(Step):
    """An attack on an earlier release of these people was not shown to stay below a threshold: this one is another run.

    Guarantee: unchanged, and it assumes what is then not so: that the release was not chosen among several runs.
    """

    kind: ClassVar[str] = "run again"
    title: ClassVar[str] = "Run again"

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        return (
            "An earlier run about these people was attacked by its holder and failed a threshold of the holder's. This "
            "release is another run, so that it may have been chosen among several."
        )

    def amend(self, claim: Claim) -> Claim:
        """Say that one assumption is not met, and that saying so is an answer."""
        conditions = (
            Precondition(each.term, Status.NOT_MET) if each.term == ONCE else each for each in claim.preconditions
        )
        return replace(claim, preconditions=tuple(conditions), not_protected=(*claim.not_protected, THRESHOLD_FAILED))


@dataclass(frozen=True)
class Compare(Step):
    """What was written is held against earlier releases that have no ε either; only such a release may be held back."""

    kind: ClassVar[str] = "compare with earlier releases"
    title: ClassVar[str] = "Compare"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            "Before it appears, the release is held against earlier ones about the same people: if in a cell that both "
            "show the numbers of rows differ by fewer than k, it is refused."
        )

    def amend(self, claim: Claim) -> Claim:
        """Say that publication is an answer too."""
        return replace(claim, not_protected=(*claim.not_protected, REFUSABLE))


UNCHECKED_CODE = Assumption(
    "outside-code",
    "the code of the named distribution does what its steps say: incrowd did not check it",
    "The method comes from a distribution of another author.  Its guarantee holds only if the code with the stated "
    "digest releases nothing but what its steps describe.  incrowd folded the guarantee from the steps; it did not "
    "check the code.",
)


@dataclass(frozen=True)
class OutsideCode(Step):
    """The method that follows is the code of another distribution, known by its name, version and digest.

    Guarantee: unchanged, and it rests on code that incrowd did not check.
    """

    kind: ClassVar[str] = "outside code"
    title: ClassVar[str] = "Code of another distribution"

    distribution: str
    version: str
    digest: str

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"The method is the code of {self.distribution} {self.version} (SHA-256 {self.digest}). The guarantee "
            "rests on that code, which incrowd did not check."
        )

    def amend(self, claim: Claim) -> Claim:
        """State the assumption first."""
        return replace(claim, preconditions=(*assumed([UNCHECKED_CODE]), *claim.preconditions))


AROUND: tuple[type[Step], ...] = (ConsentGate, HoldOut, Rerun, Compare, OutsideCode)


def own_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of the method itself.

    >>> from incrowd.core.steps.suppression import Suppress
    >>> own_steps((HoldOut(Fraction(1, 10)), Compare(), Suppress(5)))
    (Suppress(k=5),)
    """
    for kind in AROUND:
        if steps and type(steps[0]) is kind:
            steps = steps[1:]
    return steps


def steps_around(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps in front of those of the method itself."""
    return steps[: len(steps) - len(own_steps(steps))]
