"""Whom a decision reaches: a consent one id, a withdrawal all ids that are written alike, and nobody in silence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import ConsentEvent, Decided
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.consent.decisions import decide, receipt
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.consent.subject import DataSubjectService, issue_token, subject_report
from tests.consents import GATED, MAY, PURPOSE, Consented, consented, subjects_of
from tests.policies import changed

IDS = ["B000001", "B000002", "Zoë"]


@pytest.fixture
def made(tmp_path: Path) -> Consented:
    made = consented(GATED, tmp_path)
    for each in IDS:
        decide(made.policy, each, Decided.GIVE)
    return made


def taking_part(made: Consented, *ids: str) -> list[str]:
    """Return whose rows take part, by the gate."""
    admission = admit(made.policy)
    assert admission is not None
    mask = admission.by(person_column(made.policy)).of(pa.array(ids))
    return [name for name, admitted in zip(ids, mask.tolist(), strict=True) if admitted]


def test_rows_are_met_by_the_same_rule_as_decisions(made: Consented) -> None:
    same = (" B000001", "B000001\u00a0", "Zoe\u0308")
    assert taking_part(made, *same) == list(same)
    assert taking_part(made, "b000001", "B1", "zoë") == [], "a consent counts for one id"
    decide(made.policy, "\tB000001", Decided.WITHDRAW)
    assert taking_part(made, *same) == ["Zoe\u0308"]


def test_a_withdrawal_between_several_people_counts_for_all_of_them_and_says_so(made: Consented) -> None:
    for each in ("b2", "b0002"):
        decide(made.policy, each, Decided.GIVE)
    unclear = decide(made.policy, "B02", Decided.WITHDRAW)
    assert (unclear.ok, unclear.match and unclear.match.others) == (False, 3)
    assert "3 people" in (unclear.note or "")
    assert taking_part(made, "B000002", "b2", "b0002", "B000001") == ["B000001"]
    decide(made.policy, "b2", Decided.GIVE)
    assert taking_part(made, "B000002", "b2", "b0002") == ["b2"]
    exact = decide(made.policy, "b2", Decided.WITHDRAW)
    assert exact.ok
    assert "also counts for 2 people" in (exact.note or "")


def test_a_withdrawal_that_arrives_before_the_consent_keeps_rows_out(made: Consented) -> None:
    assert not decide(made.policy, "b7", Decided.WITHDRAW).ok
    made.decide(Decided.GIVE, ["B0007"], at=MAY)  # an older decision, recorded later
    assert taking_part(made, "B0007") == []
    made.decide(Decided.GIVE, ["B0007"])
    assert taking_part(made, "B0007") == ["B0007"]


def test_a_withdrawal_reaches_events_that_were_written_before_ids_were_linked(made: Consented) -> None:
    (person, other) = subjects_of(made.policy, ["C0001", "C0002"])
    made.registry.record(ConsentEvent(who.pseudonym, Decided.GIVE, PURPOSE, MAY) for who in (person, other))
    assert taking_part(made, "C0001", "C0002") == ["C0001", "C0002"]
    missed = decide(made.policy, "c1", Decided.WITHDRAW)
    assert not missed.ok
    assert "nothing was withdrawn for a known person" in (missed.note or ""), "the registry cannot tell"
    assert taking_part(made, "C0001", "C0002") == ["C0002"], "where rows are read, their ids tell"
    assert not subject_report(made.policy, "C0001").consents
    made.registry.record([ConsentEvent(person.pseudonym, Decided.GIVE, PURPOSE, made.registry.now())])
    assert taking_part(made, "C0001", "c1") == ["C0001"], "a later consent counts"
    assert decide(made.policy, "C0001", Decided.WITHDRAW).ok
    assert taking_part(made, "C0001") == []


def test_numbers_that_are_declared_as_such_are_one_id_however_they_are_written(tmp_path: Path) -> None:
    numbered = consented(changed(GATED, columns__id={"role": "identifier", "type": "integer"}), tmp_path)
    decide(numbered.policy, "17", Decided.GIVE)
    assert decide(numbered.policy, " 0017", Decided.WITHDRAW).ok
    with pytest.raises(InvalidParameter, match="not an id"):
        decide(numbered.policy, "p17", Decided.WITHDRAW)


def test_an_empty_id_is_nobodys(made: Consented) -> None:
    with pytest.raises(InvalidParameter, match="not an id"):
        decide(made.policy, " \u00a0", Decided.WITHDRAW)


def test_a_person_is_told_of_a_withdrawal_that_was_recorded_for_an_id_written_alike(made: Consented) -> None:
    decide(made.policy, "b000002", Decided.WITHDRAW)
    assert not subject_report(made.policy, "B000002").consents
    assert subject_report(made.policy, "B000001").consents
    assert [str(each.event.decided) for _, each in receipt(made.policy, "B000002").decisions] == ["give", "withdraw"]


def test_the_door_answers_alike_for_ids_that_are_known_and_that_are_not(made: Consented) -> None:
    door = DataSubjectService((made.policy,))
    left, nobody = (door.withdraw(issue_token(made.policy, each)).report for each in ("B000001", "D000001"))
    assert replace(left, as_of="") == replace(nobody, as_of="")
    door.withdraw(issue_token(made.policy, "b2"))  # the holder wrote another id than the data
    assert taking_part(made, *IDS) == ["Zoë"]


def test_a_withdrawal_by_a_clock_that_went_back_still_follows_the_consent(
    made: Consented, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = made.registry.chain
    behind = Registry(replace(chain, clock=lambda: chain.clock() - timedelta(seconds=3)))
    for place in ("decisions.make_registry", "subject.open_registry"):
        monkeypatch.setattr(f"incrowd.workflows.consent.{place}", lambda _: behind)
    token = issue_token(made.policy, "Zoë")
    decide(made.policy, "B000001", Decided.WITHDRAW)
    DataSubjectService((made.policy,)).withdraw(token)
    assert taking_part(made, *IDS) == ["B000002"]
