"""The steps of a noisy answer, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from incrowd.core.words import counted

Plain = Mapping[str, Any]


def answer_words(plain: Plain) -> tuple[str, str] | None:
    """Return the title and the words of a step of an answer; None for other steps.

    >>> answer_words({"step": "group", "by": [], "groups": 1})
    ('No groups', 'All rows together are one group.')
    """
    words = _WORDS.get(str(plain.get("step")))
    return None if words is None else words(plain)


def _understand(plain: Plain) -> tuple[str, str]:
    return "The question", str(plain.get("question"))


def _bound(plain: Plain) -> tuple[str, str]:
    rows, groups = (counted(int(plain.get(name, 1)), name.removesuffix("s")) for name in ("rows", "groups"))
    return "Few rows each", f"One unit of privacy takes part with {rows} in {groups} at most, whatever the table holds."


def _group(plain: Plain) -> tuple[str, str]:
    groups = plain.get("groups")
    if not plain.get("by"):
        return "No groups", "All rows together are one group."
    if isinstance(groups, int):
        return "Group", f"All {groups:,} groups that the declarations allow are answered, empty ones too."
    return "Group", "The groups are those that occur; which of them are shown is decided after the noise."


def _add(plain: Plain) -> tuple[str, str]:
    number = counted(len(plain.get("statistics", ())), "whole number")
    return "Add up", f"In each group {number} are added up exactly; each is held within declared bounds, row by row."


def _noise(plain: Plain) -> tuple[str, str] | None:
    if "scale" in plain and "fine" not in plain:
        return None
    kinds = {
        "integer cube": "one noise for all its numbers together, made for the most that a row can move them",
        "integer Laplace": "integer Laplace noise",
        "integer Gaussian": "integer Gaussian noise on each of its numbers",
    }
    kind = kinds.get(str(plain.get("noise")))
    return None if kind is None else ("Noise", f"Every group, empty ones too, gets {kind}.")


def _pick(plain: Plain) -> tuple[str, str]:
    number = int(plain.get("candidates", 0))
    return "Choose", f"A private selection chooses the {plain.get('kind')} among {number:,} declared values."


def _answer(plain: Plain) -> tuple[str, str]:
    names = ", ".join(str(name) for name in plain.get("columns", ()))
    return "Answer", f"From the noisy numbers alone: {names}; intervals hold in 95 of 100 answers."


_WORDS: dict[str, Callable[[Plain], tuple[str, str] | None]] = {
    "understand": _understand,
    "bound what one unit contributes": _bound,
    "group": _group,
    "add up": _add,
    "noise": _noise,
    "pick": _pick,
    "answer": _answer,
}
