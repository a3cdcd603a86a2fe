"""A protected table in a report: its upper left corner, with what is left empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.words import counted
from incrowd.drawing.markup import Description, table
from incrowd.methods.tabulation.protected.steps import PerturbCells, RoundCells, SuppressCells, Tabulate

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement

EVIDENCE = {"cells": "Cells, totals among them", "empty cells": "Cells left empty"}
_LINES, _COLUMNS = 16, 8


def description(statement: Statement) -> Description:
    """Return what the table counts or sums, and how it is protected."""
    basis, cells, empty = statement.basis, int(statement.evidence["cells"]), int(statement.evidence["empty cells"])
    made, rounds, keyed = basis.need(Tabulate), basis.find(RoundCells), basis.find(PerturbCells)
    what = f"Sums of {made.value}" if made.value else "Counts"
    how = f"{counted(empty, 'cell')} left empty; every other number is exact." if basis.find(SuppressCells) else ""
    if rounds is not None:
        how = f"Every number is a multiple of {rounds.base}, and totals add up."
    if keyed is not None:
        how = f"Every count that is not zero has noise of at most {keyed.largest}; totals do not add up."
    full = (
        f"{what} in {counted(cells, 'cell')} over {' × '.join(made.names)}, with all totals. {how} No row is published."
    )
    return Description("A table with totals", full, "the numbers of that person's cells")


def picture(statement: Statement, output: Any) -> Markup | None:
    """Return the first lines of the table: the first column downward, the second across, of others the total."""
    made = statement.basis.need(Tabulate)
    numbers = np.array(output.table.column(made.number).to_pylist(), object).reshape(made.frame.shape)
    corner = numbers[(slice(_LINES), slice(_COLUMNS), 0)[: numbers.ndim]]
    corner = corner[:, None] if corner.ndim == 1 else corner
    across = [made.number] if len(made.axes) == 1 else [_label(label) for label in made.axes[1].labels[:_COLUMNS]]
    lines = zip(made.axes[0].labels, corner.tolist(), strict=False)
    rows = [[_label(label), *("—" if cell is None else f"{cell:,}" for cell in line)] for label, line in lines]
    part = "The table" if corner.size == numbers.size else "Part of the table"
    return table(f"{part}; — is a cell left empty", [" × ".join(made.names[:2]), *across], rows)


def _label(label: str | None) -> str:
    return "missing" if label is None else label
