"""Kinds: which type a column should be declared as, and why."""

from __future__ import annotations

from incrowd.core.domain import Type
from incrowd.workflows.profile.facts import Facts
from incrowd.workflows.profile.words import CODES, spoken

_LONG = 40


def guessed_type(facts: Facts) -> tuple[Type, str]:
    """Return the type and the reason; a number that is a code stays text, so that no zero gets lost.

    >>> from incrowd.measures.sketch import Spread
    >>> spread = Spread(3, 3, 3, True, 0.0)
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
