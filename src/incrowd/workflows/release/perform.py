"""Perform: guarantee, charge, release; the only place where they meet, and the only place that tosses real coins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import pyarrow as pa

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.request import Part, charging
from incrowd.accounting.ledger.status import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Plan
from incrowd.core.steps.consent import gate_of
from incrowd.core.words import short_up
from incrowd.engines.interruption import is_interruption
from incrowd.errors import IncrowdError, InvalidParameter, LedgerUnavailable, Refused, SourceUnreadable
from incrowd.noise.system import SystemCoins
from incrowd.workflows.release.libraries import load_libraries

_STAYS = "the charge stays spent"


class DatasetBond(Protocol):
    """A dataset as it is declared, and what its first charge binds to it."""

    @property
    def declaration(self) -> Declaration:
        """What the ledger is told about the dataset."""

    @property
    def bound(self) -> bool:
        """Whether all is bound already."""

    def bind(self) -> None:
        """Bind it: done before each charge that is not refused."""


@dataclass(frozen=True)
class ChargeTarget:
    """Who pays for what: a dataset, for the release with this id; for everyone, or for one analyst; or an account.

    Where several datasets are read, `guarantees` says what each of them pays for.  `bonds` tell ledger and holder what
    a dataset is, by its first charge.
    """

    dataset: str
    release: str
    analyst: str | None = None
    account: str | None = None
    guarantees: Mapping[str, Guarantee] | None = None
    bonds: tuple[DatasetBond, ...] = ()


@dataclass(frozen=True)
class ExecutedPlan:
    """A plan that was charged and carried out: where the charge is written down, and what came out."""

    plan: Plan
    entry: Entry
    output: Any


def perform(plan: Plan, rows: Any, ledger: Ledger, payer: ChargeTarget) -> ExecutedPlan:
    """Charge what a plan guarantees on disk, and only then read the rows and release.

    The charge is committed before the first row is read and never given back: a crash loses budget, not privacy.
    The coins are the operating system's; there is no parameter by which a caller could bring others.
    """
    gate = gate_of(plan.steps)
    if gate is not None and not gate.settled:
        raise Refused("who consented was not read before this release: nothing is charged or released.")
    load_libraries(plan.method)
    with concluding(ledger, plan, payer):
        entry = _charged(plan, ledger, payer)
        return ExecutedPlan(plan, entry, _released(plan, rows))


def _released(plan: Plan, rows: Any) -> Any:
    try:
        return plan.release(rows, SystemCoins())
    except (pa.ArrowException, UnicodeError):  # a reader's own message may hold values
        raise SourceUnreadable(
            "the rows could not be read to their end: the source is damaged, or holds text that is not valid Unicode."
        ) from None
    except IncrowdError as error:  # a source that changed, a cluster that failed
        raise plan.failure(error) from None


@contextmanager
def concluding(
    ledger: Ledger, plan: Plan, payer: ChargeTarget, published: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Say what stays spent, and write down that nothing came of it, if something fails after the charge.

    It holds around the charge and everything up to the publication: an error, a signal, a full disk, a lost reply to
    the commit.  Whether there was a charge is read from the ledger itself, by the name of the release.  `published`
    says whether all was there already when something failed.
    """
    before = ledger.chain.before()
    try:
        yield
    except BaseException as error:
        if published():
            raise
        told = _told(error, _loss(ledger, plan, payer, before))
        if told is error:
            raise
        raise told from None


def _loss(ledger: Ledger, plan: Plan, payer: ChargeTarget, before: int) -> str | None:
    """Return the sentence about what stays spent, or None if nothing was charged; and conclude the charge."""
    try:
        charge = next((each for each in ledger.entries(before) if _pays(each, payer.release)), None)
        if charge is None:
            return None
        if ledger.conclusions(payer.release)[-1:] != (None,):
            ledger.conclude(charge, None)
        return f"Nothing was {plan.verb}; {_STAYS}: {_amounts(charge.body)}."
    except (LedgerUnavailable, KeyboardInterrupt):  # the ledger is gone, or somebody is impatient
        asked = charging(ledger.price, _parts(plan, payer), payer.release, payer.analyst)
        return (
            f"Nothing was {plan.verb}; if the charge was written, which the ledger did not tell, {_STAYS}: "
            f"{_amounts(asked.body)}."
        )


def _pays(entry: Entry, release: str) -> bool:
    return entry.kind == "charge" and entry.body["release"] == release


def _parts(plan: Plan, payer: ChargeTarget) -> list[Part]:
    guarantees = payer.guarantees or {payer.dataset: plan.guarantee}
    return [Part(dataset, guarantee, payer.account) for dataset, guarantee in guarantees.items()]


def _amounts(body: Mapping[str, Any]) -> str:
    return "; ".join(map(_amount, body["parts"]))


def _amount(part: Mapping[str, Any]) -> str:
    if part["account"] is not None:
        return f"rho {short_up(Decimal(part['rho']), 6)} of account {part['account']} of dataset {part['dataset']}"
    if not Decimal(part["epsilon"]).is_finite():
        return f"dataset {part['dataset']} counts one more release without an epsilon"
    epsilon, delta = (short_up(Decimal(part[name]), 6) for name in ("epsilon", "delta"))
    return f"epsilon {epsilon} and delta {delta} of dataset {part['dataset']}"


def _told(error: BaseException, sentence: str | None) -> BaseException:
    """Return the error with the sentence: in its words if it is one of ours, else as a note that is shown beside it."""
    if sentence is None or _STAYS in " ".join([str(error), *getattr(error, "__notes__", ())]):
        return error
    if isinstance(error, IncrowdError):
        return type(error)(f"{error} {sentence}")
    told = KeyboardInterrupt() if is_interruption(error) and not isinstance(error, KeyboardInterrupt) else error
    told.add_note(sentence)
    return told


def _refused(guarantees: Mapping[str, Guarantee], ledger: Ledger, payer: ChargeTarget) -> bool:
    """Whether the ledger would refuse the charge: then no rows are remembered as those of its datasets."""
    if payer.account is not None:  # an account was carved out of a budget that was paid already
        return False
    try:
        ledger.preview(guarantees, payer.analyst, [bond.declaration for bond in payer.bonds])
    except Refused:
        return True
    return False


def _charged(plan: Plan, ledger: Ledger, payer: ChargeTarget) -> Entry:
    guarantees = payer.guarantees or {payer.dataset: plan.guarantee}
    declared = [bond.declaration for bond in payer.bonds]
    new = [bond for bond in payer.bonds if not bond.bound]
    if new and not _refused(guarantees, ledger, payer):
        for bond in new:
            bond.bind()
    if payer.account is None:
        return ledger.charge_together(guarantees, payer.release, payer.analyst, declared)
    if len(guarantees) > 1:
        raise InvalidParameter("an account belongs to one dataset, and this question reads several.")
    for declaration in declared:
        ledger.register(declaration)
    return ledger.charge(guarantees[payer.dataset], payer.dataset, payer.release, payer.analyst, payer.account)
