"""What a k^m-anonymous table claims, and which attacks it leaves open: an honest name, and no epsilon."""

from __future__ import annotations

from typing import Any

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.unit import Unit
from incrowd.methods.anonymity.syntactic import INTERSECTION, MINIMALITY, QUASI
from incrowd.methods.crowds.safe_claims import ROW_IS_PERSON

KIND = "k^m-anonymity"
KNOWN = "nobody knows more than m items of a person"
ASSUMES = frozenset({KNOWN, QUASI, ROW_IS_PERSON})
BECAUSE = "counted in the output: a property of its form, which bounds nothing for those who know more"
_THEOREM = (
    "Terrovitis, Mamoulis & Kalnis 2008, counted: within each class, every combination of at most m items that occurs, "
    "occurs in at least k rows"
)
_OPEN = (
    "more than m known items: a longer combination may occur in a single row",
    "items known to be absent, and the number of items: only what a person has is counted, not what they have not",
    "further items: rows that share the known items may all share another one, and give it away",
    INTERSECTION,
    MINIMALITY,
)


def claim(parameters: dict[str, Any], unit: Unit) -> Claim:
    """Return the claim about the form of the table."""
    conditions = (
        Precondition("the written output was counted again", Status.CHECKED),
        *(Precondition(text, Status.ASSUMED) for text in sorted(ASSUMES)),
    )
    return Claim(KIND, parameters, str(unit), _THEOREM, conditions, _OPEN)
