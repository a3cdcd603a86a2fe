"""Files of points are held against the stated box alone, their claims are derived again, and forgeries are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Blending
from incrowd.core.domain import Dates, Domain, Numbers, Type
from incrowd.core.plan import Plan
from incrowd.core.schema import Outside
from incrowd.core.statement import Statement
from incrowd.core.steps.counts import NoiseWhenSmall
from incrowd.core.steps.rows import KeepRows
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.outcome import Histogram
from incrowd.methods.synthesis.points.check import changed as noise_changes
from incrowd.methods.synthesis.points.check import contents, cuts, impossible, middles, reach_squared
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.method import CHECK
from incrowd.methods.synthesis.points.steps import IntoCells, LipschitzError, Placement, PlacePoints, Side
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.contract.examples import POLICIES
from tests.methods.synthesis.boxes import column
from tests.plans import assert_changes_refused, assert_read_back
from tests.policies import changed, with_ledger, written
from tests.statements import statement_of, with_step

CALLS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "calls"},
    "columns": {
        "east": {"type": "decimal", "bounds": ["0.1", "10.3"]},
        "age": {"type": "integer", "bounds": [0, 99], "missing": "50"},
        "day": {"type": "date", "bounds": ["1969-01-01", "1970-12-31"], "outside": "drop"},
        "note": {"role": "identifier"},
    },
    "release": {"method": "points", "s": 3, "rate": "1/2", "noise_epsilon": 1, "epsilon": 1, "delta": "1e-3"},
}
LOOSE = {"release__epsilon": 3, "release__delta": "1e-2"}
OPEN: dict[str, Any] = {"release__epsilon": None, "release__delta": None, "release__rate": None, "release__k": 5}
UNBOUNDED: dict[str, Any] = {**OPEN, "budget": {"unbounded": "for the tests"}}
WAYS: dict[str, dict[str, Any]] = {
    "noisy": {},
    "suppressed": {"release__noise_epsilon": None},
    "uniform": {"release__place": "uniform"},
    "no sample": {**UNBOUNDED, "release__noise_epsilon": None, "release__place": "uniform"},
    "no sample, noisy": UNBOUNDED,
    "replaced": {"dataset__unit": {"adjacency": "replace-one"}, **LOOSE},
    "error given": {"release__columns": ["east"], "release__s": None, "release__error": "0.01"},
    "people": {"dataset__unit": {"column": "note", "max_rows": 2}, **LOOSE},
}
Rows = list[list[str]]


def calls(rows: int = 800) -> pa.Table:
    chance = np.random.default_rng(3)
    days = np.datetime64("1969-01-01") + chance.integers(0, 700, rows)
    return pa.table(
        {
            "east": chance.beta(2, 5, rows) * 10,
            "age": chance.integers(0, 100, rows),
            "day": pa.array(days.astype("datetime64[D]")),
            "note": [f"n{row}" for row in range(rows)],
        }
    )


def plan_of(policy: dict[str, Any]) -> Plan:
    loaded = load_policy(policy)
    plan: Plan = loaded.method.plan(loaded.schema)
    return plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("points")


def released(way: str, folder: Path, form: str = "csv") -> tuple[Statement, Path]:
    """Release in one of the ways, once, and return what is said about it and its file."""
    own, policy = folder / way / form, changed(CALLS, **WAYS[way])
    if not own.exists():
        own.mkdir(parents=True)
        release_to(calls(), written(policy, own), Destination(own / "out", form))
    evidence = json.loads((own / "out" / "certificate.json").read_text())["evidence"]
    plan = plan_of(policy)
    statement = statement_of(plan, load_policy(policy).schema, **evidence)
    return replace(statement, released=statement.basis.need(IntoCells).names), own / "out" / f"data.{form}"


def problems(statement: Statement, file: Path) -> list[str]:
    return [look.about for look in CHECK.inspect(statement, (file,)) if look.problem is not None]


def forged(way: str, folder: Path, into: Path, change: Callable[[Rows], Rows]) -> list[str]:
    statement, file = released(way, folder)
    copy = into / "data.csv"
    rows = change([line.split(",") for line in file.read_text().splitlines()])
    copy.write_text("".join(f"{','.join(row)}\n" for row in rows))
    return problems(statement, copy)


PLANS = {**POLICIES["points"], **{f"calls, {way}": changed(CALLS, **changes) for way, changes in WAYS.items()}}


@pytest.mark.parametrize("name", PLANS)
def test_steps_and_claims_are_read_back_and_make_the_same_guarantee(name: str) -> None:
    plan = plan_of(PLANS[name])
    assert_read_back(plan)
    assert_changes_refused(plan)


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_holds_in_the_file_and_read_again(way: str, form: str, folder: Path) -> None:
    statement, file = released(way, folder, form)
    assert CHECK.contradiction(statement) is None
    assert problems(statement, file) == []
    again = CHECK.reopen(statement, (file,))
    assert len(again) == statement.evidence["rows"]
    if statement.basis.need(PlacePoints).at is Placement.CENTERS:
        assert CHECK.recount(statement, again) is None
    (claim,) = (each for each in statement.claims if isinstance(each, LipschitzError))
    assert CHECK.recompute(claim, statement.basis) is None


def test_an_added_column_is_found(folder: Path, tmp_path: Path) -> None:
    assert forged("noisy", folder, tmp_path, lambda rows: [[*row, "x"] for row in rows]) == ["columns in the file"]


@pytest.mark.parametrize(
    "strange", [["4.9", "16", "1969-03-01"], ["", "16", "1969-03-01"], ["99", "16", "1969-03-01"], ["1.8", "x", "?"]]
)
def test_a_point_beside_the_centers_is_found(strange: list[str], folder: Path, tmp_path: Path) -> None:
    found = forged("noisy", folder, tmp_path, lambda rows: [rows[0], strange, *rows[2:]])
    assert "places of the points" in found


def test_a_point_outside_the_box_is_found_where_points_lie_anywhere(folder: Path, tmp_path: Path) -> None:
    for strange in (["0.05", "16", "1969-03-01"], ["5", "100", "1969-03-01"], ["5", "16", "1971-01-01"]):
        found = forged("uniform", folder, tmp_path, lambda rows, row=strange: [rows[0], row, *rows[2:]])  # type: ignore[misc]
        assert "places of the points" in found


def test_points_in_another_order_are_found(folder: Path, tmp_path: Path) -> None:
    found = forged("noisy", folder, tmp_path, lambda rows: [rows[0], *reversed(rows[1:])])
    assert "places of the points" in found


def test_a_lost_point_is_found(folder: Path, tmp_path: Path) -> None:
    assert forged("noisy", folder, tmp_path, lambda rows: rows[:-1]) == ["points in each cell"]


def test_a_cell_below_k_is_found(folder: Path, tmp_path: Path) -> None:
    def thinned(rows: Rows) -> Rows:
        return [rows[0], rows[1], *(row for row in rows[1:] if row != rows[1])]

    statement, _ = released("suppressed", folder)
    found = forged("suppressed", folder, tmp_path, thinned)
    assert found == ["points in each cell"]
    assert statement.evidence["rows"] > 0


def test_another_error_of_a_mean_than_the_claim_gives_is_found(folder: Path) -> None:
    statement, file = released("noisy", folder)
    evidence = {**statement.evidence, "error of a mean, 19 times in 20 at most": "0.001"}
    assert problems(replace(statement, evidence=evidence), file) == ["points in each cell"]


def test_points_in_memory_are_held_against_the_stated_box(folder: Path) -> None:
    statement, file = released("noisy", folder)
    again = CHECK.reopen(statement, (file,))
    moved = replace(statement.basis.need(IntoCells).columns[0], low="0")
    other = with_step(statement, IntoCells, columns=(moved, *statement.basis.need(IntoCells).columns[1:]))
    assert CHECK.recount(other, again) is not None
    assert CHECK.recount(with_step(statement, IntoCells, columns=(moved,)), again) is not None
    assert CHECK.recount(statement, Histogram(pa.table({"count": [1]}))) is not None


@pytest.mark.parametrize("place", list(Placement))
def test_what_stays_in_memory_is_held_too(place: Placement, tmp_path: Path) -> None:
    policy = with_ledger(changed(CALLS, release__place=str(place)), tmp_path)
    made, loaded = release(calls(), policy), load_policy(policy)
    plan = plan_of(policy)
    statement = statement_of(plan, loaded.schema, **made.certificate.evidence)
    assert CHECK.recount(statement, made.result) is None


@pytest.mark.parametrize(
    ("way", "kind", "changes", "why"),
    [
        ("noisy", NoiseWhenSmall, {"clamp": False}, "held between"),
        ("people", KeepRows, {"rows": 3}, "rows kept"),
        ("noisy", IntoCells, {"columns": ()}, "released"),
    ],
)
def test_steps_that_contradict_what_else_is_said_are_found(
    way: str, kind: type[Any], changes: dict[str, Any], why: str, folder: Path
) -> None:
    found = CHECK.contradiction(with_step(released(way, folder)[0], kind, **changes))
    assert found is not None
    assert why in found.text


@pytest.mark.parametrize(
    ("place", "changes"),
    [
        (0, {"pieces": 0}),
        (0, {"pieces": 2**21}),
        (0, {"low": "nothing"}),
        (0, {"low": "1/0"}),
        (0, {"low": "10.3"}),
        (0, {"high": "0.10000000000000001"}),
        (0, {"outside": Outside.OTHER}),
        (1, {"pieces": 101}),
        (1, {"low": "1/2"}),
        (1, {"low": "100"}),
        (1, {"type": Type.TEXT}),
        (2, {"low": "yesterday"}),
        (2, {"pieces": 731}),
    ],
)
def test_a_side_that_no_box_has_is_found(place: int, changes: dict[str, Any], folder: Path) -> None:
    statement, _ = released("noisy", folder)
    sides = list(statement.basis.need(IntoCells).columns)
    sides[place] = replace(sides[place], **changes)
    found = CHECK.contradiction(with_step(statement, IntoCells, columns=tuple(sides)))
    assert found is not None
    assert "side of the box" in found.text


@pytest.mark.parametrize(
    ("way", "changes", "why"),
    [
        ("noisy", {"moves": Decimal("0.01")}, "further"),
        ("noisy", {"expected": Decimal(1)}, "noise changes"),
        ("noisy", {"likely": Decimal(1)}, "noise changes"),
        ("noisy", {"expected": None, "likely": None}, "leaves out"),
        ("suppressed", {"likely": Decimal(3)}, "nothing public"),
        ("uniform", {"moves": Decimal("0.2")}, "further"),
    ],
)
def test_a_claim_about_functions_that_says_too_much_is_found(
    way: str, changes: dict[str, Any], why: str, folder: Path
) -> None:
    statement, _ = released(way, folder)
    (claim,) = (each for each in statement.claims if isinstance(each, LipschitzError))
    found = CHECK.recompute(replace(claim, **changes), statement.basis)
    assert found is not None
    assert why in found.text


def test_noise_whose_sums_are_too_long_and_other_claims_are_left_undecided(folder: Path) -> None:
    statement, _ = released("noisy", folder)
    (claim,) = (each for each in statement.claims if isinstance(each, LipschitzError))
    tiny = with_step(statement, NoiseWhenSmall, epsilon=Fraction(1, 10**6))
    others: list[tuple[Claim, Statement]] = [(claim, tiny)]
    others += [(each, statement) for each in statement.claims if isinstance(each, Blending)]
    for each, stated in others:
        found = CHECK.recompute(each, stated.basis)
        assert found is not None
        assert found.undecided
    assert noise_changes(10, 1, Fraction(10**6)) == (0.0, 0.0)


def test_a_claim_states_numbers_from_zero_on(folder: Path) -> None:
    (claim,) = (each for each in released("noisy", folder)[0].claims if isinstance(each, LipschitzError))
    for number in ("NaN", "Infinity", "-1"):
        with pytest.raises(InvalidParameter, match="from 0 on"):
            replace(claim, moves=Decimal(number))


BOUNDS = st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 10**5), st.integers(1, 60))


@given(BOUNDS, st.integers(1, 1000))
def test_the_slow_box_is_that_of_the_grid(bounds: tuple[int, int, int], parts: int) -> None:
    """Cuts, centers and reach, each computed twice, agree for numbers of every type and for days."""
    low, length, pieces = bounds
    high = low + length
    domains: tuple[Domain, ...] = (
        Numbers(low, high),
        Numbers(Fraction(low, parts), Fraction(high, parts), Type.DECIMAL),
        Dates("1960-02-03", "1972-05-06"),
    )
    grid = PointGrid.of([column(f"c{n}", domain) for n, domain in enumerate(domains)], pieces)
    for axis, side in zip(grid.axes, grid.sides(), strict=True):
        assert cuts(side) == axis.slices.ends.tolist()
        assert middles(side) == axis.centers.tolist()
        assert not impossible(side)
    for place in Placement:
        slow, fast = reach_squared(grid.sides(), place), grid.reach_squared(place)
        assert slow <= fast
        assert float(fast) <= float(slow) * (1 + 1e-6) + 1e-12


def test_cells_are_counted_across_batches_and_an_empty_table_has_none() -> None:
    side = Side("x", Type.INTEGER, "0", "9", 2, Outside.ENDS)
    batches = [pa.record_batch({"x": pa.array(values, pa.float64())}) for values in ([2.0], [], [2.0, 7.0], [7.0])]
    found = contents((side,), Placement.CENTERS, batches)
    assert (found.cells.tolist(), found.counts.tolist()) == ([[0], [1]], [2, 2])
    assert (found.misplaced, found.ordered, found.total) == (0, True, 4)
    nothing = contents((side,), Placement.CENTERS, [])
    assert (nothing.total, len(nothing.cells), nothing.ordered) == (0, 0, True)
