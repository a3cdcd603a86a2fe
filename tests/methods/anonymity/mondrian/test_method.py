"""Mondrian from rows to labels: what it shows is true, and what it claims holds."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.accountant import charge_of
from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.tree import tree
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.methods.shared.microdata import Anonymized
from tests.coins import ScriptedCoins
from tests.plans import steps_json
from tests.tables import Batches

ILLS = ("flu", "gout", "none")
SCHEMA = Schema(
    (
        Column("age", Role.QUASI, Type.INTEGER, Intervals(Numbers(0, 99), (10, 50))),
        Column("pay", Role.QUASI, Type.INTEGER, Flat(Numbers(0, 9))),
        Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(ILLS))),
    )
)
TOWNS = tree({"north": ["Oslo", "Bergen"], "south": ["Rome", "Bari"]})
MIXED = Schema(
    (
        Column("town", Role.QUASI, hierarchy=TOWNS),
        Column("born", Role.QUASI, Type.DATE, Flat(Dates("2000-01-01", "2000-12-31"))),
        Column("size", Role.QUASI, hierarchy=Flat(Categories(("S", "M", "L")))),
        Column("note", Role.PLAIN, hierarchy=Flat(Categories(("x", "y")))),
    )
)
ROWS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 99)), st.integers(0, 9), st.sampled_from(ILLS)), max_size=50
)
Given = list[tuple[Any, ...]]


def released(method: Mondrian, rows: Given, schema: Schema = SCHEMA) -> Anonymized:
    columns = {name: pa.array([row[c] for row in rows]) for c, name in enumerate(schema.names)}
    texts = {name: column.cast(pa.string()) for name, column in columns.items()}
    return method.release(Table(schema, Batches(pa.table(texts)), LocalEngine()), ScriptedCoins())


def covers(label: str | None, value: int | None) -> bool:
    """Whether a label of a column of numbers is true of a value, read as a person reads it."""
    if label is None:
        return value is None
    if value is None:
        return "missing" in label or label == "*"
    found = re.match(r"\[(\d+), (\d+)\]", label) or re.match(r"(\d+)()", label)
    if side := re.match(r"([<>])= (\d+)", label):
        return value <= int(side[2]) if side[1] == "<" else value >= int(side[2])
    return label.startswith("any") or (found is not None and int(found[1]) <= value <= int(found[2] or found[1]))


@settings(max_examples=50, deadline=None)
@given(ROWS, st.integers(1, 6))
def test_every_row_is_covered_by_the_labels_of_one_class_and_is_counted_there(rows: Given, k: int) -> None:
    shown = Counter(tuple(row.values()) for row in released(Mondrian(k), rows).to_arrow().to_pylist())
    if len(rows) < k:
        assert not shown
        return
    for (age, pay, ill), times in shown.items():
        covered = [row for row in rows if covers(age, row[0]) and covers(pay, row[1]) and row[2] == ill]
        assert len(covered) == times


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 5), st.sampled_from(["ranges", "means", "nodes"]), st.booleans())
def test_no_class_is_smaller_than_k_and_no_row_is_lost(rows: Given, k: int, show: Any, relaxed: bool) -> None:
    outcome = released(Mondrian(k, show=show, relaxed=relaxed), rows)
    classes = Counter((row["age"], row["pay"]) for row in outcome.to_arrow().to_pylist())
    assert sum(classes.values()) == (len(rows) if len(rows) >= k else 0)
    assert sorted(classes.values()) == sorted(outcome.sizes.tolist())
    assert all(size >= k for size in classes.values())


@settings(max_examples=25, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_rows_changes_nothing(rows: Given, chance: Any, relaxed: bool) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    method = Mondrian(3, relaxed=relaxed)
    assert released(method, rows).to_arrow().equals(released(method, mixed).to_arrow())


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(1, 3), st.sampled_from(["1/10", "1/4", "1/2", "1"]))
def test_classes_are_as_diverse_and_as_close_as_demanded(rows: Given, least: int, close: str) -> None:
    outcome = released(Mondrian(2, l=least, t=Fraction(close)), rows).to_arrow().to_pylist()
    classes: defaultdict[Any, Counter[str]] = defaultdict(Counter)
    for row in outcome:
        classes[row["age"], row["pay"]][row["ill"]] += 1
    whole = Counter(row["ill"] for row in outcome)
    for values in classes.values():
        assert len(values) >= least
        gaps = [abs(Fraction(values[ill], values.total()) - Fraction(whole[ill], whole.total())) for ill in ILLS]
        assert sum(gaps) / 2 <= Fraction(close)


def test_t_zero_leaves_one_class_and_t_one_asks_nothing() -> None:
    rows = [(n, n % 10, ILLS[n % 3]) for n in range(40)]
    assert len(released(Mondrian(2, t=Fraction(0)), rows).sizes) == 1
    assert released(Mondrian(2, t=Fraction(1)), rows).to_arrow().equals(released(Mondrian(2), rows).to_arrow())


def test_entropy_diversity_asks_more_than_distinct_diversity() -> None:
    rows = [(n, n % 10, "flu" if n % 4 else "gout") for n in range(80)]
    distinct, even = (released(method, rows) for method in (Mondrian(2, l=2), Mondrian(2, entropy_l=Fraction(19, 10))))
    assert len(even.sizes) < len(distinct.sizes)


def test_nothing_is_released_where_the_whole_table_falls_short() -> None:
    assert len(released(Mondrian(2, l=4), [(n, 1, ILLS[n % 3]) for n in range(30)])) == 0


def labels(show: Any, rows: Given, column: str, **more: Any) -> set[Any]:
    table = released(Mondrian(4, show=show, **more), rows, MIXED).to_arrow()
    return set(table.column(column).to_pylist())


TWO = [("Oslo", "2000-01-01", "S", "x"), ("Bergen", "2000-01-05", "M", "y")] * 2


def test_a_class_shows_the_lowest_node_that_holds_its_categories() -> None:
    assert labels("ranges", TWO, "town") == {"north"}
    assert labels("ranges", [*TWO[:3], ("Rome", "2000-01-05", "M", "y")], "town") == {"*"}
    assert labels("ranges", [("Rome", "2000-01-05", "M", "y")] * 4, "town") == {"Rome"}


def test_a_class_shows_the_range_or_the_mean_of_its_dates() -> None:
    later = [(town, day.replace("-01", "-02", 1), *rest) for town, day, *rest in TWO]
    assert labels("ranges", TWO, "born") == {"2000-01-05 or earlier"}
    assert labels("ranges", later, "born") == {"[2000-02-01, 2000-02-05]"}
    assert labels("means", TWO, "born") == {date(2000, 1, 3)}
    assert labels("nodes", TWO, "born") == {"*"}


def test_categories_without_a_hierarchy_are_listed_and_ordered_ones_are_a_range() -> None:
    rows = [*TWO[:3], ("Oslo", "2000-01-01", "L", "x")]
    assert labels("ranges", rows, "size") == {"S or M or L"}
    assert labels("ranges", rows, "size", ordered=("size",)) == {"S to L"}


def test_what_is_outside_or_missing_is_said_beside_the_range() -> None:
    rows = [(None, 1, "flu"), (5, 1, "flu"), (7, 1, "flu")]
    assert set(released(Mondrian(3), rows).to_arrow().column("age").to_pylist()) == {"[5, 7] or missing"}
    assert set(released(Mondrian(1), rows[:1]).to_arrow().column("age").to_pylist()) == {None}


def test_sensitive_and_plain_columns_stay_as_they_are() -> None:
    assert sorted(released(Mondrian(4), TWO, MIXED).to_arrow().column("note").to_pylist()) == ["x", "x", "y", "y"]


def test_the_guarantee_is_a_form_and_costs_infinity() -> None:
    guarantee = Mondrian(5, l=2).plan(SCHEMA).guarantee
    assert guarantee.syntactic
    assert not charge_of(guarantee.loss, guarantee.delta).epsilon.is_finite()


def test_every_claim_says_which_attacks_remain() -> None:
    first, *others = Mondrian(5, l=2, t=Fraction(1, 5)).plan(SCHEMA).claims
    assert {text.split(":")[0] for text in map(str, first.not_protected)} == {
        "homogeneity", "extremes", "minimality", "intersection",
    }  # fmt: skip
    assert [claim.kind for claim in others] == ["distinct l-diversity", "t-closeness"]
    assert not any(
        text.startswith("extremes") for text in map(str, Mondrian(5, show="nodes").plan(SCHEMA).claims[0].not_protected)
    )


def test_people_with_several_rows_are_told() -> None:
    unit = Unit(Kind.PERSON, column="id", max_rows=2)
    schema = Schema((Column("id", Role.IDENTIFIER), *SCHEMA.columns), unit)
    claim = Mondrian(5).plan(schema).claims[0]
    assert claim.parameters["people"] == 3
    assert steps_json(Mondrian(5), schema)[0]["step"] == "keep rows of each person"


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"k": 0}, "k of at least 1"),
        ({"k": 2, "l": 0}, "l is at least 1"),
        ({"k": 2, "t": Fraction(2)}, "between 0"),
        ({"k": 2, "entropy_l": Fraction(1, 2)}, "at least 1"),
        ({"k": 2, "show": "stars"}, "ranges, means, nodes"),
    ],
)
def test_settings_without_meaning_are_refused(settings_: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Mondrian(**settings_)


def test_demands_without_a_sensitive_column_and_tables_without_quasi_identifiers_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="role sensitive"):
        Mondrian(2, l=2).plan(MIXED)
    with pytest.raises(InvalidParameter, match="role quasi"):
        Mondrian(2).plan(Schema((Column("ill", Role.SENSITIVE, hierarchy=Flat(Categories(ILLS))),)))
    with pytest.raises(InvalidParameter, match="only quasi-identifiers are cut"):
        Mondrian(2, ordered=("ill",)).plan(SCHEMA)
    with pytest.raises(InvalidParameter, match="free text"):
        Mondrian(2).plan(Schema((Column("name", Role.QUASI),)))
