"""Constraints: true in every row, kept by the model, checked in files, and refused where they cannot be."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import incrowd
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.constraints import ConstraintKind, NumberConstraint, closed_orders
from incrowd.methods.synthesis.marginals.joint_numbers import JointNumbers
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.steps import MeasureTables
from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import changed, with_ledger

REGIONS = {"Köln": "NRW", "Bonn": "NRW", "München": "Bayern", "Łódź": "Łódzkie"}
_DAYS = {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "hierarchy": {"dates": ["month"]}}
_EUROS = {"type": "integer", "bounds": [0, 1999], "hierarchy": {"intervals": [500]}}
WORK: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "work"},
    "columns": {
        "city": {"hierarchy": {"tree": {"NRW": ["Köln", "Bonn"], "Bayern": ["München"], "Łódzkie": ["Łódź"]}}},
        "region": {"categories": ["NRW", "Bayern", "Łódzkie"]},
        "begin": _DAYS,
        "end": _DAYS,
        "base": _EUROS,
        "bonus": _EUROS,
        "sum": {**_EUROS, "bounds": [0, 3998]},
        "job": {"categories": ["guard", "nurse"]},
        "night": {"categories": ["no", "yes"]},
        "number": {"type": "integer", "bounds": [1, 4000], "hierarchy": {"intervals": [1000]}},
    },
    "release": {
        "method": "tree",
        "epsilon": 2,
        "delta": "1e-6",
        "levels": {"begin": 1, "end": 1, "base": 1, "bonus": 1, "sum": 1, "number": 1},
        "constraints": [
            {"column": "region", "by": "city"},
            {"order": ["begin", "end"]},
            {"total": "sum", "parts": ["base", "bonus"]},
            {"when": {"job": "guard"}, "then": {"night": "yes"}},
            {"never": {"city": "Łódź", "job": "nurse"}},
            {"unique": "number"},
        ],
    },
}


def work(rows: int = 3000, *, wrong: int = 0) -> pa.Table:
    """Rows of which the last few contradict every constraint but one."""
    chance = np.random.default_rng(7)
    city = chance.choice(list(REGIONS), rows)
    begin = [date(2024, 1, 1) + timedelta(days=int(day)) for day in chance.integers(0, 300, rows)]
    end = [day + timedelta(days=int(more)) for day, more in zip(begin, chance.geometric(0.1, rows) % 60, strict=True)]
    base, bonus = chance.integers(0, 2000, rows), np.where(chance.random(rows) < 0.7, 0, chance.integers(0, 2000, rows))
    job = np.where(city == "Łódź", "guard", chance.choice(["guard", "nurse"], rows))
    night = np.where(job == "guard", "yes", chance.choice(["no", "yes"], rows))
    region = [REGIONS[name] for name in city]
    region[rows - wrong :] = ["Bayern" if name == "NRW" else "NRW" for name in region[rows - wrong :]]
    last = slice(rows - wrong, rows)
    begin[last], end[last] = [date(2024, 12, 1)] * wrong, [date(2024, 1, 1)] * wrong
    return pa.table(
        {
            "city": city,
            "region": region,
            "begin": begin,
            "end": end,
            "base": base,
            "bonus": bonus,
            "sum": base + bonus,
            "job": job,
            "night": night,
            "number": chance.permutation(4000)[:rows] + 1,
        }
    )


def broken(rows: pa.Table) -> int:
    """Return how many rows contradict a constraint, counted slowly; a part that is missing fulfils it."""
    count = 0
    for row in rows.to_pylist():
        region, known = REGIONS.get(row["city"]), row["city"] in REGIONS
        count += known and row["region"] != region
        count += None not in (row["begin"], row["end"]) and row["begin"] > row["end"]
        parts = row["base"], row["bonus"], row["sum"]
        count += None not in parts and row["base"] + row["bonus"] != row["sum"]
        count += row["job"] == "guard" and row["night"] != "yes"
        count += row["city"] == "Łódź" and row["job"] == "nurse"
    numbers = [number for number in rows["number"].to_pylist() if number is not None]
    return count + len(numbers) - len(set(numbers))


@pytest.mark.parametrize("method", ["tree", "marginals"])
def test_every_row_fulfils_every_constraint_even_if_the_data_does_not(method: str, tmp_path: Path) -> None:
    data = work(wrong=300)
    assert broken(data) >= 600
    policy = with_ledger(changed(WORK, release__method=method), tmp_path)
    out = tmp_path / "out"
    release_to(data, policy, Destination(out, "parquet"))
    verification = verify(out, policy=load_policy(policy))
    assert verification.passed, verification.failure
    model = SyntheticModel.load(out / "model.json")
    for seed, rows in ((1, 500), (2, 4000)):
        sample = model.sample(rows, seed=seed)
        assert sample.num_rows == rows
        assert broken(sample) == 0
    with pytest.raises(InvalidParameter, match="4,000 rows"):
        model.sample(4001)


def test_what_contradicts_the_constraints_in_a_file_is_noticed(tmp_path: Path) -> None:
    policy, out = with_ledger(WORK, tmp_path), tmp_path / "out"
    release_to(work(), policy, Destination(out, "parquet"))
    statement = statement_of(verify(out).certificate)
    files = (out / "data.parquet", out / "model.json")
    assert not any(outcome.problem for outcome in check_of("tree").inspect(statement, files))
    swapped = NumberConstraint(ConstraintKind.ORDER, ("end", "begin"))
    measure = statement.basis.need(MeasureTables)
    forged = replace(measure, constraints=(swapped, *(measure.constraints or ())[1:]))
    steps = tuple(forged if step is measure else step for step in statement.basis.steps)
    problems = [
        outcome.problem
        for outcome in check_of("tree").inspect(replace(statement, basis=replace(statement.basis, steps=steps)), files)
    ]
    assert any(problem is not None and "constraints" in problem.text for problem in problems)


def test_constraints_do_not_bend_the_margins(tmp_path: Path) -> None:
    """At ε = 50 noise is small: shares of single columns differ by less than .02 although many cells are ruled out."""
    data = work()
    made = incrowd.synthesize(data, with_ledger(changed(WORK, release__epsilon=50), tmp_path)).model.sample(
        3000, seed=4
    )
    for name in ("city", "region", "job", "night"):
        for value in set(data[name].to_pylist()):
            shares = [table[name].to_pylist().count(value) / 3000 for table in (data, made)]
            assert abs(shares[0] - shares[1]) < 0.02
    for name in ("begin", "end"):
        months = [np.bincount([day.month for day in table[name].to_pylist()], minlength=13) for table in (data, made)]
        assert np.abs(months[0] - months[1]).sum() / 6000 < 0.03
    zeros = [np.mean(np.array(table["bonus"].to_pylist()) == 0) for table in (data, made)]
    assert abs(zeros[0] - zeros[1]) < 0.02


def test_rows_that_contradict_count_by_the_declared_rule(tmp_path: Path) -> None:
    policy = changed(WORK, release__epsilon=50)
    totals = [
        incrowd.synthesize(
            work(wrong=1000), with_ledger(changed(policy, release__contradictions=rule), tmp_path / rule)
        ).model.model.total
        for rule in ("keep", "drop")
    ]
    assert abs(totals[0] - 3000) < 30
    assert abs(totals[1] - 2000) < 30


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30),
    st.sampled_from([ConstraintKind.ORDER, ConstraintKind.SUM]),
)
def test_numbers_fulfil_what_their_classes_can(cells: list[tuple[int, int, int]], kind: ConstraintKind) -> None:
    numbers = NumberRange((0.0, 3.0, 7.0), 10.0, whole=True, chances=(0.2, 0.5, 0.3), classes=(0, 1, 2))
    names = ("a", "b", "c")
    constraint = NumberConstraint(kind, names)
    closed = closed_orders([constraint])
    ends = numbers.ends(np.arange(3))
    ordered = [item.possible([ends] * len(item.columns)) for item in closed]
    places = [[names.index(name) for name in item.columns] for item in closed]
    possible = [
        cell
        for cell in cells
        if all(table[tuple(cell[n] for n in own)] for table, own in zip(ordered, places, strict=True))
    ]
    codes = np.array(possible, np.int64).reshape(-1, 3).T
    ranges = dict.fromkeys(names, numbers)
    steps = JointNumbers(ranges, dict(zip(names, codes, strict=True)), closed).steps(np.random.default_rng(3))
    for a, b, c in zip(*(steps[name].tolist() for name in names), strict=True):
        assert a <= b <= c if kind is ConstraintKind.ORDER else a + b == c
    for name, own in zip(names, codes, strict=True):
        low, high = numbers.ends(own)
        assert np.all((low <= steps[name]) & (steps[name] <= high))


def test_a_cell_is_ruled_out_exactly_if_no_numbers_of_it_fit() -> None:
    """Every combination of three classes of three to four numbers each, against all of their numbers."""
    numbers = NumberRange((0.0, 3.0, 7.0), 10.0, whole=True)
    low, high = numbers.ends(np.arange(3))
    for kind in (ConstraintKind.ORDER, ConstraintKind.SUM):
        table = NumberConstraint(kind, ("a", "b", "c")).possible([(low, high)] * 3)
        for cell in product(range(3), repeat=3):
            values = product(*(range(low[code], high[code] + 1) for code in cell))
            fits = any(a <= b <= c if kind is ConstraintKind.ORDER else a + b == c for a, b, c in values)
            assert fits == table[cell]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ({"order": ["begin", "sum"]}, "in one constraint"),
        ({"order": ["begin", "city"]}, "not drawn"),
        ({"order": ["begin", "begin"]}, "different columns"),
        ({"total": "sum"}, "needs parts"),
        ({"unique": "city"}, "not drawn"),
        ({"column": "job", "by": "city"}, "no level of the hierarchy"),
        ({"column": "job", "by": "city", "table": {"nurse": "Ulm"}}, "'Ulm'"),
        ({"when": {"job": "guard"}}, "needs then"),
        ({"when": {"job": "guard"}, "then": {"job": "nurse"}}, "in when and in then"),
        ({"never": {"job": "pilot", "night": "yes"}}, "'pilot'"),
        ({"never": {"job": "nurse", "night": "yes"}, "unique": "number"}, "exactly one"),
        ({"then": {"job": "nurse"}}, "exactly one"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_charge(constraint: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        _ = load_policy(changed(WORK, release__constraints=[constraint])).plan


def test_orders_in_a_circle_and_shared_columns_are_refused() -> None:
    circle = [{"order": ["begin", "end"]}, {"order": ["end", "begin"]}]
    with pytest.raises(InvalidParameter, match="circle"):
        _ = load_policy(changed(WORK, release__constraints=circle)).plan
    shared = [{"order": ["base", "bonus"]}, {"total": "sum", "parts": ["base", "bonus"]}]
    with pytest.raises(InvalidParameter, match="two constraints"):
        _ = load_policy(changed(WORK, release__constraints=shared)).plan
    with pytest.raises(InvalidParameter, match="4,000 values"):
        _ = load_policy(changed(WORK, release__rows=4001)).plan


def test_parts_of_a_sum_have_a_class_for_0_alone() -> None:
    """So the model knows which parts are 0 together; it follows from the declaration, and nobody wrote spikes."""
    plain = changed(WORK, release__constraints=[])
    summed, free = (
        next(step for step in load_policy(policy).plan.steps if isinstance(step, MeasureTables))
        for policy in (WORK, plain)
    )
    for own, before in zip(summed.columns, free.columns, strict=True):
        more = 1 if own.column in ("sum", "base", "bonus") else 0
        assert (own.size or 0) - (before.size or 0) == more, own.column


def test_the_report_names_constraints_and_what_the_model_cannot_know(tmp_path: Path) -> None:
    release_to(work(500), with_ledger(WORK, tmp_path), Destination(tmp_path / "out", "csv"))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for line in ("begin ≤ end", "base + bonus = sum", "each number once", "What the model cannot know"):
        assert line in page
    assert "city × region" in page
