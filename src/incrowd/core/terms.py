"""Terms: what a certificate says in words, as keys; the words are made by whoever reads it.

A term is declared once, beside the step or claim that uses it.  Certificates and ledgers hold its key alone, so that
its text can improve without breaking them.  The meaning of a key never changes: `tests/golden/glossary.json` holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Self, TypeVar

from incrowd.errors import InvalidParameter

AnyTerm = TypeVar("AnyTerm", bound="Term")


@dataclass(frozen=True, order=True)
class Term:
    """A key and its text; two terms with one key are the same term.

    `meaning` is the normative paragraph, where the text says less; else the text is normative, too.

    >>> Exposure("example", "an example")
    Exposure(key='example')
    >>> str(Exposure.read("example")), str(Exposure.read("unheard of"))
    ('an example', 'unheard of')
    """

    declared: ClassVar[dict[str, Term]]
    """All terms of a kind that were declared, by their keys; kinds of kinds share them."""

    key: str
    text: str = field(compare=False, repr=False)
    meaning: str = field(default="", compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Term in cls.__bases__:
            cls.declared = {}

    def __post_init__(self) -> None:
        object.__setattr__(self, "meaning", self.meaning or self.text)
        same = self.declared.setdefault(self.key, self)
        if same.text != self.text:
            raise InvalidParameter(f"the term {self.key!r} is declared twice, with two texts.")

    @classmethod
    def read(cls, key: str) -> Self:
        """Return the term with a key; one that is not declared here has its key for a text."""
        term = cls.declared.get(key)
        return term if isinstance(term, cls) else cls._unknown(key)

    @classmethod
    def _unknown(cls, key: str) -> Self:
        term = object.__new__(cls)
        for name, value in (("key", key), ("text", key), ("meaning", "")):
            object.__setattr__(term, name, value)
        return term

    def __str__(self) -> str:
        return self.text


class Theorem(Term):
    """Why a guarantee or a claim holds: a result of the literature, or a proof or count of our own."""


class Condition(Term):
    """Something that must be true for a claim, and that follows from the program or is checked on each release."""


class Assumption(Condition):
    """Something that must be true for a guarantee, and that only people can know."""


class Exposure(Term):
    """Something that a claim does not protect."""


class KeyedText(StrEnum):
    """A closed list of keys, each with a text: certificates and ledgers store the key, readers show the text.

    >>> class Color(KeyedText):
    ...     RED = "red", "the color of blood"
    >>> Color("red"), Color.RED.text
    (<Color.RED: 'red'>, 'the color of blood')
    """

    text: str

    def __new__(cls, key: str, text: str) -> Self:
        """Make a member from its key and its text."""
        member = str.__new__(cls, key)
        member._value_ = key
        member.text = text
        return member


def joined(terms: Iterable[Term | KeyedText]) -> str:
    """Return the texts of several terms in one line.

    >>> joined([Theorem("first", "one"), Theorem("second", "another")])
    'one; another'
    """
    return "; ".join(term.text for term in terms)
