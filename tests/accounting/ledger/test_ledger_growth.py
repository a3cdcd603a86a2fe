"""A charge costs the same, however long the ledger is."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger, enter
from incrowd.accounting.ledger.request import Part, charging
from incrowd.core.unit import Unit
from incrowd.store.sqlite import SQLite
from incrowd.store.transaction import Writer
from tests.ledgers import Prices, create, pure


def fill(ledger: Ledger, entries: int) -> None:
    """Charge many times in one transaction."""
    request = charging(Prices(), [Part("births", pure("1e-20"))], "r", "ann")

    def work(writer: Writer) -> None:
        for _ in range(entries):
            enter(writer, request)

    ledger.chain.transact(work)


def test_a_charge_runs_as_many_statements_in_a_long_ledger_as_in_a_short_one(address: str) -> None:
    ledger = create(address)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    fill(ledger, 100)
    short = statements_of_a_charge(ledger)
    fill(ledger, 1200)
    assert statements_of_a_charge(ledger) == short < 25
    assert ledger.check().ok


def statements_of_a_charge(ledger: Ledger) -> int:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    engine: Any = getattr(ledger.chain.database, "engine")  # noqa: B009 - both databases have one
    event.listen(engine, "before_cursor_execute", note)
    ledger.charge(pure("1e-20"), "births", release="r", analyst="ann")
    event.remove(engine, "before_cursor_execute", note)
    return len(statements)


@pytest.mark.parametrize("keys", [1, 400])
def test_a_charge_takes_as_many_steps_of_sqlite_in_a_long_ledger_as_in_a_short_one(sqlite: str, keys: int) -> None:
    ledger = create(sqlite)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    fill(ledger, 100)
    short = steps_of_a_charge(ledger)
    for number in range(0, keys, 40):
        ledger.register(Declaration(f"dataset {number}", Unit(), Budget.of(1)))
    fill(ledger, 1200)
    assert steps_of_a_charge(ledger) < 1.1 * short


def steps_of_a_charge(ledger: Ledger) -> int:
    """Count the instructions that SQLite's machine runs for one charge."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(connection: Any, _record: object) -> None:
        connection.set_progress_handler(step, 1)

    place = ledger.chain.database
    assert isinstance(place, SQLite)
    event.listen(place.engine, "connect", watch)
    ledger.charge(pure("1e-20"), "births", release="r", analyst="ann")
    event.remove(place.engine, "connect", watch)
    return steps
