"""Locally generalized: rows at levels that differ from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from incrowd.methods.outcomes.anonymized import Anonymized

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class LocallyGeneralized(Anonymized):
    """Rows at the levels of the round that released them; quasi-identifiers are text, of one or several levels."""

    rounds: tuple[Mapping[str, int], ...] = ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows, and for each column the levels that its labels are from."""
        levels = {name: sorted({each[name] for each in self.rounds}) for name in self.quasi if self.rounds}
        return {**super().evidence(unit, private=private), "levels": levels}
