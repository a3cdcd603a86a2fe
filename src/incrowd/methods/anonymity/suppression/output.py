"""Blanked: rows of which single cells are missing, because nothing was recorded or because they were left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.outcomes.anonymized import Anonymized

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class Blanked(Anonymized):
    """Rows in the order of what they show, missing cells last; classes are rows that show and miss the same."""

    form: ClassVar[str] = "blanked"

    @property
    def missing(self) -> dict[str, int]:
        """How many cells of each quasi-identifier are missing."""
        codes = dict(zip(self.names, zip(self.values, self.layout.unpack(self.keys), strict=True), strict=True))
        return {name: int(self.counts[codes[name][1] == len(codes[name][0])].sum()) for name in self.quasi}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, with missing cells as values of their own, and how many there are."""
        missing = self.missing
        told = {"missing cells": sum(missing.values()), "missing cells by column": missing}
        return {**super().evidence(unit, private=private), **told}
