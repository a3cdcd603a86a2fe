"""Generalized: rows at levels that a search found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from incrowd.methods.outcomes.anonymized import Anonymized

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class Generalized(Anonymized):
    """Rows at levels that a search found; nothing bounds what the levels tell, and they are told."""

    levels: Mapping[str, int] = field(default_factory=dict)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, and the levels it is at."""
        return {**super().evidence(unit, private=private), "levels": dict(self.levels)}
