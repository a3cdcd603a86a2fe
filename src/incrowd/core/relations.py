"""Relations: which kinds of edges a graph has and whether they have directions, and a schema that declares it."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.schema import Schema
from incrowd.core.unit import Kind


@dataclass(frozen=True)
class Relations:
    """The declared kinds of edges, none if they are not told apart, and whether edges have directions.

    >>> Relations(("friend", "boss"), directed=True).slots(Kind.EDGE)
    4
    """

    kinds: tuple[str, ...] = ()
    directed: bool = False

    def slots(self, unit: Kind) -> int:
        """Return how many edges of the declared kinds one unit has at most: all those of a pair, or one."""
        return 1 if unit is Kind.RELATION else max(1, len(self.kinds)) * (2 if self.directed else 1)


@dataclass(frozen=True)
class GraphSchema(Schema):
    """The columns of nodes, the unit of privacy, and what is declared of edges."""

    relations: Relations = Relations()
