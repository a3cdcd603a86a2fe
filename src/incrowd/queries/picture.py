"""An answer in a report: how many groups have noisy numbers; the numbers themselves are its table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from incrowd.core.words import counted
from incrowd.drawing.markup import Description

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.plan import Output
    from incrowd.core.statement import Statement

EVIDENCE: Mapping[str, str] = {"groups": "Groups answered"}


def description(statement: Statement) -> Description:
    """Return that every number carries noise."""
    groups = counted(int(statement.evidence["groups"]), "group")
    full = f"Aggregates of {groups}, each with noise; nobody's row."
    return Description("Noisy numbers", full, "the noisy numbers of that person's group")


def picture(statement: Statement, output: Output) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return nothing: an answer is as small as a picture of it would be."""
    return None
