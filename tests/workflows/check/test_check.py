from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, UnknownColumn
from incrowd.workflows.check.check import CheckedColumns, CheckResult, check
from incrowd.workflows.check.criteria import CheckCriteria, CriterionFinding
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.criteria.names import EQUAL, ORDERED, RELEASED
from tests.measures.counted import NAMES, Row, grouped, rows
from tests.policies import PEOPLE, changed, people, with_ledger, written

QUASI = CheckedColumns(("first", "second"), ("sensitive",))
SICK = changed(
    PEOPLE,
    columns__ill={"role": "sensitive", "categories": ["flu", "gout"]},
    columns__paid={"role": "sensitive", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [50]}},
)


def table_of(table: list[Row]) -> Any:
    return open_source(pa.table({name: pa.array([row[i] for row in table]) for i, name in enumerate(NAMES)}))


def finding(verdict: CheckResult, criterion: str, sensitive: str | None = None) -> CriterionFinding:
    return next(each for each in verdict.findings if (each.criterion, each.sensitive) == (criterion, sensitive))


def sick(rows: int = 600) -> pa.Table:
    table = people(rows)
    ill = pa.array(["flu" if number % 3 else "gout" for number in range(rows)])
    return table.append_column("ill", ill).append_column("paid", pa.array([str(number % 90) for number in range(rows)]))


@settings(deadline=None)
@given(rows)
def test_a_table_passes_exactly_at_what_was_found(table: list[Row]) -> None:
    groups = grouped(table)
    k, diverse = min(values.total() for values in groups.values()), min(map(len, groups.values()))
    assert check(table_of(table), CheckCriteria(k=k, l=diverse), QUASI).passed
    assert not check(table_of(table), CheckCriteria(k=k + 1), QUASI).passed
    assert not check(table_of(table), CheckCriteria(l=diverse + 1), QUASI).passed


@settings(deadline=None)
@given(rows)
def test_rows_that_fall_short_are_counted(table: list[Row]) -> None:
    groups = grouped(table)
    verdict = check(table_of(table), CheckCriteria(k=3, l=2), QUASI)
    alike = Counter(row[:2] for row in table)
    assert finding(verdict, "k-anonymity").short == sum(alike[row[:2]] < 3 for row in table)
    short = sum(values.total() for values in groups.values() if len(values) < 2)
    assert finding(verdict, "distinct l-diversity", "sensitive").short == short


@settings(deadline=None)
@given(rows)
def test_what_was_found_is_always_enough_for_itself(table: list[Row]) -> None:
    verdict = check(table_of(table), CheckCriteria(k=1), QUASI)
    even = finding(verdict, "entropy l-diversity", "sensitive").value
    far = finding(verdict, "t-closeness", "sensitive").value
    assert even is not None
    assert far is not None
    assert check(table_of(table), CheckCriteria(entropy_l=max(1.0, even), t=far), QUASI).passed


def test_three_even_values_are_entropy_3_diverse_despite_rounding() -> None:
    table: list[Row] = [("a", "b", value) for value in ("1", "2", "3")]
    assert check(table_of(table), CheckCriteria(entropy_l=3), QUASI).passed


def test_the_table_is_taken_as_it_is_not_as_it_would_be_read() -> None:
    rows_ = open_source(pa.table({"age": ["5", "05"], "zip": ["1", "1"]}))
    assert finding(check(rows_, CheckCriteria(k=1), CheckedColumns(("age", "zip"))), "k-anonymity").value == 1


def test_missing_values_are_a_class_of_their_own() -> None:
    rows_ = open_source(pa.table({"age": ["5", None, None]}))
    assert finding(check(rows_, CheckCriteria(k=2), CheckedColumns(("age",))), "k-anonymity").value == 1


def test_floating_point_columns_are_counted_by_value() -> None:
    rows_ = open_source(pa.table({"pay": [0.1 + 0.2, 0.3, 0.3, None]}))
    assert finding(check(rows_, CheckCriteria(k=2), CheckedColumns(("pay",))), "k-anonymity").value == 1


def test_a_table_without_rows_passes_and_nothing_is_found() -> None:
    rows_ = open_source(pa.table({"a": pa.array([], pa.string()), "s": pa.array([], pa.string())}))
    verdict = check(rows_, CheckCriteria(k=5, l=2, entropy_l=2, t=0.1), CheckedColumns(("a",), ("s",)))
    assert verdict.passed
    assert all(each.value is None for each in verdict.findings)


def test_a_column_that_says_nothing_but_a_star_is_not_asked_for_diversity() -> None:
    rows_ = open_source(pa.table({"a": ["x", "x"], "s": ["*", "*"]}))
    assert check(rows_, CheckCriteria(k=2, l=2), CheckedColumns(("a",), ("s",))).passed


def test_with_a_policy_its_k_must_hold_over_all_released_columns(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(SICK, tmp_path))
    verdict = check(open_source(sick()), CheckCriteria(), CheckedColumns(), policy)
    guaranteed = policy.method.plan(policy.schema).smallest_class
    assert finding(verdict, RELEASED).expected == finding(verdict, "k-anonymity").expected == guaranteed
    assert finding(verdict, RELEASED).over == ("sex", "age", "zip", "ill", "paid")
    assert finding(verdict, "k-anonymity").over == ("sex", "age", "zip")
    assert not verdict.passed


def test_recoded_by_the_policy_the_same_table_can_pass(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(changed(SICK, release__levels={"age": 2, "zip": 1, "paid": 2}), tmp_path))
    recoded = CheckedColumns(recoded=True)
    assert check(open_source(sick(6000)), CheckCriteria(l=2), recoded, policy).passed
    assert not check(open_source(sick(6000)), CheckCriteria(l=2), CheckedColumns(), policy).passed


def test_an_identifier_or_an_undeclared_column_fails_the_gate(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(changed(SICK, columns__id={"role": "identifier"}), tmp_path))
    table = sick().append_column("id", pa.array([str(n) for n in range(600)])).append_column("extra", sick()["ill"])
    found = finding(check(open_source(table), CheckCriteria(), CheckedColumns(), policy), "columns")
    assert found.over == ("id", "extra")
    assert found.passed is False


def test_recoded_there_is_no_gate_on_columns(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(changed(SICK, columns__id={"role": "identifier"}), tmp_path))
    table = sick().append_column("id", pa.array([str(n) for n in range(600)]))
    verdict = check(open_source(table), CheckCriteria(), CheckedColumns(recoded=True), policy)
    assert "columns" not in {each.criterion for each in verdict.findings}


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("weights", [False, True])
def test_what_was_released_passes_the_check_of_its_policy(tmp_path: Path, form: str, weights: bool) -> None:
    plain = changed(SICK, release__levels={"age": 2, "zip": 1, "paid": 2}, release__weights=weights)
    policy = load_policy(written(with_ledger(plain, tmp_path), tmp_path))
    release_to(sick(6000), policy, Destination(tmp_path / "out", form))
    released = open_source(tmp_path / "out" / f"data.{form}")
    assert released.names[:5] == ("sex", "age", "zip", "ill", "paid")
    assert check(released, CheckCriteria(), CheckedColumns(), policy).passed


def test_numbers_are_ordered_if_the_policy_says_that_they_are_numbers(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(SICK, tmp_path))
    verdict = check(open_source(sick()), CheckCriteria(), CheckedColumns(), policy)
    assert finding(verdict, ORDERED, "paid").value is not None
    assert finding(verdict, EQUAL, "ill").value is not None
    verdict = check(open_source(sick()), CheckCriteria(k=1), CheckedColumns(("sex",), ("paid",)))
    assert finding(verdict, EQUAL, "paid").value is not None  # nobody said so, and this distance is the stricter one


def test_as_it_is_numbers_are_ordered_as_numbers_not_as_text() -> None:
    plain = changed(PEOPLE, columns={"sex": {"categories": ["F", "M"]}, "paid": {"role": "sensitive"}})
    plain = changed(plain, columns__paid__type="integer", columns__paid__bounds=[0, 200], release__levels={})
    policy: Policy = load_policy(plain)
    rows_ = open_source(pa.table({"sex": ["F", "F", "M", "M"], "paid": ["9", "100", "10", "11"]}))
    found = finding(check(rows_, CheckCriteria(), CheckedColumns(), policy), ORDERED, "paid").value
    assert found == pytest.approx(1 / 6)  # 9 and 100 are the ends, 10 and 11 the middle; as text 9 would come last


def test_released_intervals_are_no_longer_numbers(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(SICK, tmp_path))
    table = sick().set_column(4, "paid", pa.array(["[0, 50)", "[50, 100)"] * 300))
    assert (
        finding(check(open_source(table), CheckCriteria(), CheckedColumns(), policy), EQUAL, "paid").value is not None
    )
    recoded = changed(SICK, release__levels={"age": 2, "zip": 1, "paid": 1})
    verdict = check(
        open_source(sick()), CheckCriteria(), CheckedColumns(recoded=True), load_policy(with_ledger(recoded, tmp_path))
    )
    assert finding(verdict, ORDERED, "paid").value is not None


def test_named_columns_take_the_place_of_the_roles(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(SICK, tmp_path))
    verdict = check(open_source(sick()), CheckCriteria(k=2), CheckedColumns(("sex", "paid")), policy)
    assert finding(verdict, "k-anonymity").over == ("sex", "paid")
    assert {each.sensitive for each in verdict.findings} == {None, "ill"}


@pytest.mark.parametrize(
    ("wanted", "asked", "message"),
    [
        ({"k": 2}, CheckedColumns(), "--quasi"),
        ({}, CheckedColumns(("a",)), "nothing to check against"),
        ({"l": 2}, CheckedColumns(("a",)), "--sensitive"),
        ({"k": 2}, CheckedColumns(("a",), recoded=True), "needs a policy"),
        ({"l": 2}, CheckedColumns(("a",), ("a",)), "name it once"),
    ],
)
def test_what_cannot_be_asked_is_said(wanted: dict[str, Any], asked: CheckedColumns, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        check(open_source(pa.table({"a": ["x"]})), CheckCriteria(**wanted), asked)


@pytest.mark.parametrize("wrong", [{"k": 0}, {"l": 0}, {"entropy_l": 0.5}, {"t": -0.1}, {"t": 1.1}])
def test_parameters_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        CheckCriteria(**wrong)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownColumn, match="zipp"):
        check(open_source(pa.table({"zip": ["x"]})), CheckCriteria(k=2), CheckedColumns(("zipp",)))


def test_no_value_of_the_data_is_in_the_verdict() -> None:
    rows_ = open_source(pa.table({"a": ["SECRET", "x"], "s": ["PRIVATE", "y"]}))
    told = str(check(rows_, CheckCriteria(k=2, l=2, t=0), CheckedColumns(("a",), ("s",))).to_json())
    assert "SECRET" not in told
    assert "PRIVATE" not in told
