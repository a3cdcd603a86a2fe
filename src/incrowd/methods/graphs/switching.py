"""Switching: edges exchange ends, degrees stay; what that hides is measured, not guaranteed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.graph import Ends, Graph, keys_of, simple
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, fold
from incrowd.drawing.markup import Description
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import SwitchedEdges, switched_edges
from incrowd.methods.graphs.shared.outputs import (
    NodeLabels,
    PublishedGraph,
    shuffled,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import ChangeEdges, Connect, unit_of
from incrowd.verifier.check import one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class SwitchEdges(ChangeEdges):
    """A share of the edges exchange an end with another edge; every node keeps its degree."""

    kind: ClassVar[str] = "switch edges"
    title: ClassVar[str] = "Exchange ends of edges"
    criterion: ClassVar[str] = "switched edges"

    @property
    def sentence(self) -> str:
        return (
            f"Randomly chosen pairs of edges exchange an end, until {self.share} of all edges have: (a, b) and "
            "(c, d) become (a, d) and (c, b), unless that makes a loop or an edge that exists. Every node keeps its "
            "degree. Nodes get new numbers, in random order."
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that degrees stay, and that the rest is not guaranteed."""
        return (switched_edges(self.share, basis.unit),)


_ROUNDS = 20  # pairs that would make a loop or a double edge are tried again; what is left then is not switched


def switched(graph: Graph, share: Fraction, coins: Coins) -> Ends:
    """Return the edges after a share of them exchanged an end with another edge: (a, b), (c, d) to (a, d), (c, b).

    Edges are paired by coins, round by round among those that were not switched yet; a pair that would make a loop or
    an edge that exists is left as it is.
    """
    size, ends = graph.size, graph.ends.copy()
    fresh = np.arange(len(ends))
    remaining = math.ceil(share * len(ends) / 2)
    for _ in range(_ROUNDS):
        if remaining <= 0 or len(fresh) < 2:
            break
        order = fresh[shuffled(len(fresh), coins)]
        pairs = order[: len(order) // 2 * 2].reshape(-1, 2)[: 2 * remaining]
        turned = coins.bernoulli(Fraction(1, 2), len(pairs))
        done = _exchange(ends, pairs, turned, size, remaining)
        remaining -= len(done)
        fresh = np.setdiff1d(fresh, done.ravel())
    return simple(ends, size) if len(ends) else ends


def _exchange(ends: Ends, pairs: Ends, turned: NDArray[np.bool_], size: int, remaining: int) -> Ends:
    """Exchange ends where the result is simple, in place, and return the pairs of edges that did."""
    one, other = ends[pairs[:, 0]], ends[pairs[:, 1]]
    other = np.where(turned[:, None], other[:, ::-1], other)
    new = np.stack([np.stack([one[:, 0], other[:, 1]], 1), np.stack([other[:, 0], one[:, 1]], 1)], 1)
    keys = keys_of(new.reshape(-1, 2), size)
    bad = (new[:, :, 0] == new[:, :, 1]).ravel() | np.isin(keys, keys_of(ends, size))
    first = np.zeros(len(keys), np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    good = np.flatnonzero((first & ~bad).reshape(-1, 2).all(axis=1))[:remaining]
    ends[pairs[good].ravel()] = new[good].reshape(-1, 2)
    return pairs[good]


@dataclass(frozen=True, kw_only=True)
class Switching(Method):
    """A graph in which a share of the edges exchanged an end with another edge.

    Guarantee: a form, and no ε: every node keeps its degree.  How many nodes are found all the same is measured by
    `incrowd graph attack`.

    Assumes: whoever releases it has attacked it first: 5 % of switched edges leave most people where they were.

    Source: Ying & Wu 2008 (random add/delete and switch).

    >>> Switching(share=Fraction(1, 20)).share
    Fraction(1, 20)
    """

    name: ClassVar[str] = "switching"

    share: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        SwitchEdges(self.share)

    def plan(self, schema: Schema) -> Plan:
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (SwitchEdges(self.share, self.columns),)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            ends = switched(graph, self.share, coins)
            return PublishedGraph.of(graph.with_ends(ends), labels.texts(graph), coins)

        return Plan(self.name, steps, fold(steps, schema.unit), {}, draw, settings={"share": self.share})


@dataclass(frozen=True, kw_only=True)
class SwitchingCheck(TwoTablesCheck):
    """A simple graph; what was switched only the data holder can see."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return statement.basis.need(SwitchEdges).columns


class SwitchingPicture(GraphPicture):
    """A graph with switched edges."""

    def description(self, statement: Statement) -> Description:
        share = statement.basis.need(SwitchEdges).share
        full = f"A graph with its true degrees, in which {share} of the edges exchanged an end; the rest is true."
        return Description("A graph with switched edges", full, "the nodes with the degree they look for")


METHOD = Switching
CHECK = SwitchingCheck(
    order=(one(Connect), one(SwitchEdges)),
    claims=(SwitchedEdges,),
    output=PublishedGraph,
    hidden="it agrees with the steps; only the data holder knows what was switched",
)
PICTURE = SwitchingPicture("The published graph")
