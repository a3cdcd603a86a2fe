"""Identifiers: columns that tell who somebody is, recognized by what they hold and by what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from incrowd.core.domain import Type
from incrowd.workflows.profile import numbers_of_people as numbers
from incrowd.workflows.profile.column_names import CONTACTS, GIVEN_OR_FAMILY, IDS, NAMES, PEOPLE, THINGS, spoken
from incrowd.workflows.profile.facts import Facts
from incrowd.workflows.profile.person_names import look_like_people, may_be_people

E_MAIL, LINK = "e-mail addresses", "web addresses"
_FREE, _PHONES, _PEOPLE = "free text", "phone numbers", "names of people"
_WORDS, _OWN, _LONG = 5.0, 0.3, 30
_ADDRESSED = 0.3
_FEW, _MANY = 2, 20
_ROADS = re.compile(
    r"(?i)(stra(ß|ss)e|str\.|weg|platz|allee|gasse|straat|laan|gade|gatan|vägen)\s+\d"
    r"|\b(rue|avenue|av\.|boulevard|bd|chemin|calle|avenida|plaza|via|viale|corso|piazza|ulica|ul\.|rua)\b.*\d"
    r"|\d+[a-z]?,?\s+(rue|avenue|av\.|boulevard|bd|chemin|place)\b"
    r"|^\d+[a-z]?\s+([\w.']+\s+){1,3}(street|st|road|rd|lane|ln|drive|dr|avenue|ave|court|ct|way|close|terrace)\b"
)


@dataclass(frozen=True)
class Identity:
    """Why a column tells who somebody is: the kind of identifier, and whether its values or its name alone say so."""

    kind: str
    by_content: bool
    why: str

    @property
    def sentence(self) -> str:
        """The kind and the reason."""
        return f"{self.kind}: {self.why}"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"kind": self.kind, "by": "content" if self.by_content else "name", "why": self.why}


def identity_of(facts: Facts, kind: Type) -> Identity | None:
    """Return what makes a column an identifier of people, or None.

    A thing or a place has a name and an id too: a column that says so in its name is judged by its values alone.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> spread = TupleSpread(3, 3, 3, True, 0.0)
    >>> found = (("e-mail addresses", 3),)
    >>> mails = Facts("contact", 0, spread, (Type.TEXT,), None, None, (7, 7), "words", None, matches=found)
    >>> identity_of(mails, Type.TEXT).kind
    'e-mail addresses'
    """
    if facts.spread.distinct < _FEW or kind in (Type.DATE, Type.BOOLEAN, Type.DECIMAL):
        return None
    return next(_by_content(facts, kind), None) or next(_by_name(facts, kind), None)


def _by_content(facts: Facts, kind: Type) -> Iterator[Identity]:
    """Return what the values say; a whole number is an id only if its check digits are right."""
    for found, rows in facts.matches:
        yield Identity(found, by_content=True, why=f"in {rows:,} of its rows")
    values = facts.sample
    checks = {"bank accounts": numbers.bank_accounts, "payment cards": numbers.cards}
    if kind is Type.TEXT:
        checks |= {_PHONES: numbers.phones, "network addresses or devices": numbers.devices}
    for found, holds in checks.items():
        if values and holds(values):
            yield Identity(found, by_content=True, why="by form and check digits")
    whose = numbers.national_ids(values) if values else None
    if whose is not None:
        yield Identity("national or tax ids", by_content=True, why=f"{whose}, by form and check digits")
    if kind is Type.TEXT and values:
        yield from _by_words(facts)


def _by_words(facts: Facts) -> Iterator[Identity]:
    values = facts.sample
    if sum(bool(_ROADS.search(value)) for value in values) >= max(_FEW, _ADDRESSED * len(values)):
        yield Identity("postal addresses", by_content=True, why="streets with numbers")
    if not spoken(facts.name, THINGS) and look_like_people(values):
        yield Identity(_PEOPLE, by_content=True, why="many values are common ones")
    words = sum(len(value.split()) for value in values) / len(values)
    own = facts.spread.distinct / max(1, facts.spread.rows)
    if words >= _WORDS and own >= _OWN and facts.lengths[1] >= _LONG:
        yield Identity(_FREE, by_content=True, why="it can name anybody")


def _by_name(facts: Facts, kind: Type) -> Iterator[Identity]:
    thing = spoken(facts.name, THINGS - PEOPLE)
    own = spoken(facts.name, GIVEN_OR_FAMILY)
    if own:
        yield Identity(_PEOPLE, by_content=False, why=f"{own!r} in its name")
    if thing:
        return
    for contact, words in CONTACTS.items():
        found = spoken(facts.name, words)
        if found:
            yield Identity(contact, by_content=False, why=f"{found!r} in its name")
    person, number = spoken(facts.name, PEOPLE), spoken(facts.name, IDS) or "many values"
    if person and (number in IDS or _many(facts, kind)):
        yield Identity("ids of people", by_content=False, why=f"{person!r} in its name, and {number}")
    name = spoken(facts.name, NAMES)
    if name and (person or may_be_people(facts.sample)):
        yield Identity(_PEOPLE, by_content=False, why=f"{name!r} in its name")


def _many(facts: Facts, kind: Type) -> bool:
    """Return whether a column has as many values as a table has people, and no more words than an id has."""
    coded = facts.shape != "words" and facts.spread.distinct >= _MANY
    return facts.values is None or (kind is Type.TEXT and (coded or facts.spread.unique_share > _OWN))
