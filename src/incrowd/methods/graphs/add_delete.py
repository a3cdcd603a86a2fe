"""Random add and delete: some edges go and as many come; what that hides is measured, not guaranteed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, comb
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from incrowd.core.claims.claim import Claim
from incrowd.core.graph import Ends, Graph, keys_of, simple
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, fold
from incrowd.drawing.markup import Description
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import RandomEdges, random_edges
from incrowd.methods.graphs.shared.matrices import pairs_at, subset
from incrowd.methods.graphs.shared.outputs import (
    NodeLabels,
    PublishedGraph,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import ChangeEdges, Connect, unit_of
from incrowd.verifier.check import one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class AddDelete(ChangeEdges):
    """A share of the edges is removed, and as many are added where there were none."""

    kind: ClassVar[str] = "add and delete edges"
    title: ClassVar[str] = "Remove and add edges at random"
    criterion: ClassVar[str] = "random edges"

    @property
    def sentence(self) -> str:
        return (
            f"Randomly chosen edges are removed, {self.share} of them, and as many are put in between pairs of nodes, "
            "chosen at random, that were not connected; both are fewer where there are not as many such pairs. Nodes "
            "get new numbers, in random order."
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what was done, and that nothing more is guaranteed."""
        return (random_edges(self.share, basis.unit),)


def perturbed(graph: Graph, share: Fraction, coins: Coins) -> Ends:
    """Return the edges without a share of them, and with as many others, or as many as there is room for.

    Every set of edges is as likely to go, and every set of pairs that were not connected to come.
    """
    number = len(graph.ends)
    number_changed = min(ceil(share * number), comb(graph.size, 2) - number)
    remaining = np.delete(graph.ends, subset(number, number_changed, coins), axis=0)
    return simple(np.concatenate([remaining, _others(graph, number_changed, coins)]), graph.size)


def _others(graph: Graph, number: int, coins: Coins) -> Ends:
    """Draw so many different pairs that are not connected; a pair that is connected or drawn twice is drawn again."""
    own, keys_added = keys_of(graph.ends, graph.size), np.zeros(0, np.int64)
    while len(keys_added) < number:
        places = coins.below(comb(graph.size, 2), number - len(keys_added))
        keys = keys_of(np.stack(pairs_at(places), axis=1), graph.size)
        keys_added = np.union1d(keys_added, keys[~np.isin(keys, own)])
    return np.stack(np.divmod(keys_added, max(1, graph.size)), axis=1)


@dataclass(frozen=True, kw_only=True)
class AddingDeleting(Method):
    """A graph in which a share of the edges was left out at random, and as many others put in.

    Guarantee: a form, and no ε: the number of edges stays.  How many nodes are found all the same is measured by
    `incrowd graph attack`.

    Assumes: whoever releases it has attacked it first: few changes leave most people where they were.

    Source: Ying & Wu 2008 (random add/delete and switch).

    >>> AddingDeleting(share=Fraction(1, 20)).share
    Fraction(1, 20)
    """

    name: ClassVar[str] = "add-delete"

    share: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        AddDelete(self.share)

    def plan(self, schema: Schema) -> Plan:
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (AddDelete(self.share, self.columns),)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            ends = perturbed(graph, self.share, coins)
            return PublishedGraph.of(graph.with_ends(ends), labels.texts(graph), coins)

        return Plan(self.name, steps, fold(steps, schema.unit), {}, draw, settings={"share": self.share})


@dataclass(frozen=True, kw_only=True)
class AddDeleteCheck(TwoTablesCheck):
    """A simple graph; what was changed only the data holder can see."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return statement.basis.need(AddDelete).columns


class AddDeletePicture(GraphPicture):
    """A graph with changed edges."""

    def description(self, statement: Statement) -> Description:
        share = statement.basis.need(AddDelete).share
        full = f"A graph in which {share} of the edges were removed at random and as many added; the rest is true."
        return Description("A graph with random changes", full, "nodes with nearly the degree they look for")


METHOD = AddingDeleting
CHECK = AddDeleteCheck(
    order=(one(Connect), one(AddDelete)),
    claims=(RandomEdges,),
    output=PublishedGraph,
    hidden="it agrees with the steps; only the data holder knows what was changed",
)
PICTURE = AddDeletePicture("The published graph")
