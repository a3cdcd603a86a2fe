"""Consequences: what each entry of the book of access sets, given the entries before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from incrowd.errors import InvalidParameter, UnsupportedVersion
from incrowd.governance.access.grant import Grant
from incrowd.store.link import Key, Link

Sets = dict[Key, Any]
Values = Callable[[Key], Any]


def derive(link: Link, values: Values) -> Sets:
    """Return what an entry must set; the check of the book compares it with what it sets."""
    return consequence(link.kind, link.body, values)


def consequence(kind: str, body: Mapping[str, Any], values: Values) -> Sets:
    """Return the keys that an entry sets.

    A grant is found by its id, and its id by the fingerprint of its token.  A fingerprint once given out keeps pointing
    to its grant; whether it still works is the grant's to say.
    """
    match kind:
        case "granted":
            new = Grant.from_json(body["grant"])
            return _pointing(new)
        case "rotated":
            until = datetime.fromisoformat(body["until"])
            return _pointing(replace(known(body["id"], values), fingerprint=body["fingerprint"], until=until))
        case "revoked":
            return _ended([body["id"]], values)
        case "password":
            return _ended(body.get("ids", ()), values) | {("password", body["holder"]): {**body}}
        case "dismissed":
            return _ended(body["ids"], values) | {("password", body["holder"]): None}
        case "remembered":
            return {("book", body["book"]): body["name"]}
    raise UnsupportedVersion("the book of access holds an entry that this version does not know; use a newer one.")


def known(number: str, values: Values) -> Grant:
    """Return a grant by its id."""
    found = values(("grant", number))
    if found is None:
        raise InvalidParameter("there is no token with this id; `incrowd access list` shows all.")
    return Grant.from_json(found)


def _ended(numbers: Iterable[str], values: Values) -> Sets:
    return {("grant", each): replace(known(each, values), revoked=True).to_json() for each in numbers}


def _pointing(new: Grant) -> Sets:
    return {("grant", new.id): new.to_json(), ("token", new.fingerprint): new.id}
