"""Series: the releases of a policy with periods: what each costs, which were published, and which are missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.periods import PeriodCharge, changed_policy
from incrowd.accounting.ledger.status import Entry, SeriesPrice
from incrowd.core.certificate import Certificate
from incrowd.engines.regular_file import is_regular
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.verifier.files import CERTIFICATE, file_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.ledger import declaration_of, find_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.differences import published_release
from incrowd.workflows.release.keyed import alone_with
from incrowd.workflows.release.prepare import load_for, series_terms
from incrowd.workflows.release.recover import deliver_hidden, hidden_releases
from incrowd.workflows.release.tables import ReleaseTerms, release_to


class PeriodState(StrEnum):
    """What became of a period."""

    OPEN = "not released"
    PUBLISHED = "published"
    MISSING = "missing"
    """Its rows were opened and nothing was delivered: it is lost, and its charge is not refunded."""


@dataclass(frozen=True)
class PeriodStatus:
    """One period of a series: its state, the releases that were charged for it, and what the period spent alone."""

    label: str
    state: PeriodState
    releases: tuple[str, ...] = ()
    spent: Amount | None = None
    certificate: str | None = None
    bounded: bool = True
    """Whether all that was charged to it has an ε."""

    @property
    def alone(self) -> Amount | None:
        """What was charged to the period itself; None where nothing was, but with its series or for all periods."""
        return None if self.spent is None or (self.bounded and self.spent == Amount()) else self.spent

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        spent = None if self.spent is None else self.spent.to_json()
        if spent is not None and not self.bounded:
            spent["epsilon"] = "Infinity"
        return {
            "period": self.label,
            "state": str(self.state),
            "releases": list(self.releases),
            "spent": spent,
            "certificate": self.certificate,
        }


@dataclass(frozen=True)
class Series:
    """A policy with periods, and the ledger that its releases are charged to; None where none was made yet."""

    policy: Policy
    ledger: Ledger | None

    @classmethod
    def of(cls, policy: Policy) -> Series:
        """Return the series of a policy, or refuse a policy without periods."""
        if policy.calendar is None:
            raise InvalidParameter("this policy has no periods: add period: with a column, every, first and last.")
        series = cls(policy, find_book(policy))
        owner = series._owner()
        if owner is not None:
            raise InvalidParameter(
                f"series {series.name} is one of dataset {owner}, which has the same people: a series is of one "
                "dataset. Nothing was charged. Give this one another name: series: under period:."
            )
        return series

    def _owner(self) -> str | None:
        """Return another dataset of the same people that has a series of this name; None where there is none."""
        ledger, name, partner = self.ledger, self.policy.name, self.policy.section.dataset.same_people_as
        if ledger is None:
            return None
        dataset = next((one for one in (name, partner) if one is not None and ledger.knows(one)), None)
        if dataset is None or not (ledger.runs(dataset, self.name) or ledger.series(dataset, self.name)):
            return None
        shared = ledger.show().shared
        root = shared.get(dataset, dataset)
        family = {root, *(one for one, budget in shared.items() if budget == root)}
        if family == {name}:
            return None
        first = next((one for entry in ledger.entries() for one in _of_series(entry, self.name) if one in family), name)
        return None if first == name else first

    @property
    def name(self) -> str:
        section = self.policy.section.period
        return "periods" if section is None else section.series

    @property
    def labels(self) -> tuple[str, ...]:
        """All periods of the policy, in order."""
        return () if self.policy.calendar is None else self.policy.calendar.labels

    @property
    def closed(self) -> bool:
        """Whether nothing more is released in it."""
        return self.ledger is not None and self.ledger.ended(self.policy.name, self.name)

    def status(self) -> tuple[PeriodStatus, ...]:
        """Return what became of each period: the policy's, and those that only the ledger knows."""
        ledger, name = self.ledger, self.policy.name
        if ledger is None or not ledger.knows(name):
            return tuple(PeriodStatus(label, PeriodState.OPEN) for label in self.labels)
        runs, spent = ledger.runs(name, self.name), ledger.spent_by_period(name)
        labels, unbounded = dict.fromkeys((*self.labels, *sorted(runs))), ledger.unbounded_periods(name)
        states = [self._status(ledger, label, runs.get(label, []), spent.get(label)) for label in labels]
        return tuple(replace(state, bounded=state.label not in unbounded) for state in states)

    def _status(self, ledger: Ledger, label: str, runs: list[dict[str, str]], spent: Amount | None) -> PeriodStatus:
        ids = tuple(run["release"] for run in runs)
        digests = [digest for id_ in ids for digest in ledger.conclusions(id_)[-1:] if digest is not None]
        state = PeriodState.PUBLISHED if digests else PeriodState.MISSING if ids else PeriodState.OPEN
        return PeriodStatus(label, state, ids, spent, digests[-1] if digests else None)

    def price(self) -> SeriesPrice | None:
        """Return what all releases cost together, where they are charged at once; None where each is charged."""
        terms = series_terms(self.policy, self.policy.plan)
        if terms is None:
            return None
        opened = None if self.ledger is None else self.ledger.series(self.policy.name, self.name)
        if opened is not None:
            return opened.price
        from incrowd.accounting.accountant import charge_of

        spend = charge_of(terms.whole.loss, terms.whole.delta, terms.whole.unit.adjacency)
        return SeriesPrice(terms.name, terms.periods + terms.spare, spend.epsilon, spend.delta, spend.rule)

    @property
    def opened(self) -> bool:
        """Whether the whole series was charged already."""
        return self.ledger is not None and self.ledger.series(self.policy.name, self.name) is not None

    def refusal(self) -> str | None:
        """Return why the ledger would refuse the next release; None where it would not."""
        if self.closed:
            return f"series {self.name} is closed."
        ledger, declared = self.ledger, [declaration_of(self.policy)]
        following = next((period.label for period in self.status() if period.state is PeriodState.OPEN), None)
        if ledger is None or following is None:
            return None
        terms = series_terms(self.policy, self.policy.plan)
        try:
            if terms is None:
                charge = self.charge(following, again=False)
                ledger.preview({self.policy.name: self.policy.plan.guarantee}, None, declared, charge)
            elif (opened := ledger.series(self.policy.name, self.name)) is None:
                ledger.preview_series(self.policy.name, terms, declared)
            elif opened.policy != self.policy.hash:
                return changed_policy(self.name)
        except Refused as error:
            return str(error)
        return None

    def charge(self, label: str, *, again: bool) -> PeriodCharge:
        """Return what the ledger is told of the period of a release."""
        span = None if self.policy.calendar is None else self.policy.calendar.span(label)
        return PeriodCharge(label, self.name, self.policy.hash, span, again)


def _of_series(entry: Entry, series: str) -> Iterator[str]:
    """Yield the datasets of an entry that opens a series of this name, or releases a period of one."""
    if entry.kind == "series" and entry.body["series"] == series:
        yield entry.body["dataset"]
    elif entry.kind == "charge" and (entry.body.get("period") or {}).get("series") == series:
        yield from (part["dataset"] for part in entry.body["parts"])


@dataclass(frozen=True)
class SeriesRun:
    """What one run of a period came to: a new release, or the one that was published before."""

    label: str
    folder: Path | None
    certificate: Certificate
    release: PublishedRelease | None = None

    @property
    def new(self) -> bool:
        return self.release is not None


@dataclass(frozen=True)
class RunTerms:
    """How periods are run: `again` releases one again, charged in sequence; `anyway` one that is probably empty."""

    again: bool = False
    anyway: bool = False


ONCE = RunTerms()


def run_period(data: object, policy: Policy, label: str, destination: Destination, terms: RunTerms = ONCE) -> SeriesRun:
    """Release one period into a folder, or return what was published of it: nothing is drawn or charged twice.

    A period whose rows were opened and whose release was not delivered is missing.  It is released again only where
    that is asked for, and charged in sequence; in a series that was charged at once, only with a spare run.
    """
    read = load_for(policy, data)
    with _one_at_a_time(Series.of(read)):
        return _run_period(data, read, label, destination, terms)


@contextmanager
def _one_at_a_time(series: Series) -> Iterator[None]:
    """Run one period at a time where people are listed: whom the next one may count depends on who was in this."""
    if not series.policy.lists_people:
        yield
        return
    key = hashlib.sha256(json.dumps(["incrowd series", series.policy.name, series.name]).encode()).hexdigest()
    with alone_with(series.policy, series.ledger, key, f"a period of series {series.name}"):
        yield


def _run_period(data: object, read: Policy, label: str, destination: Destination, terms: RunTerms) -> SeriesRun:
    series = Series.of(read)  # once it is alone: what it reads of the ledger stays so
    chosen = read.at(label)
    delivered = _deliver_hidden(series, destination.place)
    status = next(period for period in series.status() if period.label == label)
    if status.state is PeriodState.PUBLISHED and not terms.again:
        return _published(series, status, destination.place)
    if status.state is PeriodState.MISSING and not terms.again:
        raise Refused(_missing(series, status))
    if delivered is not None:
        raise Refused(f"period {label} was published before, and its files are in place again: nothing was charged.")
    charge = series.charge(label, again=bool(status.releases))
    made = release_to(data, chosen, destination, None, ReleaseTerms(anyway=terms.anyway, period=charge))
    return SeriesRun(label, made.folder, made.release.certificate, made)


def _missing(series: Series, status: PeriodStatus) -> str:
    way = (
        "The plan priced spare runs: --again draws one."
        if (section := series.policy.section.period) is not None and section.spare
        else "Later periods go on without it."
        if series.policy.releases is not None
        else "--again releases it again, charged in sequence."
    )
    return (
        f"period {status.label} is missing: its rows were opened and nothing was delivered, unless another process "
        f"still runs. Its charge is not refunded. Nothing was charged now. {way}"
    )


def _deliver_hidden(series: Series, folder: Path) -> Certificate | None:
    """Put a release in place that a kill hid there: it is the one outcome that the ledger names, and costs nothing."""
    hidden = hidden_releases(series.policy, series.ledger)
    if any(release.target == folder.resolve() for release in hidden):
        return deliver_hidden(series.policy, folder)
    return None


def _published(series: Series, status: PeriodStatus, folder: Path) -> SeriesRun:
    """Return what was published of a period: from its folder, or from where it was published first."""
    ledger = series.ledger
    if ledger is None:
        raise AssertionError("a published period has a ledger")
    policies = {run["release"]: run["policy"] for run in ledger.runs(series.policy.name, series.name)[status.label]}
    for id_ in reversed(status.releases):
        earlier = published_release(series.policy, ledger, id_)
        places = [place for place in (folder, earlier.folder) if place is not None and (place / CERTIFICATE).is_file()]
        for place in places:
            certificate = _certificate(place)
            if certificate is None or certificate.digest() != status.certificate:
                continue
            if any(
                not is_regular(place / file.name) or file_of(place / file.name) != file for file in certificate.outputs
            ):
                continue
            if policies[certificate.id] != series.policy.hash:
                raise Refused(
                    f"period {status.label} was published under another version of the policy. Nothing was charged. "
                    "Change the policy back to have what was published, or release again with --again, charged in "
                    "sequence."
                )
            return SeriesRun(status.label, place, certificate)
    raise Refused(
        f"period {status.label} was published (certificate {status.certificate}), and its files are not where they "
        "were, or no longer what they were. Nothing was charged, and nothing is drawn again: put them back."
    )


def _certificate(folder: Path) -> Certificate | None:
    try:
        return read_certificate(folder)
    except IncrowdError:
        return None


@dataclass(frozen=True)
class SeriesPlaces:
    """Where periods are released, each into a folder of its name, up to a last one."""

    out: Path
    until: str | None = None
    make: Callable[[Path], Destination] = Destination
    anyway: bool = False


def run_series(data: object, policy: Policy, places: SeriesPlaces) -> Iterator[SeriesRun | PeriodStatus]:
    """Release every open period up to one, in order; missing ones are passed over.

    A period without rows is released and charged like any other.  Nothing depends on where a published period is now,
    unless a kill left it hidden beside its folder: then it is put in place.
    """
    series = Series.of(load_for(policy, data))
    labels, until, terms = series.labels, places.until, RunTerms(anyway=places.anyway)
    last = len(labels) - 1 if until is None else labels.index(series.policy.at(until).period or "")
    states = {period.label: period for period in series.status()}
    hidden = {release.target for release in hidden_releases(series.policy, series.ledger)}
    for label in labels[: last + 1]:
        folder = places.out / label
        released = states[label].state is not PeriodState.OPEN and folder.resolve() not in hidden
        yield states[label] if released else run_period(data, policy, label, places.make(folder), terms)


def close_series(policy: Policy, who: str, why: str) -> None:
    """Close the series of a policy: nothing more is released in it, and nothing is refunded."""
    series = Series.of(policy)
    if series.ledger is None or not series.ledger.knows(policy.name):
        raise InvalidParameter("nothing of this series was released: there is nothing to close.")
    series.ledger.end(policy.name, series.name, who, why)
