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
from incrowd.core.days import DayRule
from incrowd.core.domain import Type, Weekday
from incrowd.core.hierarchy.calendar import Period
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.linked.output import LinkedOutput
from incrowd.methods.synthesis.marginals.check import on_declared_days
from incrowd.methods.synthesis.marginals.joint_numbers import distant_steps
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.patterns import PatternKind
from incrowd.methods.synthesis.marginals.steps import DrawnColumn, DrawRows, MeasureTables, day_exposure
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
        {"columns__begin__days_off": ["01-06", "2023-02-20"], "columns__end__last_of": "month"},
        {"columns__begin__last_of": "week", "release__method": "tree"},
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
        days = table["begin"].cast(pa.string()).to_pylist()
        assert not {"2023-01-06", "2023-02-20"} & set(days) or "days_off" not in policy["columns"]["begin"]
        if "last_of" in policy["columns"]["end"]:
            ends = {"2023-01-31", "2023-02-28", "2023-03-31"}
            assert set(table["end"].cast(pa.string()).to_pylist()) <= ends
        if "last_of" in policy["columns"]["begin"]:
            assert drawn_on(table["begin"]) == {"fri"}
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
    assert "“begin”: mon, tue, wed, thu, fri" in draw.sentence
    assert draw.numbers[1].allowed is None
    assert list(map(str, measure.zeros or ())) == ["begin 2022-W52"]
    (claim,) = load_policy(VISITS).plan.claims
    assert set(day_exposure(draw.numbers)) < set(claim.not_protected)


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
    assert "a day that is not declared" in problem.text
    column = made.model.columns[0]
    assert column.numbers is not None
    every = replace(column, numbers=replace(column.numbers, allowed=None))
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
    numbers = NumberRange(tuple(map(float, edges[:-1])), float(edges[-1]), whole=True, days=True, allowed=DayRule(own))
    assert NumberRange.from_json(numbers.to_json()).allowed == DayRule(own)
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


@settings(max_examples=40, deadline=None)
@given(
    st.sets(st.sampled_from(list(Weekday))),
    st.sampled_from([None, Period.WEEK, Period.MONTH, Period.QUARTER, Period.YEAR]),
    st.sets(st.sampled_from(["12-31", "2023-06-30", "06-30", "02-29", "2024-02-29", "01-01"])),
    st.integers(-400, 400),
)
def test_the_days_of_a_rule_are_those_that_verify_accepts(
    weekdays: set[Weekday], last_of: Period | None, off: set[str], shift: int
) -> None:
    """The check reads days one by one and looks ahead; the rule counts them in a table."""
    rule = DayRule(tuple(day for day in Weekday if day in weekdays), last_of, tuple(sorted(off)))
    low = date(2023, 12, 1) + timedelta(days=shift)
    every = [low + timedelta(days=more) for more in range(150)]
    column = DrawnColumn("day", Type.DATE, "2020-01-01", "2026-12-31", allowed=rule)
    accepted = [day for day in every if on_declared_days(pa.array([day.isoformat()]), column)]
    assert rule.between(low, every[-1]).astype("datetime64[D]").tolist() == accepted


def test_two_days_are_in_order_where_the_first_was_measured_on_days_after_all_second_ones_only() -> None:
    """The class ends with a Sunday, day 3, on which alone rows began; it ends on Mondays to Fridays."""
    begin = NumberRange((0.0, 3.0), 4.0, whole=True, days=True, classes=(0, 0), chances=(0.0, 1.0))
    end = NumberRange((0.0,), 4.0, whole=True, days=True, allowed=DayRule(tuple(Weekday)[:5]))
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
    assert "a day that is not declared" in problem.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"columns__begin__days_off": ["24-12"]}, "is not a day off"),
        ({"columns__begin__last_of": "year"}, "no day within the bounds of 'begin'"),
        ({"columns__sex__weekdays": WORK}, "of a column of type date"),
        ({"columns__begin__weekdays": []}, "one or more of mon"),
        ({"columns__begin__weekdays": ["monday"]}, "weekdays"),
        ({"columns__begin__bounds": ["2023-01-07", "2023-01-08"]}, "no day within the bounds of 'begin'"),
        ({"columns__begin__outside": "ends"}, "stands for days beyond its bounds"),
        ({"release__constraints": [{"unique": "begin"}]}, "is unique, so its days"),
        (
            {"columns__third": dict(_DAY), "release__constraints": [{"order": ["begin", "end", "third"]}]},
            "declare the same days",
        ),
    ],
)
def test_weekdays_that_cannot_hold_are_refused_before_rows_are_read(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter) as error:
        _ = load_policy(changed(VISITS, **change)).plan
    assert words in str(error.value)
