"""Blanks: the words for the step that leaves cells empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.core.words import counted


def blank_words(plain: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the title and the text of a step that leaves cells empty; None for other steps.

    >>> step = {"step": "leave out cells", "columns": ["age"], "until": {"k": 5}, "missing": "value"}
    >>> blank_words(step)[1][:86]
    'Cells of 1 quasi-identifier are left empty until k = 5, where an empty cell is a value'
    """
    if plain.get("step") != "leave out cells":
        return None
    columns = counted(len(plain.get("columns", ())), "quasi-identifier")
    until = ", ".join(f"{name} = {value}" for name, value in dict(plain.get("until", {})).items())
    sense = "matches anything" if plain.get("missing") == "matches" else "is a value of its own"
    text = (
        f"Cells of {columns} are left empty until {until}, where an empty cell {sense}. Which cells those are was "
        "chosen by looking at all rows; all others stay as they are."
    )
    return "Leave out cells", text
