"""Random add and delete: some edges go and as many come; what that hides is measured, not guaranteed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.methods.graphs.add_delete.changes import perturbed
from incrowd.methods.graphs.add_delete.steps import AddDelete
from incrowd.methods.graphs.labels import NodeLabels
from incrowd.methods.graphs.outputs import PublishedGraph
from incrowd.methods.graphs.units import unit_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class AddingDeleting:
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
        """Guarantee a form, from the schema alone."""
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (AddDelete(self.share, self.columns),)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            ends = perturbed(graph, self.share, coins)
            return PublishedGraph.of(graph.with_ends(ends), labels.texts(graph), coins)

        return Plan(self.name, steps, fold(steps, schema.unit), {}, draw, settings={"share": self.share})
