"""k-degree anonymity: a graph in which nobody is known by the number of their edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.degree_anonymity.realization import anonymized
from incrowd.methods.graphs.degree_anonymity.steps import LevelDegrees
from incrowd.methods.graphs.labels import NodeLabels, require_crowds
from incrowd.methods.graphs.outputs import PublishedGraph
from incrowd.methods.graphs.units import unit_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema


@dataclass(frozen=True, kw_only=True)
class DegreeAnonymous:
    """A graph in which every degree is shared by at least k nodes, also among nodes with the same labels.

    Guarantee: a form, and no ε: for every node there are k − 1 others with the same degree and the same published
    labels.

    Assumes: nobody who reads the graph knows more of a person than the degree and the labels.

    Source: Liu & Terzi 2008; Erdős & Gallai 1960.

    >>> DegreeAnonymous(k=3).k
    3
    """

    name: ClassVar[str] = "degree-anonymity"

    k: int
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("k-degree anonymity needs k of at least 2.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone."""
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (LevelDegrees(self.k, self.columns),)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            ends = anonymized(graph, labels.classes(graph), self.k)
            return PublishedGraph.of(graph.with_ends(ends), labels.texts(graph), coins)

        def examine(graph: Graph) -> None:
            require_crowds(labels.classes(graph), self.k)  # which is all that can be in the way

        settings = {"k": self.k}
        return Plan(self.name, steps, fold(steps, schema.unit), {}, draw, settings=settings, examine=examine)
