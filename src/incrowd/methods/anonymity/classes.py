"""Classes: what a report says and draws of rows that look alike, whichever method put them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.core.claims.privacy import Anonymity
from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE: Mapping[str, str] = {
    "rows": "Rows published",
    "classes": "Different combinations",
    "smallest class": "Rows of the rarest one",
}
"""How numbers that such tables show of themselves are named."""


def description(statement: Statement, where: str = "table has") -> Description:
    """Return how large the crowds are, as the claim that counts them says; `where` rows are, in words."""
    rows, claim = int(statement.evidence["rows"]), next((c for c in statement.claims if isinstance(c, Anonymity)), None)
    if rows == 0:
        return EMPTY
    if claim is None:
        return Description("See the claims", "No claim is made about the size of crowds.")
    several = " Rows of one person may be among them." if statement.basis.unit.max_rows > 1 else ""
    over = "" if set(claim.columns) == set(statement.released) else " in the quasi-identifiers"
    crowds = f"Each combination of values{over} that was published occurs at least {claim.k} times."
    size = f" The published {where} {counted(rows, 'row')}."
    return Description(f"Crowds of {claim.k} or more", f"{crowds}{several}{size}", f"at least {claim.k} equal rows")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return how many rows look like how many others, in the quasi-identifiers."""
    return class_sizes(output.sizes, over="in all quasi-identifiers")
