"""Weekdays: days are drawn on declared weekdays alone, whatever the rows hold; files that show others are refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import incrowd
from incrowd.core.domain import Weekday
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.linked.output import LinkedOutput
from incrowd.methods.synthesis.marginals.joint_numbers import distant_steps
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.patterns import PatternKind
from incrowd.methods.synthesis.marginals.steps import DrawRows, MeasureTables, weekday_exposure
from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.linked import hospital, linked_files, linked_policy
from tests.policies import changed, with_ledger

WORK, REST = ["mon", "tue", "wed", "thu", "fri"], ["sat", "sun"]
_DAY: dict[str, Any] = {
    "type": "date",
    "bounds": ["2023-01-01", "2023-03-31"],  # the first one is a Sunday
    "hierarchy": {"dates": ["week"]},
    "missing": "drop",
    "outside": "drop",
}
VISITS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "visits"},
    "columns": {"begin": {**_DAY, "weekdays": WORK}, "end": dict(_DAY), "sex": {"categories": ["F", "M"]}},
    "release": {
        "method": "marginals",
        "epsilon": 1,
        "delta": "1e-6",
        "rounds": 2,
        "constraints": [{"order": ["begin", "end"]}],
    },
}


def visits(rows: int = 400) -> pa.Table:
    """Return visits on all days of the week: two of seven rows contradict what is declared."""
    chance = np.random.default_rng(3)
    begin = [date(2023, 1, 1) + timedelta(days=int(day)) for day in chance.integers(0, 70, rows)]
    end = [day + timedelta(days=int(more)) for day, more in zip(begin, chance.integers(0, 9, rows), strict=True)]
    return pa.table({"begin": begin, "end": end, "sex": chance.choice(["F", "M"], rows)})


def drawn_on(column: pa.ChunkedArray) -> set[str]:
    texts = column.cast(pa.string()).to_pylist()
    return {list(Weekday)[date.fromisoformat(text).weekday()] for text in texts}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"release__method": "tree"},
        {"release__detail": 0},
        {"columns__end__weekdays": WORK},
        {"columns__end__weekdays": REST},
        {"columns__end__weekdays": ["sat"], "columns__begin__weekdays": ["sun"], "release__constraints": []},
        {"release__contradictions": "drop"},
        {"release__constraints": [], "release__levels": {"begin": 0}},
    ],
)
def test_days_lie_on_declared_weekdays_and_in_order(change: dict[str, Any], tmp_path: Path) -> None:
    policy = with_ledger(changed(VISITS, **change), tmp_path)
    release_to(visits(), policy, Destination(tmp_path / "out", "csv"))
    verification = verify(tmp_path / "out", policy=load_policy(policy))
    assert verification.passed, verification.failure
    model = SyntheticModel.load(tmp_path / "out" / "model.json")
    for table in (csv.read_csv(tmp_path / "out" / "data.csv"), model.sample(2000, seed=1)):
        assert drawn_on(table["begin"]) <= set(policy["columns"]["begin"]["weekdays"])
        assert drawn_on(table["end"]) <= set(policy["columns"]["end"].get("weekdays", Weekday))
        if policy["release"]["constraints"]:
            pairs = zip(table["begin"].to_pylist(), table["end"].to_pylist(), strict=True)
            assert all(begin <= end for begin, end in pairs)


def test_what_is_declared_is_not_measured_and_is_stated() -> None:
    steps = load_policy(VISITS).plan.steps
    measure, draw = (next(step for step in steps if isinstance(step, kind)) for kind in (MeasureTables, DrawRows))
    assert isinstance(measure, MeasureTables)
    assert isinstance(draw, DrawRows)
    counted = [own.columns for own in measure.patterns or () if own.kind is PatternKind.WEEKDAY]
    assert counted == [("end",)]
    assert "“begin” on mon, tue, wed, thu, fri" in draw.sentence
    assert draw.numbers[1].weekdays is None
    assert list(map(str, measure.zeros or ())) == ["begin 2022-W52"]
    (claim,) = load_policy(VISITS).plan.claims
    assert set(weekday_exposure(draw.numbers)) < set(claim.not_protected)


def test_a_day_on_another_weekday_is_refused_by_verify(tmp_path: Path) -> None:
    """The file's digests are not asked: the check by itself sees the day, and a model that would draw it."""
    made = incrowd.synthesize(visits(), with_ledger(VISITS, tmp_path))
    check, statement = check_of("marginals"), statement_of(made.certificate)
    assert check.recount(statement, made.result) is None
    table = made.result.table
    sunday = pa.array([date(2023, 1, 8), *table["begin"].to_pylist()[1:]])
    end = pa.array([date(2023, 1, 9), *table["end"].to_pylist()[1:]])
    forged = table.set_column(0, "begin", sunday).set_column(1, "end", end)
    problem = check.recount(statement, replace(made.result, table=forged))
    assert problem is not None
    assert "on a weekday that is not declared" in problem.text
    column = made.model.columns[0]
    assert column.numbers is not None
    every = replace(column, numbers=replace(column.numbers, weekdays=()))
    problem = check.recount(
        statement, replace(made.result, model=replace(made.model, columns=(every, *made.model.columns[1:])))
    )
    assert problem is not None
    assert "not declared" in problem.text


@settings(max_examples=60, deadline=None)
@given(
    st.sets(st.sampled_from(list(Weekday)), min_size=1),
    st.lists(st.integers(-30, 60), min_size=1, max_size=6, unique=True),
    st.integers(1, 20),
    st.integers(0, 2**32),
)
def test_every_draw_is_a_day_of_its_class_on_a_weekday(
    weekdays: set[Weekday], starts: list[int], width: int, seed: int
) -> None:
    """Days are counted from a Thursday; what can be drawn is compared with a list of all days."""
    edges = [*sorted(starts), max(starts) + width]
    own = tuple(day for day in Weekday if day in weekdays)
    numbers = NumberRange(tuple(map(float, edges[:-1])), float(edges[-1]), whole=True, days=True, weekdays=own)
    assert NumberRange.from_json(numbers.to_json()).weekdays == own
    for code, (start, end) in enumerate(pairwise(edges)):
        days = [day for day in range(start, end) if list(Weekday)[(day + 3) % 7] in weekdays]
        steps, law = numbers.law(code)
        low, high = (int(own_end[0]) for own_end in numbers.ends(np.array([code])))
        assert steps.tolist() == days
        assert numbers.values[code] == len(days)
        assert (low <= high) == bool(days)
        if days:
            assert (low, high) == (days[0], days[-1])
            assert np.allclose(law, 1 / len(days))
            drawn = numbers.draw(np.full(30, code), np.random.default_rng(seed)).cast(pa.int32()).to_pylist()
            assert set(drawn) <= set(days)


def test_two_days_are_in_order_where_the_first_was_measured_on_days_after_all_second_ones_only() -> None:
    """The class ends with a Sunday, day 3, on which alone rows began; it ends on Mondays to Fridays."""
    begin = NumberRange((0.0, 3.0), 4.0, whole=True, days=True, classes=(0, 0), chances=(0.0, 1.0))
    end = NumberRange((0.0,), 4.0, whole=True, days=True, weekdays=tuple(Weekday)[:5])
    distance = NumberRange((0.0,), 30.0, whole=True, classes=(0,), chances=(1.0,))
    codes = np.zeros(50, np.int64)
    first, second = distant_steps([begin, end], [codes, codes], distance, np.random.default_rng(1))
    assert (first <= second).all()
    assert set(second.tolist()) <= {0, 1}


def test_linked_days_lie_on_declared_weekdays_and_rise(tmp_path: Path) -> None:
    """In a sequence days rise within a patient, from weeks of which the first has no declared day."""
    plain, tables = linked_policy("sequence", tmp_path, epsilon=5), hospital(200)
    plain["tables"]["stays"]["columns"] |= {"day": {**_DAY, "weekdays": WORK}, "left": dict(_DAY)}
    plain["release"]["constraints"] = {"stays": [{"order": ["day", "left"]}]}
    days = pa.array([date(2023, 1, 1) + timedelta(days=9 * day) for day in tables["stays"]["day"].to_pylist()])
    place = tables["stays"].column_names.index("day")
    tables["stays"] = tables["stays"].set_column(place, "day", days).append_column("left", days)
    linked_files(tmp_path, tables)
    policy, out = load_policy(plain, folder=tmp_path), tmp_path / "out"
    release_to(None, policy, Destination(out, "csv"))
    verification = verify(out, policy=policy)
    assert verification.passed, verification.failure
    stays = csv.read_csv(out / "stays.csv")
    rows, last = stays.to_pylist(), dict[int, date]()
    assert len(rows) > 50
    assert drawn_on(stays["day"]) <= set(WORK)
    assert all(row["day"] <= row["left"] for row in rows)
    for row in rows:
        assert last.get(row["patient"], date.min) <= row["day"]
        last[row["patient"]] = row["day"]
    statement = statement_of(read_certificate(out / "certificate.json"))
    sunday = stays.set_column(place, "day", pa.array([date(2023, 1, 8), *stays["day"].to_pylist()[1:]]))
    patients = csv.read_csv(out / "patients.csv")
    problem = check_of("linked").recount(statement, LinkedOutput({"patients": patients, "stays": sunday}))
    assert problem is not None
    assert "on a weekday that is not declared" in problem.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns__sex__weekdays": WORK}, "of a column of type date"),
        ({"columns__begin__weekdays": []}, "one or more of mon"),
        ({"columns__begin__weekdays": ["monday"]}, "weekdays"),
        ({"columns__begin__bounds": ["2023-01-07", "2023-01-08"]}, "no day within the bounds of 'begin'"),
        ({"columns__begin__outside": "ends"}, "stands for days beyond its bounds"),
        ({"release__constraints": [{"unique": "begin"}]}, "is unique, so its weekdays"),
        (
            {"columns__third": dict(_DAY), "release__constraints": [{"order": ["begin", "end", "third"]}]},
            "declare the same weekdays",
        ),
    ],
)
def test_weekdays_that_cannot_hold_are_refused_before_rows_are_read(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter) as error:
        _ = load_policy(changed(VISITS, **change)).plan
    assert words in str(error.value)
