"""A survey in a report: how reports are made; its reports are not part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import Description

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.plan import Output
    from incrowd.core.statement import Statement

EVIDENCE: Mapping[str, str] = {"questions": "Questions asked", "randomizers": "Randomizers"}


def description(statement: Statement) -> Description:
    """Return that reports are randomized before they are sent."""
    asked = counted(int(statement.evidence["questions"]), "question")
    full = f"How answers to {asked} are randomized before they are sent; nobody's report."
    return Description("How reports are made", full, "one randomized report of that person")


def picture(statement: Statement, output: Output) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return nothing: the weights are a table already."""
    return None
