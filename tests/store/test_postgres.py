from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from incrowd.errors import InvalidParameter, LedgerLocked, LedgerUnavailable
from incrowd.store.chain import Chain
from incrowd.store.database import Conflict
from incrowd.store.postgres import Postgres, postgres_at

pytestmark = pytest.mark.postgres


def note(chain: Chain) -> int:
    return chain.transact(lambda writer: writer.append("note", {}, {})).sequence


def test_a_write_transaction_is_serializable_and_durable(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with chain.database.writing() as connection:
        names = ("transaction_isolation", "synchronous_commit", "fsync", "lock_timeout")
        found = {name: connection.execute(f"SHOW {name}")[0][0] for name in names}
    assert found == {
        "transaction_isolation": "serializable",
        "synchronous_commit": "on",
        "fsync": "on",
        "lock_timeout": "1min",
    }


def test_a_database_that_commits_lazily_by_default_is_made_to_wait_for_the_disk(postgres: str) -> None:
    chain = Chain.create(f"{postgres}%20-csynchronous_commit%3Doff", "notes")
    with chain.database.writing() as connection:
        assert connection.execute("SHOW synchronous_commit")[0][0] == "on"


def test_a_crowd_of_writers_queues_up_and_nobody_is_sent_back(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_self: Postgres, error: Exception) -> LedgerUnavailable:
        raise AssertionError("a writer was sent back") from error

    chain = Chain.create(postgres, "notes")
    monkeypatch.setattr(Postgres, "explain", never)
    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(lambda _: note(chain), range(64))) == list(range(2, 66))


def test_two_transactions_that_truly_conflict_are_recognized(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with pytest.raises(Conflict), chain.database.writing() as connection:
        connection.execute("DO $$ BEGIN RAISE serialization_failure; END $$")


def test_reading_does_not_wait_for_a_writer(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with chain.database.writing():
        assert chain.head().sequence == 1


def test_locked_tables_name_the_session_that_holds_them_and_speak_of_no_backup(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.store.postgres._SESSION", ("SET lock_timeout = '20ms'",))
    chain = Chain.create(postgres, "notes")
    other = Chain.open(postgres, "notes")
    with chain.database.writing() as connection:
        ((number,),) = connection.execute("SELECT pg_backend_pid()")
        with pytest.raises(LedgerLocked, match=f"held by session {number} of") as locked:
            note(other)
    assert "restore" not in str(locked.value)
    note(other)


def test_a_read_only_database_is_an_error_that_says_so(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    standby = Chain.open(f"{postgres}%20-cdefault_transaction_read_only%3Don", "notes")
    assert standby.head() == chain.head()
    with pytest.raises(LedgerUnavailable, match="read-only"):
        note(standby)


def test_a_user_without_rights_is_told_so(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with chain.database.reading() as connection:
        schema = connection.execute("SELECT current_schema()")[0][0]
    with chain.database.writing() as connection:
        connection.execute(f"CREATE ROLE {schema}_guest LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_guest")
    with pytest.raises(LedgerUnavailable, match="closed to this user"):
        Chain.open(postgres.replace("incrowd@", f"{schema}_guest@"), "notes")
    with chain.database.writing() as connection:
        connection.execute(f"DROP OWNED BY {schema}_guest; DROP ROLE {schema}_guest")


def test_a_lost_table_is_an_error_and_not_a_fresh_start(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with chain.database.writing() as connection:
        connection.execute("DROP TABLE notes_head")
    with pytest.raises(LedgerUnavailable, match="does not exist"):
        Chain.open(postgres, "notes")
    with pytest.raises(LedgerUnavailable):
        Chain.create(postgres, "notes")


def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        Chain.open("postgresql://me:secret@127.0.0.1:1/db", "notes")


def test_a_password_is_never_shown() -> None:
    place = postgres_at("postgresql://me:secret@127.0.0.1:1/db", "notes")
    with pytest.raises(LedgerUnavailable) as caught, place.reading():
        pass
    assert "secret" not in str(caught.value)
    assert "me:***@127.0.0.1" in str(caught.value)


def test_an_address_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="cannot be read"):
        Chain.open("postgresql:/nonsense", "notes")


def test_a_server_that_does_not_flush_is_refused(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.store.postgres._SERVER", ("fsync", "zero_damaged_pages"))
    with pytest.raises(LedgerUnavailable, match="runs with zero_damaged_pages = off"):
        Chain.create(postgres, "notes")
