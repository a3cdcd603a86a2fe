from __future__ import annotations

import gc
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from incrowd.errors import InvalidParameter, LedgerCorrupted, LedgerLocked, LedgerUnavailable, UnsupportedVersion
from incrowd.store.chain import Chain
from incrowd.store.sqlite import SQLite, sqlite_at
from tests.ledgers import tampering


def path_of(address: str) -> Path:
    return sqlite_at(address, "notes").path


def note(chain: Chain) -> None:
    chain.transact(lambda writer: writer.append("note", {}, {}))


def test_every_connection_flushes_to_the_disk_before_it_returns(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    with chain.database.writing() as connection:
        settings = {name: connection.execute(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")}
        assert settings == {"journal_mode": "delete", "synchronous": 3}
        assert connection.execute("PRAGMA foreign_keys")[0][0] == 1
        assert connection.execute("PRAGMA busy_timeout")[0][0] == 60_000


def test_a_write_transaction_holds_the_lock_from_its_start(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    impatient = sqlite3.connect(path_of(sqlite), timeout=0, isolation_level=None)
    with chain.database.writing(), pytest.raises(sqlite3.OperationalError, match="locked"):
        impatient.execute("BEGIN IMMEDIATE")
    impatient.close()


def test_a_path_with_odd_characters_is_one_path(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c#d%20é"
    chain = Chain(SQLite(folder / "x.sqlite", "notes"))
    assert isinstance(chain.database, SQLite)
    Chain.create(f"sqlite:///{tmp_path}/plain.sqlite", "notes")
    folder.mkdir()
    (tmp_path / "plain.sqlite").rename(folder / "x.sqlite")
    note(chain)
    assert chain.head().sequence == 2


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "sqlite:///x?mode=memory", "sqlite://host/x"])
def test_a_ledger_that_would_not_outlive_the_process_is_refused(address: str) -> None:
    with pytest.raises(InvalidParameter, match="sqlite:///FILE"):
        Chain.create(address, "notes")


@pytest.mark.parametrize("address", ["ledger.sqlite", "mysql://host/db", "", "https://example.org"])
def test_an_address_of_something_else_is_refused(address: str) -> None:
    with pytest.raises(InvalidParameter, match="write sqlite:///FILE"):
        Chain.open(address, "notes")


def test_a_file_that_vanishes_is_noticed_and_not_made_anew(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    path_of(sqlite).unlink()
    with pytest.raises(LedgerUnavailable, match="no ledger exists"):
        note(chain)
    assert not path_of(sqlite).exists()


def test_a_session_that_stays_open_reads_the_file_again(sqlite: str) -> None:
    """What somebody changes behind SQLite's back is noticed, as if the file were opened anew."""
    chain = Chain.create(sqlite, "notes")
    note(chain)
    content = path_of(sqlite).read_bytes()
    with path_of(sqlite).open("r+b") as file:
        file.write(content.replace(b'"version":3', b'"version":4'))
    with pytest.raises(LedgerCorrupted):
        list(chain.links())


def test_a_file_that_takes_the_place_of_one_in_use_is_noticed_by_open_sessions(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    note(chain)
    other = path_of(sqlite).with_name("other.sqlite")
    other.write_bytes(path_of(sqlite).read_bytes())
    other.replace(path_of(sqlite))
    for work in (note, Chain.head):
        with pytest.raises(LedgerUnavailable, match="replaced"):
            work(chain)


def test_a_process_that_was_forked_off_does_not_use_the_sessions_of_another(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    note(chain)
    assert isinstance(chain.database, SQLite)
    sessions = chain.database.writers
    ((process, session),) = sessions.idle
    sessions.idle[:] = [(process + 1, session)]
    assert sessions.take() is None
    session.close()


def test_sessions_are_closed_with_the_last_who_holds_them(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    note(chain)
    assert isinstance(chain.database, SQLite)
    ((_, session),) = chain.database.writers.idle
    del chain
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        session.execute("SELECT 1")


def test_a_file_that_is_moved_away_during_a_transaction_loses_nothing_silently(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    path = path_of(sqlite)

    def move(writer: object) -> None:
        path.rename(path.with_name("elsewhere.sqlite"))
        writer.append("note", {}, {})  # type: ignore[attr-defined]

    with pytest.raises(LedgerUnavailable):
        chain.transact(move)


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\x00" + b"\xff" * 5000, b"hello"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(sqlite: str, content: bytes) -> None:
    path_of(sqlite).parent.mkdir()
    path_of(sqlite).write_bytes(content)
    for door in (Chain.open, Chain.create):
        with pytest.raises(LedgerCorrupted, match="damaged, or not a ledger"):
            door(sqlite, "notes")
    assert path_of(sqlite).read_bytes() == content


def test_an_emptied_file_is_refused_and_left_alone(sqlite: str) -> None:
    Chain.create(sqlite, "notes")
    path_of(sqlite).write_bytes(b"")
    for door in (Chain.open, Chain.create):
        with pytest.raises(LedgerUnavailable, match="lacks the tables of a ledger"):
            door(sqlite, "notes")
    assert path_of(sqlite).read_bytes() == b""


def test_a_directory_in_place_of_the_file_is_refused(sqlite: str) -> None:
    path_of(sqlite).mkdir(parents=True)
    with pytest.raises(LedgerUnavailable, match="cannot be opened"):
        Chain.create(sqlite, "notes")


def test_a_cut_file_is_refused(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    for _ in range(30):
        note(chain)
    content = path_of(sqlite).read_bytes()
    path_of(sqlite).write_bytes(content[: len(content) // 2])
    with pytest.raises(LedgerCorrupted):
        note(Chain.open(sqlite, "notes"))


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_a_ledger_of_another_version_is_refused(address: str, version: int) -> None:
    chain = Chain.create(address, "notes")
    with tampering(chain) as connection:
        connection.execute(text(f"UPDATE notes_head SET version = {version}"))
    with pytest.raises(UnsupportedVersion, match=f"has version {version}; this incrowd reads version 3 only"):
        Chain.open(address, "notes")


def test_a_ledger_without_a_head_is_refused(address: str) -> None:
    chain = Chain.create(address, "notes")
    with tampering(chain) as connection:
        connection.execute(text("DELETE FROM notes_head"))
    with pytest.raises(LedgerCorrupted, match="lost its head"):
        Chain.open(address, "notes")


def test_a_busy_file_is_an_error_that_says_so(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain.create(sqlite, "notes")
    monkeypatch.setattr("incrowd.store.sqlite._PATIENCE", 0.01)
    with chain.database.writing(), pytest.raises(LedgerLocked, match="is in order, but was held by another process"):
        note(chain)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not say who holds a lock")
def test_a_locked_file_names_the_process_that_holds_it_and_speaks_of_no_backup(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = Chain.create(sqlite, "notes")
    monkeypatch.setattr("incrowd.store.sqlite._PATIENCE", 0.01)
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN EXCLUSIVE'); print(1); input()"
    command = [sys.executable, "-uc", code, sqlite.removeprefix("sqlite:///")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        for work in (lambda: note(chain), lambda: Chain.open(sqlite, "notes")):
            with pytest.raises(LedgerLocked, match=rf"held by process {holder.pid} \(python") as locked:
                work()
            assert "restore" not in str(locked.value)
        holder.communicate(b"\n")
    note(chain)


def test_the_threads_of_a_process_write_in_turn(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    assert isinstance(chain.database, SQLite)
    thread = threading.Thread(target=note, args=(chain,))
    with chain.database.turn.lock:
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        assert chain.head().sequence == 1
    thread.join()
    assert chain.head().sequence == 2


def test_nobody_stands_in_line_for_ever(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain.create(sqlite, "notes")
    assert isinstance(chain.database, SQLite)
    monkeypatch.setattr("incrowd.store.sqlite._PATIENCE", 0.05)
    with chain.database.turn.lock, pytest.raises(LedgerLocked, match="try again"):
        note(chain)
    note(chain)


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_book_is_for_its_owner_alone_whatever_the_umask(sqlite: str) -> None:
    before = os.umask(0)
    try:
        note(Chain.create(sqlite, "notes"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path_of(sqlite).stat().st_mode) == 0o600
