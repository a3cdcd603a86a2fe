"""Column names: what the name of a column says about its values, in several languages."""

from __future__ import annotations

import itertools
import re
import tomllib
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("incrowd.workflows.profile") / "words.toml").read_text(encoding="utf-8"))


def word_lists(table: str) -> dict[str, Any]:
    """Return a table of words.toml, where its lists are explained."""
    return _tables()[table]


_LETTERS = str.maketrans(
    {
        "ß": "ss",
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "æ": "ae",
        "œ": "oe",
        "ı": "i",
        "°": "o",
        "№": "no",
        "#": " no ",
    }
)
_SIGNS = str.maketrans({"°": "o", "º": "o", "ª": "a"})


def folded(text: str) -> str:
    """Return a text in small letters without accents.

    >>> folded("Straße"), folded("ÉTÉ")
    ('strasse', 'ete')
    """
    plain = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def folded_words(text: str) -> frozenset[str]:
    """Return the words of a list as they are compared: in small letters, without accents."""
    return frozenset(map(folded, text.split()))


_LISTS = {key: folded_words(words) for key, words in word_lists("columns").items()}
CONTACTS = {kind: folded_words(words) for kind, words in word_lists("contacts").items()}
CODES, NAMES, GIVEN_OR_FAMILY = _LISTS["codes"], _LISTS["names"], _LISTS["given_or_family"]
IDS, PEOPLE, KNOWN, SECRET = _LISTS["ids"], _LISTS["people"], _LISTS["known"], _LISTS["secret"]
MONEY, AGES, BIRTHS, YEARS = _LISTS["money"], _LISTS["ages"], _LISTS["births"], _LISTS["years"]
SEXES, PLACES, NATIONS, STATES = _LISTS["sexes"], _LISTS["places"], _LISTS["nations"], _LISTS["states"]
DISEASES, JOBS, TRADES, MARITAL = _LISTS["diseases"], _LISTS["jobs"], _LISTS["trades"], _LISTS["marital"]
THINGS = KNOWN | _LISTS["things"]
"""With one of these words, a name or an id is one of a thing or a place."""
NAMING = frozenset({"id", "ids", "url"}) | NAMES | GIVEN_OR_FAMILY | frozenset().union(*CONTACTS.values())
"""Columns by these names are identifiers."""
_NUMBERS = ("nummer", "number", "numero", "numer", "nr")
_ENDINGS = (*_NUMBERS, *sorted(IDS - set(_NUMBERS), key=lambda word: (-len(word), word)))
_SHORTEST = 4


def spoken(name: str, words: frozenset[str]) -> str | None:
    """Return the first word of a column's name that is one of `words`; accents make no difference.

    >>> spoken("dateOfBirth", KNOWN), spoken("PATIENT_ID", NAMING), spoken("identity", NAMING), spoken("Prénom", NAMING)
    ('date', 'id', None, 'prenom')
    """
    return next((part for part in parts_of(name) if part in words), None)


def parts_of(name: str) -> tuple[str, ...]:
    """Return the words of a column's name, alone and joined by two and three; a compound also in its two parts.

    >>> parts_of("E-Mail"), parts_of("Patiëntnr")
    (('e', 'mail', 'email'), ('patient', 'nr', 'patientnr'))
    >>> parts_of("Ημ. Γέννησης")
    ('ημ', 'γεννησης', 'ημγεννησης')
    >>> parts_of("N°_adhérent")[0], parts_of("Versichertennr.")[:2], parts_of("covid")
    ('no', ('versicherten', 'nr'), ('covid',))
    """
    split = re.sub(r"(?<=[a-z0-9ß-ÿ])(?=[A-Z])", " ", name.translate(_SIGNS))
    words = re.findall(r"[^\W\d_]+", folded(split))
    parts = [part for word in words for part in _compound(word)]
    pairs = ["".join(pair) for pair in itertools.pairwise(parts)]
    triples = ["".join(parts[start : start + 3]) for start in range(len(parts) - 2)]
    return (*parts, *pairs, *triples)


def _compound(word: str) -> tuple[str, ...]:
    """Return a word in its parts, where it ends with a word for a number: after any word, or after one for people."""
    for ending in _ENDINGS:
        head = word.removesuffix(ending)
        if head != word and (head in PEOPLE or (ending in _NUMBERS and len(head) >= _SHORTEST)):
            return head, ending
    return (word,)
