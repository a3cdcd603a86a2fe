"""Move: a chain is copied whole to another place, with every hash, and the old one takes no more entries.

The last entry of the old place names the new one.  The copy is made after that entry, in one transaction that ends with
an entry of arrival; until then nobody can write at either place.  A move that was cut short is finished by the same
call.
"""

from __future__ import annotations

from collections.abc import Mapping

from incrowd.errors import InvalidParameter, LedgerMissing, LedgerMoved
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ARRIVED, MOVED, VERSION, Anchor
from incrowd.store.database import Database, EntryRow, Transaction, database_at
from incrowd.store.transaction import Writer, checked, moved_to, reader_of


def move(chain: Chain, address: str, place: str, by: Mapping[str, str]) -> Chain:
    """Move a chain to an address, which entries and messages call `place`, and return it there.

    `by` says who moved it and why.  Nothing changes if something else is at the address.
    """
    target = database_at(address, chain.database.tables.name)
    departed = chain.inspect(moved_to)
    if departed is not None and departed != place:
        raise LedgerMoved(
            f"this ledger was moved to {departed} before. Finish that move, or move it on from there: nothing was done."
        )
    there = _head_at(target)
    if departed is None:
        if there is not None:
            raise InvalidParameter(
                f"there is a ledger at {place} already. Nothing was moved: choose an address where there is none."
            )
        chain.transact(lambda writer: writer.append(MOVED, {"to": place, **by}, {}))
    last = chain.inspect(lambda reader: reader.head)
    if there is None:
        target.create(lambda connection: _fill(chain, target, connection, {"from": chain.database.address, **by}))
    return _arrived(Chain(target.bound(), chain.clock, chain.tally, chain.newest), last, place)


def _head_at(target: Database) -> Anchor | None:
    """Return the head of the chain at a place; None where there is none."""
    try:
        with target.reading() as connection:
            return reader_of(connection, target.tables, target.address).head
    except LedgerMissing:
        return None


def _fill(chain: Chain, target: Database, connection: Transaction, body: Mapping[str, str]) -> None:
    """Copy entries, index and head as they are, and append the entry of arrival."""
    tables = target.tables
    head, pointers = chain.read(lambda reader: (reader.head, reader.index.rows()))
    _insert(connection, tables.head, {"one": 1, "version": VERSION, **vars(head)})
    for row in chain.rows():
        _insert(connection, tables.entries, row._asdict())
    for pointer in pointers:
        _insert(connection, tables.latest, pointer)
    reader = checked(reader_of(connection, tables, target.address), target.address)
    writer = Writer(reader, chain.time(reader), chain.tally)
    writer.append(ARRIVED, body, {})
    writer.flush()


def _insert(connection: Transaction, table: str, row: Mapping[str, object]) -> None:
    names, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({values})", row)  # noqa: S608 - our own tables


def _arrived(chain: Chain, last: Anchor, place: str) -> Chain:
    """Return a chain that holds the last entry of the old place, followed by an arrival; another one is refused."""
    rows: list[EntryRow] = chain.read(lambda reader: reader.rows(last.sequence - 1, 2))
    if [row.hash for row in rows[:1]] != [last.hash] or [row.kind for row in rows[1:]] != [ARRIVED]:
        raise LedgerMoved(
            f"another ledger is at {place}, and not the one that was moved there. Nothing is released from either: put "
            "the right one in place, or remove the other and move again."
        )
    return chain
