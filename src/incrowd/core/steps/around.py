"""Around: steps that a release may have in front of its method's own: consent, a period, a holdout group, reruns.

None of them changes what is guaranteed.  A certificate has each of them at most once, in the order of `AROUND`, before
the first step of its method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Precondition, Status, assumed, proved
from incrowd.core.claims.privacy import Concentrated, Private, SampledCrowd, Surveyed
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.steps.step import ONCE, Step, StepGuarantee
from incrowd.core.terms import Assumption, Condition, Exposure
from incrowd.core.unit import Adjacency, Kind
from incrowd.core.words import share
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


OWN_DECISION = Condition(
    "own-decision",
    "the consent gate includes or excludes a person's rows by that person's own ID and events alone, so the guarantee "
    "for a person added or removed covers whether that person consented",
)
OWN_NODE = Condition(
    "own-node-decision",
    "the consent gate includes or excludes a person's node, with all its edges, by that person's own ID and events "
    "alone, so the guarantee for a node added or removed covers whether that person consented",
)
RECORDED = Assumption("registry-is-true", "the consent registry records what these people decided")
CONSENTERS = Exposure(
    "consenters-described",
    "facts about the people who consented: all numbers describe them, and people who did not consent protect nobody",
)
IN_THE_TABLE = Exposure("consent-of-those-shown", "that people with a row in this table consented")
MOVED = Exposure(
    "consent-changes",
    "who consented or withdrew between this and other releases without an epsilon: the difference shows a group that "
    "leaves or joins a cell, and a delayed release shows that it waited for a larger group",
)
_BOUNDED = (Private, SampledCrowd, Surveyed, Concentrated)
"""Claims that bound what is learned of one person whatever else is released; all others describe a table's form."""
NEEDS_ADDING = (
    "a consent gate needs a guarantee for people who are added or removed: with people replaced, the number of those "
    "who consent would have to be public, and it is not. Write adjacency: add-remove."
)
NEEDS_PEOPLE = "people give consent: name the person ID column, dataset.unit.column."
NEEDS_ALL_PERIODS = (
    "a consent gate needs the unit person: consent is given for all periods, and one period's guarantee would not hide "
    "it. Leave out per: period."
)
NEEDS_NODES = (
    "a consent gate needs the unit node: where edges are protected the nodes are public, and the remaining nodes would "
    "show who consented. Write unit: {kind: node}."
)


@dataclass(frozen=True)
class ConsentGate(Step):
    """Only rows of people whose consent to a purpose is in force take part; each person's own events decide.

    Guarantee: unchanged, for people added or removed.  Two tables that differ by one person are gated to the same table
    or to two that differ by that person.  Consenting is not a secret sample: it earns no amplification.

    Source: a stable transformation, McSherry 2009, applied to rows with the person's own events.

    Before the run only purpose and, where the policy says so, `as_of` are known; `run` is when the registry was read,
    and `mark` an HMAC of its state under a key that `nonce` names and the registry alone can make.  `calendar` names
    the days on which a release without an ε may be made: with a free choice of days, a missing release would reveal
    that somebody's consent changed.
    """

    kind: ClassVar[str] = "consent"
    title: ClassVar[str] = "Consent"
    glyph: ClassVar[str | None] = "fewer"

    purpose: str
    as_of: str | None = None
    run: str | None = None
    nonce: str | None = None
    mark: str | None = None
    calendar: tuple[str, ...] | None = None
    edges: bool | None = None
    """Whether nodes of a graph are left out, and all edges with them."""

    @property
    def settled(self) -> bool:
        """Whether the registry was read."""
        return None not in (self.run, self.nonce, self.mark)

    def follows(self, planned: ConsentGate) -> bool:
        """Whether this gate is a planned one, after the registry was read."""
        return self.settled and replace(self, run=None, nonce=None, mark=None) == planned

    @property
    def sentence(self) -> str:
        run = "at the run" if self.run is None else f"at {self.run}"
        when = run if self.as_of is None else f"as of {self.as_of} and still {run}"
        what = "nodes of people, with all their edges," if self.edges else "rows of people"
        return (
            f"First, {what} whose consent to “{self.purpose}” was not in force {when} are excluded. Their identity and "
            "number are not released. Consenting is not a secret sample and reduces no privacy loss. All counts below "
            f"count people who consented.{self._dates}"
        )

    @property
    def _dates(self) -> str:
        """The days on which releases appear, in words; nothing where none are fixed."""
        if self.calendar is None:
            return ""
        return (
            f" Releases appear only on days fixed in advance: {', '.join(self.calendar)}. A day without a release "
            "shows that it was delayed."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Leave the guarantee unchanged; refuse a unit for which a gate would break it."""
        require_gate(unit)
        return inner

    def amend(self, claim: Claim) -> Claim:
        """Add what the gate needs, and what consent itself does not protect."""
        bounded = isinstance(claim, _BOUNDED)
        own = OWN_NODE if self.edges else OWN_DECISION
        needs = (*(proved(own) if bounded else ()), *assumed([RECORDED]))
        exposures = (CONSENTERS,) if bounded else (CONSENTERS, IN_THE_TABLE, MOVED)
        return replace(
            claim,
            preconditions=(*claim.preconditions, *needs),
            not_protected=(*claim.not_protected, *exposures),
        )


def require_gate(unit: Unit) -> None:
    """Refuse a gate for a unit for which its guarantee would not hold.

    >>> from incrowd.core.unit import Unit
    >>> require_gate(Unit(Kind.PERSON, Adjacency.REPLACE, "id"))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a consent gate needs a guarantee for people who are added or removed: ...
    """
    if unit.kind is Kind.EDGE:
        raise InvalidParameter(NEEDS_NODES)
    if unit.kind is Kind.PERSON_PERIOD:
        raise InvalidParameter(NEEDS_ALL_PERIODS)
    if unit.kind not in (Kind.PERSON, Kind.NODE):
        raise InvalidParameter(NEEDS_PEOPLE)
    if unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameter(NEEDS_ADDING)


def gate_of(steps: tuple[Step, ...]) -> ConsentGate | None:
    """Return the consent gate in front of steps, if there is one."""
    first = steps[0] if steps else None
    return first if isinstance(first, ConsentGate) else None


REFUSABLE = Exposure(
    "refusable",
    "what publication itself shows: this release was compared with earlier ones about the same people, and would have "
    "been refused if in a cell that both show the numbers of rows differed by fewer than k",
)
THRESHOLD_FAILED = Exposure(
    "threshold-failed", "what a failed threshold shows about the rows: the data holder's attack read them"
)
CHOICE = Exposure(
    "choice-by-scores",
    "what the choice of parameters shows about the rows: it was made by scores without noise, and has no epsilon",
)


@dataclass(frozen=True)
class HoldOut(Step):
    """Each person, with all rows, is put into the holdout group independently, before anything else happens.

    Guarantee: unchanged.  It holds for every possible holdout group; people in the group are as if removed.  There is
    no amplification, because the data holder keeps the list.
    """

    kind: ClassVar[str] = "hold out"
    title: ClassVar[str] = "Holdout group"
    glyph: ClassVar[str | None] = "fewer"

    share: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidParameter("the share of the holdout group lies between 0 and 1, such as 10%.")

    @property
    def sentence(self) -> str:
        return (
            f"Each person (each row where rows are protected) is put into a holdout group independently: "
            f"{share(self.share)} on average, as a control group for attacks. The data holder keeps the list, so this "
            "protects nobody further, and reduces no cost."
        )


@dataclass(frozen=True)
class Rerun(Step):
    """An attack on an earlier release of these people failed a threshold: this release is another run.

    Guarantee: unchanged, but one assumption is not met: that the release was not selected from several runs.
    """

    kind: ClassVar[str] = "run again"
    title: ClassVar[str] = "Run again"

    sentence = (
        "The data holder attacked an earlier run about these people, and it failed a threshold. This release is "
        "another run, so it may have been selected from several."
    )

    def amend(self, claim: Claim) -> Claim:
        """Mark one assumption as not met, and add what saying so shows."""
        return replace(_selected(claim), not_protected=(*claim.not_protected, THRESHOLD_FAILED))


@dataclass(frozen=True)
class ChosenByScores(Step):
    """A search chooses the parameters of a model by scores of the rows without noise, as a grid search does.

    Guarantee: unchanged for this one fit, but one assumption is not met: the release was selected from several runs,
    and nothing bounds what the choice depends on.  `method: tuning` charges for it.
    """

    kind: ClassVar[str] = "choose by scores"
    title: ClassVar[str] = "Choose by scores without noise"

    sentence = (
        "This fit is part of a search of scikit-learn, which chooses parameters by scores of the rows without noise. "
        "The guarantee covers this fit alone: the choice has no epsilon. The method tuning chooses within its epsilon."
    )

    def amend(self, claim: Claim) -> Claim:
        """Mark one assumption as not met, and add what the choice can show."""
        return replace(_selected(claim), not_protected=(*claim.not_protected, CHOICE))


def _selected(claim: Claim) -> Claim:
    """Return the claim with the assumption not met that the release was not selected from several runs."""
    conditions = (
        Precondition(condition.term, Status.NOT_MET) if condition.term == ONCE else condition
        for condition in claim.preconditions
    )
    return replace(claim, preconditions=tuple(conditions))


@dataclass(frozen=True)
class Compare(Step):
    """The output is compared with earlier releases without an ε; only a release without one may be refused for it."""

    kind: ClassVar[str] = "compare with earlier releases"
    title: ClassVar[str] = "Compare"

    periods: bool | None = None
    """Whether some of them are of other periods, and so of other rows."""

    @property
    def sentence(self) -> str:
        others = (
            " With releases of other periods its people are compared: it is refused if fewer than k people left a cell "
            "that both show, or joined it."
        )
        return (
            "Before it appears, the release is compared with earlier ones about the same people: it is refused if in a "
            f"cell that both show the numbers of rows differ by fewer than k.{others if self.periods else ''}"
        )

    def amend(self, claim: Claim) -> Claim:
        """Add what publication itself shows."""
        return replace(claim, not_protected=(*claim.not_protected, REFUSABLE))


@dataclass(frozen=True)
class StartFromModel(Step):
    """A new model starts from one that was published of an earlier period, and so is public.

    Guarantee: unchanged.  What a release does may depend on earlier outputs (Rogers, Roth, Ullman & Vadhan 2016); both
    were charged.  `cliques` are the columns of the tables that are taken over.
    """

    kind: ClassVar[str] = "start from an earlier model"
    title: ClassVar[str] = "Start from an earlier model"

    period: str
    release: str
    digest: str
    cliques: tuple[tuple[str, ...], ...]

    @property
    def sentence(self) -> str:
        return (
            f"The model of {self.period} was used as published (release {self.release}, certificate "
            f"{self.digest[:16]}…), at no further cost: the new one is nearest to it among those that fit the new "
            "noisy tables."
        )


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
        return (
            f"The method is the code of {self.distribution} {self.version} (SHA-256 {self.digest}). The guarantee "
            "rests on that code, which incrowd did not check."
        )

    def amend(self, claim: Claim) -> Claim:
        """State the assumption first."""
        return replace(claim, preconditions=(*assumed([UNCHECKED_CODE]), *claim.preconditions))


AROUND: tuple[type[Step], ...] = (
    ConsentGate,
    ReadPeriod,
    HoldOut,
    Rerun,
    ChosenByScores,
    StartFromModel,
    Compare,
    OutsideCode,
)


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


def period_of(steps: tuple[Step, ...]) -> ReadPeriod | None:
    """Return the step that reads one period, in front of those of the method; None where all rows are read."""
    return next((step for step in steps_around(steps) if isinstance(step, ReadPeriod)), None)


def steps_around(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps in front of those of the method itself."""
    return steps[: len(steps) - len(own_steps(steps))]
