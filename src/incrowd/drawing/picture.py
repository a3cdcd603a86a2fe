"""Picture: what a report says and draws of a method's releases; where a method has nothing to add, the claims speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.drawing.markup import Description

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.cells import Cells
    from incrowd.core.counts import Counts
    from incrowd.core.schema import Schema
    from incrowd.core.statement import Statement


class Comparison(Protocol):
    """A published output, and the cells in which original rows are counted to be compared with it."""

    @property
    def cells(self) -> Cells:
        """In which cells the original rows are counted."""

    def section(self, original: Counts) -> Markup:
        """Return the table of before and after; it is internal."""


class Picture:
    """What a report says and draws of a release; a method's module holds one as `PICTURE`.

    `evidence` names the whole numbers of the evidence that readers see, each with its label, in order; None shows all.
    """

    evidence: Mapping[str, str] | None = None

    def description(self, statement: Statement) -> Description:
        """Describe what was published, from the statement alone."""
        return Description("See the claims", "The claims say what is known about it.")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        """Draw a published output, from it alone; None where there is nothing to see."""
        return None

    def comparison(self, statement: Statement, output: Any, schema: Schema) -> Comparison | None:
        """Return how a published output is compared with the original rows; None where it cannot be."""
        return None
