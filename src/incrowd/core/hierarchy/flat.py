"""Flat: the value itself, or `*`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date

import pyarrow as pa

from incrowd.core.domain import DECLARED, LARGEST, Categories, Dates, Domain, Numbers, Provenance, Text, Type
from incrowd.core.hierarchy.hierarchy import Hierarchy, HierarchyRule, RuleKind
from incrowd.core.reading import canonical, number_text, parse


@dataclass(frozen=True)
class Flat(Hierarchy):
    """No level between the value and `*`: for columns that are released as they are, or not at all.

    >>> Flat(Categories(("F", "M"))).labels(0), Flat(Categories(("F", "M"))).labels(1)
    (('F', 'M'), ('*',))
    """

    depth = 0
    rule = HierarchyRule(RuleKind.FLAT)

    domain: Domain
    provenance: Provenance = DECLARED
    open_ends: bool = False

    def with_open_ends(self) -> Flat:
        """Return the hierarchy with labels that are true of values beyond the bounds.

        >>> Flat(Dates("2024-01-01", "2024-01-03")).with_open_ends().labels(0)
        ('2024-01-01 or earlier', '2024-01-02', '2024-01-03 or later')
        """
        return replace(self, open_ends=True)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return values

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return canonical(marks)

    def _generalize(self, value: str, level: int) -> str | None:
        return written(value, self.domain)


def flat(kind: Type) -> Flat:
    """Return the hierarchy of a column of which only the type is declared.

    >>> flat(Type.BOOLEAN).labels(0)
    ('false', 'true')
    """
    match kind:
        case Type.INTEGER | Type.DECIMAL:
            return Flat(Numbers(type=kind))
        case Type.DATE:
            return Flat(Dates())
        case Type.BOOLEAN:
            return Flat(Categories(("false", "true")))
        case Type.TEXT:
            return Flat(Text())


def written(value: str, domain: Domain) -> str | None:
    """Return one value in its one way of writing, or None if it is outside the domain.

    >>> written("007", Numbers(0, 9)), written("12", Numbers(0, 9)), written("b", Categories(("a",)))
    ('7', None, None)
    """
    match domain:
        case Text():
            return value
        case Categories():
            return value if value in domain.values else None
        case Dates():
            day = parse(value, Type.DATE)
            low, high = domain.bounds
            inside = isinstance(day, date) and (low or date.min) <= day <= (high or date.max)
            return str(day) if inside else None
        case Numbers():
            number = parse(value, domain.type)
            return number_text(number) if isinstance(number, int | float) and holds(domain, number) else None


def holds(domain: Numbers, number: float) -> bool:
    """Return whether a number is inside, by the definition.

    >>> holds(Numbers(0, 9), 10)
    False
    """
    as_stored = int if domain.type is Type.INTEGER else float
    low, high = (None if end is None else as_stored(end) for end in domain.bounds)
    if abs(number) > LARGEST:
        return False
    return (low is None or number >= low) and (high is None or number <= high)
