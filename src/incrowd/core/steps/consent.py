"""ConsentGate: who takes part at all, by each person's own decision, before everything else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import assumed, proved
from incrowd.core.claims.privacy import Concentrated, Private, SampledCrowd, Surveyed
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Assumption, Condition, Exposure
from incrowd.core.unit import Adjacency, Kind
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
