"""A chain that gets a new secret: old hashes stay, new ones are keyed by it, and the old secret forges nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from incrowd.errors import LedgerCorrupted
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import Key, Seal
from incrowd.store.move import move
from incrowd.store.transaction import Writer
from incrowd.store.verify import ChainReport, verify
from tests.ledgers import tampering

BY = {"who": "ann", "why": "a backup was lost"}


def note(chain: Chain, words: str) -> None:
    chain.transact(lambda writer: writer.append("note", {"words": words}, {("last",): words}))


def check(chain: Chain) -> ChainReport:
    sets: dict[Key, str] = {}
    return verify(chain, lambda entry, _: sets if entry.kind != "note" else {("last",): entry.body["words"]})


def renewed(address: str, times: int = 1) -> Chain:
    chain = Chain.create(address, "notes")
    note(chain, "eins")
    for number in range(times):
        chain.renew(BY)
        note(chain, f"nach {number}")
    return chain


@pytest.mark.parametrize("times", [1, 3])
def test_entries_before_and_after_a_renewal_are_read_and_checked(address: str, times: int) -> None:
    chain = Chain.create(address, "notes")
    note(chain, "eins")
    before = [entry.anchor for entry in chain.links()]
    for number in range(times):
        chain.renew(BY)
        note(chain, f"nach {number}")
    again = Chain.open(address, "notes")
    assert [entry.anchor for entry in again.links()][:2] == before
    assert again.read(lambda reader: reader.value(("last",))) == f"nach {times - 1}"
    assert [row.kind for row in again.rows()] == ["created", "note", *["renewed", "note"] * times]
    assert check(again).ok
    assert check(again).entries == 2 + 2 * times


def test_several_entries_of_one_transaction_follow_a_renewal(sqlite: str) -> None:
    chain = renewed(sqlite)

    def work(writer: Writer) -> None:
        writer.append("renewed", {"secret": "ab" * 32, **BY}, {("renewals",): [3, writer.head.sequence + 1]})
        writer.append("note", {"words": "zwei"}, {("last",): "zwei"})

    chain.transact(work)
    assert check(Chain.open(sqlite, "notes")).ok


def test_the_old_secret_forges_no_later_entry(address: str) -> None:
    chain = renewed(address)
    first, *_, last = chain.links()
    forged = replace(last, body={"words": "falsch"}).sealed(Seal(first.chain, bytes.fromhex(first.body["secret"])))
    with tampering(chain) as connection:
        change = "UPDATE notes_entries SET body = :body, hash = :hash WHERE sequence = :number"
        connection.execute(text(change), {"body": forged.texts[0], "hash": forged.hash, "number": last.sequence})
        connection.execute(text("UPDATE notes_head SET hash = :hash"), {"hash": forged.hash})
    with pytest.raises(LedgerCorrupted):
        note(chain, "mehr")
    assert check(chain).bad == last.sequence


@pytest.mark.parametrize(
    "damage",
    [
        'DELETE FROM notes_latest WHERE "key" = \'["renewals"]\'',
        'UPDATE notes_latest SET sequence = 2 WHERE "key" = \'["renewals"]\'',
        "UPDATE notes_entries SET body = '{\"secret\":\"\"}' WHERE kind = 'renewed'",
        'UPDATE notes_entries SET sets = \'{"[\\"renewals\\"]":"x"}\' WHERE kind = \'renewed\'',
        "DELETE FROM notes_entries WHERE kind = 'renewed'",
    ],
)
def test_a_renewal_that_is_lost_or_changed_is_noticed_at_once(sqlite: str, damage: str) -> None:
    chain = renewed(sqlite)
    with tampering(chain) as connection:
        connection.execute(text(damage))
    with pytest.raises(LedgerCorrupted):
        note(chain, "mehr")
    assert not check(chain).ok


def test_a_damaged_index_is_not_sealed_anew(sqlite: str) -> None:
    chain = renewed(sqlite)
    with tampering(chain) as connection:
        connection.execute(text('UPDATE notes_latest SET sequence = 2 WHERE "key" = \'["last"]\''))
    with pytest.raises(LedgerCorrupted, match="index"):
        chain.renew(BY)


@pytest.mark.parametrize("secret", ["", "ab" * 31])
def test_check_refuses_a_secret_that_is_too_short(sqlite: str, secret: str) -> None:
    chain = renewed(sqlite)
    chain.transact(lambda writer: writer.append("renewed", {"secret": secret}, {("renewals",): [3, 5]}))
    assert check(chain).bad == 5


def test_a_chain_moves_with_all_of_its_secrets(sqlite: str, tmp_path: Path) -> None:
    chain, target = renewed(sqlite, 2), f"sqlite:///{tmp_path}/there/notes.sqlite"
    note(move(chain, target, target, BY), "dort")
    assert check(Chain.open(target, "notes")).ok


def test_an_index_with_a_missing_key_is_not_sealed_anew(sqlite: str) -> None:
    chain = renewed(sqlite)
    with tampering(chain) as connection:
        connection.execute(text('DELETE FROM notes_latest WHERE "key" = \'["last"]\''))
    with pytest.raises(LedgerCorrupted, match="index"):
        chain.renew(BY)
