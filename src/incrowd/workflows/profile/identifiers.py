"""Identifiers: columns that identify people, recognized by their values and by their names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.core.domain import Type
from incrowd.workflows.profile import numbers_of_people as numbers
from incrowd.workflows.profile.column_names import (
    CONTACTS,
    GIVEN_OR_FAMILY,
    IDS,
    NAMES,
    PEOPLE,
    THINGS,
    folded,
    folded_words,
    spoken,
    word_lists,
)
from incrowd.workflows.profile.facts import Facts

_GIVEN, _FAMILY, _TITLES = (folded_words(words) for words in word_lists("people").values())
_ANY = _GIVEN | _FAMILY
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PART = r"[^\W\d_]+(?:['’.\-][^\W\d_]+)*\.?"
_FORM = re.compile(rf"^{_PART}(?:,? {_PART}){{1,4}}$")
_FEWEST, _FEWEST_ALONE = 3, 5
_FULL, _ALONE, _FORMS = 0.3, 0.6, 0.6
_MOST_LETTERS = 60


def look_like_people(values: Sequence[str]) -> bool:
    """Return whether many values are names of people in full, or single given or family names.

    >>> look_like_people(["Anna Schmidt", "Jan de Vries", "Dupont, Marie", "Wei Zhang"])
    True
    >>> look_like_people(["Oak Table", "Desk Lamp", "Garden Chair", "Kitchen Sink"])
    False
    """
    forms = [value for value in values if len(value) <= _MOST_LETTERS and _FORM.match(value.strip())]
    full = [value for value in forms if _hit(value)]
    if len(full) >= _FEWEST and len(full) >= _FULL * len(values) and len(forms) >= _FORMS * len(values):
        return True
    alone = [value for value in values if folded(value.strip()) in _ANY]
    return len(alone) >= _FEWEST_ALONE and len(alone) >= _ALONE * len(values)


def may_be_people(values: Sequence[str]) -> bool:
    """Return whether a value is a person's name, or all have that form: enough for a column called name.

    >>> may_be_people(["Widget", "Anna"]), may_be_people(["M8 x 20", "M8 x 30"])
    (True, False)
    """
    if any(folded(word) in _ANY for value in values for word in _WORD.findall(value)):
        return True
    few = len(values) < 4 * _FEWEST_ALONE
    return few and all(_FORM.match(value.strip()) for value in values)


def _hit(value: str) -> bool:
    words = [folded(word) for word in _WORD.findall(value)]
    names = [word for word in words if word not in _TITLES]
    return len(words) > 1 and any(part in _GIVEN for word in names for part in word.split("-"))


def _names_somebody(text: str) -> bool:
    """Whether a sentence holds a given name before another name.

    >>> _names_somebody("falar com a mãe Maria Silva"), _names_somebody("Maria Silva")
    (True, False)
    """
    words = _WORD.findall(text)
    named = ((one, two) for one, two in itertools.pairwise(words) if one[:1].isupper() and two[:1].isupper())
    return len(words) >= _FEWEST and any(folded(one) in _GIVEN for one, _ in named)


E_MAIL, LINK = "e-mail addresses", "web addresses"
_FREE, _PHONES, _PEOPLE, _NATIONAL = "free text", "phone numbers", "names of people", "national or tax ids"
_SHORTEST_ID = 5
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
    """Why a column identifies people: the kind of identifier, and whether its values or only its name say so."""

    kind: str
    by_content: bool
    why: str

    @property
    def sentence(self) -> str:
        """The kind and the reason."""
        return f"{self.kind}: {self.why}"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {"kind": self.kind, "by": "content" if self.by_content else "name", "why": self.why}


def identity_of(facts: Facts, kind: Type) -> Identity | None:
    """Return why a column is an identifier of people, or None.

    Things and places have names and ids too: a column with such a name is judged by its values alone.

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
    """Yield what the values show; an integer is an id only if its check digits are right."""
    for kind_found, rows in facts.matches:
        yield Identity(kind_found, by_content=True, why=f"in {rows:,} of its rows")
    values = facts.sample
    checks = {"bank accounts": numbers.bank_accounts, "payment cards": numbers.cards}
    if kind is Type.TEXT:
        checks |= {_PHONES: numbers.phones, "network addresses or devices": numbers.devices}
    for kind_found, holds in checks.items():
        if values and holds(values):
            yield Identity(kind_found, by_content=True, why="by form and check digits")
    country = numbers.national_ids(values) if values else None
    if country is not None:
        yield Identity(_NATIONAL, by_content=True, why=f"{country}, by form and check digits")
    if kind is Type.TEXT and values:
        yield from _by_words(facts)


def _by_words(facts: Facts) -> Iterator[Identity]:
    values = facts.sample
    if sum(bool(_ROADS.search(value)) for value in values) >= max(_FEW, _ADDRESSED * len(values)):
        yield Identity("postal addresses", by_content=True, why="streets with numbers")
    if not spoken(facts.name, THINGS) and look_like_people(values):
        yield Identity(_PEOPLE, by_content=True, why="many values are common ones")
    if not spoken(facts.name, THINGS) and any(map(_names_somebody, values)):
        yield Identity(_FREE, by_content=True, why="it names people")
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
        word = spoken(facts.name, words)
        if word and not (contact == _NATIONAL and _is_measure(facts)):
            yield Identity(contact, by_content=False, why=f"{word!r} in its name")
    person, number = spoken(facts.name, PEOPLE), spoken(facts.name, IDS)
    if person and (number or _many(facts, kind)):
        why = f"{person!r} and {number!r} in its name" if number else f"{person!r} in its name, and many values"
        yield Identity("ids of people", by_content=False, why=why)
    name = spoken(facts.name, NAMES)
    if name and (person or may_be_people(facts.sample)):
        yield Identity(_PEOPLE, by_content=False, why=f"{name!r} in its name")


def _is_measure(facts: Facts) -> bool:
    """Return whether values are few and shorter than national ids: `dni` is a Spanish id, and days in Polish."""
    return facts.values is not None and facts.lengths[1] < _SHORTEST_ID


def _many(facts: Facts, kind: Type) -> bool:
    """Return whether a column has as many values as a table has people, and no more words than an id."""
    coded = facts.shape != "words" and facts.spread.distinct >= _MANY
    return facts.values is None or (kind is Type.TEXT and (coded or facts.spread.unique_share > _OWN))
