"""Perform: charge a plan, then release; the only place where guarantee, charge and randomness meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.accounting.ledger.request import Part, SeriesTerms, charging
from incrowd.accounting.ledger.status import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Output, Plan
from incrowd.core.steps.around import gate_of
from incrowd.core.words import short_up
from incrowd.engines.interruption import is_interruption
from incrowd.errors import IncrowdError, InvalidParameter, LedgerUnavailable, NotRefunded, Refused, SourceUnreadable
from incrowd.noise.system import SystemCoins
from incrowd.workflows.events import step
from incrowd.workflows.release.libraries import load_libraries


class DatasetBond(Protocol):
    """A dataset as its policy declares it, and what its first charge binds to it."""

    @property
    def declaration(self) -> Declaration:
        """What the ledger learns about the dataset."""

    @property
    def bound(self) -> bool:
        """Whether everything is bound already."""

    def bind(self) -> None:
        """Bind it: done before each charge that is not refused."""


@dataclass(frozen=True)
class ChargeTarget:
    """What a release is charged to: a dataset, for everyone or for one analyst, or an account of the dataset.

    `release` is the id under which the ledger enters the charge.  Where a query reads several datasets, `guarantees`
    holds the guarantee that each of them is charged for.  `bonds` are declared to the ledger with the first charge.
    A release of one `period` is charged to that; one of a `series` was charged with all others, at the first period.
    A query that `reads` the rows of some periods alone is charged to each of them.
    With a `key`, the ledger charges once, however often the release is tried.
    """

    dataset: str
    release: str
    analyst: str | None = None
    account: str | None = None
    guarantees: Mapping[str, Guarantee] | None = None
    bonds: tuple[DatasetBond, ...] = ()
    period: PeriodCharge | None = None
    series: SeriesTerms | None = None
    key: str | None = None
    reads: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ExecutedPlan:
    """A plan that was charged and carried out: the ledger entry of its charge, and its output."""

    plan: Plan
    entry: Entry
    output: Output


def _never() -> bool:
    return False


@contextmanager
def performing(
    plan: Plan, rows: Any, ledger: Ledger, target: ChargeTarget, appeared: Callable[[], bool] = _never
) -> Iterator[ExecutedPlan]:
    """Charge and release; whatever fails before the block ends is concluded once as "no release".

    The charge is committed before the first row is read and is never refunded: a crash loses budget, not privacy.  The
    randomness comes from the operating system; no parameter accepts another source.

    Whatever fails (an error, a signal, a full disk, a lost reply to the commit) then says that the charge is not
    refunded.  The ledger itself tells whether there was a charge, by the id of the release.  `appeared` tells whether
    the release was published when something failed: then nothing is lost.
    """
    gate = gate_of(plan.steps)
    if gate is not None and not gate.settled:
        raise Refused("the consent registry was not read before this release: nothing is charged or released.")
    load_libraries(plan.method)
    before = ledger.chain.before()
    try:
        with step("charge", release=target.release, dataset=target.dataset) as facts:
            entry = _charge(plan, ledger, target)
            facts["entry"] = entry.sequence
        with step("release", release=target.release, method=plan.method):
            output = _release(plan, rows)
        yield ExecutedPlan(plan, entry, output)
    except BaseException as error:
        sentence = None if appeared() else _conclude(plan, ledger, target, before)
        if sentence is None:
            raise
        raise _explained(error, sentence) from None


def _charge(plan: Plan, ledger: Ledger, target: ChargeTarget) -> Entry:
    guarantees = target.guarantees or {target.dataset: plan.guarantee}
    declarations = [bond.declaration for bond in target.bonds]
    if target.series is not None and target.period is not None:
        return _draw(plan, ledger, target, target.series, target.period)
    new = [bond for bond in target.bonds if not bond.bound]
    if new and not _would_refuse(guarantees, ledger, target):
        for bond in new:
            bond.bind()
    if target.account is None:
        if target.period is not None:
            return ledger.charge_period(guarantees, target.release, target.period, declarations)
        if target.reads is not None:
            return ledger.charge_periods(guarantees, target.release, target.reads, target.analyst, declarations)
        return ledger.charge_together(guarantees, target.release, target.analyst, declarations, target.key)
    if len(guarantees) > 1:
        raise InvalidParameter("an account belongs to one dataset, and this query reads several.")
    for declaration in declarations:
        ledger.register(declaration)
    return ledger.charge(guarantees[target.dataset], target.dataset, target.release, target.analyst, target.account)


def _draw(plan: Plan, ledger: Ledger, target: ChargeTarget, terms: SeriesTerms, period: PeriodCharge) -> Entry:
    """Open the series, if this is its first release, and enter the release; rows are read after both."""
    status = ledger.open_series(target.dataset, terms, [bond.declaration for bond in target.bonds])
    for bond in target.bonds:
        if not bond.bound:
            bond.bind()
    return ledger.draw(plan.guarantee, target.dataset, target.release, status.price, period)


def _would_refuse(guarantees: Mapping[str, Guarantee], ledger: Ledger, target: ChargeTarget) -> bool:
    """Whether the ledger would refuse the charge: then no rows are remembered as those of its datasets."""
    if target.account is not None:  # its budget was charged when the account was carved out
        return False
    try:
        declared = [bond.declaration for bond in target.bonds]
        ledger.preview(guarantees, target.analyst, declared, target.period, target.reads)
    except Refused:
        return True
    return False


def _release(plan: Plan, rows: object) -> Output:
    try:
        return plan.release(rows, SystemCoins())
    except (pa.ArrowException, UnicodeError):  # a reader's own message may hold values
        raise SourceUnreadable(
            "the rows could not be read to their end: the source is damaged, or holds text that is not valid Unicode."
        ) from None
    except IncrowdError as error:  # a source that changed, a cluster that failed
        raise plan.failure(error) from None


def _conclude(plan: Plan, ledger: Ledger, target: ChargeTarget, before: int) -> NotRefunded | None:
    """Conclude the charge as "no release", and return what is not refunded; None where nothing was charged."""
    try:
        charge = next((entry for entry in ledger.entries(before) if _charges(entry, target.release)), None)
        if charge is None:
            return None
        if ledger.conclusions(target.release)[-1:] != (None,):
            ledger.conclude(charge, None)
        return NotRefunded(f"Nothing was {plan.verb}; the charge is not refunded: {_amounts(charge.body)}.")
    except (LedgerUnavailable, KeyboardInterrupt):  # the ledger is gone, or the user interrupts again
        guarantees = target.guarantees or {target.dataset: plan.guarantee}
        parts = [Part(dataset, guarantee, target.account) for dataset, guarantee in guarantees.items()]
        request = charging(ledger.price, parts, target.release, target.analyst)
        return NotRefunded(
            f"Nothing was {plan.verb}; the ledger did not say whether it holds the charge. If it does, the charge is "
            f"not refunded: {_amounts(request.body)}."
        )


def _charges(entry: Entry, release: str) -> bool:
    return entry.kind == "charge" and entry.body["release"] == release


def _amounts(body: Mapping[str, Any]) -> str:
    return "; ".join(map(_amount, body["parts"]))


def _amount(part: Mapping[str, Any]) -> str:
    if part.get("series") is not None:
        return f"one of the {part['series']['releases']} releases of series {part['series']['name']}"
    if part["account"] is not None:
        return f"rho {short_up(Decimal(part['rho']), 6)} of account {part['account']} of dataset {part['dataset']}"
    if not Decimal(part["epsilon"]).is_finite():
        return f"dataset {part['dataset']} counts one more release without an epsilon"
    epsilon, delta = (short_up(Decimal(part[name]), 6) for name in ("epsilon", "delta"))
    return f"epsilon {epsilon} and delta {delta} of dataset {part['dataset']}"


def _explained(error: BaseException, sentence: NotRefunded) -> BaseException:
    """Return the error with the sentence: in its message if it is one of ours, else as a note."""
    if isinstance(error, IncrowdError):
        return type(error)(f"{error} {sentence}")
    if is_interruption(error) and not isinstance(error, KeyboardInterrupt):
        error = KeyboardInterrupt()
    error.add_note(sentence)
    return error
