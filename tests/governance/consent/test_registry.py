"""The registry only grows, knows itself again, and is found out when it was changed or restored."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerUnavailable
from incrowd.governance.consent.event import ConsentEvent, Decided, moment
from incrowd.governance.consent.registry import Registry

SUBJECTS = [f"{number:032x}" for number in range(5)]
JAN = moment("2026-01-01")


def events(decided: Decided = Decided.GIVE) -> list[ConsentEvent]:
    return [ConsentEvent(subject, decided, "research", JAN) for subject in SUBJECTS]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "registry.sqlite"


def registry_in(file: Path) -> Registry:
    registry = Registry.create(f"sqlite:///{file}")
    registry.record(events())
    return registry


def test_events_come_back_as_they_were_recorded_on_every_database(address: str) -> None:
    registry = Registry.create(address)
    registry.record(events())
    registry.record(events(Decided.WITHDRAW))
    assert [event for _, event in registry.events()] == [*events(), *events(Decided.WITHDRAW)]
    assert registry.check().ok
    assert registry.holds(registry.snapshot())


def test_tampering_with_one_event_is_found_before_anything_is_read_from_it(file: Path) -> None:
    registry = registry_in(file)
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TRIGGER consent_entries_update")
        connection.execute("UPDATE consent_entries SET body = replace(body, 'give', 'refuse') WHERE sequence = 2")
    connection.close()
    assert "entry 2 was changed" in (registry.check().finding or "")
    with pytest.raises(LedgerCorrupted):
        list(registry.events())


def test_an_entry_that_was_taken_out_is_found(file: Path) -> None:
    registry = registry_in(file)
    registry.record(events(Decided.WITHDRAW))
    registry.record(events(Decided.GIVE))
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TRIGGER consent_entries_delete")
        connection.execute("DELETE FROM consent_entries WHERE sequence = 3")
    connection.close()
    with pytest.raises(LedgerCorrupted, match="consent registry"):
        list(registry.events())


def test_a_restored_registry_does_not_hold_what_a_later_mark_names(file: Path, tmp_path: Path) -> None:
    registry = registry_in(file)
    shutil.copy(file, tmp_path / "backup.sqlite")
    before = registry.snapshot()
    registry.record(events(Decided.WITHDRAW))
    after = registry.snapshot()
    assert registry.holds(before)
    assert registry.holds(after)
    restored = Registry.open(f"sqlite:///{tmp_path}/backup.sqlite")
    assert restored.check().ok
    assert restored.holds(before)
    assert not restored.holds(after)


def test_marks_of_one_state_have_nothing_in_common_and_another_registry_holds_none(file: Path, tmp_path: Path) -> None:
    registry = registry_in(file)
    one, other = registry.snapshot(), registry.snapshot()
    assert {one.nonce, one.mark} & {other.nonce, other.mark} == set()
    assert not registry_in(tmp_path / "other.sqlite").holds(one)


def test_a_decision_of_tomorrow_is_refused_with_all_that_came_with_it(file: Path) -> None:
    registry = registry_in(file)
    with pytest.raises(InvalidParameter, match="a time in the future"):
        registry.record([*events(), ConsentEvent(SUBJECTS[0], Decided.GIVE, "research", moment("2999-01-01"))])
    assert len(list(registry.events())) == len(SUBJECTS)


def test_a_registry_that_is_not_there_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="no consent is in force"):
        Registry.open(f"sqlite:///{tmp_path}/none.sqlite")
    (tmp_path / "text.sqlite").write_text("no database at all, and longer than a header of one would be" * 20)
    with pytest.raises(LedgerCorrupted, match="damaged"):
        Registry.open(f"sqlite:///{tmp_path}/text.sqlite")
