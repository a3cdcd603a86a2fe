"""Books: what each kind of entry means, as a function of the entries before it.

The same functions decide when an entry is written and recompute it when the ledger is checked: they read the values
that earlier entries set, refuse, or return the values that this entry sets.  They read no clock and no data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from incrowd.accounting.budget import Allowance, Budget
from incrowd.accounting.ledger.charging import carved, charged, repeated, series_opened
from incrowd.accounting.ledger.datasets import Sets, Values, known_dataset, name, registered, terms_of
from incrowd.accounting.ledger.periods import ended
from incrowd.errors import InvalidParameter, Refused, UnsupportedVersion
from incrowd.store.chain_entry import ChainEntry

Body = Mapping[str, Any]


def granted(values: Values, body: Body) -> Sets:
    """Add to the budget of a dataset."""
    root = known_dataset(values, body["dataset"])
    terms = terms_of(values, root)
    if terms.closed:
        raise Refused(f"dataset {root} is {terms.closed}: its budget cannot be extended.")
    more = Budget.from_json(body["budget"])
    budget = more if terms.budget is None else terms.budget.extended(more)
    return {("dataset", root): {"root": root, **replace(terms, budget=budget).to_json()}}


def allowed(values: Values, body: Body) -> Sets:
    """Set how much of a dataset one analyst may use."""
    root = known_dataset(values, body["dataset"])
    allowance = Allowance.from_json(body["allowance"])
    return {("allowance", root, name(allowance.analyst, "an analyst")): allowance.to_json()}


def closed(values: Values, body: Body) -> Sets:
    """Close a dataset, or record that its data was destroyed."""
    root = known_dataset(values, body["dataset"])
    terms = terms_of(values, root)
    state = body["state"]
    if terms.closed in (state, "retired"):
        raise InvalidParameter(f"dataset {root} is already {terms.closed}.")
    return {("dataset", root): {"root": root, **replace(terms, closed=state).to_json()}}


def accessed(values: Values, body: Body) -> Sets:
    """Count a data access, also before the dataset is registered."""
    terms = values(("dataset", body["dataset"]))
    root = terms["root"] if terms else body["dataset"]
    counts = values(("looks", root)) or {}
    return {("looks", root): {**counts, body["verb"]: counts.get(body["verb"], 0) + 1}}


def concluded(values: Values, body: Body) -> Sets:
    """Record the outcome of a charge: the digest of its certificate, or None where nothing was released."""
    key = ("concluded", body["release"])
    return {key: [*(values(key) or ()), body["certificate"]]}


MEANING: dict[str, Callable[[Values, Body], Sets]] = {
    "register": registered,
    "charge": charged,
    "repeat": repeated,
    "carve": carved,
    "series": series_opened,
    "end": lambda values, body: ended(values, known_dataset(values, body["dataset"]), body),
    "grant": granted,
    "allow": allowed,
    "close": closed,
    "look": accessed,
    "conclude": concluded,
    "refused": lambda _values, _body: {},
}


def consequence(kind: str, at: str, body: Body, values: Values) -> Sets:
    """Return what an entry of a kind, written at a time, sets; or refuse it."""
    meaning = MEANING.get(kind)
    if meaning is None:
        raise UnsupportedVersion(
            f"entries of kind {kind!r} are unknown to this version of incrowd: use a newer version."
        )
    return meaning(values, {**body, "at": at})


def derive(link: ChainEntry, values: Values) -> Sets:
    """Return what a stored entry must set, given the values before it."""
    return consequence(link.kind, link.at, link.body, values)
