"""Synthetic rows: a table drawn from a model, the model, and what was measured for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.shared.outcome import Tabular
from incrowd.methods.synthesis.marginals.synthetic_model import MODEL, SyntheticModel
from incrowd.methods.synthesis.marginals.workload import table_names

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.methods.synthesis.marginals.evaluation import Evaluation, TableErrors
    from incrowd.methods.synthesis.marginals.search import Found


@dataclass(frozen=True, eq=False)
class SyntheticRows(Tabular):
    """Rows that were drawn from a model, in the order of what they show.

    Read again from its files, what was measured is `stated` by its certificate; `declared` says that how many rows
    there are is so.  `errors` are those of each table of the workload, where the policy asks for them.
    """

    form: ClassVar[str] = "synthetic rows"

    model: SyntheticModel | None = None
    found: Found | None = None
    evaluation: Evaluation | None = None
    names: tuple[str, ...] = ()
    stated: Mapping[str, Any] = field(default_factory=dict)
    declared: bool = False
    errors: TableErrors | None = None

    @property
    def documents(self) -> dict[str, str]:
        """What is written beside the rows: the model."""
        return {} if self.model is None else {MODEL: self.model.to_text()}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
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
            **self._errors(),
            "singling out": "no row of the data is published: all rows are drawn from noisy tables",
            "linkability": "no row of the data is published: there is nothing to link",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }

    def _errors(self) -> dict[str, Any]:
        """Return how far each table of the workload is from the rows', if that was measured."""
        found = self.errors
        if found is None:
            return {}
        named = zip(table_names(found.tables, self.names), found.errors, strict=True)
        return {
            "errors of tables": [{"columns": columns, "error": f"{error:.6f}"} for columns, error in named],
            "margin of each table": f"{found.margin:.6f}",
            "scale of each table": str(found.scale),
        }
