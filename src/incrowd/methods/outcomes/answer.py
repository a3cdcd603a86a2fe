"""AnswerTable: the noisy answer to a question, a row for each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.outcomes.tabular import Tabular

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class AnswerTable(Tabular):
    """The columns that were asked for; beside each noisy number the ends of its 95 % interval, `_low` and `_high`."""

    form: ClassVar[str] = "answer"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what noisy aggregates show of themselves."""
        return {
            "groups": len(self),
            "singling out": "no rows are published, only noisy aggregates",
            "linkability": "no rows are published: there is nothing to link but names of groups",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }
