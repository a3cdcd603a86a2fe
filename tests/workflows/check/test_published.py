"""Published tables: every layout and mark is read, every cell that can be recomputed is named, and no other."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incrowd.cli.main import main
from incrowd.workflows.check.published.judging import TableVerdict, judge_published
from incrowd.workflows.check.published.reading import looks_published, read_published

CROSSTAB = """Region;Women;Men;Total
North;12;*;20
South;*;7;15
West;3;9;12
Total;23;24;47
"""
INDENTED = """Tabelle 3: Fälle nach Kreis und Jahr
;;;;
Kreis;2022;2023;2024;Insgesamt
Nord;1.204;998;1.100;3.302
  A-Stadt;600;500;550;1.650
  B-Dorf;600;x;545;{first}
  C-Tal;4;x;5;{second}
Süd;10;20;30;60
  D;5;10;15;30
  E;5;10;15;30
Insgesamt;1.214;1.018;1.130;3.362
x = Geheimhaltung
"""
LONG = """sex,age,n
F,0-17,12
F,18-64,{a}
F,65+,{b}
F,Total,30
M,0-17,10
M,18-64,{c}
M,65+,{d}
M,Total,40
Total,0-17,22
Total,18-64,{e}
Total,65+,{f}
Total,Total,70
"""
CODES = """NUTS,2023,2024
DE,100,110
DE1 Nord,60,*
DE11,30,*
DE12,30,35
DE2 Süd,40,50
DE21,25,..
DE22,15,..
"""


def judged(tmp_path: Path, text: str, smallest: int | None = None, **options: Any) -> TableVerdict:
    file = tmp_path / "table.csv"
    file.write_text(text, encoding="utf-8")
    return judge_published(read_published(str(file), value=options.pop("value", None)), smallest, **options)


def disclosed(verdict: TableVerdict) -> dict[str, Fraction | None]:
    return {cell.place: cell.low for cell in verdict.disclosed}


def test_a_cell_alone_in_its_row_or_column_is_given_away_by_a_subtraction(tmp_path: Path) -> None:
    verdict = judged(tmp_path, CROSSTAB)
    assert disclosed(verdict) == {"North, Men": 8, "South, Women": 8}
    assert verdict.disclosed[0].why == "24 − 7 − 9 = 8, from Total, Men"
    assert verdict.sentence == "Do not publish this: 2 of 2 hidden cells can be recomputed."


def test_indents_titles_notes_and_thousands_are_read(tmp_path: Path) -> None:
    safe = judged(tmp_path, INDENTED.format(first="x", second="x"))
    assert safe.passed
    assert {cell.interval for cell in safe.hidden} == {"0 to 498", "1,145 to 1,643", "9 to 507"}
    leaking = judged(tmp_path, INDENTED.format(first="1.640", second="x"))
    assert disclosed(leaking)["C-Tal, 2023"] == 3


@pytest.mark.parametrize("mark", ["/", "k. A.", "s/d", "n. v."])
def test_words_for_no_value_of_german_and_spanish_offices_hide_a_cell(tmp_path: Path, mark: str) -> None:
    lines = ["Kreis;männlich;weiblich;Insgesamt", f"Daun;{mark};1.311;2.515", "Cochem;48;15;63"]
    text = "\n".join([*lines, "Insgesamt;1.252;1.326;2.578", ""])
    assert disclosed(judged(tmp_path, text)) == {"Daun, männlich": 1204}


def test_a_long_table_with_bounds_as_marks_is_read(tmp_path: Path) -> None:
    verdict = judged(tmp_path, LONG.format(a="15", b="<5", c="<5", d="27", e="*", f="*"))
    assert disclosed(verdict) == {
        "F, 65+": 3,
        "M, 18-64": 3,
        "Total, 18-64": 18,
        "Total, 65+": 30,
    }
    assert verdict.smallest == 5


SDMX = """DATAFLOW,FREQ,GEO,SEX,OBS_VALUE,OBS_STATUS,CONF_STATUS
X:T(1.0),A,_T,_T,40,A,F
X:T(1.0),A,_T,F,22,A,F
X:T(1.0),A,_T,M,18,A,F
X:T(1.0),A,N,_T,25,A,F
X:T(1.0),A,N,F,,Q,C
X:T(1.0),A,N,M,12,A,F
X:T(1.0),A,S,_T,15,A,F
X:T(1.0),A,S,F,,Q,C
X:T(1.0),A,S,M,6,A,F
"""


def test_a_table_in_sdmx_is_read_without_its_attributes(tmp_path: Path) -> None:
    verdict = judged(tmp_path, SDMX)
    assert disclosed(verdict) == {"N, F": 13, "S, F": 9}
    assert "from N, _T" in (verdict.disclosed[0].why or "")


@pytest.mark.parametrize(("total", "flag"), [("Toplam", " e"), ("I alt", "p"), ("Σύνολο", " (1)"), ("合計", "¹")])
def test_totals_of_other_languages_and_flags_behind_numbers_are_read(tmp_path: Path, total: str, flag: str) -> None:
    text = f"yer,a,b,{total}\nx,12{flag},*,20\ny,*,7,15\n{total},20,15,35\n"
    assert disclosed(judged(tmp_path, text)) == {"x, b": 8, "y, a": 8}


def test_totals_are_found_by_codes(tmp_path: Path) -> None:
    """DE1 is 110 − 50, DE11 follows from it; the two towns of DE2 hide each other."""
    verdict = judged(tmp_path, CODES)
    assert disclosed(verdict) == {"DE1 Nord, 2024": 60, "DE11, 2024": 25}


def test_totals_without_a_name_are_found_by_adding_up(tmp_path: Path) -> None:
    text = "kind,a,b,c,d\nx,1,20,30,4\ny,4,50,60,4\nz,.,.,9,2\nboth,11,78,99,10\nq,5,6,7,1\nr,1,2,3,5\n"
    verdict = judged(tmp_path, text, smallest=1)
    assert disclosed(verdict) == {"z, a": 6, "z, b": 8}
    assert verdict.disclosed[0].why == "11 − 1 − 4 = 6, from both, a"


def test_published_zeros_tell_that_hidden_counts_are_at_least_one(tmp_path: Path) -> None:
    text = "age,a,b,c,d,Totaal\n0-20,*,*,*,*,4\n20-40,10,{},12,8,{}\n40+,20,21,9,10,60\nTotaal,*,*,*,*,{}\n"
    with_zero, without = text.format(0, 30, 94), text.format(1, 31, 95)
    assert len(judged(tmp_path, with_zero).disclosed) == 8
    assert not judged(tmp_path, without, smallest=1).disclosed
    assert len(judged(tmp_path, without, smallest=1, zeros=True).disclosed) == 8
    assert not judged(tmp_path, with_zero, smallest=1, zeros=False).disclosed


def test_dashes_are_zeros_where_the_sums_say_so_and_hidden_where_they_do_not(tmp_path: Path) -> None:
    zero = judged(tmp_path, "k,a,b,c,Total\nx,-,5,7,12\ny,3,.,.,9\nTotal,3,.,.,21\n", smallest=1)
    assert not any(cell.mark == "-" for cell in zero.hidden)
    hidden = judged(tmp_path, "k,a,b,c,Total\nx,-,-,7,12\ny,3,2,4,9\nTotal,5,5,11,21\n", smallest=1)
    assert disclosed(hidden) == {"x, a": 2, "x, b": 3}


def test_small_counts_that_are_shown_are_named(tmp_path: Path) -> None:
    text = "k,a,b,Total\nx,1,5,6\ny,7,9,16\nTotal,8,14,22\n"
    assert judged(tmp_path, text).small == ("x, a",)
    assert judged(tmp_path, text, smallest=10).small[-1] == "y, b"
    assert not judged(tmp_path, text.replace("1,5,6", "4,2,6").replace("8,14", "11,11"), smallest=2).small


def test_totals_that_do_not_add_up_are_named_and_nothing_is_proved(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "k,a,b,Total\nx,10,20,31\ny,30,.,70\nTotal,40,60,101\n")
    assert verdict.odd == ("Total, Total", "x, Total")
    assert not verdict.passed
    assert not verdict.hidden


def test_amounts_with_decimals_are_examined_as_numbers(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "branch;2023;2024;Summe\nA;1,5;2,25;3,75\nB;x;4;6,5\nSumme;4;6,25;10,25\n")
    assert disclosed(verdict) == {"B, 2023": Fraction(5, 2)}
    assert verdict.smallest is None


def test_a_workbook_is_read_like_text(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in CROSSTAB.splitlines():
        book.active.append([int(cell) if cell.isdigit() else cell for cell in line.split(";")])
    book.save(tmp_path / "table.xlsx")
    verdict = judge_published(read_published(str(tmp_path / "table.xlsx")))
    assert list(disclosed(verdict).values()) == [8, 8]


def every_table(cells: np.ndarray[Any, Any], visible: np.ndarray[Any, Any], least: int) -> np.ndarray[Any, Any]:
    """Return all tables of 2 × 3 counts with totals that agree with the visible ones, the slow way."""
    leaves = np.array(list(product(range(int(cells[-1, -1]) + 1), repeat=6))).reshape(-1, 2, 3)
    rows = np.concatenate([leaves, leaves.sum(1, keepdims=True)], 1)
    tables = np.concatenate([rows, rows.sum(2, keepdims=True)], 2)
    agree = np.all((tables == cells) | ~visible, axis=(1, 2))
    return np.asarray(tables[agree & np.all((leaves >= least) | visible[:-1, :-1], axis=(1, 2))])


def with_totals(leaves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    rows = np.vstack([leaves, leaves.sum(0)])
    return np.hstack([rows, rows.sum(1, keepdims=True)])


@pytest.mark.parametrize("number", range(12))
def test_intervals_are_those_of_all_tables_that_agree(tmp_path: Path, number: int) -> None:
    chance = np.random.default_rng(number)
    cells = with_totals(chance.multinomial(6, [1 / 6] * 6).reshape(2, 3))
    visible = chance.random((3, 4)) < 0.6
    visible[-1, -1] = True
    zeros = bool(number % 2)
    visible |= zeros & (cells == 0)
    tables = every_table(cells, visible, int(zeros))
    lines = ["k,a,b,c,Total"]
    for name, row, flags in zip(("x", "y", "Total"), cells, visible, strict=True):
        lines.append(",".join([name, *(str(n) if flag else "*" for n, flag in zip(row, flags, strict=True))]))
    verdict = judged(tmp_path, "\n".join(lines) + "\n", smallest=1, zeros=zeros)
    hidden = {cell.place: (cell.low, cell.high) for cell in verdict.hidden}
    names = [("x", "y", "Total"), ("a", "b", "c", "Total")]
    expected = {
        f"{names[0][i]}, {names[1][j]}": (tables[:, i, j].min(), tables[:, i, j].max())
        for i, j in np.argwhere(~visible).tolist()
    }
    assert hidden == expected


def test_check_reads_a_table_of_counts_as_one_and_rows_as_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.csv"
    file.write_text(CROSSTAB, encoding="utf-8")
    assert main(["check", str(file)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 hidden cells can be recomputed" in text
    assert "24 − 7 − 9 = 8" in text
    assert "unique" not in text
    assert main(["check", str(file), "--rows"]) == 1
    assert "--rows" not in capsys.readouterr().out
    people = tmp_path / "people.csv"
    people.write_text("age,sex,income\n" + "".join(f"{20 + n % 3},F,{n}\n" for n in range(30)), encoding="utf-8")
    assert looks_published(str(people)) is None
    assert main(["check", "--table", str(people)]) == 2
    assert "not a table of counts" in capsys.readouterr().err
