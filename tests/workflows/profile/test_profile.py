from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.engines.readers.sources import open_source
from incrowd.errors import SourceInvalid
from incrowd.workflows.profile.column_names import KNOWN, NAMING, SECRET, spoken
from incrowd.workflows.profile.profile import ColumnProfile, TableProfile, person_column, profile
from incrowd.workflows.profile.subsets import MOST_COLUMNS, MOST_IN_TRIPLES, Subsets
from tests.tables import Batches


def profiled(**columns: Any) -> TableProfile:
    return profile(open_source(pa.table(columns)))


def one(name: str, values: list[Any]) -> ColumnProfile:
    return profiled(**{name: values}).columns[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "22", "-3", None], Type.INTEGER),
        (["1.0", "2.0"], Type.INTEGER),
        (["1.5", "2"], Type.DECIMAL),
        (["1e3", "2.5"], Type.DECIMAL),
        (["02139", "94305"], Type.TEXT),
        (["0", "10"], Type.INTEGER),
        (["0.5", "0.25"], Type.DECIMAL),
        (["+4930123", "+4930124"], Type.TEXT),
        (["12345678901234567890", "1"], Type.TEXT),
        (["2020-02-29", "2021-12-31"], Type.DATE),
        (["2021-02-29", "2021-12-31"], Type.TEXT),
        (["29.02.2020", "31.12.2021"], Type.TEXT),
        (["yes", "no"], Type.BOOLEAN),
        (["0", "1"], Type.INTEGER),
        (["F", "F"], Type.TEXT),
        (["F", "M"], Type.TEXT),
        (["17", "NA"], Type.TEXT),
        (["17", " "], Type.INTEGER),
        ([None, None], Type.TEXT),
        ([1, 2], Type.INTEGER),
        ([1.0, float("nan")], Type.INTEGER),
        ([1.25, 2.0], Type.DECIMAL),
        ([True, False], Type.BOOLEAN),
        ([dt.date(2020, 1, 1)], Type.DATE),
        ([dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC), None], Type.DATE),
    ],
)
def test_types_are_read_off_the_values_and_codes_stay_text(values: list[Any], kind: Type) -> None:
    assert one("x", values).type is kind


def test_a_type_must_hold_in_every_batch() -> None:
    table = pa.table({"x": [str(number) for number in range(100)] + ["007"]})
    assert profile(Batches(table, 10)).columns[0].type is Type.TEXT
    table = pa.table({"x": [str(number) for number in range(100)] + ["0.5"]})
    found = profile(Batches(table, 10)).columns[0]
    assert (found.type, found.facts.low, found.facts.high) == (Type.DECIMAL, 0, 99)


def test_numbers_by_the_name_of_a_code_stay_text() -> None:
    assert one("zip_code", ["94305", "10001"]).type is Type.TEXT


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("patient_id", Role.IDENTIFIER),
        ("E-Mail", Role.IDENTIFIER),
        ("lastName", Role.IDENTIFIER),
        ("date of birth", Role.QUASI),
        ("hospital_name", Role.QUASI),
        ("gender", Role.QUASI),
        ("primaryDiagnosis", Role.SENSITIVE),
        ("income", Role.SENSITIVE),
        ("xyz", Role.QUASI),
    ],
)
def test_roles_are_guessed_from_names_with_a_reason(name: str, role: Role) -> None:
    found = one(name, ["a", "b", "c", "a", "b", "c"])
    assert found.role is role
    assert found.why_role


def test_a_column_in_which_nearly_every_row_has_its_own_value_is_an_identifier() -> None:
    assert one("whatever", [f"v{number}" for number in range(100)]).role is Role.IDENTIFIER
    assert one("whatever", [f"v{number // 2}" for number in range(100)]).role is Role.QUASI


def test_a_measurement_that_is_unique_is_no_identifier() -> None:
    assert one("whatever", [number + 0.5 for number in range(100)]).role is Role.QUASI
    assert one("salary", list(range(100))).role is Role.SENSITIVE


def test_a_few_small_numbers_are_not_national_ids_whatever_they_are_called() -> None:
    """`dni` are days in Polish, and ids in Spanish: the people are those of the other column."""
    pesel = [f"{70010100000 + number % 150}" for number in range(400)]
    person = person_column(profiled(dni=[1 + number % 19 for number in range(400)], pesel=pesel))
    assert person is not None
    assert person.name == "pesel"
    assert one("dni", pesel).identity is not None


def test_what_is_the_same_in_every_row_tells_nobody_apart() -> None:
    assert one("gender", ["F"] * 5).role is Role.PLAIN


def test_words_are_matched_whole() -> None:
    assert spoken("identity", NAMING) is None
    assert spoken("marriage", KNOWN) is None
    assert spoken("LAB_RESULT", SECRET) == "lab"
    assert spoken("zipCode", KNOWN) == "zip"


def test_missing_values_are_counted_as_the_type_reads_them() -> None:
    assert one("x", ["1", None, " ", "2"]).facts.missing == 2
    assert one("x", ["a", None, " ", "b"]).facts.missing == 1
    assert one("x", [1.5, None, float("nan")]).facts.missing == 2


def test_values_are_listed_up_to_a_limit() -> None:
    few = one("x", ["b", "a", "b"]).facts.values
    assert few == (("b", 2), ("a", 1))
    assert one("x", [f"{number % 1500}y" for number in range(3000)]).facts.values is None


def test_values_of_an_identifier_are_not_shown() -> None:
    found = one("name", ["Ann", "Bob", "Cid"])
    assert found.summary == ""
    assert "Ann" not in str(found.to_json())


tables = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(("1", "2", None)), st.integers(0, 3), st.sampled_from("xy")),
    min_size=1,
    max_size=60,
)


@settings(deadline=None)
@given(tables, st.integers(1, 20))
def test_uniqueness_of_all_pairs_and_triples_is_what_a_counter_says(table: list[tuple[Any, ...]], size: int) -> None:
    names = ("p", "q", "r", "s")
    columns = {name: pa.array([row[place] for row in table]) for place, name in enumerate(names)}
    found = profile(Batches(pa.table(columns), size))
    varied = {name for place, name in enumerate(names) if len({row[place] for row in table}) > 1}
    expected = {}
    for number in (2, 3):
        for places in itertools.combinations(range(4), number):
            tuples = Counter(tuple(row[place] for place in places) for row in table)
            expected[tuple(names[place] for place in places)] = sum(times == 1 for times in tuples.values())
    assert {subset.columns: subset.spread.unique for subset in found.subsets} == {
        columns: unique for columns, unique in expected.items() if set(columns) <= varied
    }


def test_the_most_dangerous_come_first() -> None:
    found = profiled(a=["1", "1", "2", "2"], b=["1", "2", "1", "2"], c=["1", "1", "1", "2"])
    shares = [subset.spread.unique_share for subset in found.subsets]
    assert shares == sorted(shares, reverse=True)
    assert found.subsets[0].columns == ("a", "b")


def test_with_many_columns_the_most_telling_are_taken_and_that_is_said() -> None:
    chance = np.random.default_rng(1)
    columns = {f"c{number}": chance.integers(0, number + 2, 500).astype(str) for number in range(18)}
    found = profiled(**columns)
    assert len({name for subset in found.subsets for name in subset.columns}) == MOST_COLUMNS
    assert any(f"the {MOST_COLUMNS} and triples of the {MOST_IN_TRIPLES} with" in note for note in found.notes)
    assert not any("c0" in subset.columns for subset in found.subsets)


def test_estimates_are_said_to_be_estimates() -> None:
    chance = np.random.default_rng(2)
    columns = {f"c{number}": chance.integers(0, 50, 90_000) for number in range(9)}
    found = profiled(**{name: values.astype(str) for name, values in columns.items()})
    assert any("estimated" in note for note in found.notes)
    triples = [subset for subset in found.subsets if len(subset.columns) == 3]
    assert len(triples) == 56  # of the eight columns with the most values
    for triple in triples:
        assert not triple.spread.exact
        first, second, third = (columns[name] for name in triple.columns)
        share = np.count_nonzero(np.bincount((50 * first + second) * 50 + third) == 1) / 90_000
        assert triple.spread.unique_share == pytest.approx(share, abs=3 * triple.spread.margin)  # six standard errors


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(SourceInvalid, match="no rows"):
        profiled(x=pa.array([], pa.string()))


def test_the_plain_form_holds_everything() -> None:
    found = profiled(sex=["F", "M", "F"], age=["1", "2", "3"]).to_json()
    assert found["rows"] == 3
    assert found["columns"][1]["low"] == "1"
    assert found["columns"][0]["values"] == {"F": 2, "M": 1}
    assert found["subsets"][0]["unique_share"] == 1.0


def test_dense_tables_and_sketches_count_the_same_also_where_more_values_come_than_expected() -> None:
    chance = np.random.default_rng(3)
    names = ("a", "b", "c", "d")
    table = pa.table({
        "a": chance.integers(0, 3, 9000).astype(str),
        "b": pa.array([None if n % 7 == 0 else str(n % 40) for n in range(9000)]),
        "c": chance.integers(0, 5, 9000),
        "d": chance.normal(0, 1, 9000).round(1),
    })  # fmt: skip
    plain = Subsets(names)  # nothing is expected: sketches alone
    expected = [{"a": 3, "b": 41, "c": 5, "d": 80}, {"a": 1, "b": 9, "c": 2, "d": 1}]
    learners = [plain, *(Subsets(names, sizes) for sizes in expected)]
    halves = [Subsets(names, expected[0]) for _ in range(2)]
    for place, batch in enumerate(table.to_batches(max_chunksize=1000)):
        for learner in (*learners, halves[place % 2]):
            learner.add(batch)
    halves[0].merge(halves[1])
    for learner in (*learners[1:], halves[0]):
        assert set(learner.ranked()) == set(plain.ranked())
    both = len(set(zip(table["a"].to_pylist(), table["c"].to_pylist(), strict=True)))
    assert next(subset for subset in plain.ranked() if subset.columns == ("a", "c")).spread.distinct == both
