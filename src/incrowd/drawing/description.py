"""Description: what was published, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """What was published in a few words and in full; and what somebody who looks for one person finds in it."""

    short: str
    full: str
    match: str = "rows equal to the one they look for"


EMPTY = Description("No row", "Every row was suppressed: the published table is empty.")
