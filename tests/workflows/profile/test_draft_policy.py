from __future__ import annotations

import re
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
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.draft_columns import date_rule, number_rule
from incrowd.workflows.profile.draft_policy import draft, write_draft
from incrowd.workflows.profile.draft_text import DraftGoal, DraftPeriod, DraftRequest, Origin
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


MICRODATA = DraftRequest()
CLASSIC = DraftRequest(DraftGoal.CLASSIC)


def drafted(table: pa.Table, tmp_path: Path, wish: DraftRequest = MICRODATA) -> Policy:
    made = draft(profile(open_source(table)), Origin("data.csv"), wish)
    (tmp_path / "policy.yaml").write_text(made.text, encoding="utf-8")
    return load_policy(tmp_path / "policy.yaml")


def release_columns(policy: Policy) -> list[str]:
    release = policy.section.release
    assert isinstance(release, dict)
    columns = release["columns"]
    assert isinstance(columns, list)
    return columns


def test_a_draft_rests_on_nothing_that_was_read_off_the_rows(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    assert policy.schema.drafted == ()
    assert not isinstance(policy.plan.guarantee.loss, Syntactic)
    assert policy.source == str(tmp_path / "data.csv")


def test_a_draft_is_the_same_for_other_people_of_the_same_kind(tmp_path: Path) -> None:
    """No bound, list or level of it moves with the rows: twice as many, older and elsewhere."""
    number = range(2 * ROWS)
    other = pa.table(
        {
            "patient_id": [f"Q{n:06d}" for n in number],
            "age": [str(n % 60 + 40) for n in number],
            "sex": ["M" if n % 3 else "F" for n in number],
            "zip": [f"94{n % 57:03d}" for n in number],
            "born": [f"{1930 + n % 50}-07-{n % 28 + 1:02d}" for n in number],
            "insured": ["no" if n % 3 else "yes" for n in number],
            "weight": [str(n % 70 + 40.75) for n in number],
            "diagnosis": [f"{'DEF'[n % 3]}{n % 30:02d}" for n in number],
            "remark": [f"another sentence of some length that goes on and on, number {n}" for n in number],
            "country": ["FR"] * len(number),
        }
    )
    texts = [draft(profile(open_source(table)), Origin("data.csv")).text for table in (TABLE, other)]
    for one, two in zip(*(re.split("  country|release:", text) for text in texts), strict=True):
        assert one == two or "DE" in one  # held back, since only the rows told it


def test_neither_rows_nor_people_are_counted_in_a_draft(tmp_path: Path) -> None:
    riders = pa.table({"rider": [f"R{n % 137:05d}" for n in range(1507)], "age": [str(n % 50) for n in range(1507)]})
    for goal in DraftGoal:
        made = draft(profile(open_source(riders)), Origin("data.csv"), DraftRequest(goal))
        assert made.person is not None
        assert (made.person.people, made.person.most_rows) == (137, 11)
        assert not [number for number in ("1507", "1,507", "137", "11") if number in made.text.split()]
        (tmp_path / f"{goal}.yaml").write_text(made.text, encoding="utf-8")
        dataset = load_policy(tmp_path / f"{goal}.yaml").section.dataset
        table = goal is DraftGoal.TABLE  # which counts every row, and merges those of one rider
        assert (dataset.unit.column, dataset.unit.max_rows) == (None if table else "rider", 1)
        assert ("\n  holding: rider " in made.text) is table
        assert (dataset.rows, dataset.population) == (None, None)


def test_what_was_read_off_the_rows_is_marked_in_a_classic_draft(tmp_path: Path) -> None:
    policy = drafted(TABLE.append_column("ward", pa.array(["east", "west"] * 200)), tmp_path, CLASSIC)
    assert set(policy.schema.drafted) == {"weight", "ward", "country"}
    assert isinstance(policy.plan.guarantee.loss, Syntactic)
    assert policy.budget is not None


def test_text_that_only_rows_tell_is_held_back_until_somebody_vouches_for_it(tmp_path: Path) -> None:
    table = TABLE.append_column("ward", pa.array(["east", "west"] * 200))
    held = drafted(table, tmp_path).section.columns["ward"]
    assert (held.role, held.derived) == ("withheld", "rows")
    policy = drafted(table, tmp_path, DraftRequest(public={"ward": "the staff guide"}))
    assert policy.section.columns["ward"].role == "quasi"
    assert policy.schema.drafted == ()


def test_where_nothing_else_is_left_the_mark_stays_and_voids_the_guarantee(tmp_path: Path) -> None:
    policy = drafted(pa.table({"ward": ["east", "west"] * 200}), tmp_path)
    assert policy.schema.drafted == ("ward",)


def test_a_draft_for_synthetic_rows_says_which_columns_have_one_class(tmp_path: Path) -> None:
    table = pa.table({"sex": ["f", "m"] * 20, "kwota": [float(10 + n * n) for n in range(40)]})
    bare = draft(profile(open_source(table)), Origin("bills.csv"), DraftRequest(DraftGoal.SYNTHETIC))
    assert bare.undeclared == ("kwota",)
    assert "* in every row: kwota. Write bounds" in bare.text
    assert "--public COLUMN=WHERE" in bare.text
    wish = DraftRequest(DraftGoal.SYNTHETIC, public={"kwota": "the price list"})
    vouched = draft(profile(open_source(table)), Origin("bills.csv"), wish)
    assert vouched.undeclared == ()
    assert "in every row" not in vouched.text


def test_a_declared_period_is_what_dates_lie_in(tmp_path: Path) -> None:
    table = pa.table({"seen": [f"2024-0{n % 9 + 1}-11" for n in range(400)], "sex": ["F", "M"] * 200})
    policy = drafted(table, tmp_path, DraftRequest(period=DraftPeriod("2023-2024")))
    assert policy.section.columns["seen"].bounds == ("2023-01-01", "2024-12-31")
    assert policy.section.dataset.period == "2023-2024"
    assert drafted(table, tmp_path).section.columns["seen"].bounds == ("1900-01-01", "2099-12-31")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DraftPeriod("last year")


@pytest.mark.parametrize(
    ("name", "last", "reason"),
    [
        ("Geburtsdatum", "2025-12-31", "births from 1900 to 2025"),
        ("born", "2025-12-31", "births from 1900 to 2025"),
        ("gebtag", "2099-12-31", "the calendar from 1900 to 2099: many values lie outside the declared period"),
    ],
)
def test_births_end_with_a_period_and_do_not_begin_with_it(name: str, last: str, reason: str, tmp_path: Path) -> None:
    births = [f"{1940 + n % 70}-05-11" for n in range(400)]
    table = pa.table({name: births, "seen": ["2024-03-11", "2025-04-12"] * 200})
    policy = drafted(table, tmp_path, DraftRequest(period=DraftPeriod("2024-2025")))
    assert policy.section.columns[name].bounds == ("1900-01-01", last)
    assert policy.section.columns["seen"].bounds == ("2024-01-01", "2025-12-31")
    assert policy.section.columns[name].derived is None
    text = draft(profile(open_source(table)), Origin("x.csv"), DraftRequest(period=DraftPeriod("2024-2025"))).text
    assert f"  {name}:   # {reason}\n" in text


def test_years_of_events_are_those_of_a_period_and_births_end_with_it(tmp_path: Path) -> None:
    table = pa.table({"year": [2021, 2022, 2023] * 50, "birth_year": [1950, 1980, 2020] * 50})
    columns = drafted(table, tmp_path, DraftRequest(period=DraftPeriod("2021-2023"))).section.columns
    assert columns["year"].bounds == ("2021", "2023")
    assert columns["birth_year"].bounds == ("1900", "2023")
    columns = drafted(table, tmp_path).section.columns
    assert columns["year"].bounds == ("1900", "2099")
    first, last = columns["birth_year"].bounds or ("", "")
    assert first == "1900"
    assert 2020 < int(last or 0) < 2099


def test_a_table_with_totals_takes_categories_before_numbers_in_the_order_of_the_file(tmp_path: Path) -> None:
    table = pa.table(
        {"income": [1000 + 7 * n for n in range(300)], "sex": ["F", "M"] * 150, "ward": ["a", "b", "c"] * 100}
    )
    policy = drafted(table, tmp_path, DraftRequest(DraftGoal.TABLE))
    assert release_columns(policy) == ["sex", "ward"]
    three = drafted(table, tmp_path, DraftRequest(DraftGoal.TABLE, keep=("income", "sex", "ward")))
    assert release_columns(three) == ["sex", "ward", "income"]


def test_a_few_days_outside_of_a_period_leave_it_the_bound(tmp_path: Path) -> None:
    days = [f"2024-{n % 12 + 1:02d}-{n % 28 + 1:02d}" for n in range(400)]
    table = pa.table({"seen": [*days, "2023-12-30"], "sex": [*["F", "M"] * 200, "F"]})
    policy = drafted(table, tmp_path, DraftRequest(period=DraftPeriod("2024")))
    assert policy.section.columns["seen"].bounds == ("2024-01-01", "2024-12-31")


def test_a_table_of_very_many_columns_keeps_those_that_tell_most(tmp_path: Path) -> None:
    columns = {f"q{n}": [str((n + row) % 4) for row in range(200)] for n in range(20)}
    policy = drafted(pa.table(columns | {"age": ["31", "40"] * 100, "income": ["100", "300"] * 100}), tmp_path)
    names = [column.name for column in policy.schema.released]
    assert len(names) == 8
    assert {"age", "income"} <= set(names)


def test_a_draft_of_nothing_but_names_is_refused() -> None:
    table = pa.table({"email": [f"{n}@example.org" for n in range(40)]})
    with pytest.raises(InvalidParameter, match="none can be released"):
        draft(profile(open_source(table)), Origin("data.csv"))
    with pytest.raises(InvalidParameter, match="there is no column"):
        draft(profile(open_source(table)), Origin("data.csv"), DraftRequest(public={"e-mail": "a list"}))


def test_a_draft_runs_as_it_is(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    table = Table(policy.schema, open_source(TABLE), LocalEngine())
    released = policy.plan.release(table, SeededCoins(1))
    assert set(released.schema.names) == {column.name for column in policy.schema.released}


def test_columns_become_what_they_look_like(tmp_path: Path) -> None:
    sections = drafted(TABLE, tmp_path).section.columns
    assert sections["patient_id"].role == "identifier"
    assert sections["remark"].role == "identifier"
    assert sections["age"].bounds == ("0", "120")
    assert sections["zip"].hierarchy is not None
    assert sections["zip"].hierarchy.prefix == (3, 2, 1)
    assert sections["born"].bounds is not None
    assert sections["born"].bounds[0] == "1900-01-01"
    assert sections["diagnosis"].hierarchy is not None
    assert sections["diagnosis"].hierarchy.classification == "icd-10"
    assert sections["insured"].type == "boolean"
    assert sections["diagnosis"].role == "sensitive"
    assert sections["weight"].type == "decimal"
    assert sections["weight"].bounds is None


def test_free_text_that_must_not_be_released_says_why(tmp_path: Path) -> None:
    table = pa.table({"note": [f"{number % 1200} has words" for number in range(2400)]})
    text = draft(profile(open_source(table.append_column("sex", pa.array(["F", "M"] * 1200)))), Origin("data.csv")).text
    assert "role: withheld   # text that cannot be generalized" in text


def test_no_free_text_may_be_chosen_and_not_too_many_levels_are_weighed(tmp_path: Path) -> None:
    policy = drafted(TABLE, tmp_path)
    assert policy.plan.settings["candidates"] <= 400
    assert policy.method.choices(policy.schema)["zip"][0] > 0  # type: ignore[attr-defined]


def test_spellings_of_missing_values_go_into_the_source(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        draft(profile(open_source(TABLE)), Origin("data.csv", {"nulls": ["", "NA", "-"]})).text, encoding="utf-8"
    )
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
    if found.type is not Type.TEXT or found.identity is not None:
        return
    section = read_document(draft(profile(open_source(table)), Origin("data.csv"), CLASSIC).text).content["columns"][
        "x"
    ]
    cleaned = {value for value, _ in found.cleaned.facts.values or ()}
    drafted = section["role"] != "identifier" and "derived" in section
    assert not drafted or "categories" not in section or section["categories"] == sorted(cleaned)
    if found.clean is not None and section["role"] != "identifier":
        written = ColumnSection(clean=section["clean"])
        assert column_of("x", written, Path()).clean == found.clean.cleaning


@settings(deadline=None)
@given(nasty.filter(lambda name: "\0" not in name))  # Arrow ends a name there
def test_names_survive_the_way_through_yaml(name: str) -> None:
    table = pa.table({name: ["a", "b"] * 20, "plain": ["a", "b"] * 20})
    content = read_document(draft(profile(open_source(table)), Origin("folder/a b: c.csv")).text).content
    assert name in content["columns"]
    assert content["source"] == "folder/a b: c.csv"


def test_long_lists_are_wrapped_and_read_back(tmp_path: Path) -> None:
    values = [f"value, with a comma {number:03d}" for number in range(90)]
    table = pa.table({"x": values * 6})
    text = draft(profile(open_source(table)), Origin("data.csv")).text
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
    with pytest.raises(OutputUnavailable, match="is not overwritten"):
        write_draft("theirs", path)
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(OutputUnavailable, match="No such file"):
        write_draft("theirs", tmp_path / "nowhere" / "policy.yaml")


def test_an_empty_column_can_be_drafted(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([None] * 30, pa.string()), "sex": ["F", "M"] * 15})
    assert drafted(table, tmp_path).section.columns["x"].role == "withheld"
