"""Histogram: one row for each bin, with its labels and its count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.outcomes.tabular import Tabular

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

COUNT = "count"
EXACT = "exact"


@dataclass(frozen=True, eq=False)
class Histogram(Tabular):
    """Bins in the order of the declared classes: a column for each label, then `count`, then perhaps `exact`."""

    form: ClassVar[str] = "histogram"

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that name the bins."""
        return tuple(name for name in self.table.column_names if name not in (COUNT, EXACT))

    @property
    def counts(self) -> NDArray[np.int64]:
        """The counts, bin by bin."""
        counts: NDArray[np.int64] = self.table[COUNT].to_numpy()
        return counts

    @property
    def exact(self) -> NDArray[np.bool_] | None:
        """Which counts are exact, if that was released."""
        if EXACT not in self.table.column_names:
            return None
        exact: NDArray[np.bool_] = self.table[EXACT].to_numpy()
        return exact

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - rows of people are not counted here
        """Return what the published counts show of themselves, and the three tests of the EU's Opinion 05/2014."""
        counts = self.counts
        above = counts[counts > 0]
        told = {} if self.exact is None else {"exact counts": int(self.exact.sum())}
        return {
            "bins": len(self),
            "bins above zero": len(above),
            **({"smallest count above zero": int(above.min())} if len(above) else {}),
            **told,
            "singling out": "no rows are published, only how many there are in each bin",
            "linkability": "no rows are published: there is nothing to link but the counts of bins",
            "inference": (
                "bounded by the claims above, for every attribute, whatever the attacker knows"
                if private
                else "not bounded: this release has no epsilon"
            ),
        }
