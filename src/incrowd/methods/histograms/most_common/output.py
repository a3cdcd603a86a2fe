"""Selection: the bins that were chosen, in the order of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.outcomes.tabular import Tabular

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

RANK = "rank"


@dataclass(frozen=True, eq=False)
class Selection(Tabular):
    """The most common bins: `rank`, a column for each label, then perhaps a noisy `count`."""

    form: ClassVar[str] = "selection"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what a list of winners shows of itself."""
        return {
            "ranks": len(self),
            "singling out": "no rows are published, only which bins are among the most common",
            "linkability": "no rows are published: there is nothing to link but names of bins",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }
