"""Around: steps that the road of a release puts in front of any method's own: people held out, failed runs, a check.

None of them changes what is guaranteed.  A certificate has each of them at most once, in the order of `AROUND`, before
the first step of its method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Precondition, Status, assumed, proved
from incrowd.core.claims.privacy import Concentrated, Private, SampledCrowd, Surveyed
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
    "the consent gate leaves a person's rows in or out by that person's own id and events "
    "alone, so that the guarantee for a person added or removed covers whether that person "
    "consented",
)
OWN_NODE = Condition(
    "own-node-decision",
    "the consent gate leaves a person's node in or out, with all its edges, by that person's "
    "own id and events alone, so that the guarantee for a node added or removed covers whether "
    "that person consented",
)
RECORDED = Assumption("registry-is-true", "the events of the consent registry are what these people decided")
CONSENTERS = Exposure(
    "consenters-described",
    "what is true of people who consented and not of others: all numbers describe those who "
    "consented, and who did not hides nobody",
)
IN_THE_TABLE = Exposure("consent-of-those-shown", "that people with a row in this table consented")
MOVED = Exposure(
    "consent-changes",
    "who consented or withdrew between this and other releases without an epsilon: a group "
    "that leaves or joins a cell is seen in the difference, and a release that waits for a "
    "larger group shows that it waits",
)
_BOUNDED = (Private, SampledCrowd, Surveyed, Concentrated)
"""Claims that bound what is learned of one person whatever else is released; all others say something of a form."""
NEEDS_ADDING = (
    "a consent gate needs a guarantee for people who are added or removed: with people replaced, the number of those "
    "who consent would have to be public, and it is not. Write adjacency: add-remove."
)
NEEDS_PEOPLE = "consent is given by people: name the column that tells them apart, dataset.unit.column."
NEEDS_NODES = (
    "a consent gate needs the unit node: where edges are protected the nodes are not, and which of them are left would "
    "show who consented. Write unit: {kind: node}."
)


@dataclass(frozen=True)
class ConsentGate(Step):
    """Only rows of people take part whose consent to a purpose stands; each is decided on by their own events.

    Guarantee: unchanged, for people added or removed.  Two tables that differ by one person are gated to the same table
    or to two that differ by that person.  Consenting is no secret sample: it earns no amplification.

    Source: a stable transformation, McSherry 2009, applied to rows with the person's own events.

    Before the run only purpose and, where the policy says so, `as_of` are known; `run` is when the registry was read,
    and `mark` an HMAC of its state under a key that `nonce` names and the registry alone can make.  `calendar` names
    the days on which a release without an ε may be made: one that could be made on any day would tell by its absence
    that somebody moved.
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
        """Whether this gate is what became of one that was planned."""
        return self.settled and replace(self, run=None, nonce=None, mark=None) == planned

    @property
    def rule(self) -> str:
        """How it is decided whose rows take part."""
        return "each person by their own events; who and how many consented is not told"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        run = "at the run" if self.run is None else f"at {self.run}"
        when = run if self.as_of is None else f"as of {self.as_of} and still {run}"
        whose = "the nodes of everybody, with all their edges, are" if self.edges else "the rows of everybody are"
        return (
            f"Before everything else {whose} left out whose consent to “{self.purpose}” did not "
            f"stand {when}. Who and how many they are is not told. Consenting is no secret sample and makes no loss "
            "smaller; whatever is counted below counts people who consented."
            f"{self._dates}"
        )

    @property
    def _dates(self) -> str:
        """On which days releases appear, in words; nothing where none are fixed."""
        if self.calendar is None:
            return ""
        return (
            f" Releases appear on days that were fixed before: {', '.join(self.calendar)}, and on no other; a day "
            "without one shows that it had to wait."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Leave the guarantee as it is, and refuse one that a gate would break."""
        require_gate(unit)
        return inner

    def amend(self, claim: Claim) -> Claim:
        """Say what the gate needs, and what consent itself leaves open."""
        bounded = isinstance(claim, _BOUNDED)
        own = OWN_NODE if self.edges else OWN_DECISION
        needs = (*(proved(own) if bounded else ()), *assumed([RECORDED]))
        left_open = (CONSENTERS,) if bounded else (CONSENTERS, IN_THE_TABLE, MOVED)
        return replace(
            claim,
            preconditions=(*claim.preconditions, *needs),
            not_protected=(*claim.not_protected, *left_open),
        )


def require_gate(unit: Unit) -> None:
    """Refuse a gate for a unit to whom its guarantee would not hold.

    >>> from incrowd.core.unit import Unit
    >>> require_gate(Unit(Kind.PERSON, Adjacency.REPLACE, "id"))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a consent gate needs a guarantee for people who are added or removed: ...
    """
    if unit.kind is Kind.EDGE:
        raise InvalidParameter(NEEDS_NODES)
    if unit.kind not in (Kind.PERSON, Kind.NODE):
        raise InvalidParameter(NEEDS_PEOPLE)
    if unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameter(NEEDS_ADDING)


def gate_of(steps: tuple[Step, ...]) -> ConsentGate | None:
    """Return the gate that stands in front of steps, if there is one."""
    first = steps[0] if steps else None
    return first if isinstance(first, ConsentGate) else None


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
