"""Linked tables: keys that match, bounds that hold, what is refused, and how good rows are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.linked import ChildTable, LinkedSchema
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.linked.method import Linked
from incrowd.methods.synthesis.linked.output import LinkedOutput
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.policy import load_policy
from tests.coins import SeededCoins
from tests.linked import EXAMPLES, example, hospital, linked_policy, opened


def released(name: str, people: int, seed: int | None = None, **release: Any) -> LinkedOutput:
    policy = example(name, **release)
    coins = SystemCoins() if seed is None else SeededCoins(seed)
    output = policy.plan.release(opened(policy, hospital(people)), coins)
    assert isinstance(output, LinkedOutput)
    return output


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(sorted(EXAMPLES)), st.integers(0, 30), st.sampled_from(["0.05", "1", "20"]))
def test_every_foreign_key_names_a_row_and_nobody_has_too_many(name: str, people: int, epsilon: str) -> None:
    tables = released(name, people, epsilon=epsilon, rounds=1).tables
    patients, stays = tables["patients"], tables["stays"]
    assert patients["patient"].to_pylist() == list(range(1, patients.num_rows + 1))
    assert stays["stay"].to_pylist() == list(range(1, stays.num_rows + 1))
    assert set(stays["patient"].to_pylist()) <= set(patients["patient"].to_pylist())
    assert np.bincount(stays["patient"].to_numpy(), minlength=1).max() <= 4
    if "procedures" in tables:
        owner = dict(zip(stays["stay"].to_pylist(), stays["patient"].to_pylist(), strict=True))
        own = [owner[stay] for stay in tables["procedures"]["stay"].to_pylist()]
        assert np.bincount(own, minlength=1).max() <= 6
        if "patient" in tables["procedures"].column_names:
            assert tables["procedures"]["patient"].to_pylist() == own


def test_with_much_budget_numbers_of_rows_and_columns_follow_the_rows_above_and_before() -> None:
    """At ε = 100: stays by sex, the ward before, and codes by ward, each within .06 of the data."""
    data, drawn = hospital(1500), released("two levels", 1500, seed=4, epsilon=100).tables
    for shares in (stays_by_sex, same_ward, codes_by_ward):
        assert abs(shares(data) - shares(drawn)) < 0.06, shares.__name__


def stays_by_sex(tables: Any) -> float:
    """Return how many more stays a man has than a woman, of those that are read."""
    sex = dict(zip(*(tables["patients"][name].to_pylist() for name in ("patient", "sex")), strict=True))
    number = dict.fromkeys(sex, 0)
    for patient in tables["stays"]["patient"].to_pylist():
        number[patient] = min(4, number[patient] + 1)
    means = [np.mean([number[patient] for patient in sex if sex[patient] == value]) for value in "FM"]
    return float(means[1] - means[0])


def same_ward(tables: Any) -> float:
    """Return how often a stay is on the ward of the one before."""
    stays = tables["stays"].select(["patient", "ward"]).to_pandas()
    before = stays.groupby("patient", observed=True)["ward"].shift()
    return float((stays["ward"].astype(str) == before.astype(str))[before.notna()].mean())


def codes_by_ward(tables: Any) -> float:
    """Return the share of u among the procedures on ward A."""
    ward = dict(zip(*(tables["stays"][name].to_pylist() for name in ("stay", "ward")), strict=True))
    rows = tables["procedures"].select(["stay", "code"]).to_pylist()
    codes = [row["code"] for row in rows if ward[row["stay"]] == "A"]
    return codes.count("u") / len(codes)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 40), st.sampled_from(["0.05", "3", "50"]))
def test_every_row_fulfils_constraints_and_days_never_fall_within_a_patient(people: int, epsilon: str) -> None:
    """The data has impossible rows, which are not looked for; no drawn row is one, whatever the noise."""
    stays = released("values and constraints", people, epsilon=epsilon, rounds=2).tables["stays"].to_pylist()
    assert not [row for row in stays if (str(row["ward"]), str(row["urgent"])) == ("C", "true")]
    days: dict[int, int] = {}
    for row in stays:
        assert days.get(row["patient"], 0) <= row["day"] <= 300
        days[row["patient"]] = row["day"]


def test_days_inside_a_class_follow_finer_counts() -> None:
    """In the class of days from 5 to 39 the data has day 6 alone; evenly, one in 35 would be drawn."""
    tables, policy = hospital(1500), example("values and constraints", epsilon=30)
    late = [6 if day >= 2 else day for day in tables["stays"]["day"].to_pylist()]
    place = tables["stays"].column_names.index("day")
    tables["stays"] = tables["stays"].set_column(place, "day", pa.array(late))
    drawn = policy.plan.release(opened(policy, tables), SeededCoins(2)).tables["stays"]["day"].to_pylist()  # type: ignore[attr-defined]
    inside = [day for day in drawn if 5 <= day < 40]
    assert inside.count(6) > 0.9 * len(inside) > 100


def test_missing_values_are_drawn_only_where_they_were_measured_above_noise() -> None:
    policy = linked_policy("sequence", epsilon=3)
    policy["tables"]["stays"]["columns"]["ward"] = {"categories": ["A", "B", "C"]}
    loaded = load_policy(policy)
    tables = hospital(1500)

    def missing(share: int) -> int:
        wards = [
            None if place % 100 < share else ward for place, ward in enumerate(tables["stays"]["ward"].to_pylist())
        ]
        place = tables["stays"].column_names.index("ward")
        rows = tables | {"stays": tables["stays"].set_column(place, "ward", pa.array(wards))}
        output = loaded.plan.release(opened(loaded, rows), SeededCoins(share))
        return int(output.tables["stays"]["ward"].null_count)  # type: ignore[attr-defined]

    assert missing(0) == 0
    assert missing(30) > 100


def test_as_many_people_are_drawn_as_the_policy_says() -> None:
    assert released("one level", 10, rows=123, rounds=1).tables["patients"].num_rows == 123
    assert released("one level", 10, rows=0, rounds=1).tables["stays"].num_rows == 0


def test_shares_divide_the_budget_and_all_of_it_is_spent_by_nobody() -> None:
    method = example("two levels", shares={"stays": 3}).method
    assert isinstance(method, Linked)
    works = method.works(example("two levels").schema)  # type: ignore[arg-type]
    assert [work.rho for work in works] == [method.single().rho * Fraction(part, 5) for part in (1, 3, 1)]


def refusal(**sections: Any) -> str:
    policy = linked_policy("two levels")
    for path, value in sections.items():
        *above, last = path.split("__")
        place = policy
        for key in above:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    with pytest.raises(InvalidParameter) as error:
        _ = load_policy(policy).plan
    return str(error.value)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"tables__procedures__parent": "visits"}, "the parent 'visits' of 'procedures' is not a table"),
        ({"tables__stays__id": None}, "'stays' has tables below it: write id:"),
        ({"tables__procedures__foreign_key": None}, "write foreign_key:"),
        ({"dataset__unit": {}}, "person ID column"),
        ({"dataset__unit__max_rows": 2}, "one row each"),
        ({"tables__stays__columns__stay__role": "quasi"}, "its role must be identifier"),
        ({"tables__stays__depends_on": ["colour"]}, "there is no column 'colour'"),
        ({"tables__stays__depends_on": ["patients.patient"]}, "is not released"),
        ({"tables__stays__depends_on": ["procedures.code"]}, "not above 'stays'"),
        ({"tables__stays__order": "night"}, "there is no column 'night'"),
        ({"tables__stays__max_rows": 5000}, "can be at most 1,000"),
        ({"tables__procedures__unit": None, "tables__procedures__more": "refuse"}, "no person ID column, so nobody's"),
        ({"tables__stays__public": True}, "a public table has no parent"),
        ({"tables__stays__parent": None}, "needs parent"),
        ({"dataset__name": "a/b", "tables__stays__parent": "a/b"}, "written to a file of its name"),
        ({"release__shares": {"visits": 1}}, "shares names 'visits'"),
        ({"release__shares": {"stays": 0}}, "above 0"),
        ({"release__constraints": {"visits": []}}, "constraints names 'visits'"),
        ({"release__constraints": {"stays": [{"unique": "ward"}]}}, "ward"),
        ({"release__constraints": {"stays": [{"never": {"ward": "A", "sex": "F"}}]}}, "'sex', which is not released"),
        ({"release__cells": 100}, "a model of them needs"),
        ({"release__rows": -1}, "people are drawn"),
        ({"tables": None}, "write tables: with"),
        (
            {
                "purpose": "research",
                "consent": {"registry": "r.sqlite", "key": "k"},
                "dataset__unit__adjacency": "replace-one",
            },
            "people who are added or removed",
        ),
    ],
)
def test_what_cannot_be_linked_is_refused_in_a_sentence(sections: dict[str, Any], words: str) -> None:
    assert words in refusal(**sections)


def test_three_levels_are_refused() -> None:
    keys = (Column("a", Role.IDENTIFIER), Column("b", Role.IDENTIFIER), Column("c"))
    tables = [
        ChildTable(name, parent, Schema(keys), "a", 2, person="a", id="b")
        for name, parent in (("v", "people"), ("w", "v"), ("x", "w"))
    ]
    people = (Column("a", Role.IDENTIFIER), Column("d"))
    unit = Unit(Kind.PERSON, column="a")
    LinkedSchema(people, unit, "people", tuple(tables[:2]))
    with pytest.raises(InvalidParameter, match="too deep"):
        LinkedSchema(people, unit, "people", tuple(tables))


def test_another_method_takes_the_people_alone() -> None:
    policy = linked_policy("one level")
    policy["release"] = {"method": "marginals", "epsilon": 1, "delta": 1e-6}
    loaded = load_policy(policy)
    assert not isinstance(loaded.schema, LinkedSchema)
    assert [column.name for column in loaded.schema.released] == ["sex"]


def test_a_table_by_itself_is_an_output_of_its_own() -> None:
    output = released("one level", 20, rounds=1)
    assert output["stays"].to_arrow().column_names == ["stay", "patient", "ward", "urgent"]
    assert isinstance(output.to_arrow(), pa.Table)
    assert len(output) == output.tables["patients"].num_rows
