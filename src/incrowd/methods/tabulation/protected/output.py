"""Protected tables as they are published: a column for each label, then the numbers; an empty number was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.methods.shared.outcome import Tabular
from incrowd.methods.tabulation.frame import Flags, TableFrame, Whole

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


@dataclass(frozen=True, eq=False)
class ProtectedCells(Tabular):
    """All cells in the order of the declared lines, the last column fastest."""

    form: ClassVar[str] = "protected table"

    @classmethod
    def of(cls, frame: TableFrame, cells: Whole, known: Flags, number: str) -> ProtectedCells:
        """Return a table of cells, of which some are left empty."""
        columns: dict[str, pa.Array] = {}
        for axis, nodes in zip(frame.axes, np.indices(frame.shape), strict=True):
            texts = pa.array([label for label in axis.labels if label is not None], pa.string())
            codes = np.cumsum([label is not None for label in axis.labels]) - 1
            missing = np.array([label is None for label in axis.labels])
            indices = pa.array(codes[nodes.ravel()], pa.int32(), mask=missing[nodes.ravel()])
            columns[axis.column] = pa.DictionaryArray.from_arrays(indices, texts)
        columns[number] = pa.array(cells.ravel(), pa.int64(), mask=~known.ravel())
        return cls(pa.table(columns))

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many cells there are and how many are left empty, and the three tests of Opinion 05/2014."""
        return {
            "cells": len(self),
            "empty cells": self.table.column(self.table.num_columns - 1).null_count,
            "singling out": "no rows are published, only numbers of cells",
            "linkability": "no rows are published: there is nothing to link but the numbers of cells",
            "inference": "not bounded: this release has no epsilon",
        }
