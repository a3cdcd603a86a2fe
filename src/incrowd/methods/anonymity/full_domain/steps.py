"""Steps: whole columns are generalized, to the levels that a search found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from incrowd.core.codec import named
from incrowd.methods.anonymity.syntactic.steps import CutWithoutSome, groups_of

_AT = r"the levels with the least ([a-z-]+) among (\d{1,3}(?:,\d{3})*) combinations"


class OneLevel(StrEnum):
    """As what classes are shown."""

    LABELS = "hierarchy labels"


@dataclass(frozen=True, kw_only=True)
class CutLevels(CutWithoutSome):
    """Each quasi-identifier is shown at one level, found by a search; some rows may be left out."""

    shown_as: OneLevel = named("shown as", OneLevel.LABELS)

    def __post_init__(self) -> None:
        super().__post_init__()
        groups_of(_AT, self.at)

    @property
    def shown(self) -> str:
        """As what a class is shown."""
        return str(self.shown_as)


def least(quality: str, combinations: int) -> str:
    """Return which levels are taken."""
    return f"the levels with the least {quality} among {combinations:,} combinations"
