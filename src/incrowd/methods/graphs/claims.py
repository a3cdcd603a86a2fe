"""Claims about graphs: what a form shows, and what noise on a number of edges promises."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, Claim, assumed, checked, proved
from incrowd.core.claims.privacy import PurePrivacy

if TYPE_CHECKING:
    from incrowd.core.steps.step import Grounds

NOT_PRIVATE = "counted: a property of the graph's form, which bounds nothing for those who know more"
_SHAPE = "what is around a node: whoever knows more of a person's neighborhood than their degree may find them"
_EDGES = "edges: most of those published are true, and whoever finds two people sees whether they are connected"
_DEGREES = "degrees: every node keeps its own, so that whoever is known by a rare one is found"
_NEAR = "degrees: few edges of a node change, so that whoever is known by a very rare degree is found"
_COUNTS = "counts inside and between super-nodes: they are exact, and whoever knows the other edges learns the last one"
_GROUPS_OF_ALL = "that all members of a super-node have something in common, where the counts or labels show it"
_LABELS = "labels: people of one super-node or degree share them, and what they share is told of all of them"
_AGAIN = "other releases of the same graph: together they tell more"


WIDEST = 2**48
"""Noise of a larger scale is not drawn: refused with the plan, before anything is charged."""


@dataclass(frozen=True, kw_only=True)
class DegreeAnonymity(Claim):
    """No degree is rare."""

    kind = "k-degree anonymity"
    rank: ClassVar[int] = 40

    k: int
    columns: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
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
        """What is claimed, for people."""
        return (
            f"Edges exchanged an end with another one, chosen at random, until {self.share} of them had or no more "
            "could be found; every node has the degree that it had. How much that hides is measured, not promised."
        )


@dataclass(frozen=True, kw_only=True)
class RandomEdges(Claim):
    """Edges were left out and put in."""

    kind = "random edges"
    rank: ClassVar[int] = 40

    share: Fraction

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return (
            f"Edges chosen at random, {self.share} of them, were left out, and as many put in where there were none, "
            "or as many as there was room for. How much that hides is measured, not promised."
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
        """What is claimed, for people."""
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"Every node is published only as one of a super-node of at least {self.k}{same}, with the numbers of "
            "edges inside and between super-nodes: nothing published tells its members apart."
        )


def degree_anonymity(k: int, columns: tuple[str, ...], unit: str) -> DegreeAnonymity:
    """Return the claim of a graph without rare degrees."""
    return DegreeAnonymity(
        k=k,
        columns=columns,
        unit=unit,
        theorem="Liu & Terzi 2008, Definition 2, counted",
        preconditions=checked("the degrees of the written graph were counted again"),
        not_protected=(_SHAPE, _EDGES, *([_LABELS] if columns else []), _AGAIN),
    )


def switched_edges(share: Fraction, unit: str) -> SwitchedEdges:
    """Return the claim of a switched graph."""
    return SwitchedEdges(
        share=share,
        unit=unit,
        theorem="by construction: an exchange of ends keeps the degrees of all four nodes (Ying & Wu 2008)",
        preconditions=proved("two edges that exchange ends are chosen by coins, and no edge is made twice"),
        not_protected=(_DEGREES, _SHAPE, _EDGES, _AGAIN),
    )


def random_edges(share: Fraction, unit: str) -> RandomEdges:
    """Return the claim of a graph with random changes."""
    return RandomEdges(
        share=share,
        unit=unit,
        theorem="by construction: as many edges go as come (Ying & Wu 2008, random add and delete)",
        preconditions=proved("which edges go and which come is chosen by coins, every choice as likely"),
        not_protected=(_NEAR, _SHAPE, _EDGES, _AGAIN),
    )


def generalized(k: int, columns: tuple[str, ...], unit: str) -> GroupedNodes:
    """Return the claim of a graph of super-nodes."""
    return GroupedNodes(
        k=k,
        columns=columns,
        unit=unit,
        theorem="Hay, Miklau, Jensen, Towsley & Weis 2008, generalization, counted",
        preconditions=checked("the sizes of the written super-nodes, and whether their counts are possible"),
        not_protected=(_COUNTS, _GROUPS_OF_ALL, *([_LABELS] if columns else []), _AGAIN),
    )


@dataclass(frozen=True)
class Reasons:
    """What a claim of privacy rests on: what is proved, what the output shows, and what else stays open."""

    proved: tuple[str, ...]
    checked: tuple[str, ...]
    gaps: tuple[str, ...] = ()


def private(grounds: Grounds, noise: str, scale: Fraction | None, reasons: Reasons) -> PurePrivacy:
    """Return the claim of numbers of a graph with noise; a scale that hangs on the edges is never stated."""
    unit = grounds.unit
    return PurePrivacy(
        unit=str(unit),
        theorem=grounds.promise.because,
        epsilon=grounds.epsilon,
        adjacency=unit.adjacency,
        max_rows=unit.max_rows,
        noise=noise,
        scale=scale,
        preconditions=(*proved(*reasons.proved), *checked(*reasons.checked), *assumed(grounds.promise.assumes)),
        not_protected=(GROUPS, *reasons.gaps),
    )
