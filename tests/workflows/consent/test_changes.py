"""Withdrawals between releases without an ε: nobody leaves or joins a released cell alone."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import Refused
from incrowd.governance.consent.event import Decided
from incrowd.workflows.consent.preview import preview
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import release_to
from tests.consents import FORM, GATED, Consented, consented, known_people
from tests.policies import changed, written

ROWS = known_people()
EVERYBODY: list[str] = ROWS["id"].to_pylist()
FEMALE_YOUNG = [
    row["id"] for row in ROWS.to_pylist() if row["sex"] == "F" and int(row["age"]) < 50 and row["zip"].startswith("02")
]


def out(made: Consented, name: str, rows: pa.Table = ROWS, policy: Any = None) -> PublishedRelease:
    folder = made.policy.folder.parent / "out"
    folder.mkdir(exist_ok=True)
    return release_to(rows, policy or made.policy, Destination(folder / name, "csv"))


def charges(made: Consented) -> int:
    return Ledger.open(made.policy.ledger_address).standing("people").totals.charges


def test_one_person_who_withdraws_holds_back_the_next_release_before_its_charge(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:1])
    with pytest.raises(Refused, match=r"fewer than 10 people moved in the cell sex F.*: 1 left and 0 joined"):
        out(made, "second")
    assert charges(made) == 1
    assert not (tmp_path / "out" / "second").exists()


def test_a_crowd_that_withdraws_from_one_cell_lets_the_next_release_appear(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:12])
    out(made, "second")
    assert charges(made) == 2


def test_leavers_and_joiners_are_never_netted(tmp_path: Path) -> None:
    # one leaves and one joins the same cell: the counts are the same, and the rows of both would be told apart
    made = consented(FORM, tmp_path, [each for each in EVERYBODY if each != FEMALE_YOUNG[0]])
    out(made, "first")
    made.decide(Decided.GIVE, FEMALE_YOUNG[:1])
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[1:2])
    with pytest.raises(Refused, match="1 left and 1 joined"):
        out(made, "second")


def test_enough_leavers_in_total_are_not_enough(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    out(made, "first")
    men = [row["id"] for row in ROWS.to_pylist() if row["sex"] == "M"]
    made.decide(Decided.WITHDRAW, [*men, FEMALE_YOUNG[0]])
    with pytest.raises(Refused, match="1 left"):
        out(made, "second")


def test_somebody_with_several_rows_is_one_person(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:1])
    rows = pa.concat_tables([ROWS, *[ROWS.filter(pa.array([i == FEMALE_YOUNG[0] for i in EVERYBODY]))] * 20])
    with pytest.raises(Refused, match="1 left"):
        out(made, "second", rows)


def test_a_release_that_has_an_epsilon_is_never_held_back(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, EVERYBODY)
    out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:1])
    out(made, "second")
    assert charges(made) == 2


def test_a_first_gate_after_a_release_of_everybody_counts_those_who_refused_as_leavers(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY[1:])
    bare = load_policy(written(changed(FORM, purpose=None, consent=None), tmp_path / "data", "bare.yaml"))
    out(made, "first", policy=bare)
    with pytest.raises(Refused, match="1 left and 0 joined"):
        out(made, "second")


def test_leaving_the_purpose_out_later_would_show_who_refused(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY[:500])
    out(made, "first")
    bare = load_policy(written(changed(FORM, purpose=None, consent=None), tmp_path / "data", "bare.yaml"))
    with pytest.raises(Refused, match="has no purpose"):
        out(made, "second", policy=bare)
    assert charges(made) == 1


def test_where_cells_cannot_be_made_again_nobody_may_have_moved(tmp_path: Path) -> None:
    plain = changed(FORM, columns__zip={"role": "identifier"}, release={"method": "mondrian", "k": 10})
    made = consented(plain, tmp_path, EVERYBODY)
    out(made, "first")
    out(made, "again")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:12])
    with pytest.raises(Refused, match="cannot be recomputed"):
        out(made, "second")


def test_a_preview_names_leavers_small_crowds_and_the_pair_that_isolates(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, EVERYBODY)
    assert preview(made.policy, ROWS).since is None
    first = out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[:1])
    found = preview(made.policy, ROWS)
    assert (found.consenting, found.leavers, found.joiners, found.refused) == (599, 1, 0, True)
    assert first.release.certificate.id in found.isolating[0].sentence
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[1:])
    found = preview(made.policy, ROWS)
    assert (found.leavers, found.refused) == (len(FEMALE_YOUNG), False)
    assert charges(made) == 1


def test_a_preview_names_crowds_that_fall_below_k(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, EVERYBODY)
    out(made, "first")
    made.decide(Decided.WITHDRAW, FEMALE_YOUNG[5:])
    found = preview(made.policy, ROWS)
    assert [(each.before, each.now) for each in found.small] == [(len(FEMALE_YOUNG), 5)]
    assert found.to_json()["below_k"][0]["cell"]["sex"] == "F"
    assert not found.refused


def test_budget_is_never_refunded_and_coins_are_never_used_again(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, EVERYBODY)
    first = out(made, "first")
    before = Ledger.open(made.policy.ledger_address).standing("people").totals
    made.decide(Decided.WITHDRAW, EVERYBODY)
    assert Ledger.open(made.policy.ledger_address).standing("people").totals == before
    made.decide(Decided.GIVE, EVERYBODY)
    second = out(made, "second")
    after = Ledger.open(made.policy.ledger_address).standing("people").totals
    assert Fraction(after.spent.epsilon) == 2 * Fraction(before.spent.epsilon)
    # 600 fair coins twice: the samples are the same with a chance of 2^-600
    assert first.release.result.to_arrow() != second.release.result.to_arrow()
