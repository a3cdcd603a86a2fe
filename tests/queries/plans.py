"""Plans of questions of every form: public and unknown groups, one unit or another, paid in every way."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.rounding import Number
from incrowd.core.unit import Adjacency, Unit
from incrowd.queries.batch import batch
from incrowd.queries.combined_measurement import CombinedMeasurement
from incrowd.queries.measurement import QueryPlan, measurement
from incrowd.queries.operations import PartSheet, SheetColumn, StackedSheet
from incrowd.queries.query import Aggregate, AggregateKind, Combination, Key, ListedKeys
from tests.queries.asked import AGE, EVERY, PERSON, ROW, SEX, WARD, asked, terms

N, TOTAL = EVERY[0], EVERY[2]
MEDIAN = Aggregate("median", AggregateKind.QUANTILE, AGE, Fraction(1, 2))
LOWEST = Aggregate("lowest", AggregateKind.QUANTILE, AGE, Fraction(0))
MODE = Aggregate("mode", AggregateKind.MODE, AGE)
REPLACED = Unit(adjacency=Adjacency.REPLACE)

_ASKED: dict[str, tuple[tuple[Aggregate, ...], tuple[Key, ...], Unit, dict[str, Number]]] = {
    "one count": ((N,), (), ROW, {"epsilon": 1}),
    "a count of groups": ((N,), (SEX,), ROW, {"epsilon": 1}),
    "a sum alone": ((TOTAL,), (SEX,), PERSON, {"epsilon": 1}),
    "several sums": (EVERY, (SEX,), PERSON, {"epsilon": 1}),
    "people": ((Aggregate("people", AggregateKind.PEOPLE),), (SEX,), PERSON, {"epsilon": 1}),
    "picks alone": ((MEDIAN, LOWEST, MODE), (), ROW, {"epsilon": 1}),
    "sums and picks": ((N, MEDIAN, MODE), (SEX,), ROW, {"epsilon": 2}),
    "picks where rows are replaced": ((N, MODE), (SEX,), REPLACED, {"epsilon": 2}),
    "unknown groups": ((N, TOTAL), (WARD,), ROW, {"epsilon": 1, "delta": "1e-6"}),
    "unknown groups of people": ((N, MEDIAN), (WARD,), PERSON, {"epsilon": 1, "delta": "1e-6"}),
    "gaussian": (EVERY, (SEX,), ROW, {"epsilon": "0.1", "delta": "1e-2"}),
    "gaussian and picks": ((*EVERY, MEDIAN), (SEX,), ROW, {"epsilon": "0.1", "delta": "1e-2"}),
    "gaussian and unknown groups": (EVERY, (WARD,), ROW, {"epsilon": "0.1", "delta": "1e-2"}),
    "rho": ((N, TOTAL), (SEX,), ROW, {"rho": "0.1"}),
    "rho for picks": ((MEDIAN, MODE), (SEX,), ROW, {"rho": "0.1"}),
    "rho and unknown groups": ((N, MEDIAN), (WARD,), ROW, {"rho": "0.1", "delta": "1e-7"}),
    "a sample": ((N, TOTAL), (SEX,), ROW, {"epsilon": 1, "rate": "0.1"}),
    "a sample of one count": ((N,), (), ROW, {"epsilon": 1, "rate": "0.1"}),
}
_TOGETHER: dict[str, tuple[list[Any], dict[str, Number]]] = {
    "two questions": ([asked((N,)), asked((TOTAL, MEDIAN))], {"epsilon": 1}),
    "many questions": (
        [asked((N,), (SEX,), outputs={f"x{n}": "n"}) for n in range(40)],
        {"epsilon": 1, "delta": "1e-6"},
    ),
    "questions with unknown groups": ([asked((N,), (WARD,)), asked((MODE,))], {"epsilon": 1, "delta": "1e-6"}),
}


def plans() -> dict[str, QueryPlan]:
    """Return a plan of each form, by its name."""
    alone = {
        name: measurement(asked(aggregates, keys, unit), unit, terms(**paid)).plan
        for name, (aggregates, keys, unit, paid) in _ASKED.items()
    }
    together = {name: batch(questions, ROW, terms(**paid)) for name, (questions, paid) in _TOGETHER.items()}
    parts = (asked((N,)), asked((N, TOTAL), (SEX,), outputs={"x": "n"}))
    listed = replace(parts[1], listed=ListedKeys("sexes", parts[1].rows))
    columns = (SheetColumn("sex", Type.TEXT), SheetColumn("n", Type.DECIMAL))
    sheets = tuple(PartSheet(at, columns, None) for at in (0, 1))
    stacked = Combination("SELECT … UNION ALL SELECT …", (parts[0], listed), StackedSheet(sheets, columns))
    combined = CombinedMeasurement(stacked, batch(stacked.parts, ROW, terms(epsilon=1)), terms(epsilon=1))
    return alone | {name: each.plan for name, each in together.items()} | {"several in one": combined.plan}


PLANS = plans()
