"""Twenty tables as people publish them, with planted leaks: each cell that can be recomputed is named, and no other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.workflows.check.published.judging import judge_published
from incrowd.workflows.check.published.reading import read_published
from tests.methods.tabulation.frames import flat, nested

Whole = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Style:
    """How an office writes its tables."""

    total: str = "Total"
    mark: str = "*"
    delimiter: str = ","
    thousands: str = ""
    titles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    long: bool = False
    grouped: bool = False
    last: bool = True
    workbook: bool = False


STYLES = (
    Style(),
    Style("Insgesamt", "x", ";", "."),
    Style("Ensemble", "s", ";", "\u202f"),
    Style("Totaal", ".", ";"),
    Style("Total", "..", ",", last=False),
    Style("Razem", "#", ";", " "),
    Style("Totale", ":", ",", long=True),
    Style("Total", "<5", ","),
    Style("Summe", "/", ";", titles=("Tabelle 1: Personen nach Kreis und Alter",), notes=("/ = geheim",)),
    Style("All", "c", "\t"),
    Style("Total", "*", ",", long=True),
    Style("Total", "x", ",", grouped=True),
    Style("Insgesamt", ".", ";", ".", grouped=True),
    Style("Total", "n/a", ","),
    Style("Yhteensä", "..", ";", "\u00a0"),
    Style("Suma", "*", ";", long=True),
    Style("Totalt", "..", ";", " ", notes=(".. = too small",)),
    Style("Total", "x", workbook=True),
    Style("Gesamt", "*", grouped=True, workbook=True),
    Style("合計", "X", ","),
)


def published(style: Style, number: int) -> tuple[TableFrame, Whole, Whole]:
    """Return cells, and which of them are shown: in every second table some can be recomputed."""
    chance = np.random.default_rng(number)
    side = nested((2, 3), "r") if style.grouped else flat(4, "r")
    frame = TableFrame((side, flat(4, "c")))
    small = style.mark == "<5"
    leaves = chance.integers(5, 2000, frame.leaf_shape)
    hidden = chance.random(frame.leaf_shape) < 0.25
    leaves[hidden] = chance.integers(1, 5, int(hidden.sum())) if small else leaves[hidden]
    shown = np.ones(frame.shape, np.bool_)
    shown[np.ix_(frame.axes[0].leaves, frame.axes[1].leaves)] = ~hidden
    if number % 2:
        for axis in (0, 1):  # whoever hides one cell of a line hides a second one
            lines = np.moveaxis(shown, axis, 0)
            leaf = frame.axes[1 - axis].leaves
            for line in frame.axes[axis].leaves:
                if (~lines[line][leaf]).sum() == 1 and not small:
                    lines[line][leaf[int(np.flatnonzero(lines[line][leaf])[0])]] = False
    return frame, frame.totals(leaves), shown


def exact(frame: TableFrame, cells: Whole, shown: Whole, bounds: Bounds) -> dict[tuple[int, ...], int]:
    """Return every hidden cell of which integer programs find only one value."""
    seen = np.flatnonzero(shown.ravel())
    sums = LinearConstraint(frame.matrix[seen], cells.ravel()[seen], cells.ravel()[seen])
    disclosed = {}
    for cell in np.flatnonzero(~shown.ravel()).tolist():
        row = frame.matrix[[cell]].toarray().ravel().astype(float)
        ends = [milp(s * row, constraints=sums, bounds=bounds, integrality=np.ones(len(row))) for s in (1, -1)]
        if round(ends[0].fun) == round(-ends[1].fun):
            disclosed[tuple(int(n) for n in np.unravel_index(cell, frame.shape))] = round(ends[0].fun)
    return disclosed


def written(style: Style, frame: TableFrame, cells: Whole, shown: Whole, file: Path) -> None:
    def label(axis: int, node: int) -> str:
        text = str(frame.axes[axis].labels[node])
        depth = 2 if axis == 0 and style.grouped and frame.axes[0].parents[node] > 0 else 0
        return style.total if node == 0 else " " * depth + text

    def number(place: tuple[int, int]) -> str:
        return f"{cells[place]:,}".replace(",", style.thousands) if shown[place] else style.mark

    rows, columns = (list(range(1, size)) for size in frame.shape)
    rows, columns = ([*rows, 0], [*columns, 0]) if style.last else ([0, *rows], [0, *columns])
    if style.long:
        lines = [["region", "age", "count"]]
        lines += [[label(0, row), label(1, column), number((row, column))] for row in rows for column in columns]
    else:
        lines = [["region", *(label(1, column) for column in columns)]]
        lines += [[label(0, row), *(number((row, column)) for column in columns)] for row in rows]
    if style.workbook:
        import openpyxl

        book = openpyxl.Workbook()
        for line in lines:
            book.active.append([int(cell) if cell.isdigit() else cell for cell in line])
        book.save(file)
        return
    text = [*style.titles, *(style.delimiter.join(line) for line in lines), *style.notes]
    file.write_text("\n".join(text) + "\n", encoding="utf-8")


@pytest.mark.parametrize("number", range(len(STYLES)))
def test_every_planted_leak_is_found_and_nothing_else(number: int, tmp_path: Path) -> None:
    style = STYLES[number]
    frame, cells, shown = published(style, number)
    file = tmp_path / ("table.xlsx" if style.workbook else "table.csv")
    written(style, frame, cells, shown, file)
    verdict = judge_published(read_published(str(file)), 1)
    leaves = np.isin(np.arange(frame.size), frame.leaves) & ~shown.ravel()
    most = np.where(leaves[frame.leaves], 4, np.inf) if style.mark == "<5" else np.inf
    names = [[style.total if n == 0 else str(label) for n, label in enumerate(axis.labels)] for axis in frame.axes]
    expected = {
        ", ".join(names[axis][node] for axis, node in enumerate(place)): value
        for place, value in exact(frame, cells, shown, Bounds(0, most)).items()
    }
    result = {", ".join(part.strip() for part in cell.place.split(",")): cell.low for cell in verdict.disclosed}
    assert result == expected
    assert len(verdict.hidden) == int((~shown).sum())
    assert verdict.passed == (not expected)
    assert all(cell.why for cell in verdict.disclosed)
