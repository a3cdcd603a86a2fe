"""Whom a release protects, and what it says when it guarantees less."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.certificate import Certificate
from incrowd.errors import BudgetExceeded, Infeasible, InvalidParameter, SourceInvalid
from incrowd.workflows.release.tables import release
from tests.policies import PEOPLE, changed, people, tuples, with_ledger
from tests.statistics.alarm import FALSE_ALARM, stray

PERSON = changed(PEOPLE, columns__id={"role": "identifier"}, dataset__unit={"column": "id"})
DROPPED = changed(PERSON, dataset__unit__more="drop")
REFUSED = changed(PERSON, dataset__unit__more="refuse")
DRAFTED = changed(PEOPLE, columns__sex__derived="rows")


def kinds(certificate: Certificate) -> list[str]:
    return [claim.kind for claim in certificate.claims]


def with_ids(ids: list[str | None]) -> pa.Table:
    return people(len(ids)).append_column("id", pa.array(ids))


def test_a_person_column_with_one_row_makes_all_claims_for_people(tmp_path: Path) -> None:
    released = release(with_ids([f"p{n}" for n in range(600)]), with_ledger(DROPPED, tmp_path))
    assert len(kinds(released.certificate)) == 6
    whom = "one person (id, one row; people with more are left out), added or removed"
    assert {str(claim.unit) for claim in released.certificate.claims} == {whom}
    assert "id" not in released.result.to_arrow().column_names
    assert released.certificate.steps[0].kind == "keep rows of each person"


def test_crowds_are_not_claimed_where_one_row_among_several_is_kept(tmp_path: Path) -> None:
    certificate = release(with_ids([f"p{n}" for n in range(600)]), with_ledger(PERSON, tmp_path)).certificate
    assert "crowd-blending" not in kinds(certificate)
    assert kinds(certificate)[:2] == [
        "approximate differential privacy",
        "zero-knowledge with respect to random sampling",
    ]


def test_people_with_more_rows_are_left_out_where_the_policy_says_so(tmp_path: Path) -> None:
    rows = 600
    ids = [f"p{n}" for n in range(300)] + [f"q{n // 2}" for n in range(300)]
    table = pa.table({"sex": ["F"] * 300 + ["M"] * 300, "age": ["7"] * rows, "zip": ["02139"] * rows, "id": ids})
    released = release(table, with_ledger(DROPPED, tmp_path))
    assert set(released.result.to_arrow()["sex"].to_pylist()) == {"F"}


def test_a_source_in_which_someone_has_more_rows_is_refused_where_the_policy_says_so(tmp_path: Path) -> None:
    policy, ids = with_ledger(REFUSED, tmp_path), list[str | None](f"p{n}" for n in range(600))
    with pytest.raises(SourceInvalid, match="1 person has more than 1 row by the column 'id'"):
        release(with_ids([*ids[:-1], "p0"]), policy)
    certificate = release(with_ids(ids), policy).certificate
    assert "crowd-blending" in kinds(certificate)
    assert all(
        "publication shows that the check passed" in str(claim.not_protected[-1]) for claim in certificate.claims
    )


def test_what_becomes_of_people_with_more_rows_is_no_other_unit_for_the_ledger(tmp_path: Path) -> None:
    table, more = with_ids([f"p{n}" for n in range(600)]), {"epsilon": 9, "delta": "1e-3"}
    for policy in (PERSON, DROPPED, REFUSED):
        release(table, with_ledger(changed(policy, budget=more), tmp_path))


def test_one_person_with_many_rows_is_never_a_crowd(tmp_path: Path) -> None:
    rows = 600
    table = pa.table({"sex": ["F"] * rows, "age": ["7"] * rows, "zip": ["02139"] * rows, "id": ["me"] * rows})
    assert len(release(table, with_ledger(PERSON, tmp_path)).result) == 0


def test_rows_without_an_id_are_left_out(tmp_path: Path) -> None:
    rows = 600
    ids = pa.array([None] * 200 + [""] * 100 + [f"p{n}" for n in range(300)], pa.string())
    table = pa.table({"sex": ["F"] * rows, "age": ["7"] * rows, "zip": ["02139"] * rows, "id": ids})
    kept = len(release(table, with_ledger(PERSON, tmp_path)).result)
    assert 90 <= kept <= 210
    assert stray([(300, 0.5)], 90, 210) < FALSE_ALARM


def test_several_rows_per_person_cost_more_and_claim_less(tmp_path: Path) -> None:
    several = changed(PERSON, dataset__unit={"column": "id", "max_rows": 2})
    released = release(with_ids([f"p{n // 3}" for n in range(600)]), with_ledger(several, tmp_path))
    certificate = released.certificate
    assert kinds(certificate) == ["approximate differential privacy", "k-anonymity"]
    assert certificate.claims[0].parameters["k"] > 21
    assert certificate.claims[0].parameters["max_rows"] == 2
    assert len(released.result) <= 400


def test_replacing_has_its_own_claim_and_no_zero_knowledge(tmp_path: Path) -> None:
    replaced = with_ledger(PEOPLE, tmp_path, dataset__unit={"adjacency": "replace-one"})
    certificate = release(people(), replaced).certificate
    assert kinds(certificate) == ["approximate differential privacy", "crowd-blending", "k-anonymity"]
    assert certificate.claims[0].parameters["adjacency"] == "replace-one"
    assert str(certificate.guarantee.unit) == "one row, replaced"


def test_without_a_sample_the_owner_must_have_said_so(tmp_path: Path) -> None:
    exact = {"method": "safe", "levels": {"age": 2, "zip": 1}, "k": 5, "rate": 1}
    with pytest.raises(BudgetExceeded, match="this release has no epsilon"):
        release(people(), with_ledger(PEOPLE, tmp_path, release=exact))
    allowed = with_ledger(PEOPLE, tmp_path, release=exact, dataset__name="open", dataset__separate="a test")
    released = release(people(), changed(allowed, budget={"unbounded": "public since 2020"}))
    assert kinds(released.certificate) == ["crowd-blending", "k-anonymity"]
    assert released.certificate.accounting.spent.epsilon == "Infinity"
    assert released.certificate.accounting.unbounded == "public since 2020"
    assert len(released.result) == 600
    assert min(tuples(released.result.to_arrow()).values()) >= 5


def test_what_was_drafted_from_rows_voids_the_claim_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded, match="derived: rows"):
        release(people(), with_ledger(DRAFTED, tmp_path))
    allowed = with_ledger(DRAFTED, tmp_path, dataset__name="open", dataset__separate="a test")
    released = release(people(), changed(allowed, budget={"unbounded": "for the archive"}))
    assert kinds(released.certificate) == ["k-anonymity"]
    recoded = released.certificate.steps[1].to_json()["columns"]
    assert [column["provenance"] for column in recoded] == [{"derived": True}, {"derived": False}, {"derived": False}]


def test_a_draft_that_says_the_same_as_a_public_source_keeps_the_claim(tmp_path: Path) -> None:
    vouched = with_ledger(DRAFTED, tmp_path, columns__sex__public="the registry's form")
    certificate = release(people(), vouched).certificate
    assert kinds(certificate)[0] == "approximate differential privacy"
    provenance = certificate.steps[1].to_json()["columns"][0]["provenance"]
    assert "the registry's form" in provenance.values(), provenance


@pytest.mark.parametrize(
    ("column", "marked"),
    [
        ("age", {"columns__age__hierarchy": {"intervals": [10, 50], "derived": "rows"}}),
        ("age", {"columns__age__derived": "rows"}),
        ("zip", {"columns__zip__hierarchy": {"prefix": [2], "derived": "rows"}}),
    ],
)
def test_a_draft_is_found_wherever_it_is_marked(tmp_path: Path, column: str, marked: dict[str, object]) -> None:
    with pytest.raises(BudgetExceeded, match="derived: rows"):
        release(people(), with_ledger(PEOPLE, tmp_path, **marked))


def test_free_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="'zip' would be released as free text"):
        release(people(), with_ledger(PEOPLE, tmp_path, release__levels={"age": 2}))


def test_a_delta_below_rate_to_the_k_is_infeasible(tmp_path: Path) -> None:
    asked = {"method": "safe", "levels": {"age": 2, "zip": 1}, "k": 5, "rate": "1/2", "delta": "1e-6"}
    with pytest.raises(Infeasible, match=r"is below rate \*\* k"):
        release(people(), with_ledger(PEOPLE, tmp_path, release=asked))
    assert list(tmp_path.iterdir()) == []


def test_values_outside_and_missing_go_where_the_policy_says(tmp_path: Path) -> None:
    table = people().append_column("job", pa.array(["clerk", "pilot", None] * 200))
    categories = {"categories": ["clerk"]}
    levels = {"age": 3, "zip": 2, "sex": 1}
    policy = with_ledger(PEOPLE, tmp_path, release__levels=levels, columns__job=categories)
    policy["budget"] = {"epsilon": 9, "delta": "1e-2"}
    first = tuples(release(table, policy).result.to_arrow())
    assert {row[-1] for row in first} == {"clerk", "other", None}
    policy["columns"]["job"] = categories | {"outside": "drop", "missing": "clerk"}
    second = tuples(release(table, policy).result.to_arrow())
    assert {row[-1] for row in second} == {"clerk"}
    assert 140 <= sum(second.values()) <= 260
    assert stray([(200, 0.5)] * 2, 140, 260) < FALSE_ALARM / 2
    assert stray([(200, 0.5)], 21, 200) < FALSE_ALARM / 6  # nor does one of the three of before vanish
