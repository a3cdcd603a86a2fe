"""Perform: promise, charge, release; the only place where they meet, and the only place that tosses real coins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.accounting.ledger.entry import Entry
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.guarantee import Guarantee
from incrowd.core.table import Table
from incrowd.errors import (
    IncrowdError,
    InvalidParameter,
    MixedUnits,
    QuestionFailed,
    Refused,
    SourceUnreadable,
    UnknownColumn,
)
from incrowd.methods.method import Method
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.noise.system import SystemCoins

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.engines.sql.engine import Asked
    from incrowd.queries.answer import Answer
    from incrowd.queries.measurement import Measurement


_ABOUT_QUESTIONS = (Refused, InvalidParameter, MixedUnits, UnknownColumn)
"""Errors whose words whoever asks may read, because they are about the question; after the charge none of them is."""


@dataclass(frozen=True)
class Performed:
    """A promise that was charged and kept: what was promised, where that is written down, and what came out."""

    promise: Guarantee
    entry: Entry
    outcome: Outcome


def perform(method: Method, table: Table, ledger: Ledger, dataset: str, release: str) -> Performed:
    """Promise from the schema, charge the promise on disk, and only then read the rows.

    The charge is committed before the first row is read and never given back: a crash loses budget, not privacy.
    The coins are the operating system's; there is no parameter by which a caller could bring others.
    """
    promise = method.guarantee(table.schema)
    entry = ledger.charge(promise, dataset, release)
    outcome = _released(method, table)
    if outcome is None:
        raise SourceUnreadable(
            "the rows could not be read to their end: the source is damaged, or holds text that is not valid Unicode. "
            "Nothing was released; the charge stays spent."
        )
    return Performed(promise, entry, outcome)


@dataclass(frozen=True)
class Payment:
    """Who pays for a question: every private dataset that it reads, for everyone or for one analyst; or an account."""

    promises: Mapping[str, Guarantee]
    release: str
    analyst: str | None = None
    account: str | None = None


def perform_questions(
    measurements: Sequence[Measurement], warehouse: Asked, ledger: Ledger, payment: Payment
) -> tuple[Entry, tuple[Answer, ...]]:
    """Charge what questions promise to every dataset at once, and only then read the rows and answer them.

    As for any release, the charge is never given back, and the coins are the operating system's.
    """
    entry, coins = _charged(ledger, payment), SystemCoins()
    try:
        answers = [_answered(each, warehouse, coins) for each in measurements]
    except IncrowdError as error:
        kind = QuestionFailed if isinstance(error, _ABOUT_QUESTIONS) else type(error)
        raise kind(f"{error} Nothing was answered; the charge stays spent.") from None
    return entry, tuple(answers)


def _answered(measured: Measurement, warehouse: Asked, coins: Coins) -> Answer:
    """Collect the statistics of a question, all of them from one secret sample if it asks for one, and answer it."""
    from incrowd.engines.sql.engine import Drawn

    rate = measured.terms.rate
    drawn = None if rate is None else Drawn(measured.question.tables[0], coins.sample(rate))
    return measured.answer(tuple(warehouse.collect(query, drawn) for query in measured.statistics), coins)


def _charged(ledger: Ledger, payment: Payment) -> Entry:
    if payment.account is None:
        return ledger.charge_together(payment.promises, payment.release, payment.analyst)
    if len(payment.promises) > 1:
        raise InvalidParameter("an account belongs to one dataset, and this question reads several.")
    ((dataset, promise),) = payment.promises.items()
    return ledger.charge(promise, dataset, payment.release, payment.analyst, payment.account)


def _released(method: Method, table: Table) -> Outcome | None:
    """Return what is released, or None if the rows cannot be read; a reader's own message may hold values."""
    try:
        return method.release(table, SystemCoins())
    except (pa.ArrowException, UnicodeError):
        return None
    except IncrowdError as error:  # a source that changed, a cluster that failed: whoever reads it must know the price
        raise type(error)(f"{error} Nothing was released; the charge stays spent.") from None
