"""The answers of all pairs of nodes, and what they say of the true graph."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.graphs.edge_response.flips import estimates
from incrowd.methods.graphs.outputs import PublishedGraph

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class RespondedGraph(PublishedGraph):
    """Pairs that are said to be connected, of which some are not; estimates are computed from them alone."""

    form: ClassVar[str] = "answers of pairs"

    flip: Fraction = Fraction(1, 3)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what is published, and the unbiased estimates that anyone can compute from it."""
        found = estimates(self.graph, self.flip)
        return {
            **super().evidence(unit, private=private),
            "edges estimated": f"{found.edges:.1f}",
            "standard deviation of that": f"{found.deviation:.1f}",
            "triangles estimated": f"{found.triangles:.1f}",
        }
