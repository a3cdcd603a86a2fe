"""The graph of a policy: where its nodes and edges are, and by which rules rows become edges."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.graph import GraphSchema, Relations
from incrowd.core.schema import Column, Role
from incrowd.core.table import SourceOptions
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.steps import Connect, Relate
from incrowd.workflows.policy.sections import EdgesSection

Place = tuple[str | None, SourceOptions]


@dataclass(frozen=True)
class GraphPlace:
    """Where nodes and edges are, which columns identify nodes, and how invalid edges are treated."""

    id: str
    nodes: Place
    edges: Place
    ends: tuple[str, str]
    kind: str | None
    connect: Connect

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """The columns of edges that are read."""
        return (*self.ends, *([] if self.kind is None else [self.kind]))


def node_columns(name: str, declared: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of nodes, the node ID first: it is an identifier."""
    if any(column.name == name for column in declared):
        raise InvalidParameter(f"the column {name!r} is the node ID: leave it out of columns.")
    return (Column(name, Role.IDENTIFIER), *declared)


def graph_schema(columns: tuple[Column, ...], unit: Unit, section: EdgesSection) -> GraphSchema:
    """Return the schema of a graph: columns of nodes, the unit, and what is declared of edges."""
    return GraphSchema(columns, unit, Relations(section.kinds, section.directed))


def edge_rules(section: EdgesSection, *, apart: bool) -> Connect:
    """Return how rows become edges, those of each kind and direction apart where the method takes them so."""
    if len(set(section.ends)) < 2 or section.kind in section.ends:
        raise InvalidParameter("the ends and the kind of an edge need separate columns.")
    if len(set(section.kinds)) < len(section.kinds):
        raise InvalidParameter("a kind of edges is declared twice: name each kind once under kinds.")
    return (Relate if apart else Connect)(
        section.directed, section.kinds, section.loops, section.doubles, section.unknown
    )
