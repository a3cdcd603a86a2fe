"""The release board: datasets and what was released of them, what is spent and left, looks, and what expires."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.status import AnalystShare, BudgetStatus, Charged, Entry, Overview
from incrowd.core.words import short_down, short_up
from incrowd.errors import IncrowdError
from incrowd.web.studio.books import FolderLedger, books_of
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.page import Page, PageContent, PageRequest
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.registry import reasons
from incrowd.workflows.series.page import period_band
from incrowd.workflows.series.series import PeriodState, PeriodStatus

_MOST = 200
_NOTHING, _OPEN = "without a release", "not concluded: running, or killed"


def show(request: PageRequest) -> PageContent:
    """Show every ledger of the folder."""
    books = books_of(request)
    folders = _published(request.folder) if books.ledgers else {}
    content = {
        "books": [_book(book, folders) for book in books.ledgers],
        "unread": [{"file": unread.file, "problem": unread.problem} for unread in books.unread],
        "surveys": request.folder.surveys(),
        "most": _MOST,
    }
    return PageContent(content, commands=tuple(book.line for book in books.ledgers) or ("incrowd ledger show",))


def _published(folder: Folder) -> dict[str, str]:
    """Return the folder of each release that lies here, by the digest of its certificate."""
    folders = {}
    for name in folder.releases():
        try:
            folders[read_certificate(folder.release(name)).digest()] = name
        except IncrowdError:  # the verifier says what is wrong with it
            continue
    return folders


def _book(book: FolderLedger, folders: dict[str, str]) -> dict[str, Any]:
    """Return one ledger: how its datasets stand, and the latest of what was charged to each."""
    overview = book.ledger.show()
    charges, outcomes = defaultdict[str, list[tuple[Entry, Charged]]](list), dict[str, str | None]()
    for entry in book.ledger.entries():
        if entry.kind == "conclude":
            outcomes[entry.body["release"]] = entry.body["certificate"]
        for paid in entry.charged:
            charges[overview.shared.get(paid.dataset, paid.dataset)].append((entry, paid))
    datasets = []
    for standing in overview.datasets:
        own = charges[standing.dataset]
        latest = [_release(entry, paid, outcomes, folders) for entry, paid in reversed(own[-_MOST:])]
        periods = _periods(standing, own, outcomes, book)
        datasets.append(_dataset(standing, book, overview) | {"releases": latest, "count": len(own)} | periods)
    return {
        "name": book.name,
        "entries": overview.head.sequence,
        "datasets": datasets,
        "accounts": [account.to_json() for account in overview.accounts],
        "analysts": [_analyst(share) for share in overview.shares],
    }


def _dataset(standing: BudgetStatus, book: FolderLedger, overview: Overview) -> dict[str, Any]:
    budget, left, spent = standing.terms.budget, standing.left, standing.totals.spent
    names = [standing.dataset, *(name for name, root in overview.shared.items() if root == standing.dataset)]
    return {
        "name": standing.dataset,
        "file": next((book.files[name] for name in names if name in book.files), None),
        "shared": names[1:],
        "protects": str(standing.terms.unit),
        "state": standing.terms.closed or "open",
        "unbounded": standing.totals.unbounded,
        "spent": _amount(spent, short_up),
        "budget": None if budget is None else _amount(budget.limit, short_down),
        "left": None if left is None else _amount(left, short_down),
        "used": None if budget is None or left is None else _used(budget.limit, left),
        "looks": dict(sum((Counter(overview.looks.get(name, {})) for name in names), Counter[str]())),
    }


def _periods(
    standing: BudgetStatus, own: list[tuple[Entry, Charged]], outcomes: dict[str, str | None], book: FolderLedger
) -> dict[str, Any]:
    """Return what became of each period of a dataset, with a picture; nothing where it has no periods."""
    calendar = standing.terms.calendar
    if calendar is None:
        return {"periods": None}
    spent = book.ledger.spent_by_period(standing.dataset)
    states = dict.fromkeys(calendar.labels, PeriodState.OPEN)
    for entry, _ in own:
        if entry.period is not None and states.get(entry.period) is not PeriodState.PUBLISHED:
            published = outcomes.get(str(entry.body["release"])) is not None
            states[entry.period] = PeriodState.PUBLISHED if published else PeriodState.MISSING
    band = period_band(tuple(PeriodStatus(label, state, (), spent.get(label)) for label, state in states.items()))
    number = list(states.values()).count
    missing = [label for label, state in states.items() if state is PeriodState.MISSING]
    return {
        "periods": {"all": len(states), "published": number(PeriodState.PUBLISHED), "missing": missing, "band": band}
    }


def _used(limit: Amount, left: Amount) -> dict[str, float | None]:
    """Return which share of ε and δ is gone; None where none was ever given."""

    def gone(whole: Decimal, rest: Decimal) -> float | None:
        return None if not whole else min(1.0, max(0.0, 1 - float(rest / whole)))

    return {"epsilon": gone(limit.epsilon, left.epsilon), "delta": gone(limit.delta, left.delta)}


def _release(entry: Entry, paid: Charged, outcomes: dict[str, str | None], folders: dict[str, str]) -> dict[str, Any]:
    name = str(entry.body["release"])
    certificate = outcomes.get(name)
    state = "certified" if certificate is not None else _NOTHING if name in outcomes else _OPEN
    price = paid if paid.series is None else paid.series
    cost = None if not price.epsilon.is_finite() else _amount(Amount(price.epsilon, price.delta), short_up)
    return {
        "period": entry.period,
        "together": None if paid.series is None else paid.series.releases,
        "entry": entry.sequence,
        "at": entry.at.replace("T", " ")[:19],
        "release": name,
        "analyst": entry.body["analyst"],
        "cost": cost,
        "account": paid.account,
        "rho": None if paid.rho is None else short_up(paid.rho, 6),
        "because": reasons(paid.guarantee),
        "state": state,
        "folder": None if certificate is None else folders.get(certificate),
    }


def _analyst(share: AnalystShare) -> dict[str, Any]:
    allowance = share.allowance
    until = None if allowance is None else allowance.until
    return {
        "dataset": share.dataset,
        "analyst": share.analyst,
        "spent": _amount(share.spent, short_up),
        "allowance": None if allowance is None else _amount(allowance.limit, short_down),
        "month": None if allowance is None or allowance.month is None else short_down(allowance.month, 6),
        "until": None if until is None else until.isoformat(),
        "expired": until is not None and until < datetime.now(UTC).date(),
    }


def _amount(amount: Amount, rounded: Any) -> dict[str, str]:
    return {"epsilon": rounded(amount.epsilon, 6), "delta": rounded(amount.delta, 6)}


PAGE = Page(
    "board",
    "Release board",
    "Every dataset of this folder: its releases, their cost, the remaining budget, and data access.",
    show,
)
