"""Crosstabs and SDMX-CSV hold each number under its own labels, whatever these are called."""

from __future__ import annotations

import csv
import io
from itertools import product

import pyarrow as pa
import pytest

from incrowd.methods.tabulation.protected.publication import documents_of


def cells(*labels: str | None) -> pa.Table:
    """Return a table of two sides with these labels, whose numbers are their places."""
    places = list(product(range(len(labels)), repeat=2))
    rows = [[labels[place[side]] for place in places] for side in range(2)]
    return pa.table({"řada": rows[0], "sloupec": rows[1], "count": [10 * i + j for i, j in places]})


@pytest.mark.parametrize(
    "labels", [("*", "a", "missing", None), ("missing", "missing_", None), ("*", "_T", "_U", None), ("_U", "_T", None)]
)
def test_labels_that_are_named_like_totals_or_missing_values_keep_their_cells(labels: tuple[str | None, ...]) -> None:
    files = documents_of([cells(*labels)])
    header, *lines = csv.reader(io.StringIO(str(files["table.csv"])))
    assert len(set(header)) == len(labels) + 1
    assert [[int(cell) for cell in line[1:]] for line in lines] == [
        [10 * i + j for j in range(len(labels))] for i in range(len(labels))
    ]
    assert [line[0] for line in lines] == header[1:]
    rows = list(csv.DictReader(io.StringIO(str(files["table.sdmx.csv"]))))
    codes = [name for name in rows[0] if name not in ("DATAFLOW", "OBS_VALUE", "OBS_STATUS", "CONF_STATUS")]
    assert len({tuple(row[code] for code in codes) for row in rows}) == len(labels) ** 2
    assert rows[0][codes[0]].startswith("_T")


@pytest.mark.parametrize("hidden", [False, True])
def test_lines_of_values_that_nobody_has_are_left_out_unless_a_cell_is_suppressed(*, hidden: bool) -> None:
    """What is left out is 0 by the table; a cell that is suppressed might be anything, and its line stays."""
    labels = ("*", "F", "other", None)
    zeros = [0 if {row, across} & {"other", None} else 9 for row in labels for across in labels]
    numbers: list[int | None] = [*zeros]
    if hidden:
        numbers[3], numbers[7] = None, None
    grid = [(row, across) for row in labels for across in labels]
    table = pa.table({"a": [row for row, _ in grid], "b": [across for _, across in grid], "count": numbers})
    files = documents_of([table])
    header, *lines = csv.reader(io.StringIO(str(files["table.csv"])))
    assert header == (["a", "*", "F", "missing"] if hidden else ["a", "*", "F"])
    assert [line[0] for line in lines] == ["*", "F"]
    assert len(str(files["table.sdmx.csv"]).splitlines()) == 17


def test_no_label_of_a_crosstab_is_a_formula_for_a_spreadsheet() -> None:
    text = str(documents_of([cells("*", "=1+1", "+49", "plain")])["table.csv"])
    header, *lines = csv.reader(io.StringIO(text))
    assert header == ["řada", "*", "'=1+1", "'+49", "plain"]
    assert [line[0] for line in lines] == header[1:]
