"""What the tests of the ledger share: simple prices, guarantees, and ways to tamper."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from unittest.mock import patch

from sqlalchemy import Connection, NullPool, create_engine, text

from incrowd.accounting.accountant import Spend
from incrowd.accounting.concentrated import epsilon_of_rho, rho_of
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import (
    Approximate,
    Crowd,
    Loss,
    LossRule,
    Pure,
    RobustlySampled,
    Sampled,
    Syntactic,
    ZeroConcentrated,
)
from incrowd.core.rounding import Number, exact, round_up
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.store.chain import Chain
from incrowd.store.postgres import Postgres
from incrowd.store.sqlite import SQLite
from incrowd.store.sqlite_sessions import Sessions

BECAUSE = (Theorem("dwork-2006-proposition-1", "Dwork et al. 2006, Proposition 1"),)


@dataclass(frozen=True)
class Prices:
    """Prices that need no accountant: stated losses cost what they state, a sampled crowd costs (1/2, delta)."""

    def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
        match loss:
            case Pure(epsilon):
                return Spend(round_up(epsilon), Decimal(0), (LossRule.STATED,))
            case Approximate(epsilon, stated):
                return Spend(round_up(epsilon), round_up(stated), (LossRule.STATED,))
            case ZeroConcentrated(rho) if delta:
                return Spend(round_up(epsilon_of_rho(rho, delta)), round_up(delta), (LossRule.CONCENTRATED,))
            case Sampled(_, Crowd()) | RobustlySampled():
                return Spend(Decimal("0.5"), round_up(delta), (LossRule.CROWD,))
        return Spend(Decimal("Infinity"), Decimal(0), (LossRule.NONE,))

    def rho(self, loss: Loss, adjacency: Adjacency) -> Fraction | None:
        return rho_of(loss, adjacency)


def create(address: str) -> Ledger:
    return Ledger(Ledger.create(address).chain, Prices())


def reopen(address: str) -> Ledger:
    return Ledger(Ledger.open(address).chain, Prices())


def guarantee(loss: Loss, unit: Unit | None = None, delta: Number = 0) -> Guarantee:
    return Guarantee(loss, unit or Unit(), BECAUSE, delta=exact(delta))


def pure(epsilon: Number) -> Guarantee:
    return guarantee(Pure(exact(epsilon)))


def approximate(epsilon: Number, delta: Number) -> Guarantee:
    return guarantee(Approximate(exact(epsilon), exact(delta)))


def anonymous(k: int = 5) -> Guarantee:
    return guarantee(Syntactic("k-anonymity", (("k", str(k)),)))


def crowd(k: int = 20) -> Guarantee:
    return guarantee(Crowd(k))


def sampled_crowd(sample: str | None = None) -> Guarantee:
    return guarantee(Sampled(Fraction(1, 10), Crowd(20), sample), delta="1e-9")


@contextmanager
def at_connection(then: Callable[[sqlite3.Connection], object]) -> Iterator[None]:
    """Do something to every connection that a chain in a file opens meanwhile: one for each transaction."""
    connect = SQLite._connect

    def connected(place: SQLite) -> sqlite3.Connection:
        session = connect(place)
        then(session)
        return session

    with (
        patch.object(SQLite, "_connect", connected),
        patch.object(Sessions, "take", lambda _: None),
        patch.object(Sessions, "give", lambda _, session: session.close()),
    ):
        yield


@contextmanager
def tampering(chain: Chain) -> Iterator[Connection]:
    """Open the tables of a chain to a hand that knows how to switch its guards off."""
    place = chain.database
    if isinstance(place, SQLite):
        engine = create_engine(f"sqlite:///{place.path}", poolclass=NullPool)
        guards = "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
    else:
        assert isinstance(place, Postgres)
        engine, guards = place.engine, "SELECT 'SET LOCAL session_replication_role = replica'"
    with engine.begin() as connection:
        for statement in connection.execute(text(guards)).scalars().all():
            connection.execute(text(statement))
        yield connection
