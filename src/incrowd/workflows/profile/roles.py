"""Roles: what a column could do to a person, guessed, with the reason; the holder of the data decides."""

from __future__ import annotations

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.workflows.profile.facts import Facts
from incrowd.workflows.profile.words import KNOWN, NAMING, SECRET, spoken

_NEARLY_ALL = 0.9
_FEW_ROWS = 20


def guessed_role(facts: Facts, kind: Type) -> tuple[Role, str]:
    """Return the role and the reason.

    A column is an identifier if its name says so or nearly every row has a value of its own; else it is what its name
    says; else a quasi-identifier, which is the cautious guess.

    >>> from incrowd.measures.sketch import Spread
    >>> facts = Facts("ward_nurse", 0, Spread(9, 3, 0, True, 0.0), (Type.TEXT,), None, None, (1, 2), "words", None)
    >>> guessed_role(facts, Type.TEXT)[0]
    <Role.QUASI: 'quasi'>
    """
    share = facts.spread.unique_share
    own = f"{share:.0%} of the rows have a value of their own"
    naming, known, secret = (spoken(facts.name, words) for words in (NAMING, KNOWN, SECRET))
    if facts.spread.distinct <= 1 and facts.spread.rows > 1:
        return Role.PLAIN, "the same in every row"
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
