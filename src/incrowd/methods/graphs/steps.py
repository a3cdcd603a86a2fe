"""Connect: rows become a simple graph, by the rules of the policy; and how a claim about a graph is completed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.relations import Relations
from incrowd.core.steps.step import Step
from incrowd.core.terms import Exposure
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter

REFUSE, DROP = "refuse", "drop"
NODES = Exposure(
    "nodes-known",
    "nodes, their number and their columns: they are taken as known to everyone, and only edges are hidden",
)
TOGETHER = Exposure(
    "edges-of-two-nodes",
    "all edges of two nodes together: each of them, of whatever kind and direction, can lose epsilon",
)
_REFUSED = {
    "loops": Exposure(
        "checked-no-loops",
        "that no edge joins a node with itself: the source was checked for it, and publication shows it",
    ),
    "doubles": Exposure(
        "checked-no-doubles", "that no edge stands twice: the source was checked for it, and publication shows it"
    ),
    "unknown": Exposure(
        "checked-no-unknown-nodes",
        "that no edge names an unknown node: the source was checked for it, and publication shows it",
    ),
}
_RULES = {"loops": "joins a node with itself", "doubles": "stands twice", "unknown": "names an unknown node"}


@dataclass(frozen=True)
class Connect(Step):
    """Edges become a simple graph: two nodes are connected, or they are not."""

    kind: ClassVar[str] = "connect"
    title: ClassVar[str] = "Connect nodes"

    directed: bool = False
    kinds: tuple[str, ...] = ()
    loops: str = REFUSE
    doubles: str = REFUSE
    unknown: str = REFUSE

    def __post_init__(self) -> None:
        if any(rule not in (REFUSE, DROP) for rule in (self.loops, self.doubles, self.unknown)):
            raise InvalidParameter("loops, doubles and edges to unknown nodes are refused, or dropped.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        way = " An edge in either direction connects them." if self.directed else ""
        kinds = f" Only edges of these kinds count: {', '.join(self.kinds)}." if self.kinds else ""
        many = " However many edges there are between two nodes, they count as one."
        return f"Two nodes are connected, or they are not.{kinds}{way}{many}{self.left_out}"

    @property
    def left_out(self) -> str:
        """Which edges are left out, in words."""
        dropped = [words for name, words in _RULES.items() if getattr(self, name) == DROP and name != "doubles"]
        return f" An edge is left out that {' or '.join(dropped)}." if dropped else ""

    @property
    def refusals(self) -> tuple[Exposure, ...]:
        """What publication shows of the source, because it would have been refused otherwise."""
        return tuple(shown for name, shown in _REFUSED.items() if getattr(self, name) == REFUSE)

    @property
    def relations(self) -> Relations:
        """What is declared of edges."""
        return Relations(self.kinds, self.directed)

    def amend(self, claim: Claim) -> Claim:
        """Say what a claim about edges does not hide, and what publication shows of the source."""
        gaps = claim.not_protected
        if claim.unit.kind.of_edges:
            gaps = (*gaps, NODES)
        if claim.unit.kind is Kind.RELATION:
            gaps = (*gaps, TOGETHER)
        return replace(claim, not_protected=(*gaps, *self.refusals))


@dataclass(frozen=True)
class Relate(Connect):
    """Edges of each kind, and in each direction, are counted apart."""

    kind: ClassVar[str] = "relate"
    title: ClassVar[str] = "Relate nodes"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        kinds = f"Edges are of these kinds, all others are left out: {', '.join(self.kinds)}." if self.kinds else ""
        way = "from one node to another" if self.directed else "between two nodes"
        every = f"{kinds} All edges {way}" + (" of one kind count as one." if self.kinds else " count as one.")
        return f"{every}{self.left_out}".strip()
