from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection, text

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.codec import canonical
from incrowd.core.unit import Unit
from incrowd.errors import BudgetExceeded, LedgerCorrupted, LedgerUnavailable, UnsupportedVersion
from incrowd.store.chain_entry import Anchor, ChainEntry, link
from incrowd.store.index import sealed_rows
from incrowd.store.sqlite import sqlite_at
from tests.ledgers import create, pure, reopen, tampering

CHARGES = 6  # entries: 1 created, 2 register, 3 to 8 charges


@pytest.fixture
def ledger(address: str) -> Ledger:
    return filled(address)


def filled(address: str) -> Ledger:
    ledger = create(address)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    for number in range(CHARGES):
        ledger.charge(pure("0.1"), "births", release=f"table {number}")
    return ledger


def tamper(ledger: Ledger, *statements: str) -> None:
    with tampering(ledger.chain) as connection:
        for statement in statements:
            connection.execute(text(statement))


def test_a_ledger_in_order_checks(ledger: Ledger) -> None:
    report = ledger.check(*(entry.anchor for entry in ledger.entries()))
    assert (report.ok, report.entries, report.bad, report.finding) == (True, 8, None, None)
    assert report.head == ledger.show().head


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", "replace(body, '0.1', '0.01')"),
        ("body", "'{}'"),
        ("body", "'no json'"),
        ("body", "body || ' '"),
        ("sets", "'{}'"),
        ("sets", "'[]'"),
        ("at", "'1999-01-01T00:00:00.000000Z'"),
        ("kind", "'look'"),
        ("previous", "hash"),
        ("hash", "previous"),
    ],
)
def test_a_changed_entry_is_named(ledger: Ledger, column: str, value: str) -> None:
    tamper(ledger, f"UPDATE ledger_entries SET {column} = {value} WHERE sequence = 5")
    report = ledger.check()
    assert not report.ok
    assert report.bad == 5
    assert "entry 5 was changed" in str(report.finding)


def test_a_deleted_entry_is_named(ledger: Ledger) -> None:
    tamper(ledger, "DELETE FROM ledger_entries WHERE sequence = 5")
    assert ledger.check().finding == "entry 5 is missing: the next one is entry 6."


def test_a_deleted_entry_whose_place_was_closed_up_is_named(ledger: Ledger) -> None:
    tamper(
        ledger,
        "DELETE FROM ledger_entries WHERE sequence = 5",
        *(f"UPDATE ledger_entries SET sequence = {n - 1} WHERE sequence = {n}" for n in (6, 7, 8)),
        "UPDATE ledger_latest SET sequence = 7 WHERE sequence = 8",
        "UPDATE ledger_head SET sequence = 7",
    )
    report = ledger.check()
    assert report.bad == 5


def test_exchanged_entries_are_named(ledger: Ledger) -> None:
    swaps = [(4, 99), (5, 4), (99, 5)]
    tamper(ledger, *(f"UPDATE ledger_entries SET sequence = {new} WHERE sequence = {old}" for old, new in swaps))
    assert ledger.check().bad == 4


def test_a_first_entry_of_another_ledger_is_named(ledger: Ledger) -> None:
    tamper(ledger, "UPDATE ledger_head SET chain = 'another'")
    assert ledger.check().bad == 1


def test_a_head_with_another_hash_is_found(ledger: Ledger) -> None:
    tamper(ledger, "UPDATE ledger_head SET hash = (SELECT hash FROM ledger_entries WHERE sequence = 7)")
    assert ledger.check().finding == "entry 8 is not the one that the ledger's head names."


def test_a_ledger_without_entries_is_found(ledger: Ledger) -> None:
    tamper(ledger, "DELETE FROM ledger_entries", "DELETE FROM ledger_latest", "UPDATE ledger_head SET sequence = 0")
    assert not ledger.check().ok


def test_an_entry_beyond_the_head_is_named(ledger: Ledger) -> None:
    columns = "at, kind, body, sets, previous, hash"
    tamper(
        ledger,
        f"INSERT INTO ledger_entries SELECT 9, {columns} FROM (SELECT * FROM ledger_entries WHERE sequence = 8) AS e",
    )
    assert ledger.check().bad == 9


def test_a_tail_cut_off_by_someone_who_forgot_the_head_is_named(ledger: Ledger) -> None:
    tamper(ledger, "DELETE FROM ledger_entries WHERE sequence > 6")
    report = ledger.check()
    assert report.bad == 7
    assert report.finding == "entry 7 is missing: the ledger's head names entry 8, it holds 6."


def test_a_moved_index_is_named(ledger: Ledger) -> None:
    tamper(ledger, """UPDATE ledger_latest SET sequence = 3 WHERE key = '["spent","births"]'""")
    report = ledger.check()
    assert report.bad == 8
    assert "was the last to set" in str(report.finding)


@pytest.mark.parametrize(
    "change", ["DELETE FROM ledger_latest", "INSERT INTO ledger_latest VALUES ('[\"x\"]', 3, '', '')"]
)
def test_an_index_with_too_little_or_too_much_is_found(ledger: Ledger, change: str) -> None:
    tamper(ledger, change)
    assert "the index" in str(ledger.check().finding)


# --- a forger who recomputes the hashes


def forge(ledger: Ledger, change: Callable[[ChainEntry], ChainEntry]) -> None:
    """Rewrite every entry as `change` says and recompute all hashes with the ledger's secret, the head included."""
    links, seal = list(ledger.chain.links()), ledger.chain.read(lambda reader: reader.seal)
    with tampering(ledger.chain) as connection:
        place = Anchor(links[0].chain, 0, "0" * 64)
        for old in map(change, links):
            sets = {tuple(json.loads(key)): value for key, value in old.sets.items()}
            new = link(place, old.at, old.kind, old.body, sets).sealed(seal)
            _overwrite(connection, new)
            place = new.anchor
        connection.execute(text("UPDATE ledger_head SET hash = :hash"), {"hash": place.hash})


def _overwrite(connection: Connection, new: ChainEntry) -> None:
    connection.execute(
        text("UPDATE ledger_entries SET body = :b, sets = :s, previous = :p, hash = :h WHERE sequence = :n"),
        {"b": canonical(new.body), "s": canonical(new.sets), "p": new.previous, "h": new.hash, "n": new.sequence},
    )


def cheaper(old: ChainEntry) -> ChainEntry:
    """Make the charge of entry 5 smaller, and leave the totals alone."""
    return replace(old, body=json.loads(json.dumps(old.body).replace('"0.1"', '"0.01"'))) if old.sequence == 5 else old


def smaller_total(old: ChainEntry) -> ChainEntry:
    sets = json.loads(json.dumps(old.sets).replace('"epsilon": "0.3"', '"epsilon": "0.1"'))
    return replace(old, sets=sets) if old.sequence == 5 else old


def larger_budget(old: ChainEntry) -> ChainEntry:
    return replace(old, body=json.loads(json.dumps(old.body).replace('"epsilon": "1"', '"epsilon": "9"')))


def strange(old: ChainEntry) -> ChainEntry:
    return replace(old, body={"surprise": True}) if old.sequence == 5 else old


@pytest.mark.parametrize(("change", "bad"), [(cheaper, 5), (smaller_total, 5), (larger_budget, 2), (strange, 5)])
def test_totals_that_do_not_follow_are_named_even_when_all_hashes_fit(
    ledger: Ledger, change: Callable[[ChainEntry], ChainEntry], bad: int
) -> None:
    forge(ledger, change)
    report = ledger.check()
    assert report.bad == bad
    assert "totals are off" in str(report.finding)


def renamed(old: ChainEntry) -> ChainEntry:
    return replace(old, body=json.loads(json.dumps(old.body).replace("table 2", "table x")))


def test_a_consistent_forgery_is_found_only_against_a_certificate(ledger: Ledger) -> None:
    certificate = ledger.show().head
    forge(ledger, renamed)
    assert ledger.check().ok
    report = ledger.check(certificate)
    assert report.bad == 8
    assert "is not the one that the certificate names" in str(report.finding)


def test_an_overspent_budget_is_found_even_when_all_hashes_and_sums_fit(ledger: Ledger) -> None:
    def smaller_budget(old: ChainEntry) -> ChainEntry:
        body = json.loads(json.dumps(old.body).replace('"epsilon": "1"', '"epsilon": "0.5"'))
        return replace(
            old, body=body, sets=json.loads(json.dumps(old.sets).replace('"epsilon": "1"', '"epsilon": "0.5"'))
        )

    forge(ledger, smaller_budget)
    assert ledger.check().bad == 8


# --- cut tails and old copies


def cut(ledger: Ledger, last: int) -> None:
    """Cut the tail off so cleverly that what is left is a perfect ledger."""
    kept = [entry for entry in ledger.chain.links() if entry.sequence <= last]
    seal = ledger.chain.read(lambda reader: reader.seal)
    index = sealed_rows(seal, {key: entry.sequence for entry in kept for key in entry.own})
    with tampering(ledger.chain) as connection:
        connection.execute(text("DELETE FROM ledger_latest"))
        connection.execute(text("INSERT INTO ledger_latest VALUES (:key, :sequence, :following, :seal)"), index)
        connection.execute(text("DELETE FROM ledger_entries WHERE sequence > :n"), {"n": last})
        connection.execute(text("UPDATE ledger_head SET sequence = :n, hash = :h"), {"n": last, "h": kept[-1].hash})


def test_a_cut_off_tail_is_found_against_a_certificate(ledger: Ledger) -> None:
    *_, early, _, last = [entry.anchor for entry in ledger.entries()]
    cut(ledger, early.sequence)
    assert ledger.check().ok
    assert ledger.check(early).ok
    report = ledger.check(last)
    assert report.bad == 7
    assert "tail was cut off, or an old copy was restored" in str(report.finding)


def test_a_restored_old_copy_is_found_against_the_last_certificate(sqlite: str) -> None:
    ledger = filled(sqlite)
    path = sqlite_at(sqlite, "ledger").path
    copy = path.with_name("backup")
    shutil.copy(path, copy)
    certificate = ledger.charge(pure("0.1"), "births", release="after the backup").anchor
    assert ledger.check(certificate).ok
    shutil.copy(copy, path)
    assert ledger.check().ok
    assert ledger.check(certificate).bad == 9
    ledger.charge(pure("0.2"), "births", release="another ninth entry")
    report = ledger.check(certificate)
    assert (report.bad, "rewritten" in str(report.finding)) == (9, True)


def test_another_ledger_is_found_against_a_certificate(address: str, tmp_path: object) -> None:
    certificate = filled(f"sqlite:///{tmp_path}/elsewhere.sqlite").show().head
    report = filled(address).check(certificate)
    assert "this is another ledger" in str(report.finding)


# --- a damaged ledger does no work


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET body = replace(body, '0.1', '0.01') WHERE sequence = 8",
        "UPDATE ledger_entries SET sets = replace(sets, '0.6', '0.1') WHERE sequence = 8",
        "UPDATE ledger_entries SET sets = replace(sets, '\"1\"', '\"9\"') WHERE sequence = 2",
        "DELETE FROM ledger_entries WHERE sequence = 8",
        "UPDATE ledger_head SET sequence = 7",
    ],
)
def test_a_charge_that_meets_a_changed_entry_is_refused(address: str, statement: str) -> None:
    ledger = filled(address)
    tamper(ledger, statement)
    with pytest.raises(LedgerCorrupted, match="incrowd ledger check"):
        reopen(address).charge(pure("0.1"), "births", release="r")
    assert not reopen(address).check().ok


def test_flipped_bytes_anywhere_in_the_file_never_lead_to_overspending(sqlite: str) -> None:
    filled(sqlite)
    path = sqlite_at(sqlite, "ledger").path
    sound = path.read_bytes()
    found = 0
    for position in range(0, len(sound), 211):
        damaged = bytearray(sound)
        damaged[position] ^= 0x5A
        path.write_bytes(damaged)
        found += _survives(sqlite)
    assert found > 20


def _survives(address: str) -> bool:
    """Try to spend 0.5 where only 0.4 is left, and say whether the damage was noticed."""
    try:
        ledger = reopen(address)
        ledger.register(Declaration("births", Unit(), Budget.of(1)))
        with pytest.raises(BudgetExceeded):
            ledger.charge(pure("0.5"), "births", release="r")
        return not ledger.check().ok
    except (LedgerUnavailable, UnsupportedVersion):
        return True
