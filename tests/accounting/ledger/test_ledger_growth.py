"""A charge costs the same, however long the ledger is."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger, enter
from incrowd.accounting.ledger.request import Part, charging
from incrowd.core.unit import Unit
from incrowd.store.postgres import PostgresTransaction
from incrowd.store.sqlite import SQLite, SQLiteTransaction
from incrowd.store.transaction import Writer
from tests.ledgers import Prices, at_connection, create, pure


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
    kind = SQLiteTransaction if isinstance(ledger.chain.database, SQLite) else PostgresTransaction
    with patch.object(kind, "execute", autospec=True, side_effect=kind.execute) as statements:
        ledger.charge(pure("1e-20"), "births", release="r", analyst="ann")
    return statements.call_count


@pytest.mark.parametrize("keys", [1, 400])
def test_a_charge_takes_as_many_steps_of_sqlite_in_a_long_ledger_as_in_a_short_one(sqlite: str, keys: int) -> None:
    ledger = create(sqlite)
    ledger.register(Declaration("births", Unit(), Budget.of(1)))
    for number in range(0, keys, 40):
        ledger.register(Declaration(f"dataset {number}", Unit(), Budget.of(1)))
    fill(ledger, 100)
    short = steps_of_a_charge(ledger)
    fill(ledger, 1200)
    assert steps_of_a_charge(ledger) < 1.1 * short


def steps_of_a_charge(ledger: Ledger) -> int:
    """Count the instructions that SQLite's machine runs for one charge."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with at_connection(lambda session: session.set_progress_handler(step, 1)):
        ledger.charge(pure("1e-20"), "births", release="r", analyst="ann")
    return steps
