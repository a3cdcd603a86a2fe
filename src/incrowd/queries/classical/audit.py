"""Audit: sums are answered as long as no combination of them is the value of a single row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

MOST_AUDITED = 200
"""The most rows of a table whose sums are audited: the work grows with their third power."""

Equation = dict[int, Fraction]
"""A linear form in the values of the rows: the coefficient of each, zeros left out."""


@dataclass(frozen=True)
class Auditor:
    """What the sums answered so far determine, as a basis in reduced echelon form over the rational numbers.

    Each answered sum is a linear equation in the unknown values.  A value is determined by equations (of which nothing
    else is known, neither bounds nor wholeness) exactly if its unit vector e_i is a combination of them.  In a reduced
    basis R_1, …, R_r with pivots p_1, …, p_r the coefficients of a combination are its own entries at the pivots.  If
    e_i is a combination, one of its entries at a pivot must not be 0, so i = p_k for some k, all other coefficients
    are 0, and e_i = R_k.  So a value is determined exactly if a basis vector has one entry only.

    Whether a sum is answered depends on the sets asked for and not on values: a refusal tells nothing.

    Source: Chin and Özsoyoğlu 1982 (the audit of sums); Kenthapadi, Mishra and Nissim 2005 (what refusals tell).

    >>> auditor = Auditor().after({0, 1, 2})
    >>> auditor.determined({1, 2}), auditor.determined({3, 4})
    (frozenset({0}), frozenset())
    """

    basis: tuple[tuple[int, tuple[tuple[int, Fraction], ...]], ...] = ()

    @classmethod
    def replay(cls, sets: Iterable[Iterable[int]]) -> Auditor:
        """Return the auditor after sums over these sets were answered."""
        auditor = cls()
        for places in sets:
            auditor = auditor.after(places)
        return auditor

    def after(self, places: Iterable[int]) -> Auditor:
        """Return the auditor after one more sum.

        >>> Auditor().after({0, 1}).after({1, 0}) == Auditor().after({0, 1})
        True
        """
        rest: Equation = dict.fromkeys(places, Fraction(1))
        for pivot, vector in self.basis:
            if pivot in rest:
                _subtract(rest, dict(vector), rest[pivot])
        if not rest:
            return self
        pivot = min(rest)
        lead = rest[pivot]
        new = {place: value / lead for place, value in rest.items()}
        reduced = [(pivot, new)]
        for other, vector in self.basis:
            changed = dict(vector)
            if pivot in changed:
                _subtract(changed, new, changed[pivot])
            reduced.append((other, changed))
        return Auditor(tuple((each, tuple(sorted(vector.items()))) for each, vector in sorted(reduced, key=_pivot)))

    def determined(self, places: Iterable[int]) -> frozenset[int]:
        """Return the rows whose values would be known after the sum over these places was answered too."""
        return frozenset(pivot for pivot, vector in self.after(places).basis if len(vector) == 1)


def _subtract(vector: Equation, other: Equation, times: Fraction) -> None:
    for place, value in other.items():
        left = vector.get(place, Fraction(0)) - times * value
        if left:
            vector[place] = left
        else:
            vector.pop(place, None)


def _pivot(entry: tuple[int, Equation]) -> int:
    return entry[0]
