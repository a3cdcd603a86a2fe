from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from incrowd.errors import LedgerCorrupted
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import Key, Seal
from incrowd.store.index import RING, Pointer, sealed_rows
from tests.ledgers import tampering

KEYS: list[Key] = [("b", "x"), ("a",), ("é", "ß"), ("a", "b"), ("Z",), ("a", "b", "c"), ("~",)]


@pytest.fixture
def chain(address: str) -> Chain:
    chain = Chain.create(address, "notes")
    for number, key in enumerate(KEYS):
        chain.transact(lambda writer, key=key, number=number: writer.append("note", {}, {key: number}))  # type: ignore[misc]
    return chain


def test_the_index_is_what_the_entries_say(chain: Chain) -> None:
    last = {key: link.sequence for link in chain.links() for key in link.own}
    assert chain.read(lambda reader: reader.index.rows() == sealed_rows(reader.seal, last))
    for number, key in enumerate(KEYS):
        assert chain.read(lambda reader, key=key: reader.value(key)) == number  # type: ignore[misc]


def test_a_lost_row_is_not_taken_for_a_key_that_was_never_set(chain: Chain) -> None:
    with tampering(chain) as connection:
        connection.execute(text("""DELETE FROM notes_latest WHERE key = '["a","b"]'"""))
    for key in (("a", "b"), ("a", "bb")):
        with pytest.raises(LedgerCorrupted, match="index of the ledger is damaged"):
            chain.read(lambda reader, key=key: reader.value(key))  # type: ignore[misc]
    with pytest.raises(LedgerCorrupted):
        chain.read(lambda reader: reader.values(("a",)))
    assert chain.read(lambda reader: reader.value(("~~",))) is None


@pytest.mark.parametrize(
    "change",
    [
        """UPDATE notes_latest SET key = '["a","a"]' WHERE key = '["a","b"]'""",
        """UPDATE notes_latest SET sequence = 2 WHERE key = '["a","b"]'""",
        """UPDATE notes_latest SET following = '' WHERE key = '["a","b"]'""",
        """UPDATE notes_latest SET seal = '' WHERE key = '["a","b"]'""",
        """DELETE FROM notes_latest""",
    ],
)
def test_a_changed_row_is_noticed_where_it_is_read(chain: Chain, change: str) -> None:
    with tampering(chain) as connection:
        connection.execute(text(change))
    with pytest.raises(LedgerCorrupted):
        chain.read(lambda reader: reader.value(("a", "b")))
    with pytest.raises(LedgerCorrupted):
        chain.read(lambda reader: reader.values(("a",)))


@given(st.sets(st.text(st.characters(exclude_categories=["Cs"]), min_size=1)), st.text(min_size=1))
def test_absence_is_proved_by_exactly_one_row_and_presence_by_none(keys: set[str], asked: str) -> None:
    rows = sealed_rows(Seal("c0ffee"), dict.fromkeys(keys, 2))
    pointers = [Pointer(row["key"], row["sequence"], row["following"]) for row in rows]
    assert sum(pointer.proves_absence(asked) for pointer in pointers) == (asked not in keys)
    assert pointers[0].key == pointers[-1].following == RING
