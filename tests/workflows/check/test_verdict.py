"""A file that nobody has described gets a verdict: who is named fails, and what is harmless is not blamed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from incrowd.engines.readers.sources import open_source
from incrowd.workflows.check.check import CheckedColumns, check
from incrowd.workflows.check.criteria import CheckCriteria
from incrowd.workflows.check.verdict import verdict
from incrowd.workflows.profile.profile import identities_of
from tests.workflows.check.harmless import TABLES, harmless
from tests.workflows.check.people import COUNTRIES, PLANTED, planted


@pytest.mark.parametrize("country", COUNTRIES)
@pytest.mark.parametrize("kind", [kind for kind, _, _ in PLANTED])
def test_a_table_with_a_planted_identifier_does_not_pass(kind: str, country: str) -> None:
    table = planted(kind, country)
    found = verdict(open_source(table))
    assert [column.name for column in found.naming] == [table.column_names[1]]
    assert not found.passed
    assert found.sentence.startswith("Do not publish this: 1 column seems to name people")


@pytest.mark.parametrize("kind", [kind for kind, _, _ in PLANTED])
def test_nor_does_it_pass_when_other_columns_are_named(kind: str) -> None:
    table = planted(kind, "DE")
    found = check(open_source(table), CheckCriteria(k=5), CheckedColumns(("band",)))
    assert not found.passed
    assert found.unexamined == (table.column_names[1], "group")
    assert list(found.identities) == [table.column_names[1]]
    assert [each.criterion for each in found.findings if each.passed is False] == ["identifiers"]


@pytest.mark.parametrize("domain", TABLES)
def test_a_harmless_table_is_not_blamed_for_identifiers(domain: str) -> None:
    rows = open_source(harmless(domain))
    assert identities_of(rows, rows.names) == {}
    assert "name people" not in verdict(rows).sentence.removeprefix("No column seems to name people")


def test_what_a_criterion_is_about_is_judged_by_its_values_alone() -> None:
    table = pa.table({"customer_no": ["1", "2"] * 6, "x": ["a@example.org", "b@example.org"] * 6})
    assert check(
        open_source(table.select(["customer_no"])), CheckCriteria(k=5), CheckedColumns(("customer_no",))
    ).passed
    assert not check(open_source(table), CheckCriteria(k=5), CheckedColumns(("customer_no", "x"))).passed


def test_one_address_in_a_long_column_is_enough() -> None:
    remarks = ["fine", "good", "poor"] * 400 + ["ask ann@example.org"]
    assert set(identities_of(open_source(pa.table({"x": remarks})), ["x"])) == {"x"}


def test_rows_that_are_alone_are_told_with_the_columns_that_others_know() -> None:
    table = pa.table(
        {
            "age": [str(20 + number % 50) for number in range(100)],
            "zip": [f"{10115 + number % 60}" for number in range(100)],
            "sex": ["F", "M"] * 50,
            "shoe": [str(36 + number % 9) for number in range(100)],
        }
    )
    found = verdict(open_source(table))
    assert found.sentence == "Do not publish this: 100 % of the rows are unique in age and zip."
    assert found.smallest == 1
    assert found.short == 100


def test_small_crowds_fail_even_where_nobody_is_alone() -> None:
    found = verdict(open_source(pa.table({"sex": ["F"] * 9 + ["M"] * 3})))
    assert not found.passed
    assert found.sentence == "Do not publish this: 3 rows equal fewer than 4 others in sex."


def test_a_key_fails_without_being_called_a_name() -> None:
    found = verdict(open_source(pa.table({"sku": [f"X{number}" for number in range(40)], "sex": ["F", "M"] * 20})))
    assert not found.passed
    assert found.sentence == "Do not publish this: nearly every row has a unique value in sku."


def test_a_coarse_table_passes_and_says_that_roles_are_guessed() -> None:
    found = verdict(open_source(pa.table({"sex": ["F", "M"] * 20, "diagnosis": ["flu"] * 30 + ["gout"] * 10})))
    assert found.passed
    assert "guessed" in found.sentence
    assert found.to_json("a b.csv")["next"][0] == "incrowd profile 'a b.csv' --write policy.yaml"


def test_another_k_can_be_asked_for() -> None:
    rows = open_source(pa.table({"sex": ["F", "M"] * 20}))
    assert verdict(rows, 20).passed
    assert not verdict(rows, 21).passed


def test_fewer_rows_than_a_crowd_are_none_however_alike_they_are() -> None:
    alone = verdict(open_source(pa.table({"age": ["30"], "zip": ["8001"]})))
    assert not alone.passed
    assert alone.sentence == "Do not publish this: 1 row equals fewer than 4 others, because there are no more."
    assert not verdict(open_source(pa.table({"zip": ["8001"] * 4}))).passed
    assert verdict(open_source(pa.table({"zip": ["8001"] * 5}))).passed


@pytest.mark.parametrize("most", [1, 4, 5])
@pytest.mark.parametrize("missing", [0, 1, 6])
@pytest.mark.parametrize("kind", [pa.int32(), pa.string()])
def test_a_column_that_isolates_rows_says_what_counting_all_columns_says(
    kind: pa.DataType, missing: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits = pa.array([*range(1000, 1200), *[7] * most, *[None] * missing], pa.int32())
    table = pa.table({"visit": visits.cast(kind), "side": ["a", "b"] * 100 + ["a"] * (most + missing)})
    by_one = verdict(open_source(table))
    monkeypatch.setattr("incrowd.workflows.check.verdict._LISTED", 0)
    by_all = verdict(open_source(table))
    assert by_all.quasi == ("visit", "side")
    assert (by_one.smallest, by_one.short) == (by_all.smallest, by_all.short)
    assert (by_all.smallest, by_all.short) == (1, 200 + most * (most < 5) + missing * (missing < 5))
