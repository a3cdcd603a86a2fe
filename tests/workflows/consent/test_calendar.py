"""Releases without an ε of people who may withdraw are made on days that were fixed before, and on no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.core.steps.around import MOVED, ConsentGate, gate_of
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import release, release_to
from tests.consents import FORM, GATED, Consented, consented, known_people
from tests.policies import changed, written

ROWS = known_people()
HALF = [f"p{number}" for number in range(0, 600, 2)]
DAYS = ["2027-01-10", "2027-06-10"]


def on(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setattr(Registry, "clock", lambda _: f"{day}T12:00:00.000000Z")


def out(made: Consented, name: str, **changes: Any) -> PublishedRelease:
    policy = load_policy(written(changed(FORM, **{"consent__calendar": DAYS, **changes}), made.policy.folder))
    folder = made.policy.folder.parent / "out"
    folder.mkdir(exist_ok=True)
    return release_to(ROWS, policy, Destination(folder / name, "csv"))


def test_a_release_outside_the_calendar_is_refused_before_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = consented(changed(FORM, consent__calendar=DAYS), tmp_path, HALF)
    on(monkeypatch, "2027-01-11")
    for attempt in (lambda: out(made, "first"), lambda: release(ROWS, made.policy)):
        with pytest.raises(Refused, match=r"not in the calendar of this policy; the next one is 2027-06-10"):
            attempt()
    on(monkeypatch, "2027-06-11")
    with pytest.raises(Refused, match="it has no later day"):
        out(made, "first")
    assert not (made.policy.folder / ".incrowd" / "ledger.sqlite").exists()


def test_the_certificate_names_the_days_and_says_what_waiting_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = consented(changed(FORM, consent__calendar=DAYS), tmp_path, HALF)
    on(monkeypatch, DAYS[0])
    certificate = out(made, "first").release.certificate
    gate = gate_of(certificate.steps)
    assert gate is not None
    assert gate.calendar == tuple(DAYS)
    assert "2027-01-10, 2027-06-10. A day without" in gate.sentence
    assert "a delayed release shows that it waited for a larger group" in str(MOVED)
    assert all(MOVED in claim.not_protected for claim in certificate.claims)


def test_the_calendar_of_a_release_stays_and_new_days_come_after_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = consented(changed(FORM, consent__calendar=DAYS), tmp_path, HALF)
    on(monkeypatch, DAYS[0])
    out(made, "first")
    on(monkeypatch, "2027-03-10")
    with pytest.raises(Refused, match="other days before 2027-06-10"):
        out(made, "between", consent__calendar=["2027-01-10", "2027-03-10", "2027-06-10"])
    with pytest.raises(Refused, match="other days before 2027-06-10"):
        out(made, "instead", consent__calendar=["2027-03-10"])
    on(monkeypatch, "2027-12-10")
    assert out(made, "later", consent__calendar=[*DAYS, "2027-12-10"]).folder.is_dir()


def test_a_calendar_is_needed_without_an_epsilon_and_refused_with_one() -> None:
    with pytest.raises(InvalidParameter, match="its day could show that a person left"):
        _ = load_policy(changed(FORM, consent__calendar=None)).plan
    with pytest.raises(InvalidParameter, match="for releases without an epsilon"):
        _ = load_policy(changed(GATED, consent__calendar=DAYS)).plan


@pytest.mark.parametrize("days", [["2027-06-10", "2027-01-10"], ["2027-02-30"], ["June"], ["2027-01-10"] * 2])
def test_days_are_days_in_their_order(days: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="the earliest first"):
        load_policy(changed(FORM, consent__calendar=days))


def test_a_gate_that_was_certified_before_there_were_calendars_is_still_read() -> None:
    plain = ConsentGate("research").to_json()
    assert "calendar" not in plain
    assert ConsentGate.read(plain, ()) == ConsentGate("research")
