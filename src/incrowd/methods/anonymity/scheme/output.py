"""Chosen microdata: rows at levels that a private look at the rows chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.outcomes.microdata import Microdata

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class ChosenMicrodata(Microdata):
    """Microdata whose levels were chosen by a private look at the rows; the labels tell them, and so does this."""

    form: ClassVar[str] = "chosen microdata"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what microdata shows, and the levels that were chosen: the choice is part of what was promised."""
        return {**super().evidence(unit, private=private), "levels": self.counts.levels}
