"""Masked rows: a table like the original, some of whose values were changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.methods.outcomes.histogram import Tabular
from incrowd.methods.perturbation.frame import RowFrame

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.methods.perturbation.steps import Masking


@dataclass(frozen=True, eq=False)
class Stage:
    """Rows as a step left them; without a step, as they were read.  For the data holder alone."""

    step: Masking | None
    frame: RowFrame


@dataclass(frozen=True, eq=False)
class MaskedRows(Tabular):
    """Rows in the order of what they show; `quasi` are the columns people can be looked up by.

    `stages` are what the masks left one after the other, where they were released here; nothing of them is published.

    >>> rows = MaskedRows(pa.table({"age": [30.5, 30.5, 41.0]}), ("age",))
    >>> rows.sizes.tolist()
    [2, 1]
    """

    form: ClassVar[str] = "masked rows"

    quasi: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows look alike in the quasi-identifiers, class by class."""
        sizes: NDArray[np.int64] = np.bincount(RowFrame(self.table).groups(self.quasi)).astype(np.int64)
        return sizes

    @property
    def tuples(self) -> int:
        """How many different rows there are."""
        return len(np.unique(RowFrame(self.table).groups(self.table.column_names)))

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - nothing of it is about people
        """Return what the output shows of itself, and the three tests of the EU's Opinion 05/2014."""
        if not len(self):
            return {"rows": 0, "classes": 0}
        bound = "bounded by the claims above, whatever the attacker knows"
        return {
            "rows": len(self),
            "classes": len(self.sizes),
            "smallest class": int(self.sizes.min()),
            "singling out": bound if private else "not bounded: values are masked, and how well is measured",
            "linkability": bound if private else "not bounded: identifiers are not released; masked values may be near",
            "inference": bound if private else "not bounded: this release has no epsilon",
        }


def rows_of(table: pa.Table, quasi: tuple[str, ...], stages: tuple[Stage, ...] = ()) -> MaskedRows:
    """Return masked rows; without quasi-identifiers all released columns tell rows apart."""
    return MaskedRows(table, quasi or tuple(table.column_names), stages)
