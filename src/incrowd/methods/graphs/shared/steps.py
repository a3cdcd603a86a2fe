"""Connect: rows become a simple graph, by the rules of the policy; and how a claim about a graph is completed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.accounting import accountant
from incrowd.core.claims.claim import Claim
from incrowd.core.graph import GraphSchema, Relations
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import Step, StepGuarantee
from incrowd.core.terms import Exposure, Theorem
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.schema import Schema


NOT_PRIVATE = Theorem(
    "counted-graph-form", "counted: a property of the graph's form, which bounds nothing for those who know more"
)
REFUSE, DROP, ADD = "refuse", "drop", "add"
FROM_EDGES = Exposure(
    "nodes-read-from-edges",
    "who is in the graph: its nodes were read from its edges, so every node has at least one, and publication shows it",
)
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
_UNKNOWN = (REFUSE, DROP, ADD)
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
        if any(rule not in (REFUSE, DROP) for rule in (self.loops, self.doubles)) or self.unknown not in _UNKNOWN:
            raise InvalidParameter("loops, doubles and edges to unknown nodes are refused, or dropped.")

    @property
    def sentence(self) -> str:
        way = " An edge in either direction connects them." if self.directed else ""
        kinds = f" Only edges of these kinds count: {', '.join(self.kinds)}." if self.kinds else ""
        many = " However many edges there are between two nodes, they count as one."
        return f"Two nodes are connected, or they are not.{kinds}{way}{many}{self.left_out}"

    @property
    def left_out(self) -> str:
        """Which edges are left out, in words."""
        dropped = [words for name, words in _RULES.items() if getattr(self, name) == DROP and name != "doubles"]
        added = " The nodes are those that edges name." if self.unknown == ADD else ""
        return (f" An edge is left out that {' or '.join(dropped)}." if dropped else "") + added

    @property
    def refusals(self) -> tuple[Exposure, ...]:
        """What publication shows of the source, because it would have been refused otherwise."""
        checked = tuple(exposure for name, exposure in _REFUSED.items() if getattr(self, name) == REFUSE)
        return (*checked, FROM_EDGES) if self.unknown == ADD else checked

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
        kinds = f"Edges are of these kinds, all others are left out: {', '.join(self.kinds)}." if self.kinds else ""
        way = "from one node to another" if self.directed else "between two nodes"
        every = f"{kinds} All edges {way}" + (" of one kind count as one." if self.kinds else " count as one.")
        return f"{every}{self.left_out}".strip()


def unit_of(schema: Schema) -> Kind:
    """Return whether edges or nodes are protected, or refuse every other unit."""
    unit = schema.unit
    if unit.kind not in (Kind.EDGE, Kind.RELATION, Kind.NODE) or unit.adjacency is not Adjacency.ADD_REMOVE:
        raise InvalidParameter(
            "this method is for graphs, whose unit is one edge, one edge of one kind, or one node, added or removed: "
            "write nodes: and edges: into the policy, and unit: {kind: edge} or {kind: node}."
        )
    return unit.kind


def require_edges(schema: Schema, what: str) -> None:
    """Refuse to protect nodes where one of them can change a number without bound."""
    if unit_of(schema) is Kind.NODE:
        raise InvalidParameter(
            f"one node can change {what} without bound, so that no noise would hide it. Protect edges, unit: {{kind: "
            "edge}; or ask for degree-distribution, or for subgraph-count of edges with a bound."
        )


def relations_of(schema: Schema) -> Relations:
    """Return what is declared of edges: nothing where a schema knows only nodes."""
    return schema.relations if isinstance(schema, GraphSchema) else Relations()


def spent(guarantee: Guarantee) -> dict[str, Any]:
    """Return the numbers that claims state: what the loss costs."""
    return {"epsilon": accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon}


@dataclass(frozen=True)
class ChangeEdges(Step):
    """A share of the edges is changed at random: a form, and nothing to those who know more."""

    tables: ClassVar[int] = 2
    criterion: ClassVar[str]

    share: Fraction
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidParameter("the share of changed edges lies above 0 and is at most 1.")

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic(self.criterion, (("share", str(self.share)),)), (NOT_PRIVATE,))
