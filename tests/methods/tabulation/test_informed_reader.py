"""A reader who knows the rules, that numbers are whole, and that zeros are published, infers no sensitive cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.methods.tabulation.protected.perturbation import round_cells
from incrowd.methods.tabulation.protected.suppression import suppress, task_of
from incrowd.noise.system import SystemCoins
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.tabulation.frames import agreeing, few, flat
from tests.methods.tabulation.test_protected_table import GIVEN, SCHEMA, given
from tests.methods.tabulation.test_suppression import tables

AREAS, SEXES, KINDS = list("abcd"), ["F", "M"], ["x", "y"]


def people(cells: Whole, pay: int = 0) -> pa.Table:
    """Return a row for each person of cells over area × sex × kind."""
    places = [place for place, count in np.ndenumerate(cells) for _ in range(int(count))]
    chance = np.random.default_rng(len(places) + 1)
    names = zip(*((AREAS[a], SEXES[s], KINDS[k]) for a, s, k in places), strict=True)
    area, sex, kind = map(list, names)
    amounts = (chance.pareto(1.0, len(places)) * pay).astype(np.int64) + 1
    return pa.table({"area": area, "sex": sex, "kind": kind, "pay": amounts, "who": [f"{n}" for n in range(len(area))]})


def published(method: ProtectedTable, rows: pa.Table) -> tuple[TableFrame, Whole, Whole]:
    """Return the cells of a release and which of them are published; refusals pass."""
    column = method.release(Table(SCHEMA, LOCAL.open(rows), LOCAL), SystemCoins()).to_arrow().column(method.number)
    return method.frames(SCHEMA)[0], column.fill_null(0).to_numpy(), column.is_valid().to_numpy()


def extremes(
    parts: list[tuple[csr_array, Whole, Whole]], goal: Whole, least: int, near: tuple[Any, Any] = (0, np.inf)
) -> tuple[int, int]:
    """Return the ends of a sum of unknowns by integer programs: published sums are exact, empty ones bounded below."""
    constraints = []
    for sums, values, known in parts:
        seen, hidden = np.flatnonzero(known), np.flatnonzero(~known)
        constraints.append(LinearConstraint(sums[seen], values[seen], values[seen]))
        if len(hidden):
            constraints.append(LinearConstraint(sums[hidden], least, np.inf))
    results = [
        milp(sign * goal, constraints=constraints, bounds=Bounds(*near), integrality=np.ones(len(goal)))
        for sign in (1, -1)
    ]
    return round(results[0].fun), round(-results[1].fun)


def crowds(number: int, seed: int, most: int) -> Iterator[Whole]:
    """Yield small counts over area × sex × kind, with zeros and ones."""
    chance = np.random.default_rng(seed)
    for _ in range(number):
        shape = (len(AREAS), len(SEXES), len(KINDS))
        yield chance.integers(0, most, shape) * (chance.random(shape) < 0.8)


def test_four_ones_under_a_published_total_of_four_are_refused_with_the_way_out() -> None:
    rows = pa.table({"area": AREAS, "sex": ["F"] * 4, "kind": ["x"] * 4, "pay": [1] * 4, "who": AREAS})
    with pytest.raises(Infeasible, match=r"at least 1\. Choose zeros: suppressible, higher levels"):
        published(ProtectedTable(columns=("area",), minimum=3), rows)


def test_no_count_is_inferred_within_its_interval_by_integer_programs() -> None:
    method, sensitive = ProtectedTable(columns=("area", "sex"), minimum=3), 0
    for cells in crowds(24, seed=1, most=4):
        try:
            frame, values, known = published(method, people(cells))
        except Infeasible:
            continue
        finest = cells.sum(2)
        true, least = frame.totals(finest).ravel(), frame.totals((finest > 0).astype(np.int64)).ravel()
        for cell in np.flatnonzero((true > 0) & (true < 3)).tolist():
            low, high = extremes([(frame.matrix, values, known)], frame.matrix[[cell]].toarray().ravel(), 1)
            assert low <= max(true[cell] - 3, least[cell])
            assert high >= true[cell] + 3
            sensitive += 1
    assert sensitive > 20


def test_no_count_is_inferred_by_readers_who_knew_each_cell_up_to_a_share() -> None:
    """A reader who knows 2 up to a tenth of it knows it; with a half, 5 may be 3 to 7, and not 2 or 8."""
    method = ProtectedTable(columns=("area", "sex"), minimum=3, protection=1, prior=Fraction(1, 10))
    with pytest.raises(Infeasible):
        published(method, people(np.array([[[2, 0], [9, 0]], [[8, 0], [7, 0]], [[9, 0], [2, 0]], [[6, 0], [5, 0]]])))
    method, share, sensitive = ProtectedTable(columns=("area", "sex"), minimum=6, protection=2), Fraction(1, 2), 0
    for cells in crowds(3, seed=5, most=3):
        rows = np.where([[[True, False]]], np.array([0, 5, 12])[cells], 0)
        try:
            frame, values, known = published(replace(method, prior=share), people(rows))
        except Infeasible:
            continue
        true, finest = frame.totals(rows.sum(2)).ravel(), rows.sum(2).ravel()
        near = [(finest * (2 + sign) + (sign < 0)) // 2 for sign in (-1, 1)]
        for cell in np.flatnonzero((true > 0) & (true < 6)).tolist():
            parts = [(frame.matrix, values, known)]
            low, high = extremes(parts, frame.matrix[[cell]].toarray().ravel(), 1, (near[0], near[1]))
            assert low <= true[cell] - 2
            assert high >= true[cell] + 2
            sensitive += 1
    assert sensitive


def test_no_sum_is_inferred_within_its_interval_by_integer_programs() -> None:
    """Sums by the rule of p alone: then no sum of zero is ever empty."""
    method, sensitive = ProtectedTable(columns=("area", "sex"), value="pay", p=Fraction(1, 5)), 0
    for cells in crowds(8, seed=2, most=4):
        rows = people(cells, pay=5)
        try:
            frame, values, known = published(method, rows)
        except Infeasible:
            continue
        for cell, (true, down, up) in _demanded(frame, rows).items():
            low, high = extremes([(frame.matrix, values, known)], frame.matrix[[cell]].toarray().ravel(), 1)
            assert not known[cell]
            assert low <= true - down
            assert high >= true + up
            sensitive += 1
    assert sensitive > 20


def _demanded(frame: TableFrame, rows: pa.Table) -> dict[int, tuple[int, int, int]]:
    """Return by its number each sum that the rule of p makes sensitive, with its interval, from the rows alone."""
    sums: dict[int, list[int]] = {}
    zeros = np.zeros(frame.leaf_shape, np.int64)
    for row in rows.to_pylist():
        leaf = zeros.copy()
        area, sex = frame.axes
        leaf[area.ranges[area.place(row["area"])][0], sex.ranges[sex.place(row["sex"])][0]] = 1
        for cell in np.flatnonzero(frame.totals(leaf).ravel()).tolist():
            sums.setdefault(cell, []).append(row["pay"])
    above = np.zeros(frame.leaf_shape, np.int64)
    above[...] = np.isin(frame.leaves, list(sums)).reshape(above.shape)
    least = frame.totals(above).ravel()
    demands = {}
    for cell, amounts in sums.items():
        first, rest = max(amounts), sum(sorted(amounts)[:-2])
        up = -((-first + 5 * rest) // 5)
        if up > 0:
            demands[cell] = (sum(amounts), min(up, sum(amounts) - int(least[cell])), up)
    return demands


@pytest.mark.parametrize(("number", "most", "coalition", "fewest"), [(20, 6, 2, 6), (8, 3, 0, 0)])
def test_no_count_is_inferred_from_two_tables_whose_empty_cells_are_above_zero(
    number: int, most: int, coalition: int, fewest: int, tmp_path: Path
) -> None:
    """Of counts below 3 nearly all are refused, and would be inferred if empty cells could be zero."""
    before, sensitive = ProtectedTable(columns=("area", "kind"), minimum=2, protection=1), 0
    earlier = (str(tmp_path / "before.csv"),)
    method = ProtectedTable(columns=("area", "sex"), minimum=3, protection=2, earlier=earlier, coalition=coalition)
    for cells in crowds(number, seed=3, most=most):
        rows = people(cells)
        try:
            first = before.release(Table(SCHEMA, LOCAL.open(rows), LOCAL), SystemCoins()).to_arrow()
            texts = [column.cast(pa.string()) for column in first.columns]
            pyarrow.csv.write_csv(pa.table(texts, names=first.column_names), tmp_path / "before.csv")
            frame, values, known = published(method, rows)
        except Infeasible:
            continue
        counts = first.column("count")
        sides = [flat(4, "area"), flat(2, "sex"), flat(2, "kind")]
        joint = TableFrame((frame.axes[0], *sides[1:]))
        own = joint.matrix[np.arange(joint.size).reshape(joint.shape)[:, :, 0].ravel()]
        other = joint.matrix[np.arange(joint.size).reshape(joint.shape)[:, 0, :].ravel()]
        parts = [
            (own, values, known),
            (other, counts.fill_null(0).to_numpy(), counts.is_valid().to_numpy()),
        ]
        true = frame.totals(cells.sum(2)).ravel()
        for cell in np.flatnonzero((true > 0) & (true < 3)).tolist():
            low, high = extremes(parts, own[[cell]].toarray().ravel(), 1)
            assert (low, high) != (true[cell], true[cell])
            assert high >= true[cell] + 2
            sensitive += 1
    assert sensitive >= fewest


def test_that_some_empty_cell_must_be_sensitive_narrows_no_interval() -> None:
    """All tables that agree are tried, and those without a sensitive empty cell are excluded."""
    sensitive = 0
    for frame, leaves in tables(24, seed=5):
        cells = frame.totals(leaves)
        demands = few(frame, cells, 3, 2)
        try:
            pattern = suppress(task_of(frame, leaves), demands, 2)
        except Infeasible:
            continue
        low, high = cells.ravel().copy(), cells.ravel().copy()
        for table in agreeing(frame, cells, ~pattern.suppressed.reshape(frame.shape), least=1):
            seen = frame.matrix @ table
            empty = seen[pattern.suppressed]
            if np.any((empty > 0) & (empty < 3)):
                low, high = np.minimum(low, seen), np.maximum(high, seen)
        for demand in demands:
            assert low[demand.cell] <= cells.ravel()[demand.cell] - demand.down
            assert high[demand.cell] >= cells.ravel()[demand.cell] + demand.up
            sensitive += 1
    assert sensitive > 40


def test_rounding_leaves_every_number_open_up_to_the_base() -> None:
    """A cell and its totals can all be higher by less than the base, so that no rounded number gives a cell away."""
    chance = np.random.default_rng(7)
    for _ in range(20):
        frame, base = TableFrame((flat(3, "a"), flat(2, "b"))), int(chance.integers(2, 6))
        rounded = round_cells(frame, chance.integers(0, 6, frame.leaf_shape), base).cells
        for cell in range(len(frame.leaves)):
            leaves = frame.finest(rounded).copy()
            leaves.ravel()[cell] += base - 1
            assert np.all(np.abs(frame.totals(leaves) - rounded) < base)


def test_a_file_whose_empty_cells_are_narrow_for_who_knows_zeros_fails(tmp_path: Path) -> None:
    """Two empty counts under a total of 4 are from 1 to 3 each: 2 apart, where 3 is claimed."""
    folder = tmp_path / "out"
    policy = {**GIVEN, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    release_to(given([40, 20, 2, 18, 20, 9, 11]), policy, Destination(folder, "csv"))
    file = folder / "data.csv"
    text = file.read_text(encoding="utf-8")
    changed = re.sub(r"(?m)^(\W*\*\W*,)40$", r"\g<1>24", re.sub(r"(?m)^(\W*N\W*,)20$", r"\g<1>4", text))
    assert changed.count("24") == 1
    file.write_text(changed, encoding="utf-8")
    failed = {finding.about for finding in verify(folder).findings if finding.verdict == "failed"}
    assert "numbers in the file" not in failed
    assert "empty cells in the file" in failed


def test_the_claim_names_what_readers_know_and_what_is_not_protected() -> None:
    (claim,) = ProtectedTable(columns=("area", "sex"), minimum=3).plan(SCHEMA).claims
    for words in (
        "the rules",
        "whole and not negative",
        "zero is suppressed only if",
        "any two contributors who share",
    ):
        assert words in claim.sentence
    open_points = " ".join(map(str, claim.not_protected))
    for words in ("contributors beyond the coalition", "other tables", "other outputs", "minimality"):
        assert words in open_points
