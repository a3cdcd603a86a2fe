from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Numbers, Type
from incrowd.core.loss import Syntactic
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.errors import OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.draft_columns import date_rule, number_rule
from incrowd.workflows.profile.draft_policy import Origin, draft, write_draft
from incrowd.workflows.profile.profile import profile
from tests.coins import SeededCoins

ROWS = 400
TABLE = pa.table(
    {
        "patient_id": [f"P{number:06d}" for number in range(ROWS)],
        "age": [str(number % 83 + 11) for number in range(ROWS)],
        "sex": ["F" if number % 2 else "M" for number in range(ROWS)],
        "zip": [f"02{number % 37:03d}" for number in range(ROWS)],
        "born": [f"{1950 + number % 60}-03-{number % 28 + 1:02d}" for number in range(ROWS)],
        "insured": ["yes" if number % 3 else "no" for number in range(ROWS)],
        "weight": [str(number % 40 + 50.25) for number in range(ROWS)],
        "diagnosis": [f"{'ABC'[number % 3]}{number % 20:02d}" for number in range(ROWS)],
        "remark": [f"a sentence of some length that goes on and on, number {number}" for number in range(ROWS)],
        "country": ["DE"] * ROWS,
    }
)


def drafted(table: pa.Table, tmp_path: Path, name: str = "policy.yaml") -> Policy:
    text = draft(profile(open_source(table)), Origin("data.csv"))
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load_policy(tmp_path / name)


def test_a_draft_can_be_read_and_promises_k_anonymity_only(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    promise = policy.method.plan(policy.schema).promise
    assert isinstance(promise.loss, Syntactic)
    assert policy.source == str(tmp_path / "data.csv")
    assert policy.budget is None


def test_whatever_was_read_off_the_rows_is_marked(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    declared = {"insured"}  # true and false are nobody's secret
    assert set(policy.schema.drafted) == {column.name for column in policy.schema.released} - declared
    for column in policy.section.columns.values():
        assert (column.derived is not None) == (column.bounds is not None or column.categories is not None)
        assert column.hierarchy is None or column.hierarchy.derived == "rows"


def test_a_draft_runs_as_it_is(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    table = Table(policy.schema, open_source(TABLE), LocalEngine())
    released = policy.plan.release(table, SeededCoins(1))
    assert set(released.schema.names) == {column.name for column in policy.schema.released}


def test_with_public_sources_the_same_draft_promises_an_epsilon(tmp_path: Path) -> None:
    drafted(TABLE, tmp_path)
    text = (tmp_path / "policy.yaml").read_text(encoding="utf-8")
    lines = [
        line + (f'\n{line[: len(line) - len(line.lstrip())]}public: "census"' if "derived: rows" in line else "")
        for line in text.splitlines()
        if not line.startswith("#")
    ]
    (tmp_path / "public.yaml").write_text("\n".join(lines), encoding="utf-8")
    policy = load_policy(tmp_path / "public.yaml")
    assert policy.schema.drafted == ()
    assert not isinstance(policy.method.plan(policy.schema).promise.loss, Syntactic)


def test_columns_become_what_they_look_like(tmp_path: Path) -> None:
    sections = drafted(TABLE, tmp_path).section.columns
    assert sections["patient_id"].role == "identifier"
    assert sections["remark"].role == "identifier"
    assert sections["age"].bounds == ("10", "94")
    assert sections["zip"].hierarchy is not None
    assert sections["zip"].hierarchy.prefix == (4,)  # they all begin with 020
    assert sections["born"].bounds == ("1950-01-01", "2009-12-31")
    assert sections["insured"].type == "boolean"
    assert sections["diagnosis"].role == "sensitive"
    assert sections["country"].role == "plain"
    assert sections["weight"].type == "decimal"


def test_free_text_that_must_not_be_released_says_why(tmp_path: Path) -> None:
    table = pa.table({"note": [f"{number % 1200} words with spaces in them" for number in range(2400)]})
    text = draft(profile(open_source(table)), Origin("data.csv"))
    assert "role: identifier   # text that nothing makes coarser" in text


def test_levels_leave_no_free_text_and_not_too_many_cells(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    cells = policy.method.cells(policy.schema)  # type: ignore[attr-defined]  # refuses free text at level 0
    marks = 1
    for recoding in cells.recodings:
        marks *= len(recoding.classes.marks)
    assert marks <= 12


def test_spellings_of_missing_values_go_into_the_source(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(draft(profile(open_source(TABLE)), Origin("data.csv", ("NA", "-"))), encoding="utf-8")
    assert load_policy(path).options.nulls == ("", "NA", "-")


nasty = st.text(min_size=1, max_size=6) | st.sampled_from(
    (
        "null",
        "~",
        "NO",
        "01",
        "a: b",
        "# x",
        "- y",
        '"',
        "\\",
        "\n",
        "\u2028",
        "\x85",
        "{",
        "é",
        "😀",
        " ",
        "*",
        "&a",
        "%",
    )
)


@settings(deadline=None)
@given(st.lists(nasty, min_size=2, max_size=12, unique=True))
def test_values_survive_the_way_through_yaml(values: list[str]) -> None:
    table = pa.table({"x": pa.array(values * 30, pa.string())})
    found = profile(open_source(table)).columns[0]
    text = draft(profile(open_source(table)), Origin("data.csv"))
    section = read_document(text).content["columns"]["x"]
    if found.type is Type.TEXT:
        assert section["categories"] == sorted(values)


@settings(deadline=None)
@given(nasty.filter(lambda name: "\0" not in name))  # Arrow ends a name there
def test_names_survive_the_way_through_yaml(name: str) -> None:
    table = pa.table({name: ["a", "b"] * 20, "plain": ["a", "b"] * 20})
    content = read_document(draft(profile(open_source(table)), Origin("folder/a b: c.csv"))).content
    assert name in content["columns"]
    assert content["source"] == "folder/a b: c.csv"


def test_long_lists_are_wrapped_and_read_back(tmp_path: Path) -> None:
    values = [f"value, with a comma {number:03d}" for number in range(300)]
    table = pa.table({"x": values * 2})
    text = draft(profile(open_source(table)), Origin("data.csv"))
    assert max(map(len, text.splitlines())) <= 130
    assert read_document(text).content["columns"]["x"]["categories"] == values


ends = st.integers(-(10**12), 10**12)


@given(ends, ends)
def test_drafted_bounds_of_whole_numbers_hold_all_of_them(one: int, other: int) -> None:
    low, high = sorted((one, other))
    rule = number_rule(low, high, Type.INTEGER)
    column = column_of("x", ColumnSection(type="integer", **rule), Path())
    assert isinstance(column.domain, Numbers)
    assert column.domain.contains(pa.array([low, high])).all()
    assert column.hierarchy.height <= 4


numbers = st.floats(-1e9, 1e9, allow_nan=False).map(lambda number: round(number, 4))


@given(numbers, numbers)
def test_drafted_bounds_of_decimals_hold_all_of_them(one: float, other: float) -> None:
    low, high = sorted((one, other))
    rule = number_rule(low, high, Type.DECIMAL)
    column = column_of("x", ColumnSection(type="decimal", **rule), Path())
    assert isinstance(column.domain, Numbers)
    assert column.domain.contains(pa.array([low, high])).all()


def test_bounds_do_not_name_the_oldest_person() -> None:
    assert number_rule(17, 103, Type.INTEGER)["bounds"] == ["15", "104"]
    assert number_rule(17, 101, Type.INTEGER)["bounds"] == ["15", "104"]


def test_what_has_no_values_gets_no_bounds() -> None:
    assert number_rule(None, None, Type.INTEGER) == {}
    assert date_rule(None, None) == {}


def test_a_draft_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputUnavailable, match="nothing is overwritten"):
        write_draft("theirs", path)
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(OutputUnavailable, match="No such file"):
        write_draft("theirs", tmp_path / "nowhere" / "policy.yaml")


def test_an_empty_column_can_be_drafted(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([None] * 30, pa.string()), "sex": ["F", "M"] * 15})
    assert drafted(table, tmp_path).section.columns["x"].role == "identifier"
