"""Perform: promise, charge, release; the only place where they meet, and the only place that tosses real coins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.standing import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Plan
from incrowd.errors import IncrowdError, InvalidParameter, SourceUnreadable
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.sources import Bond


@dataclass(frozen=True)
class Payer:
    """Who pays for what: a dataset, for the release with this id; for everyone, or for one analyst; or an account.

    Where several datasets are read, `promises` says what each of them pays for.  `bonds` tell ledger and holder what a
    dataset is, by its first charge.
    """

    dataset: str
    release: str
    analyst: str | None = None
    account: str | None = None
    promises: Mapping[str, Guarantee] | None = None
    bonds: tuple[Bond, ...] = ()


@dataclass(frozen=True)
class Performed:
    """A plan that was charged and carried out: where the charge is written down, and what came out."""

    plan: Plan
    entry: Entry
    output: Any


def perform(plan: Plan, rows: Any, ledger: Ledger, payer: Payer) -> Performed:
    """Charge what a plan promises on disk, and only then read the rows and release.

    The charge is committed before the first row is read and never given back: a crash loses budget, not privacy.
    The coins are the operating system's; there is no parameter by which a caller could bring others.
    """
    entry = _charged(plan, ledger, payer)
    with concluding(ledger, entry):
        try:
            output = plan.release(rows, SystemCoins())
        except (pa.ArrowException, UnicodeError):  # a reader's own message may hold values
            raise SourceUnreadable(
                "the rows could not be read to their end: the source is damaged, or holds text that is not valid "
                f"Unicode. Nothing was {plan.verb}; the charge stays spent."
            ) from None
        except IncrowdError as error:  # a source that changed, a cluster that failed
            raise plan.failure(error) from None
    return Performed(plan, entry, output)


@contextmanager
def concluding(ledger: Ledger, entry: Entry) -> Iterator[None]:
    """Write down that nothing came of a charge if what follows it fails, whatever the reason."""
    try:
        yield
    except BaseException:
        ledger.conclude(entry, None)
        raise


def _charged(plan: Plan, ledger: Ledger, payer: Payer) -> Entry:
    promises = payer.promises or {payer.dataset: plan.promise}
    declared = [bond.declaration for bond in payer.bonds]
    for bond in payer.bonds:
        bond.bind()
    if payer.account is None:
        return ledger.charge_together(promises, payer.release, payer.analyst, declared)
    if len(promises) > 1:
        raise InvalidParameter("an account belongs to one dataset, and this question reads several.")
    for declaration in declared:
        ledger.register(declaration)
    return ledger.charge(promises[payer.dataset], payer.dataset, payer.release, payer.analyst, payer.account)
