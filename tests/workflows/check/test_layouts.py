"""Layouts of offices: years over sexes, groups of lines, rounded and negative numbers, percentages, and parts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from scipy.optimize import Bounds

from incrowd.cli.main import main
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.workflows.check.published.judging import judge_published
from incrowd.workflows.check.published.reading import read_cell, read_published
from tests.methods.tabulation.frames import flat
from tests.workflows.check.test_planted_leaks import exact
from tests.workflows.check.test_published import disclosed, judged

REGIONS, SEXES, YEARS = ("Nord", "Süd", "Insgesamt"), ("männlich", "weiblich", "zusammen"), ("2022", "2023", "Summe")
Write = Callable[[Callable[[int, int, int], str]], list[list[str]]]


def years_over_sexes(cell: Callable[[int, int, int], str]) -> list[list[str]]:
    heads = [["Kreis", *(year if sex == 0 else "" for year in YEARS for sex in range(3))], ["", *SEXES * 3]]
    return heads + [[REGIONS[r], *(cell(r, s, y) for y in range(3) for s in range(3))] for r in range(3)]


def years_in_every_column(cell: Callable[[int, int, int], str]) -> list[list[str]]:
    lines = years_over_sexes(cell)
    return [["Kreis", *(year for year in YEARS for _ in SEXES)], ["Kreis", *SEXES * 3], *lines[2:]]


def regions_once(cell: Callable[[int, int, int], str]) -> list[list[str]]:
    body = [
        [REGIONS[r] if s == 0 else "", SEXES[s], *(cell(r, s, y) for y in range(3))] for r in range(3) for s in range(3)
    ]
    return [["Kreis", "Geschlecht", *YEARS], *body]


def headings(cell: Callable[[int, int, int], str]) -> list[list[str]]:
    lines = [["Kreis", *YEARS]]
    for r in range(3):
        lines += [[REGIONS[r], "", "", ""], *([SEXES[s], *(cell(r, s, y) for y in range(3))] for s in range(3))]
    return lines


def indents(cell: Callable[[int, int, int], str]) -> list[list[str]]:
    lines = [["Kreis", *YEARS]]
    for r in range(3):
        lines += [[REGIONS[r], *(cell(r, 2, y) for y in range(3))]]
        lines += [["  " + SEXES[s], *(cell(r, s, y) for y in range(3))] for s in range(2)]
    return lines


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("layout", [years_over_sexes, years_in_every_column, regions_once, headings, indents])
def test_a_table_of_three_sides_is_read_in_every_layout_and_its_leaks_are_found(
    layout: Write, number: int, tmp_path: Path
) -> None:
    chance = np.random.default_rng(number)
    frame = TableFrame((flat(2, "a"), flat(2, "b"), flat(2, "c")))  # the total is the first line of each side
    cells = frame.totals(chance.integers(5, 900, (2, 2, 2)))
    shown = chance.random((3, 3, 3)) > (0.2, 0.3, 0.4, 0.5)[number]
    shown[0, 0, 0] = True
    order = (1, 2, 0)

    def text(*place: int) -> str:
        where = tuple(order[line] for line in place)
        return str(cells[where]) if shown[where] else "x"

    file = tmp_path / "tabelle.csv"
    file.write_text("".join(";".join(line) + "\n" for line in layout(text)), encoding="utf-8")
    verdict = judge_published(read_published(str(file)), 1)
    expected = set(exact(frame, cells, shown, Bounds(0, np.inf)).values())
    assert {cell.low for cell in verdict.disclosed} == expected
    assert len(verdict.disclosed) == len(exact(frame, cells, shown, Bounds(0, np.inf)))
    assert len(verdict.hidden) == int((~shown).sum())
    assert not verdict.odd


def test_a_workbook_with_merged_labels_over_its_columns_is_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for line in (["Tabulka 3"], ["Okres", 2023, None, None], [None, "muži", "ženy", "celkem"]):
        sheet.append(line)
    sheet.merge_cells("B2:D2")
    for line in (["A", 12, "*", 20], ["B", 30, 22, 52], ["Celkem", 42, 30, 72], ["* méně než 10"]):
        sheet.append(line)
    book.save(tmp_path / "t.xlsx")
    verdict = judge_published(read_published(str(tmp_path / "t.xlsx")), 1)
    assert disclosed(verdict) == {"A, ženy": 8}
    assert not any("sheet" in note for note in verdict.notes)
    book.create_sheet("II").append(["Okres", "celkem"])
    book.save(tmp_path / "t.xlsx")
    (note,) = (note for note in read_published(str(tmp_path / "t.xlsx")).notes if "sheet" in note)
    assert note.endswith("is not known: II")


def test_columns_without_a_name_or_a_cell_hide_nothing(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "Title;;;;\n;2022;2023;Sum;\nA;5;7;12;\nB;*;6;11;\nSum;10;13;23;\nnote;;;;\n")
    assert disclosed(verdict) == {"B, 2022": 5}
    assert len(verdict.hidden) == 1


def test_a_table_in_parquet_is_read(tmp_path: Path) -> None:
    columns = {"r": ["A", "B", "Total"], "M": [10, None, 42], "F": [12, 15, 27], "Total": [22, None, 69]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    verdict = judge_published(read_published(str(tmp_path / "t.parquet")))
    assert disclosed(verdict) == {"B, M": 32, "B, Total": 47}


def test_combinations_that_have_no_cell_are_not_called_hidden(tmp_path: Path) -> None:
    text = "Region,Men,,Women,,Total\n,2022,2023,2022,2023,\nNorth,5,*,6,7,27\nSouth,8,7,3,9,27\nTotal,13,16,9,16,54\n"
    verdict = judged(tmp_path, text, smallest=1)
    assert disclosed(verdict) == {"North, Men, 2023": 9}
    assert len(verdict.hidden) == 1


def test_parts_of_a_line_need_not_be_all_of_it(tmp_path: Path) -> None:
    text = "kind,a,b,Total\nCancer,20,15,35\nof which: lung,*,6,10\nHeart,12,9,21\nTotal,32,24,56\n"
    text += "of which: abroad,3,4,7\n"
    verdict = judged(tmp_path, text)
    assert not verdict.odd
    assert disclosed(verdict) == {"of which: lung, a": 4}
    assert verdict.notes == ("not examined, since they overlap with other lines: of which: abroad",)
    whole = judged(tmp_path, text.replace("Heart", "of which: other,16,9,25\nHeart").replace("10\n", "x\n"))
    assert disclosed(whole) == {"of which: lung, a": 4, "of which: lung, Total": 10}


def test_a_hidden_number_beside_its_percentage_is_named(tmp_path: Path) -> None:
    text = "Region,M,% M,F,% F,Total\nN,x,x,x,x,20\nS,x,57.7%,x,x,52\nTotal,42,58.3%,30,41.7%,72\n"
    verdict = judged(tmp_path, text, smallest=1)
    assert verdict.shares == ("S, M",)
    assert not verdict.passed
    assert verdict.sentence == "Do not publish this: 1 hidden number stands beside a percentage that is shown."
    assert judged(tmp_path, text.replace("57.7%", "x"), smallest=1).passed
    stacked = "Region,Number,,Percent,\n,M,F,M,F\nN,x,x,40,60\nS,9,8,53,47\n"
    assert judged(tmp_path, stacked, smallest=1).shares == ("N, Number, M", "N, Number, F")


def every_rounding(cells: np.ndarray[Any, Any], unit: int, reach: int) -> np.ndarray[Any, Any]:
    """Return all tables of 2 × 2 counts with totals whose numbers are within a reach of those shown, the slow way."""
    ends = [np.arange(max(0, cell - reach), cell + reach + 1) for cell in cells[:2, :2].ravel().tolist()]
    leaves = np.stack(np.meshgrid(*ends, indexing="ij"), -1).reshape(-1, 2, 2)
    rows = np.concatenate([leaves, leaves.sum(1, keepdims=True)], 1)
    tables = np.concatenate([rows, rows.sum(2, keepdims=True)], 2)
    return np.asarray(tables[np.all(np.abs(tables - cells) <= reach, axis=(1, 2))])


@pytest.mark.parametrize(("unit", "number"), [(unit, number) for unit in (3, 5) for number in range(4)])
def test_numbers_that_were_rounded_stand_for_all_that_agree(unit: int, number: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(number)
    nearest = bool(number % 2)
    while True:
        leaves = chance.integers(0, 30, (2, 2))
        rows = np.vstack([leaves, leaves.sum(0)])
        true = np.hstack([rows, rows.sum(1, keepdims=True)])
        steps = (true / unit + (0.5 if nearest else chance.random(true.shape))).astype(int)
        cells = unit * steps
        off = np.abs(cells[2] - cells[:2].sum(0)).max() + np.abs(cells[:, 2] - cells[:, :2].sum(1)).max()
        if off and np.gcd.reduce(cells.ravel()) == unit:
            break
    lines = [
        "k,a,b,Total",
        *(f"{n},{','.join(map(str, row))}" for n, row in zip(("x", "y", "Total"), cells, strict=True)),
    ]
    verdict = judged(tmp_path, "\n".join(lines) + "\n")
    tables = every_rounding(cells, unit, unit // 2)
    tables = tables if len(tables) else every_rounding(cells, unit, unit - 1)
    alone = tables.min(0) == tables.max(0)
    names = [("x", "y", "Total"), ("a", "b", "Total")]
    assert verdict.unit == unit
    assert not verdict.odd
    assert disclosed(verdict) == {
        f"{names[0][i]}, {names[1][j]}": tables[0, i, j] for i, j in np.argwhere(alone).tolist()
    }


def test_amounts_that_add_up_but_for_rounding_are_read_as_rounded(tmp_path: Path) -> None:
    text = "Land;2023;2024\nA;33,3;1.010,0\nB;33,3;20,1\nC;33,3;*\nInsgesamt;100,0;1.040,2\n"
    verdict = judged(tmp_path, text)
    assert verdict.passed
    assert [(cell.low, cell.high) for cell in verdict.hidden] == [(Fraction("9.95"), Fraction("10.25"))]


def test_of_numbers_that_can_be_negative_only_sums_are_known(tmp_path: Path) -> None:
    text = "Unit,Q1,Q2,Q3,Total\nA,-5,c,c,-1\nB,c,c,1,c\nC,c,4,c,8\nTotal,1,10,3,14\n"
    verdict = judged(tmp_path, text)
    assert disclosed(verdict) == {"B, Total": 7}
    assert {cell.interval for cell in verdict.hidden if not cell.disclosed} == {"any number"}
    assert verdict.knows == ("every total is the sum of its parts", "numbers can be negative")
    subtracted = judged(tmp_path, "Unit,Q1,Q2,Total\nA,-5,7,2\nB,c,-3,c\nTotal,-9,4,-5\n")
    assert disclosed(subtracted) == {"B, Q1": -4, "B, Total": -7}
    assert subtracted.disclosed[1].why == "(-9) − (-5) = -4, from Total, Q1"


def test_numbers_too_large_for_exact_sums_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f"k,a,b,Total\nx,{2**45},x,{2**46}\nTotal,{2**45},{2**45},{2**46}\n", encoding="utf-8")
    assert main(["check", "--table", str(file)]) == 2
    assert "write them in thousands" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.234,5", "1234.5"), ("1,234,567.25", "1234567.25"), ("1'234", "1234"), ("12 345,6", "12345.6"), ("-3", "-3")],
)
def test_numbers_with_marks_of_thousands_and_decimals_are_read(text: str, value: str) -> None:
    cell = read_cell(text)
    assert cell is not None
    assert cell.low == cell.high == Fraction(value)
