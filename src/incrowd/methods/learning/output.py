"""Output: a learned model as a table of its numbers, with the file that can be used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.methods.learning.models import MODEL, LearnedModel
from incrowd.methods.shared.outcome import Tabular

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.methods.shared.outcome import ReleasedTuples


@dataclass(frozen=True, eq=False)
class ModelTable(Tabular):
    """The numbers of a model, a line each; read again from its files, what was counted is `stated`."""

    form: ClassVar[str] = "learned model"

    model: LearnedModel | None = None
    rows: int | None = None
    stated: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: LearnedModel, rows: float) -> ModelTable:
        """Return a model with about how many rows it was learned from, by a noisy count."""
        return cls(model.lines(), model, max(0, round(rows)))

    @property
    def documents(self) -> dict[str, str]:
        """What is written beside the table: the model."""
        return {} if self.model is None else {MODEL: self.model.to_text()}

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        """Return nothing: a model has no rows to be held against those of the data."""
        return ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return about how many rows there were, how many numbers the model has, and the tests of Opinion 05/2014."""
        if self.rows is None:
            return {**self.stated, "coefficients": len(self)}
        return {
            "coefficients": len(self),
            "rows estimated": self.rows,
            "singling out": "no row of the data is published, only numbers that were made from noisy sums over all",
            "linkability": "no row of the data is published: there is nothing to link",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }
