"""What was found is remembered until somebody writes, by whatever way, and not a moment longer."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from incrowd.errors import LedgerCorrupted
from incrowd.store.chain import Chain
from incrowd.store.sqlite import sqlite_at
from incrowd.store.transaction import Reader

KEY = "last"


@pytest.fixture(autouse=True)
def aged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is taken for one that was not changed just now."""
    monkeypatch.setattr("incrowd.store.sqlite_sessions._TICK", 0)


def last(reader: Reader) -> object:
    return reader.value((KEY,))


def write(chain: Chain, value: int) -> None:
    chain.transact(lambda writer: writer.append("note", {}, {(KEY,): value}))


def path_of(address: str) -> Path:
    return sqlite_at(address, "notes").path


def test_what_was_found_is_found_anew_once_anybody_wrote(address: str) -> None:
    chain, other = Chain.create(address, "notes"), Chain.open(address, "notes")
    for number in range(1, 4):
        write((chain, other)[number % 2], number)
        assert chain.at_hand(KEY) is None
        assert (chain.remember(KEY, last), chain.remember(KEY, last)) == (number, number)


def test_what_was_found_is_at_hand_and_not_looked_for_again(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    write(chain, 7)
    assert chain.remember(KEY, last) == 7
    assert (chain.at_hand(KEY), chain.at_hand("other")) == (7, None)
    assert chain.remember(KEY, lambda _: pytest.fail("it was looked for again")) == 7


def test_what_is_not_there_is_not_remembered(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    assert chain.remember(KEY, last) is None
    assert chain.remember(KEY, lambda _: 3) == 3


def test_what_somebody_changes_behind_the_database_is_noticed(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    write(chain, 7)
    assert chain.remember(KEY, last) == 7
    before = path_of(sqlite).stat().st_ctime_ns
    while path_of(sqlite).stat().st_ctime_ns == before:  # the system's clock for files has ticked
        os.utime(path_of(sqlite))
    content = path_of(sqlite).read_bytes()
    with path_of(sqlite).open("r+b") as file:
        file.write(content.replace(b"note{}", b"nope{}"))
    assert chain.at_hand(KEY) is None
    with pytest.raises(LedgerCorrupted):
        chain.remember(KEY, last)


def test_a_file_that_was_changed_just_now_could_be_changed_again_unnoticed(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.store.sqlite_sessions._TICK", 10**18)
    chain = Chain.create(sqlite, "notes")
    write(chain, 7)
    assert chain.remember(KEY, last) == 7
    assert chain.at_hand(KEY) is None


def test_whoever_asks_what_is_at_hand_does_not_wait_for_a_writer(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    write(chain, 7)
    assert chain.remember(KEY, last) == 7
    writer = sqlite3.connect(path_of(sqlite), isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    assert chain.at_hand(KEY) is None
    writer.execute("ROLLBACK")
    writer.close()
    assert chain.remember(KEY, last) == 7


def test_a_file_in_another_place_is_not_the_one_that_was_read(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    write(chain, 7)
    assert chain.remember(KEY, last) == 7
    path = path_of(sqlite)
    path.rename(path.with_name("elsewhere"))
    assert chain.at_hand(KEY) is None
    path.with_name("elsewhere").rename(path)
    assert chain.remember(KEY, last) == 7
