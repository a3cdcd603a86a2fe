from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.budget import Budget
from incrowd.core.domain import Categories, Dates, Numbers
from incrowd.core.schema import Missing, Role
from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.ledger_place import DEFAULT as LEDGER
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.policies import PEOPLE, changed, written

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json_schema()
HOSPITAL = ROOT / "examples" / "hospital" / "policy.yaml"

names = st.text("abcdefgh_", min_size=1, max_size=6)
numbers = st.integers(-50, 50)
whole = st.builds(
    lambda low, width: {
        "type": "integer",
        "bounds": [low, low + 8 * width],
        "hierarchy": {"intervals": [width, 2 * width]},
    },
    numbers,
    st.integers(1, 9),
)
listed = st.builds(
    lambda values: {"categories": values},
    st.lists(st.sampled_from(["NO", "02131", "1e-8", "~", "true", "é", "a b", "-"]), min_size=1, unique=True),
)
texts = st.sampled_from([{"hierarchy": {"prefix": [4, 2]}}, {"hierarchy": {"redaction": 5}}])
days = st.just({"type": "date", "bounds": ["2025-01-01", "2025-12-31"], "hierarchy": {"dates": ["month", "year"]}})
columns = st.builds(
    lambda column, rules: column | rules,
    st.one_of(whole, listed, texts, days),
    st.fixed_dictionaries({"role": st.sampled_from(["quasi", "sensitive", "plain"])})
    | st.just({"missing": "drop"})
    | st.just({"outside": "drop"}),
)


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    """Policies that can be read: any columns, with or without a person, a budget and a source."""
    declared = draw(st.dictionaries(names, columns, min_size=1, max_size=4))
    policy: dict[str, Any] = {"incrowd": 1, "dataset": {"name": draw(names)}, "columns": declared}
    if draw(st.booleans()):
        policy["dataset"]["unit"] = {"column": "person", "max_rows": draw(st.integers(1, 3))}
        declared["person"] = {"role": "identifier"}
    rate = draw(st.sampled_from(["1/10", "0.25", 0.5]))
    policy["release"] = {"method": "safe", "rate": rate, "epsilon": draw(st.integers(1, 9)), "delta": 1e-6}
    policy["release"]["levels"] = {name: 1 for name in declared if name != "person"}
    if draw(st.booleans()):
        policy["budget"] = {"epsilon": draw(st.integers(1, 9)), "delta": "1e-5"}
    if draw(st.booleans()):
        policy["source"] = {"path": "data.csv", "delimiter": ";", "nulls": ["NA", ""]}
    return policy


def meaning(policy: Policy) -> tuple[object, ...]:
    return policy.name, policy.schema, policy.method, policy.source, policy.options, policy.budget, policy.ledger


@given(policies())
def test_a_policy_means_the_same_as_a_mapping_as_a_file_and_written_back(
    tmp_path_factory: pytest.TempPathFactory, policy: dict[str, Any]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    read = load_policy(written(policy, folder))
    mapped = load_policy(changed(policy, source=read.source and {**policy["source"], "path": read.source}))
    assert meaning(mapped) == meaning(read)
    plain = read.section.model_dump(mode="json", exclude_none=True)
    assert meaning(load_policy(written(plain, folder, "again.yaml"))) == meaning(read)


@given(policies())
def test_every_policy_that_is_read_fits_the_published_schema(policy: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    load_policy(policy)
    Draft202012Validator(SCHEMA).validate(policy)


def test_the_published_schema_is_one_and_knows_no_other_words() -> None:
    from jsonschema import Draft202012Validator

    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid(PEOPLE)
    assert not validator.is_valid(changed(PEOPLE, release__levles={}))
    assert not validator.is_valid(changed(PEOPLE, columns__sex__rolle="quasi"))
    assert not validator.is_valid(changed(PEOPLE, release=None))


def test_a_policy_says_what_it_means() -> None:
    policy = load_policy(HOSPITAL)
    schema = policy.schema
    assert policy.name == "discharges-2025"
    assert schema.unit == Unit(Kind.PERSON, column="patient", more=ExtraRowsRule.DROP)
    assert schema["age"].domain == Numbers(0, 99)
    assert schema["sex"].domain == Categories(("F", "M"))
    assert schema["discharged"].domain == Dates("2025-01-01", "2025-12-31")
    assert schema["diagnosis"].role is Role.SENSITIVE
    assert schema["diagnosis"].hierarchy.height == 3
    assert isinstance(policy.method, Safe)
    assert policy.method.rate == Fraction(1, 2)
    assert (policy.method.epsilon, policy.method.delta) == (Fraction(1), Fraction(1, 10**6))
    assert policy.budget == Budget.of(1, "1e-6")
    assert policy.source == str(HOSPITAL.parent / "discharges.csv")


def test_what_is_left_out_has_a_safe_default() -> None:
    policy = load_policy(changed(PEOPLE, release__levels={"zip": 1}))
    assert policy.schema.unit == Unit(Kind.ROW, Adjacency.ADD_REMOVE)
    assert {column.role for column in policy.schema.columns} == {Role.QUASI}
    assert {column.missing for column in policy.schema.columns} == {Missing.CLASS}
    assert policy.budget is None
    assert policy.ledger == LEDGER


def test_a_relative_ledger_is_beside_the_policy_and_others_are_taken_as_they_are(tmp_path: Path) -> None:
    here = load_policy(written(PEOPLE, tmp_path)).ledger_address
    assert here == f"sqlite:///{tmp_path.as_posix()}/.incrowd/ledger.sqlite"
    for address in ("sqlite:////var/ledger.sqlite", "postgresql://db/ledger"):
        assert load_policy(written(changed(PEOPLE, ledger=address), tmp_path)).ledger_address == address


def test_values_are_the_texts_that_were_written(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "incrowd: 1\ndataset: {name: codes}\n"
        "columns:\n  code: {categories: [02131, NO, 1e-8, 0x1F, ~, null, true, 1.0]}\n"
        "release: {method: safe, k: 20, rate: 1/10, delta: 1e-8}\n"
    )
    with pytest.raises(Exception, match="line 4"):  # nothing is not a category
        load_policy(file)
    file.write_text(file.read_text().replace("~, null", "'~', 'null'"))
    policy = load_policy(file)
    domain = policy.schema["code"].domain
    assert isinstance(domain, Categories)
    assert domain.values == ("02131", "NO", "1e-8", "0x1F", "~", "null", "true", "1.0")
    assert isinstance(policy.method, Safe)
    assert (policy.method.epsilon, policy.method.delta) == (None, Fraction(1, 10**8))


@pytest.mark.parametrize(
    ("written_as", "meant"), [(0.1, "1/10"), ("0.1", "1/10"), (1e-3, "1/1000"), ("1/3", "1/3"), (Fraction(1, 7), "1/7")]
)
def test_numbers_are_the_decimals_that_were_written(written_as: object, meant: str) -> None:
    policy = load_policy(changed(PEOPLE, release__rate=written_as))
    assert isinstance(policy.method, Safe)
    assert policy.method.rate == Fraction(meant)


def test_the_hash_covers_the_text_and_the_hierarchy_files(tmp_path: Path) -> None:
    (tmp_path / "sexes.csv").write_text("F;*\nM;*\n")
    policy = changed(PEOPLE, columns__sex={"hierarchy": {"file": "sexes.csv"}})
    file = written(policy, tmp_path)
    first = load_policy(file).hash
    assert load_policy(file).hash == first
    (tmp_path / "sexes.csv").write_text("M;*\nF;*\n")
    second = load_policy(file).hash
    assert second != first
    assert load_policy(written(changed(policy, release__rate="1/3"), tmp_path)).hash != second


def test_closed_ends_are_refused_where_values_outside_are_moved_to_them() -> None:
    age = {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10], "open_ends": False}}
    release = {"method": "private-histogram", "columns": ["age"], "levels": {"age": 1}, "epsilon": 1}
    policy: dict[str, Any] = {"incrowd": 1, "dataset": {"name": "ages"}, "columns": {"age": age}, "release": release}
    with pytest.raises(InvalidParameter, match="let outside be other or drop"):
        load_policy(policy)
    left_out = load_policy({**policy, "columns": {"age": {**age, "outside": "drop"}}})
    labels = left_out.schema["age"].hierarchy.labels(1)
    assert labels is not None
    assert (labels[0], labels[-1]) == ("[0, 10)", "[90, 100)")


def test_one_name_needs_no_brackets() -> None:
    from jsonschema import Draft202012Validator

    release = {"method": "protected-table", "columns": "sex", "minimum": 3, "open": "totals"}
    document = {**PEOPLE, "release": release, "budget": {"unbounded": "yearbook"}}
    policy = load_policy(document)
    assert isinstance(policy.method, ProtectedTable)
    assert (policy.method.columns, policy.method.open) == (("sex",), ("totals",))
    Draft202012Validator(SCHEMA).validate(document)
