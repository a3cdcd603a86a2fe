"""Claims about graphs: what a form shows, and what noise on a number of edges guarantees."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, Claim, assumed, checked, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.coins import LARGEST_SCALE
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Unit

if TYPE_CHECKING:
    from incrowd.core.steps.step import ClaimBasis


_SHAPE = Exposure(
    "neighborhood",
    "what is around a node: someone who knows more of a person's neighborhood than their degree may find them",
)
_EDGES = Exposure(
    "true-edges",
    "edges: most of those published are true, and someone who finds two people sees whether they are connected",
)
_DEGREES = Exposure("kept-degrees", "degrees: every node keeps its own, so that a person known by a rare one is found")
_NEAR = Exposure(
    "near-degrees", "degrees: few edges of a node change, so that a person known by a very rare degree is found"
)
_COUNTS = Exposure(
    "exact-group-counts",
    "counts inside and between super-nodes: they are exact, and someone who knows the other edges learns the last one",
)
_GROUPS_OF_ALL = Exposure(
    "group-in-common", "that all members of a super-node have something in common, where the counts or labels show it"
)
_KINDS = Exposure(
    "kinds-of-group-edges",
    "which kinds of edges are common inside and between super-nodes, and what they say of kinds that are not published",
)
_LABELS = Exposure(
    "group-labels", "labels: people of one super-node or degree share them, and what they share is told of all of them"
)
_AGAIN = Exposure("other-graph-releases", "other releases of the same graph: together they tell more")


WIDEST = LARGEST_SCALE
"""Noise of a larger scale is not drawn: refused with the plan, before anything is charged."""


_DEGREE_ANONYMITY_COUNTED = Theorem("degree-anonymity-counted", "Liu & Terzi 2008, Definition 2, counted")
_DEGREES_RECOUNTED = Condition("degrees-recounted", "the degrees of the written graph were counted again")
_SWITCHING_KEEPS_DEGREES = Theorem(
    "switching-keeps-degrees",
    "by construction: an exchange of ends keeps the degrees of all four nodes (Ying & Wu 2008)",
)
_SWITCHES_RANDOM = Condition(
    "switches-random", "two edges that exchange ends are chosen at random, and no edge is made twice"
)
_ADD_DELETE_KEEPS_NUMBER = Theorem(
    "add-delete-keeps-number", "by construction: as many edges go as come (Ying & Wu 2008, random add and delete)"
)
_CHANGES_RANDOM = Condition(
    "changes-random", "which edges go and which come is chosen at random, every choice equally likely"
)
_SUPER_NODES_COUNTED = Theorem(
    "super-nodes-counted", "Hay, Miklau, Jensen, Towsley & Weis 2008, generalization, counted"
)
_SUPER_NODES_RECOUNTED = Condition(
    "super-nodes-recounted", "the sizes of the written super-nodes, and whether their counts are possible"
)


@dataclass(frozen=True, kw_only=True)
class DegreeAnonymity(Claim):
    """No degree is rare."""

    kind = "k-degree anonymity"
    rank: ClassVar[int] = 40

    k: int
    columns: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        same = f" and the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"For every node there are at least {self.k - 1} others with the same degree{same} in the published graph."
        )


@dataclass(frozen=True, kw_only=True)
class SwitchedEdges(Claim):
    """Ends of edges were exchanged."""

    kind = "switched edges"
    rank: ClassVar[int] = 40

    share: Fraction

    @property
    def sentence(self) -> str:
        return (
            f"Edges exchanged an end with another one, chosen at random, until {self.share} of them had or no more "
            "could be found; every node has the degree that it had. How much that hides is measured, not guaranteed."
        )


@dataclass(frozen=True, kw_only=True)
class RandomEdges(Claim):
    """Edges were left out and put in."""

    kind = "random edges"
    rank: ClassVar[int] = 40

    share: Fraction

    @property
    def sentence(self) -> str:
        return (
            f"Edges chosen at random, {self.share} of them, were left out, and as many put in where there were none, "
            "or as many as there was room for. How much that hides is measured, not guaranteed."
        )


@dataclass(frozen=True, kw_only=True)
class GroupedNodes(Claim):
    """Nodes are told only in groups."""

    kind = "super-nodes"
    rank: ClassVar[int] = 40

    k: int
    columns: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"Every node is published only as one of a super-node of at least {self.k}{same}, with the numbers of "
            "edges inside and between super-nodes: nothing published tells its members apart."
        )


def degree_anonymity(k: int, columns: tuple[str, ...], unit: Unit) -> DegreeAnonymity:
    """Return the claim of a graph without rare degrees."""
    return DegreeAnonymity(
        k=k,
        columns=columns,
        unit=unit,
        theorem=(_DEGREE_ANONYMITY_COUNTED,),
        preconditions=checked(_DEGREES_RECOUNTED),
        not_protected=(_SHAPE, _EDGES, *([_LABELS] if columns else []), _AGAIN),
    )


def switched_edges(share: Fraction, unit: Unit) -> SwitchedEdges:
    """Return the claim of a switched graph."""
    return SwitchedEdges(
        share=share,
        unit=unit,
        theorem=(_SWITCHING_KEEPS_DEGREES,),
        preconditions=proved(_SWITCHES_RANDOM),
        not_protected=(_DEGREES, _SHAPE, _EDGES, _AGAIN),
    )


def random_edges(share: Fraction, unit: Unit) -> RandomEdges:
    """Return the claim of a graph with random changes."""
    return RandomEdges(
        share=share,
        unit=unit,
        theorem=(_ADD_DELETE_KEEPS_NUMBER,),
        preconditions=proved(_CHANGES_RANDOM),
        not_protected=(_NEAR, _SHAPE, _EDGES, _AGAIN),
    )


def generalized(k: int, columns: tuple[str, ...], kinds: tuple[str, ...], unit: Unit) -> GroupedNodes:
    """Return the claim of a graph of super-nodes."""
    return GroupedNodes(
        k=k,
        columns=columns,
        unit=unit,
        theorem=(_SUPER_NODES_COUNTED,),
        preconditions=checked(_SUPER_NODES_RECOUNTED),
        not_protected=(
            *(_COUNTS, _GROUPS_OF_ALL),
            *([_LABELS] if columns else []),
            *([_KINDS] if kinds else []),
            _AGAIN,
        ),
    )


@dataclass(frozen=True)
class Reasons:
    """What a claim of privacy rests on: what is proved, what the output shows, and what else stays open."""

    proved: tuple[Condition, ...]
    checked: tuple[Condition, ...]
    gaps: tuple[Exposure, ...] = ()


def private(basis: ClaimBasis, noise: str, scale: Fraction | None, reasons: Reasons) -> PurePrivacy:
    """Return the claim of numbers of a graph with noise; a scale that hangs on the edges is never stated."""
    unit = basis.unit
    return PurePrivacy(
        unit=unit,
        theorem=basis.guarantee.because,
        epsilon=basis.epsilon,
        adjacency=unit.adjacency,
        max_rows=unit.max_rows,
        noise=noise,
        scale=scale,
        preconditions=(*proved(*reasons.proved), *checked(*reasons.checked), *assumed(basis.guarantee.assumes)),
        not_protected=(GROUPS, *reasons.gaps),
    )
