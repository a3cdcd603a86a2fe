"""Ledger: charge or refuse, on disk, before a row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import Any, TypeVar

from incrowd.accounting.budget import Allowance, Amount, AnalystSpending, Budget
from incrowd.accounting.ledger.books import consequence, derive
from incrowd.accounting.ledger.charging import SpentTally
from incrowd.accounting.ledger.datasets import (
    Declaration,
    Sets,
    Values,
    after,
    known_dataset,
    name,
    registered,
    standing_of,
)
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.accounting.ledger.request import (
    Accountant,
    Part,
    Price,
    Request,
    SeriesTerms,
    carving,
    charging,
    of_period,
    opening,
    reading,
    registering,
    repeating,
    signed,
)
from incrowd.accounting.ledger.status import (
    AnalystShare,
    BudgetStatus,
    ChargeWithoutRelease,
    Entry,
    Overview,
    SeriesPrice,
    SeriesStatus,
    overview,
    unfinished,
)
from incrowd.core.guarantee import Guarantee
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter, LedgerCorrupted, Refused
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import Anchor, Key
from incrowd.store.transaction import Reader, Writer, moved_to, require_here
from incrowd.store.verify import ChainReport, verify

_NAME = "ledger"

T = TypeVar("T")


@dataclass(frozen=True)
class Ledger:
    """All guarantees about all datasets, and what they cost; threads can share it.

    Every method that writes is one serializable transaction that checks and writes, committed before it returns.
    Refusals are recorded, too.  incrowd never refunds a charge.

    >>> from fractions import Fraction
    >>> from tempfile import TemporaryDirectory
    >>> from incrowd.core.loss import Pure
    >>> from incrowd.core.unit import Unit
    >>> guarantee = Guarantee(Pure(Fraction(2)), Unit(), ())
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"sqlite:///{folder}/ledger.sqlite")
    ...     _ = ledger.register(Declaration("births", Unit(), Budget.of(3)))
    ...     _ = ledger.charge(guarantee, "births", release="table 1")
    ...     ledger.charge(guarantee, "births", release="table 2")
    Traceback (most recent call last):
    incrowd.errors.BudgetExceeded: this costs epsilon 2; 1 of the budget of 3 remains. ...
    """

    chain: Chain
    price: Price = field(default_factory=Accountant)

    @classmethod
    def create(cls, address: str) -> Ledger:
        """Create the ledger at an address if there is none, and open it."""
        return cls(Chain.create(address, _NAME, SpentTally()))

    @classmethod
    def open(cls, address: str) -> Ledger:
        """Open the ledger at an address; a missing one is an error, never a new ledger."""
        return cls(Chain.open(address, _NAME, SpentTally()))

    @property
    def id(self) -> str:
        """The random id that the ledger got when it was created."""
        return self.chain.read(lambda reader: reader.head.chain)

    @property
    def secret(self) -> bytes:
        """Thirty-two random bytes from the ledger's creation that are never published."""
        first = next(self.chain.links(), None)
        if first is None or "secret" not in first.body:
            raise LedgerCorrupted(
                "the ledger's first entry is not one that this version writes: restore the ledger from a backup."
            )
        return bytes.fromhex(first.body["secret"])

    def register(self, declaration: Declaration) -> BudgetStatus:
        """Register a dataset; the same declaration again changes nothing, another one is refused."""
        return _or_raise(self.chain.transact(lambda writer: register(writer, registering(declaration))))

    def charge(
        self, guarantee: Guarantee, dataset: str, release: str, analyst: str | None = None, account: str | None = None
    ) -> Entry:
        """Record a guarantee and charge its cost to the budget, or refuse it; `release` names what it is for.

        The release is for everyone, or for one analyst.  With an `account` its ρ is charged to that account.
        """
        return self._enter(charging(self.price, [Part(dataset, guarantee, account)], release, analyst))

    def charge_together(
        self,
        guarantees: Mapping[str, Guarantee],
        release: str,
        analyst: str | None = None,
        declared: Sequence[Declaration] = (),
        key: str | None = None,
    ) -> Entry:
        """Charge several datasets for one release that reads them all: every one of them, or none.

        Datasets that are declared with it are registered in the transaction of their first charge.  With a `key`, a
        second charge is refused unless the first one came to nothing.
        """
        request = charging(self.price, list(starmap(Part, guarantees.items())), release, analyst, key)
        return self._enter(replace(request, declared=tuple(declared)))

    def charge_period(
        self,
        guarantees: Mapping[str, Guarantee],
        release: str,
        period: PeriodCharge,
        declared: Sequence[Declaration] = (),
    ) -> Entry:
        """Charge a release of one period to that period; any other release of a dataset is charged to every one."""
        request = charging(self.price, list(starmap(Part, guarantees.items())), release, None)
        return self._enter(replace(of_period(request, period), declared=tuple(declared)))

    def charge_periods(
        self,
        guarantees: Mapping[str, Guarantee],
        release: str,
        labels: Sequence[str],
        analyst: str | None = None,
        declared: Sequence[Declaration] = (),
    ) -> Entry:
        """Charge what reads the rows of some periods alone to each of them; it belongs to no series."""
        request = charging(self.price, list(starmap(Part, guarantees.items())), release, analyst)
        return self._enter(replace(reading(request, tuple(labels)), declared=tuple(declared)))

    def open_series(self, dataset: str, terms: SeriesTerms, declared: Sequence[Declaration] = ()) -> SeriesStatus:
        """Charge all releases of a series at once, if it is not open yet; return how it stands."""
        status = self.series(dataset, terms.name)
        if status is None:
            self._enter(replace(opening(self.price, dataset, terms), declared=tuple(declared)))
            status = self.series(dataset, terms.name)
        if status is None:
            raise LedgerCorrupted("the ledger does not hold the series that was opened.")
        return status

    def preview_series(self, dataset: str, terms: SeriesTerms, declared: Sequence[Declaration] = ()) -> None:
        """Refuse a series that the budget does not cover; nothing is written."""
        request = replace(opening(self.price, dataset, terms), declared=tuple(declared))
        self.chain.read(lambda reader: self._preview(reader, request))

    def series(self, dataset: str, series: str) -> SeriesStatus | None:
        """Return a series that was charged at once; None where there is none of that name."""
        value = self._below(dataset, "series").get((series,))
        return None if value is None else SeriesStatus.from_json(series, value)

    def draw(self, guarantee: Guarantee, dataset: str, release: str, price: SeriesPrice, period: PeriodCharge) -> Entry:
        """Enter one release of a series, which was charged when the series was opened."""
        request = charging(self.price, [Part(dataset, guarantee, series=price)], release, None)
        return self._enter(of_period(request, period))

    def runs(self, dataset: str, series: str) -> dict[str, list[dict[str, str]]]:
        """Return the releases of each period of a series, in the order of their charges: id and policy of each."""
        return {key[1]: value for key, value in self._below(dataset, "run").items() if key[0] == series}

    def spent_by_period(self, dataset: str) -> dict[str, Amount]:
        """Return what was charged to each period of a dataset alone."""
        return {key[0]: Amount.from_json(value["spent"]) for key, value in self._below(dataset, "period").items()}

    def unbounded_periods(self, dataset: str) -> frozenset[str]:
        """Return the periods to which something without an ε was charged."""
        return frozenset(key[0] for key, value in self._below(dataset, "period").items() if value.get("unbounded"))

    def ended(self, dataset: str, series: str) -> bool:
        """Whether a series was closed."""
        return (series,) in self._below(dataset, "ended")

    def _below(self, dataset: str, kind: str) -> dict[Key, Any]:
        """Return the values of a kind that a dataset has, by the rest of their keys."""

        def find(reader: Reader) -> dict[Key, Any]:
            stored = reader.value(("dataset", dataset))
            values = {} if stored is None else reader.values((kind, stored["root"]))
            return {key[2:]: value for key, value in values.items()}

        return self.chain.read(find)

    def end(self, dataset: str, series: str, who: str, why: str) -> Entry:
        """Close a series: nothing more is released in it, and nothing is refunded."""
        return self._enter(signed("end", dataset, {"series": name(series, "a series")}, who, why))

    def conclude(self, charge: Entry, certificate: str | None) -> None:
        """Record the outcome of a charge: the digest of its certificate, or None where nothing was released.

        Every charge gets one, so the number of entries reveals nothing.  A stored answer that is written to a file
        later has a second certificate, and so a second conclusion.
        """
        self.conclude_all([(charge, certificate)])

    def conclude_all(self, conclusions: Sequence[tuple[Entry, str | None]]) -> None:
        """Record the outcomes of several charges, in one transaction."""
        bodies = [
            {"release": charge.body["release"], "charge": charge.sequence, "certificate": certificate}
            for charge, certificate in conclusions
        ]
        self.chain.transact(lambda writer: [enter(writer, Request("conclude", body, ())) for body in bodies])

    def conclusions(self, release: str) -> tuple[str | None, ...]:
        """Return the outcomes of a release: digests of certificates, None for no release; empty while open."""
        return tuple(self.chain.read(lambda reader: reader.value(("concluded", release))) or ())

    def charged_with(self, key: str) -> str | None:
        """Return the id of the last release that was charged with a key; None where there is none."""
        release: str | None = self.chain.read(lambda reader: reader.value(("key", key)))
        return release

    def repeat(self, sequence: int, analyst: str | None) -> None:
        """Give an analyst the answer of an earlier charge; the allowance is charged, the dataset's budget is not.

        The analyst of the earlier charge pays nothing again, and a release for everyone costs nobody anything.
        """
        links = self.chain.read(lambda reader: reader.links(sequence - 1, 1))
        charged = Entry.of(links[0]) if links else None
        if charged is None or charged.kind != "charge":
            raise InvalidParameter("there is no charge with this number in the ledger.")
        if charged.body["analyst"] in (None, analyst):
            return
        request = repeating(charged, analyst)
        if request.datasets:
            _or_raise(self.chain.transact(lambda writer: register(writer, request)))

    def preview(
        self,
        guarantees: Mapping[str, Guarantee],
        analyst: str | None = None,
        declared: Sequence[Declaration] = (),
        period: PeriodCharge | None = None,
        reads: tuple[str, ...] | None = None,
    ) -> tuple[BudgetStatus, ...]:
        """Return the budget status after a charge, or refuse it; nothing is spent or written."""
        parts = list(starmap(Part, guarantees.items()))
        request = reading(of_period(charging(self.price, parts, "preview", analyst), period), reads)
        if request.refusal:
            raise request.refusal
        declaring = replace(request, declared=tuple(declared))
        return self.chain.read(lambda reader: self._preview(reader, declaring))

    def _preview(self, reader: Reader, request: Request) -> tuple[BudgetStatus, ...]:
        require_here(reader, self.chain.database.address)
        return _foreseen(reader.value, self.chain.time(reader), request)

    def carve(self, dataset: str, account: str, rho: Number, delta: Number) -> Entry:
        """Carve out a zero-concentrated account of ρ: its (ε(ρ, δ), δ) is charged at once, then only ρ is counted."""
        return self._enter(carving(self.price, dataset, account, exact(rho, "rho"), exact(delta, "delta")))

    def grant(self, dataset: str, more: Budget, who: str, why: str) -> Entry:
        """Add to a dataset's budget: the only way to change it."""
        return self._enter(signed("grant", dataset, {"budget": more.to_json()}, who, why))

    def allow(self, dataset: str, allowance: Allowance, who: str, why: str) -> Entry:
        """Set how much of a dataset one analyst may use; it replaces an earlier allowance."""
        return self._enter(signed("allow", dataset, {"allowance": allowance.to_json()}, who, why))

    def close(self, dataset: str, who: str, why: str) -> Entry:
        """Close a dataset: nothing more is released from it."""
        return self._enter(signed("close", dataset, {"state": "closed"}, who, why))

    def retire(self, dataset: str, who: str, why: str) -> Entry:
        """Close a dataset and record that its data was destroyed."""
        return self._enter(signed("close", dataset, {"state": "retired"}, who, why))

    def look(self, dataset: str, verb: str) -> Entry:
        """Record a data access by profile, plan, check or assess; also before the dataset is registered."""
        body = {"dataset": name(dataset, "a dataset"), "verb": name(verb, "a verb")}
        return self._enter(Request("look", body, ()))

    def standing(self, dataset: str | Declaration) -> BudgetStatus:
        """Return the budget status of a dataset; of a declaration, the status that it would have once registered."""
        return self.chain.remember(
            ("standing", dataset), lambda reader: standing_of(*_as_declared(reader.value, dataset))
        )

    def analyst(self, dataset: str | Declaration, analyst: str) -> tuple[Amount, Allowance | None]:
        """Return what an analyst has spent of a dataset, and the analyst's allowance if there is one."""
        share = self.share(dataset, analyst)
        return share.spent, share.allowance

    def share(self, dataset: str | Declaration, analyst: str) -> AnalystShare:
        """Return what an analyst has spent of a dataset, in this month too where it is bounded, and the allowance."""

        def find(reader: Reader) -> AnalystShare:
            _, root = _as_declared(reader.value, dataset)
            own, allowance = (reader.value((key, root, analyst)) for key in ("analyst", "allowance"))
            spending = AnalystSpending.from_json(own)
            if spending.month != (month := self.chain.time(reader)[:7]) and spending.month:
                spending = AnalystSpending(spending.spent, month)
            return AnalystShare(root, analyst, spending, Allowance.from_json(allowance) if allowance else None)

        return self.chain.read(find)

    def knows(self, dataset: str) -> bool:
        """Whether a dataset was ever registered here."""
        return self.chain.read(lambda reader: reader.value(("dataset", dataset))) is not None

    def show(self) -> Overview:
        """Return the status of everything."""
        return self.chain.read(overview)

    def unfinished(self) -> tuple[ChargeWithoutRelease, ...]:
        """Return the charges without a release, in order; this reads every entry."""
        lost = unfinished(self.chain.rows())
        links = self.chain.read(lambda reader: [reader.links(number - 1, 1)[0] for number in lost])
        charges = map(Entry.of, links)
        return tuple(map(ChargeWithoutRelease, charges, lost.values()))

    def entry(self, number: int) -> Entry:
        """Return the entry with a number."""
        links = self.chain.read(lambda reader: reader.links(number - 1, 1))
        if not links or links[0].sequence != number:
            raise InvalidParameter("there is no entry with this number in the ledger.")
        return Entry.of(links[0])

    def entries(self, since: int = 0) -> Iterator[Entry]:
        """Yield all entries that follow the one numbered `since`."""
        return map(Entry.of, self.chain.links(since))

    def moved_to(self) -> str | None:
        """Return where the ledger was moved to; None where it is in use."""
        return self.chain.read(moved_to)

    def check(self, *against: Anchor) -> ChainReport:
        """Recompute everything from the first entry, and compare it with the entries that certificates name."""
        return verify(self.chain, derive, against)

    def _enter(self, request: Request) -> Entry:
        return _or_raise(self.chain.transact(lambda writer: enter(writer, request)))


def enter(writer: Writer, request: Request) -> Entry | Refused:
    """Decide inside a transaction: write the request and return the entry, or write that it was refused.

    A refused request registers no dataset: declarations are written with the charge or not at all.
    """
    values: Values = writer.value
    registrations: list[tuple[Request, Sets]] = []
    current = request
    try:
        for declaration in request.declared:
            current = registering(declaration)
            registrations.append((current, _consequence(values, writer.at, current)))
            values = after(values, registrations[-1][1])
        current = request
        sets = _consequence(values, writer.at, request)
    except Refused as refusal:
        return _refused(writer, current, refusal)
    for registration, changes in registrations:
        if changes:
            writer.append(registration.kind, registration.body, changes)
    link = writer.append(request.kind, request.body, sets)
    bare = Entry.of(link)
    return replace(bare, standings=_standings(writer.value, request.datasets, bare.period))


def register(writer: Writer, request: Request) -> BudgetStatus | Refused:
    """Write what is new about a dataset, if anything is, and return its budget status."""
    try:
        sets = _consequence(writer.value, writer.at, request)
    except Refused as refusal:
        return _refused(writer, request, refusal)
    if sets:
        writer.append(request.kind, request.body, sets)
    return _standings(writer.value, request.datasets)[0]


def _consequence(values: Values, at: str, request: Request) -> Sets:
    if request.refusal:
        for dataset in request.datasets:
            known_dataset(values, dataset)
        raise request.refusal
    return consequence(request.kind, at, request.body, values)


def _refused(writer: Writer, request: Request, refusal: Refused) -> Refused:
    answer = {"error": type(refusal).__name__, "reason": str(refusal)}
    writer.append("refused", {"asked": request.kind, "request": request.body, **answer}, {})
    return refusal


def _foreseen(values: Values, at: str, request: Request) -> tuple[BudgetStatus, ...]:
    for declaration in request.declared:
        values = after(values, registered(values, declaration.to_json()))
    return _standings(after(values, consequence(request.kind, at, request.body, values)), request.datasets)


def _as_declared(values: Values, dataset: str | Declaration) -> tuple[Values, str]:
    """Return the values once a declared dataset is registered, and the name under which its budget is stored."""
    if isinstance(dataset, Declaration):
        values, dataset = after(values, registered(values, dataset.to_json())), dataset.dataset
    return values, known_dataset(values, dataset)


def _standings(values: Values, datasets: tuple[str, ...], label: str | None = None) -> tuple[BudgetStatus, ...]:
    roots = dict.fromkeys(known_dataset(values, dataset) for dataset in datasets)
    return tuple(standing_of(values, root, label) for root in roots)


def _or_raise(outcome: T | Refused) -> T:
    if isinstance(outcome, Refused):
        raise outcome
    return outcome
