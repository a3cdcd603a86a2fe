"""A charge finds what was damaged, edited or exchanged under it, in bounded time and without a check of everything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.codec import canonical, digest
from incrowd.core.unit import Unit
from incrowd.errors import LedgerCorrupted, LedgerUnavailable, UnsupportedVersion
from incrowd.store.chain_entry import DOMAIN, RUNNING
from incrowd.store.index import DOMAIN as INDEX
from incrowd.store.sqlite import sqlite_at
from incrowd.store.transaction import NEWEST
from tests.ledgers import create, pure, reopen, tampering


def filled(address: str, charges: int = 6) -> Ledger:
    ledger = create(address)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    for number in range(charges):
        ledger.charge(pure("0.1"), "births", release=f"table {number}")
    return ledger


def refuses(address: str, match: str = "incrowd ledger check") -> None:
    with pytest.raises(LedgerCorrupted, match=match):
        reopen(address).charge(pure("0.1"), "births", release="r")


def path_of(address: str) -> Path:
    return sqlite_at(address, "ledger").path


# --- rows


@pytest.mark.parametrize("sequence", range(1, 9))
@pytest.mark.parametrize("column", ["body", "sets", "at", "previous"])
def test_an_edited_row_is_found_at_the_next_charge(sqlite: str, sequence: int, column: str) -> None:
    with tampering(filled(sqlite).chain) as connection:
        other = f"replace({column}, '0', '1')"
        if column == "previous":  # a hash may have no 0
            other = "CASE substr(previous, 1, 1) WHEN 'a' THEN 'b' ELSE 'a' END || substr(previous, 2)"
        changed = connection.execute(
            text(f"UPDATE ledger_entries SET {column} = {other} WHERE sequence = {sequence} AND {column} != {other}")
        )
        assert changed.rowcount == 1
    refuses(sqlite)


def plainly(row: dict[str, object]) -> str:
    """Return the hash that anyone can compute, without the ledger's secret."""
    return digest(DOMAIN, {name: value for name, value in row.items() if name != "hash"})


@pytest.mark.parametrize("keep", [True, False])
def test_a_row_edited_with_its_hash_and_the_head_is_found_without_a_certificate(sqlite: str, keep: bool) -> None:
    """Somebody who knows how hashes are made, but not the secret, cannot lower the last total."""
    ledger = filled(sqlite)
    last = [*ledger.chain.links()][-1]
    sets = {key: value for key, value in last.sets.items() if keep or key != RUNNING}
    sets = {key: _cheaper(value) for key, value in sets.items()}
    forged = {**vars(last), "sets": sets}
    with tampering(ledger.chain) as connection:
        edit = "UPDATE ledger_entries SET sets = :sets, hash = :hash WHERE sequence = 8"
        connection.execute(text(edit), {"sets": canonical(sets), "hash": plainly(forged)})
        connection.execute(text("UPDATE ledger_head SET hash = :hash"), {"hash": plainly(forged)})
    refuses(sqlite)
    assert not reopen(sqlite).check().ok


def _cheaper(value: object) -> object:
    if isinstance(value, dict):
        return {key: _cheaper(inner) for key, inner in value.items()}
    return "0.1" if value == "0.6" else value


def test_a_pointer_moved_back_with_a_seal_of_its_own_is_found(sqlite: str) -> None:
    ledger = filled(sqlite)
    with tampering(ledger.chain) as connection:
        key = '["spent","births"]'
        following = connection.execute(text("SELECT following FROM ledger_latest WHERE key = :k"), {"k": key}).scalar()
        seal = digest(INDEX, [ledger.id, key, 3, following])
        move = "UPDATE ledger_latest SET sequence = 3, seal = :s WHERE key = :k"
        connection.execute(text(move), {"s": seal, "k": key})
    refuses(sqlite)


def test_a_pointer_that_was_really_there_once_is_found_by_the_totals(sqlite: str) -> None:
    """A page that was lost on its way to the disk is sound in itself, and old."""
    ledger = filled(sqlite, 1)
    with tampering(ledger.chain) as connection:
        old = connection.execute(text("""SELECT * FROM ledger_latest WHERE key = '["spent","births"]'""")).one()
    for number in range(NEWEST + 10):
        ledger.look("elsewhere", f"look {number}") if number else ledger.charge(pure("0.1"), "births", release="r")
    with tampering(ledger.chain) as connection:
        back = "UPDATE ledger_latest SET sequence = :n, following = :f, seal = :s WHERE key = :k"
        connection.execute(text(back), {"n": old.sequence, "f": old.following, "s": old.seal, "k": old.key})
    refuses(sqlite, "totals of the ledger do not add up")
    assert not reopen(sqlite).check().ok


def test_time_that_ran_backwards_is_found_by_the_check(sqlite: str) -> None:
    ledger = filled(sqlite)
    ats = [entry.at for entry in ledger.entries()]
    assert ats == sorted(ats)


# --- pages


def test_a_damaged_page_is_found_at_the_next_charge_or_carries_nothing(sqlite: str) -> None:
    filled(sqlite)
    path = path_of(sqlite)
    sound, size = path.read_bytes(), 4096
    pages = len(sound) // size
    assert pages >= 5
    for page in range(pages):
        for damage in (bytes(size), b"\xff" * size, sound[size : 2 * size]):
            damaged = sound[: page * size] + damage + sound[(page + 1) * size :]
            if damaged == sound:
                continue
            path.write_bytes(damaged)
            with pytest.raises(LedgerUnavailable):
                reopen(sqlite).charge(pure("0.1"), "births", release="r")
    path.write_bytes(sound)
    reopen(sqlite).charge(pure("0.1"), "births", release="r")


# --- files


def exchange(path: Path, other: Path) -> None:
    os.replace(other, path)  # noqa: PTH105 - the name says it


def test_a_ledger_that_is_replaced_under_a_running_process_is_refused(sqlite: str) -> None:
    path = path_of(sqlite)
    ledger = filled(sqlite, 1)
    shutil.copy(path, path.with_name("copy"))
    ledger.charge(pure("0.5"), "births", release="after the copy")
    exchange(path, path.with_name("copy"))
    for work in (ledger.show, lambda: ledger.charge(pure("0.5"), "births", release="spent twice")):
        with pytest.raises(LedgerUnavailable, match="was replaced by another file"):
            work()
    assert reopen(sqlite).standing("births").epsilon * 10 == 1  # whoever starts anew sees the copy


def test_a_ledger_that_is_replaced_during_a_charge_is_refused(sqlite: str) -> None:
    path, ledger = path_of(sqlite), filled(sqlite, 1)
    shutil.copy(path, path.with_name("copy"))

    def work(writer: object) -> None:
        exchange(path, path.with_name("copy"))
        writer.append("look", {"dataset": "births", "verb": "plan"}, {("looks", "births"): {"plan": 1}})  # type: ignore[attr-defined]

    with pytest.raises(LedgerUnavailable):
        ledger.chain.transact(work)


@pytest.mark.parametrize("door", [Ledger.open, Ledger.create])
def test_a_symbolic_link_in_place_of_the_file_is_refused(sqlite: str, door: Callable[[str], Ledger]) -> None:
    filled(sqlite, 1)
    path = path_of(sqlite)
    path.rename(path.with_name("real.sqlite"))
    path.symlink_to("real.sqlite")
    with pytest.raises(LedgerUnavailable, match="symbolic link"):
        door(sqlite)
    path.unlink()
    path.symlink_to("nowhere.sqlite")
    with pytest.raises(LedgerUnavailable, match="symbolic link"):
        door(sqlite)


# --- ledgers of other versions


@pytest.mark.parametrize("version", [1, 2, 4])
def test_a_ledger_of_another_version_is_refused_and_never_made_anew(sqlite: str, version: int) -> None:
    ledger = filled(sqlite)
    with tampering(ledger.chain) as connection:
        connection.execute(text(f"UPDATE ledger_head SET version = {version}"))
    before = Path(sqlite.removeprefix("sqlite:///")).read_bytes()
    with pytest.raises(UnsupportedVersion, match=f"has version {version}; this incrowd reads version 3 only"):
        reopen(sqlite).charge(pure("0.1"), "births", release="a")
    assert Path(sqlite.removeprefix("sqlite:///")).read_bytes() == before
