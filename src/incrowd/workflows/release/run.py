"""Run: the one road of every release: open the rows, charge and release, certify, deliver, conclude the charge.

Tables, frames in memory, graphs, surveys and queries all take it.  They differ in how their rows are opened and in
where the output is delivered, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.core.certificate import Certificate, Columns, Dataset
from incrowd.core.plan import Output, Plan
from incrowd.workflows.events import step
from incrowd.workflows.release.certify import PlanFacts, certify
from incrowd.workflows.release.perform import ChargeTarget, DatasetBond, ExecutedPlan, performing


@dataclass(frozen=True, eq=False)
class ReleaseOrder:
    """A release before a row is read: its plan, the facts that its id binds, and what it is charged to.

    `dataset` is what the certificate says about the input.  `columns` returns the columns that it names for an output.
    """

    plan: Plan
    facts: PlanFacts
    target: ChargeTarget
    dataset: Dataset
    columns: Callable[[Output], Columns]

    @property
    def id(self) -> str:
        return self.target.release


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """Rows that can be released, the ledger that is charged, and what the first charge binds."""

    rows: Any
    ledger: Ledger
    bonds: tuple[DatasetBond, ...]
    commitment: str | None

    def conclude(self, charge: Entry, certificate: str | None) -> None:
        """Enter the outcome of a charge: the digest of a certificate, or None where nothing was released."""
        self.ledger.conclude(charge, certificate)


R = TypeVar("R", bound=OpenedRows)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, eq=False)
class PendingRelease(Generic[R]):
    """A release that was charged and carried out, and that nobody can see yet."""

    order: ReleaseOrder
    opened: R
    executed: ExecutedPlan

    @property
    def output(self) -> Any:
        return self.executed.output


@dataclass(frozen=True)
class Delivered(Generic[T_co]):
    """What was delivered: the certificate as it was written, None where an earlier one serves; and the reply to it."""

    certificate: Certificate | None
    reply: T_co


class Delivery(Protocol[R, T_co]):
    """Where an output goes."""

    def appeared(self) -> bool:
        """Whether others can see the release already."""

    def deliver(self, made: PendingRelease[R], certificate: Certificate) -> AbstractContextManager[Delivered[T_co]]:
        """Write the output beside its place; it appears when the block ends."""


def run(order: ReleaseOrder, open_rows: Callable[[], AbstractContextManager[R]], delivery: Delivery[R, T]) -> T:
    """Release what was ordered, or nothing at all; a failure after the charge is concluded once as "no release"."""
    with pending(order, open_rows, delivery.appeared) as made:
        return finish(made, delivery)


@contextmanager
def pending(
    order: ReleaseOrder,
    open_rows: Callable[[], AbstractContextManager[R]],
    appeared: Callable[[], bool] = lambda: False,
) -> Iterator[PendingRelease[R]]:
    """Open the rows, charge, and release; the output is delivered before the block ends."""
    with ExitStack() as stack:
        with step("open", release=order.id):
            opened = stack.enter_context(open_rows())
        target = replace(order.target, bonds=opened.bonds)
        with performing(order.plan, opened.rows, opened.ledger, target, appeared) as executed:
            yield PendingRelease(order, opened, executed)


def finish(made: PendingRelease[R], delivery: Delivery[R, T]) -> T:
    """Certify a release, deliver it, and conclude its charge with the digest of its certificate."""
    order, executed = made.order, made.executed
    dataset = replace(order.dataset, commitment=made.opened.commitment)
    certificate = certify(order.id, order.facts, executed, dataset, order.columns(made.output))
    with ExitStack() as stack:
        with step("stage", release=order.id):
            delivered = stack.enter_context(delivery.deliver(made, certificate))
        written = delivered.certificate
        with step("conclude", release=order.id) as facts:
            digest = None if written is None else written.digest()
            made.opened.conclude(executed.entry, digest)
            facts["certificate"] = digest or "none"
        publishing = stack.pop_all()
    with step("publish", release=order.id):
        publishing.close()
    return delivered.reply
