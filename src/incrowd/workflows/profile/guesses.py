"""Guesses: which type and role a column should be declared as, and why; its name gives some of it away."""

from __future__ import annotations

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.workflows.profile.column_names import CODES, KNOWN, NAMING, SECRET, spoken
from incrowd.workflows.profile.facts import Facts
from incrowd.workflows.profile.identifiers import Identity

_LONG = 40
_NEARLY_ALL = 0.9
_FEW_ROWS = 20


def guessed_type(facts: Facts) -> tuple[Type, str]:
    """Return the type and the reason; a number that is a code stays text, so that no zero gets lost.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> spread = TupleSpread(3, 3, 3, True, 0.0)
    >>> guessed_type(Facts("age", 0, spread, (Type.INTEGER, Type.TEXT), 1, 9, (1, 1), "digits", None))
    (<Type.INTEGER: 'integer'>, 'every value is a whole number')
    >>> guessed_type(Facts("zip", 0, spread, (Type.INTEGER, Type.TEXT), 1, 9, (5, 5), "digits", None))[0]
    <Type.TEXT: 'text'>
    """
    first = facts.kinds[0]
    if first is Type.BOOLEAN and len(facts.values or ()) < 2:
        first = Type.TEXT  # a column of nothing but F is no column of falsehoods
    if first in (Type.INTEGER, Type.DECIMAL) and spoken(facts.name, CODES):
        return Type.TEXT, "numbers that are codes, by the column's name"
    match first:
        case Type.INTEGER:
            return first, "every value is a whole number"
        case Type.DECIMAL:
            return first, "every value is a number"
        case Type.DATE:
            return first, "every value is a day"
        case Type.BOOLEAN:
            return first, "every value says true or false"
    if facts.shape == "digits":
        return Type.TEXT, "digits, some with a zero in front or too many for a number"
    if facts.shape == "codes":
        return Type.TEXT, "letters, then digits"
    return Type.TEXT, "free text" if facts.lengths[1] > _LONG and facts.values is None else "words"


def guessed_role(facts: Facts, kind: Type, identity: Identity | None = None) -> tuple[Role, str]:
    """Return the role and the reason.

    A column is an identifier if its values or its name say so, or if nearly every row has a value of its own; else it
    is what its name says; else a quasi-identifier, which is the cautious guess.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> facts = Facts("ward_nurse", 0, TupleSpread(9, 3, 0, True, 0.0), (Type.TEXT,), None, None, (1, 2), "words", None)
    >>> guessed_role(facts, Type.TEXT)[0]
    <Role.QUASI: 'quasi'>
    """
    share = facts.spread.unique_share
    own = f"{share:.0%} of the rows have a value of their own"
    naming, known, secret = (spoken(facts.name, words) for words in (NAMING, KNOWN, SECRET))
    if facts.spread.distinct <= 1 and facts.spread.rows > 1:
        return Role.PLAIN, "the same in every row"
    if identity is not None:
        return Role.IDENTIFIER, identity.sentence
    if naming and not known and facts.spread.distinct > 2:
        return Role.IDENTIFIER, f"{naming!r} in its name"
    counted = kind in (Type.TEXT, Type.INTEGER) and facts.spread.rows >= _FEW_ROWS
    if counted and share >= _NEARLY_ALL and not (kind is Type.INTEGER and (known or secret)):
        return Role.IDENTIFIER, own
    if secret and not known:
        return Role.SENSITIVE, f"{secret!r} in its name"
    if known:
        return Role.QUASI, f"{known!r} in its name: others may know it"
    return Role.QUASI, "others may know it: the cautious guess"
