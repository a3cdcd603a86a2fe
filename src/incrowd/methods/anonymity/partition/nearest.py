"""Nearest: the safe method that a table of a mere form could be released by instead, and what it would cost."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.partition.method import Partition
from incrowd.methods.crowds.parameters import Target

_DELTA = Fraction(1, 10**6)


def nearest_safe(schema: Schema, levels: Mapping[str, int], ordered: tuple[str, ...] = ()) -> Partition | None:
    """Return a partition with usual parameters that this schema allows, or None if there is none.

    It is a proposal, made from the schema alone: half of ε for the cuts, half for a release of every second row.
    Where domains were drafted from rows, or people have several rows, nothing near is safe.

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchies.flat import Flat
    >>> from incrowd.core.schema import Column, Role
    >>> sex = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
    >>> proposed = nearest_safe(Schema((sex,)), {})
    >>> proposed.epsilon(Schema((sex,)).unit) <= 2
    True
    """
    if schema.drafted or schema.unit.max_rows > 1 or schema.unit.adjacency is not Adjacency.ADD_REMOVE:
        return None
    proposed = Partition(Fraction(1), Target(_DELTA, Fraction(1)), Fraction(1, 2), levels=levels, ordered=ordered)
    try:
        proposed.guarantee(schema)
    except InvalidParameter:
        return None
    return proposed
