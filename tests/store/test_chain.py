from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import text

from incrowd.errors import LedgerCorrupted, LedgerUnavailable
from incrowd.store.chain import Chain
from incrowd.store.database import Conflict
from incrowd.store.group_commit import CommitQueue, QueuedChange
from incrowd.store.transaction import Writer
from tests.ledgers import tampering


def note(chain: Chain, words: str) -> int:
    return chain.transact(lambda writer: writer.append("note", {"words": words}, {("last",): words})).sequence


def test_entries_come_back_in_order_and_keys_hold_their_last_value(address: str) -> None:
    chain = Chain.create(address, "notes")
    assert [note(chain, words) for words in ("one", "two", "drei ε")] == [2, 3, 4]
    assert [link.kind for link in chain.links()] == ["created", "note", "note", "note"]
    assert chain.read(lambda reader: reader.value(("last",))) == "drei ε"
    assert chain.read(lambda reader: reader.value(("never",))) is None
    assert Chain.open(address, "notes").head() == chain.head()


@pytest.mark.parametrize(
    "change", ['body = \'{"words":"zwei"}\'', "kind = 'no\"te'", "previous = hash", "at = 7", "sequence = 9"]
)
def test_rows_are_read_without_parsing_and_a_changed_one_is_refused(sqlite: str, change: str) -> None:
    chain = Chain.create(sqlite, "notes")
    for words in ("one", "two", "drei"):
        note(chain, words)
    assert [row.kind for row in chain.rows()] == ["created", "note", "note", "note"]
    with tampering(chain) as connection:
        connection.execute(text(f"UPDATE notes_entries SET {change} WHERE sequence = 3"))
    with pytest.raises(LedgerCorrupted):
        list(chain.rows())


def test_keys_are_found_by_what_they_begin_with(address: str) -> None:
    chain = Chain.create(address, "notes")
    sets = {("a", "x"): 1, ("a", "Y", "z"): 2, ("ab", "x"): 3, ("a",): 4, ("b", "x"): 5}
    chain.transact(lambda writer: writer.append("note", {}, sets))
    assert chain.read(lambda reader: reader.values(("a",))) == {("a", "x"): 1, ("a", "Y", "z"): 2}


def test_reads_inside_a_transaction_see_what_it_added(address: str) -> None:
    def work(writer: Writer) -> list[object]:
        seen = [writer.value(("n",))]
        for number in (1, 2):
            writer.append("count", {}, {("n",): number})
            seen.append(writer.value(("n",)))
        return seen

    chain = Chain.create(address, "notes")
    assert chain.transact(work) == [None, 1, 2]
    assert chain.head().sequence == 3


def test_an_error_inside_a_transaction_leaves_no_trace(address: str) -> None:
    def work(writer: Writer) -> None:
        writer.append("note", {}, {})
        writer.flush()
        raise KeyError

    chain = Chain.create(address, "notes")
    with pytest.raises(KeyError):
        chain.transact(work)
    assert chain.head().sequence == 1


def test_creating_twice_keeps_the_first(address: str) -> None:
    first = Chain.create(address, "notes")
    note(first, "one")
    assert Chain.create(address, "notes").head() == first.head()


def test_of_many_who_create_at_once_one_wins_and_all_go_on(address: str) -> None:
    together = Barrier(8)

    def make(number: int) -> str:
        together.wait()
        chain = Chain.create(address, "notes")
        note(chain, str(number))
        return chain.head().chain

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(make, range(8)))) == 1
    assert len(list(Chain.open(address, "notes").links())) == 9


def test_creating_leaves_nothing_beside_the_file(sqlite: str, tmp_path: Path) -> None:
    Chain.create(sqlite, "ledger")
    assert [path.name for path in (tmp_path / ".incrowd").iterdir()] == ["ledger.sqlite"]


def test_two_chains_in_one_database_do_not_touch_each_other(postgres: str) -> None:
    ledger, consent = Chain.create(postgres, "ledger"), Chain.create(postgres, "consent")
    note(consent, "yes")
    assert (ledger.head().sequence, consent.head().sequence) == (1, 2)
    assert ledger.head().chain != consent.head().chain


def test_opening_what_is_not_there_is_an_error_and_creates_nothing(address: str, tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match=r"no ledger exists|does not exist"):
        Chain.open(address, "notes")
    assert not (tmp_path / ".incrowd").exists()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes_entries SET body = '{}' WHERE sequence = 2",
        "DELETE FROM notes_entries WHERE sequence = 3",
        "INSERT INTO notes_entries SELECT 9, at, kind, body, sets, previous, hash FROM notes_entries",
        "DELETE FROM notes_latest",
        "UPDATE notes_latest SET sequence = 2",
        "DELETE FROM notes_head",
        "UPDATE notes_head SET sequence = 2",
    ],
)
def test_a_careless_hand_is_stopped_by_the_database_itself(address: str, change: str) -> None:
    chain = Chain.create(address, "notes")
    note(chain, "one")
    note(chain, "two")
    with pytest.raises(LedgerUnavailable), chain.database.writing() as connection:
        connection.execute(change)
    assert chain.head().sequence == 3


def test_replacing_a_row_is_stopped_too(sqlite: str) -> None:
    chain = Chain.create(sqlite, "notes")
    note(chain, "one")
    replacement = "INSERT OR REPLACE INTO notes_entries SELECT * FROM notes_entries WHERE sequence = 2"
    with pytest.raises(LedgerUnavailable), chain.database.writing() as connection:
        connection.execute(replacement)


def test_truncating_is_stopped_too(postgres: str) -> None:
    chain = Chain.create(postgres, "notes")
    with pytest.raises(LedgerUnavailable), chain.database.writing() as connection:
        connection.execute("TRUNCATE notes_entries CASCADE")


def test_a_transaction_that_met_another_is_tried_again(sqlite: str) -> None:
    attempts: list[int] = []

    def work(writer: Writer) -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise Conflict("again")
        return writer.append("note", {}, {}).sequence

    assert Chain.create(sqlite, "notes").transact(work) == 2
    assert len(attempts) == 3


def test_a_transaction_that_always_meets_another_gives_up(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(writer: Writer) -> None:
        raise Conflict("again")

    monkeypatch.setattr("incrowd.store.chain.time.sleep", lambda _seconds: None)
    with pytest.raises(LedgerUnavailable, match="again"):
        Chain.create(sqlite, "notes").transact(work)


@contextmanager
def held(queue: CommitQueue) -> Iterator[None]:
    """Let somebody be at work until the end of the block, so that all who come meanwhile wait."""
    begun, end = threading.Event(), threading.Event()

    def together(works: list[QueuedChange]) -> None:
        begun.set()
        end.wait()
        for each in works:
            each.result = None

    leader = threading.Thread(target=queue.run, args=(lambda _: None, together))
    leader.start()
    begun.wait()
    try:
        yield
    finally:
        end.set()
        leader.join()


def test_works_that_wait_at_once_are_committed_together_and_each_for_itself(address: str) -> None:
    """Whoever holds the line lets three others gather: one of them fails, and the others are on disk."""
    chain = Chain.create(address, "notes")
    commits, outcomes = list[int](), dict[str, object]()

    def counted(works: list[QueuedChange]) -> None:
        chain._commit(works)
        commits.append(len(works))

    def work(writer: Writer, name: str) -> str:
        writer.append("note", {"text": name}, {("last",): name})
        if name == "bad":
            raise KeyError(name)
        return name

    def ask(name: str) -> None:
        try:
            outcomes[name] = chain.queue.run(lambda writer: work(writer, name), counted)
        except KeyError as problem:
            outcomes[name] = problem

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("one", "bad", "two")]
    with held(chain.queue):
        for thread in threads:
            thread.start()
        while len(chain.queue.waiting) < len(threads):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert commits == [2]
    assert {name: outcomes[name] for name in ("one", "two")} == {"one": "one", "two": "two"}
    assert isinstance(outcomes["bad"], KeyError)
    assert {link.body.get("text") for link in chain.links()} == {None, "one", "two"}


def test_what_is_wrong_with_the_database_is_told_to_all_who_wait(address: str) -> None:
    chain = Chain.create(address, "notes")
    outcomes = list[str]()

    def broken(_works: list[QueuedChange]) -> None:
        raise LedgerUnavailable("the disk is full.")

    def ask() -> None:
        try:
            chain.queue.run(lambda _: None, broken)
        except LedgerUnavailable as problem:
            outcomes.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    with held(chain.queue):
        for thread in threads:
            thread.start()
        while len(chain.queue.waiting) < len(threads):
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert outcomes == ["the disk is full."] * 3


def test_what_was_read_is_read_again_once_somebody_wrote(address: str) -> None:
    chain, other = Chain.create(address, "notes"), Chain.open(address, "notes")

    def written(number: int) -> None:
        other.transact(lambda writer: writer.append("note", {}, {("notes",): number}))

    def read() -> object:
        return chain.read(lambda reader: reader.value(("notes",)))

    assert read() is None
    for number in range(3):
        written(number)
        assert (read(), read()) == (number, number)
