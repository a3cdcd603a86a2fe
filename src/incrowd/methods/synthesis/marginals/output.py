"""Synthetic rows: a table drawn from a model, the model, and what was measured for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.methods.outcomes.histogram import Tabular
from incrowd.methods.synthesis.marginals.model import Codes
from incrowd.methods.synthesis.marginals.synthetic_model import MODEL, SyntheticModel

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.methods.synthesis.marginals.search import Evaluation, Found


@dataclass(frozen=True, eq=False)
class SyntheticRows(Tabular):
    """Rows that were drawn from a model, in the order of what they show.

    Read again from its files, what was measured is `stated` by its certificate; `declared` says that how many rows
    there are is so.
    """

    form: ClassVar[str] = "synthetic rows"

    model: SyntheticModel | None = None
    found: Found | None = None
    evaluation: Evaluation | None = None
    names: tuple[str, ...] = ()
    stated: Mapping[str, Any] = field(default_factory=dict)
    declared: bool = False

    @property
    def documents(self) -> dict[str, str]:
        """What is written beside the rows: the model."""
        return {} if self.model is None else {MODEL: self.model.to_text()}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what was measured for the model, and how far its pairs of columns are from the rows', with noise."""
        if self.found is None or self.evaluation is None:
            return {**self.stated, "rows": len(self)}
        pairs = max(1, len(self.names) * (len(self.names) - 1) // 2)
        return {
            "rows": len(self),
            "rows declared" if self.declared else "rows estimated": round(self.found.model.total),
            "tables": [
                {"columns": [self.names[column] for column in each.columns], "scale": str(each.scale)}
                | ({} if each.epsilon is None else {"epsilon": str(each.epsilon)})
                for each in self.found.rounds
            ],
            "pairs": pairs,
            "mean error of pairs": f"{self.evaluation.error:.6f}",
            "margin of the error": f"{self.evaluation.margin:.6f}",
            "error scale": str(self.evaluation.scale),
            "singling out": "no row of the data is published: all rows are drawn from noisy tables",
            "linkability": "no row of the data is published: there is nothing to link",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }


def tuples_of(codes: Codes, sizes: Sequence[int]) -> Any:
    """Return drawn rows as tuples that can be counted."""
    from incrowd.methods.synthesis.marginals.search import WeightedRows

    return WeightedRows(tuple(sizes), codes, np.ones(codes.shape[1], np.int64))
