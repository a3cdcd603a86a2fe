"""Perform: promise, charge, release; the only place where they meet, and the only place that tosses real coins."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from incrowd.accounting.bookkeeping.entry import Entry
from incrowd.accounting.ledger import Ledger
from incrowd.core.guarantee import Guarantee
from incrowd.core.table import Table
from incrowd.errors import IncrowdError, SourceUnreadable
from incrowd.methods.method import Method
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.noise.system import SystemCoins


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


def _released(method: Method, table: Table) -> Outcome | None:
    """Return what is released, or None if the rows cannot be read; a reader's own message may hold values."""
    try:
        return method.release(table, SystemCoins())
    except (pa.ArrowException, UnicodeError):
        return None
    except IncrowdError as error:  # a source that changed, a cluster that failed: whoever reads it must know the price
        raise type(error)(f"{error} Nothing was released; the charge stays spent.") from None
