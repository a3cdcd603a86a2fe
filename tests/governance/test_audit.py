from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from incrowd.governance.audit import Audit, Event
from tests.ledgers import tampering


def test_events_are_read_in_order_page_by_page_on_every_database(address: str) -> None:
    audit = Audit.create(address)
    for number in range(5):
        audit.write(Event("query", "answered" if number % 2 else "refused", "ann", "1", {"epsilon": str(number)}))
    first = audit.read(0, 2)
    rest = audit.read(first[-1]["sequence"], 10)
    assert [each["about"]["epsilon"] for each in [*first, *rest]] == ["0", "1", "2", "3", "4"]
    assert Audit.open(address).counts() == {("query", "answered"): 2, ("query", "refused"): 3}
    assert audit.check().ok


def test_no_event_is_lost_when_many_write_at_once(sqlite: str) -> None:
    audit = Audit.create(sqlite)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: audit.write(Event("query", "answered", f"a{number}")), range(24)))
    assert audit.counts() == {("query", "answered"): 24}
    assert audit.check().ok


def test_the_secret_of_the_log_is_never_read_out(sqlite: str) -> None:
    audit = Audit.create(sqlite)
    audit.write(Event("query", "answered"))
    assert [each["sequence"] for each in audit.read(0, 10)] == [2]


def test_a_mark_is_the_same_for_the_same_text_in_one_log_only(
    sqlite: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, other = Audit.create(sqlite), Audit.create(f"sqlite:///{tmp_path_factory.mktemp('x')}/ledger.sqlite")
    assert one.mark("SELECT 1") == Audit.open(sqlite).mark("SELECT 1") != one.mark("SELECT 2")
    assert one.mark("SELECT 1") != other.mark("SELECT 1")


def test_an_event_that_was_changed_or_removed_is_found(sqlite: str) -> None:
    audit = Audit.create(sqlite)
    for name in ("ann", "bob", "carl"):
        audit.write(Event("query", "answered", name))
    with tampering(audit.chain) as connection:
        entries = audit.chain.database.tables.entries
        connection.execute(text(f"DELETE FROM {entries} WHERE sequence = 3"))
    report = audit.check()
    assert (report.ok, report.bad) == (False, 3)
