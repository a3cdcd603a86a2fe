"""Machanavajjhala et al. 2006 (l-diversity), Li, Li & Venkatasubramanian 2007 (t-closeness), the lecture's table."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.criteria.distances import ordered
from incrowd.criteria.groups import Groups, distinct, entropy
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.measures.risk.classes import Sizes

LECTURE = Path(__file__).resolve().parents[2] / "examples" / "lecture" / "medical.csv"
_HALF = ["heart", "virus", "cancer", "cancer"]
INPATIENTS = {
    "4-anonymous": ["heart", "heart", "virus", "virus", "cancer", "heart", "virus", "virus", *["cancer"] * 4],
    "3-diverse": [*_HALF, "cancer", "heart", "virus", "virus", *_HALF],
}
SALARIES = [[3, 4, 5], [6, 11, 8], [7, 9, 10]]
CLOSE_SALARIES = [[3, 5, 9], [6, 11, 8], [4, 7, 10]]


def counted(columns: dict[str, pa.Array], kind: Type = Type.TEXT) -> Counts:
    *quasi, sensitive = columns
    recodings = [*(Recoding(Column(name), 0) for name in quasi), Recoding(Column(sensitive, type=kind), 0)]
    return LocalEngine().count(open_source(pa.table(columns)), Cells(tuple(recodings)))


def inpatients(name: str) -> Groups:
    blocks = pa.array([str(place // 4) for place in range(12)])
    return Groups.of(counted({"block": blocks, "condition": pa.array(INPATIENTS[name])}), ["block"], "condition")


def salaries(blocks: list[list[int]]) -> list[float]:
    block = pa.array([str(number) for number, block in enumerate(blocks) for _ in block])
    paid = pa.array([salary for block in blocks for salary in block])
    groups = Groups.of(counted({"block": block, "salary": paid}, Type.INTEGER), ["block"], "salary")
    return [float(distance) for distance in ordered(groups)]


def test_four_rows_alike_can_still_share_one_disease() -> None:
    assert distinct(inpatients("4-anonymous")).tolist() == [2, 3, 1]


def test_the_second_table_is_3_diverse() -> None:
    assert distinct(inpatients("3-diverse")).tolist() == [3, 3, 3]


def test_one_value_in_half_the_rows_is_less_than_three_even_ones() -> None:
    # A quarter, a quarter and a half: entropy 1.5 ln 2.
    assert entropy(inpatients("3-diverse")) == pytest.approx([math.exp(1.5 * math.log(2))] * 3)


def test_three_neighboring_salaries_are_three_eighths_away() -> None:
    assert salaries(SALARIES)[0] == pytest.approx(0.375)


def test_three_spread_out_salaries_are_a_sixth_away() -> None:
    assert salaries(SALARIES)[1] == pytest.approx(1 / 6)


def test_the_last_table_is_close_to_within_a_sixth_in_salary() -> None:
    assert max(salaries(CLOSE_SALARIES)) == pytest.approx(1 / 6)


def test_the_lecture_table_names_the_condition_of_one_group() -> None:
    quasi = ["ethnicity", "birth", "gender"]
    names = [*quasi, "condition"]
    counts = LocalEngine().count(open_source(LECTURE), Cells(tuple(Recoding(Column(name), 0) for name in names)))
    assert Sizes.of(counts, quasi).smallest == 2
    groups = Groups.of(counts, quasi, "condition")
    assert sorted(distinct(groups).tolist()) == [1, 1, 2, 2, 3]
