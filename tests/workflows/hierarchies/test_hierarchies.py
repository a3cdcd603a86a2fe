from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import TreeHierarchy, parse_arx, tree
from incrowd.core.schema import Column
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, UnknownColumn
from incrowd.workflows.hierarchies.build import HierarchyRequest, from_range, from_rows, from_values
from incrowd.workflows.hierarchies.check import MOST_NAMED, check_file, check_policy, faults, outside
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE
from tests.tables import Batches

PLACES = tree({"Europe": {"France": ["Paris", "Lyon"], "Italy": ["Rome"]}, "Asia": {"Japan": ["Kyoto"]}})
words = st.sampled_from(("a", "b", "c", "d", "*", ""))
lines = st.lists(st.lists(words, min_size=1, max_size=4).map(tuple), min_size=1, max_size=8)


@given(lines)
def test_a_file_has_no_faults_exactly_if_it_can_be_used(table: list[tuple[str, ...]]) -> None:
    found = [problem for problem in faults(table) if problem.what != "no label"]
    try:
        TreeHierarchy(tuple(table))
    except InvalidParameter:
        assert found
    else:
        assert not found


@given(lines)
def test_every_value_listed_twice_is_named(table: list[tuple[str, ...]]) -> None:
    named = [problem.value for problem in faults(table) if problem.what == "listed twice"]
    assert named == [value for value, times in Counter(line[0] for line in table).items() if times > 1]


def test_twins_that_differ_are_told_from_those_that_do_not() -> None:
    same, other = faults([("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")])
    assert "delete all but one" in same.fix
    assert "they differ" in other.fix


def test_a_short_row_can_be_pasted_in_full() -> None:
    (problem,) = faults([("a", "x", "*"), ("b", "y")])
    assert problem.paste == ("b", "y", "y")


def test_a_label_in_two_places_is_named_with_both() -> None:
    (problem,) = faults([("a", "x", "1"), ("b", "x", "2")])
    assert problem.value == "x"
    assert "'1', '2'" in problem.fix


values = st.lists(st.sampled_from(("Paris", "paris", "Rome", "Oslo", "", " Lyon", None)), min_size=1, max_size=40)


@settings(deadline=None)
@given(values, st.integers(1, 10))
def test_every_value_that_is_missing_is_named_and_counted(met: list[str | None], size: int) -> None:
    rows = Batches(pa.table({"city": pa.array(met, pa.string())}), size)
    slow = Counter(value for value in met if value is not None and value not in ("Paris", "Rome"))
    found = outside(rows, [Column("city", hierarchy=PLACES)])
    assert {problem.value: problem.rows for problem in found} == {
        value: times for value, times in slow.items() if value != "Lyon"
    }


def test_a_value_spelled_differently_is_put_beside_the_one_it_resembles() -> None:
    rows = open_source(pa.table({"city": ["kyoto", "Pariss", "Xanadu"]}))
    found = {problem.value: problem for problem in outside(rows, [Column("city", hierarchy=PLACES)])}
    assert found["kyoto"].paste == ("kyoto", "Japan", "Asia")
    assert found["Pariss"].fix == "did you mean 'Paris'?"
    assert found["Xanadu"].paste == ("Xanadu", "*", "*")


def test_pasting_what_is_suggested_makes_the_hierarchy_complete() -> None:
    rows = open_source(pa.table({"city": ["kyoto", "Pariss", "Xanadu", "Rome"]}))
    found = outside(rows, [Column("city", hierarchy=PLACES)])
    assert all(problem.paste is not None for problem in found)
    whole = TreeHierarchy((*PLACES.rows, *(problem.paste for problem in found if problem.paste is not None)))
    assert outside(rows, [Column("city", hierarchy=whole)]) == ()


def test_numbers_days_and_words_outside_their_domain_are_named_too() -> None:
    columns = [
        Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99))),
        Column("born", type=Type.DATE, hierarchy=Flat(Dates("2000-01-01", None))),
        Column("sex", hierarchy=Flat(Categories(("F", "M")))),
        Column("free"),
    ]
    table = {
        "age": ["5", "100", "x", None],
        "born": ["1999-12-31", "2000-01-01", "2000-02-31", ""],
        "sex": ["F", "f", "M", None],
        "free": ["anything", "at", "all", None],
    }
    found = outside(open_source(pa.table(table)), columns)
    assert {(problem.column, problem.value) for problem in found} == {
        ("age", "100"),
        ("age", "x"),
        ("born", "1999-12-31"),
        ("born", "2000-02-31"),
        ("sex", "f"),
    }
    assert all(problem.paste is None for problem in found)
    assert "widen the bounds" in found[0].fix


def test_floating_point_columns_are_held_against_their_bounds() -> None:
    column = Column("pay", type=Type.DECIMAL, hierarchy=Flat(Numbers(0, 1, Type.DECIMAL)))
    found = outside(open_source(pa.table({"pay": [0.5, 1.5, None, float("nan"), 1.5]})), [column])
    assert [(problem.value, problem.rows) for problem in found] == [("1.5", 2)]


def test_beyond_a_limit_values_are_counted_not_named() -> None:
    table = pa.table({"city": [f"v{number}" for number in range(MOST_NAMED + 500)]})
    found = outside(open_source(table), [Column("city", hierarchy=PLACES)])
    assert len(found) == MOST_NAMED + 1
    assert (found[-1].value, found[-1].rows) == ("…", 500)


def test_a_file_is_checked_beside_the_data(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("Paris;France;*\nLyon;France;*\n", encoding="utf-8")
    rows = open_source(pa.table({"city": ["Paris", "Rome"], "town": ["Lyon", "Lyon"]}))
    assert check_file(path, ";", None, None).passed
    assert [problem.value for problem in check_file(path, ";", rows, None).problems] == ["Rome"]
    assert check_file(path, ";", rows, "town").passed
    with pytest.raises(UnknownColumn):
        check_file(path, ";", rows, "village")


def test_a_broken_file_is_reported_in_full_before_the_data_is_read(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("Paris,France\nParis,Texas\nRome\n", encoding="utf-8")
    rows = open_source(pa.table({"city": ["Oslo"]}))
    assert {problem.what for problem in check_file(path, ",", rows, None).problems} == {"listed twice", "ragged"}


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "UTF-8"), (None, "cannot be read"), (b"a,b\nc,d\n", "comma")]
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "h.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidParameter, match=message):
        check_file(path, ";", None, None)


def test_everything_that_a_policy_declares_is_checked() -> None:
    policy = load_policy(PEOPLE)
    rows = open_source(pa.table({"sex": ["F", "X"], "age": ["5", "500"], "zip": ["1", "2"]}))
    report = check_policy(policy, rows)
    assert [(problem.column, problem.value) for problem in report.problems] == [("sex", "X"), ("age", "500")]
    assert not report.passed
    assert check_policy(policy, None).passed


@pytest.mark.parametrize(
    ("kind", "values", "steps", "first"),
    [
        ("prefix", ["02139", "94305"], (), ("02139", "0213", "021", "02", "0", "*")),
        ("prefix", ["02139", "02210"], (), ("02139", "0213", "021", "*")),
        ("prefix", ["02139", "94305"], ("2",), ("02139", "02", "*")),
        ("redaction", ["021", "943"], (), ("021", "02*", "0**", "*")),
        ("groups", ["low", "mid", "high"], ("2",), ("low", "low to mid", "*")),
    ],
)
def test_a_public_list_becomes_a_hierarchy(kind: str, values: list[str], steps: tuple[str, ...], first: Any) -> None:
    built = from_values(HierarchyRequest("c", kind, steps), values)
    assert built.table.rows[0] == first
    assert not built.derived
    assert [row[0] for row in built.table.rows] == values


def test_public_ranges_become_hierarchies() -> None:
    ages = from_range(HierarchyRequest("age", "intervals", ("10", "50")), "0", "99")
    assert (len(ages.table.rows), ages.table.rows[47]) == (100, ("47", "[40, 50)", "[0, 50)", "*"))
    days = from_range(HierarchyRequest("born", "dates"), "2020-02-28", "2020-03-01")
    assert days.table.rows[1] == ("2020-02-29", "2020-02", "2020-Q1", "2020", "*")
    assert not ages.derived
    assert not days.derived


def test_what_was_taken_from_rows_is_marked() -> None:
    rows = open_source(pa.table({"age": ["13", "57", None], "zip": ["02139", "94305", "02139"]}))
    ages = from_rows(HierarchyRequest("age", "intervals"), rows)
    assert ages.derived
    assert ages.table.rows[0][0] == "10"  # bounds are rounded outward
    assert [row[0] for row in from_rows(HierarchyRequest("zip", "prefix"), rows).table.rows] == ["02139", "94305"]


@pytest.mark.parametrize("kind", ["intervals", "dates", "prefix", "groups", "redaction"])
def test_what_is_built_holds_every_value_it_was_built_from(kind: str, tmp_path: Path) -> None:
    met = ["2020-01-05", "2021-12-31"] if kind == "dates" else ["13", "57", "20"]
    rows = open_source(pa.table({"c": met}))
    built = from_rows(HierarchyRequest("c", kind), rows)
    path = tmp_path / "c.csv"
    path.write_text(built.table.text(), encoding="utf-8")
    assert check_file(path, ";", rows, None).passed
    assert parse_arx(path.read_text(encoding="utf-8")).hierarchy().height == built.column.hierarchy.height


@pytest.mark.parametrize(
    ("kind", "steps", "message"),
    [
        ("triangles", (), "there is no kind"),
        ("intervals", ("10", "15"), "take multiples"),
        ("prefix", ("2", "3"), "shorter"),
        ("dates", (), "is a day"),
    ],
)
def test_what_cannot_be_built_is_said(kind: str, steps: tuple[str, ...], message: str) -> None:
    rows = open_source(pa.table({"c": ["13", "57"]}))
    with pytest.raises(InvalidParameter, match=message):
        from_rows(HierarchyRequest("c", kind, steps), rows)


def test_ranges_and_lists_do_not_fit_every_kind() -> None:
    with pytest.raises(InvalidParameter, match="has no prefix"):
        from_range(HierarchyRequest("c", "prefix"), "0", "9")
    with pytest.raises(InvalidParameter, match="made from a range"):
        from_values(HierarchyRequest("c", "intervals"), ["1"])
    with pytest.raises(InvalidParameter, match="whole numbers"):
        from_range(HierarchyRequest("c", "intervals"), "x", "9")
    with pytest.raises(InvalidParameter, match="200002 lines"):
        from_range(HierarchyRequest("c", "intervals"), "0", "200001")
    many = open_source(pa.table({"c": [f"v{number}" for number in range(2000)]}))
    with pytest.raises(InvalidParameter, match="public list"):
        from_rows(HierarchyRequest("c", "groups"), many)
