"""Sampled suppression for people with several rows, read backwards: the k or the rate that keeps a wanted promise.

A person's δ is the least over smaller ε of a weight times the δ of one row, and that falls with k and rises with the
rate; so both questions are bisections, and what is returned has been evaluated.
"""

from __future__ import annotations

from fractions import Fraction

from incrowd.accounting.people import person_delta
from incrowd.accounting.suppression.inverses import feasible_k, largest_decimal, least_k, wanted_delta
from incrowd.accounting.suppression.tight_delta import log_delta
from incrowd.core.rounding import Number, exact
from incrowd.core.unit import Adjacency


def smallest_k(
    epsilon: Number, delta: Number, rate: Number, rows: int, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> int:
    """Return the least k at which a person with at most `rows` rows, each with its own coin, is (ε, δ)-private.

    >>> smallest_k(1, "1e-6", "0.1", 1), smallest_k(1, "1e-6", "0.1", 3)
    (8, 15)
    """
    wanted, sampled = wanted_delta(delta), exact(rate, "the rate")

    def meets(k: int) -> bool:
        return Fraction(person_delta(lambda x: log_delta(k, sampled, x, adjacency), epsilon, rows)) <= wanted

    return least_k(meets, feasible_k(wanted, sampled))


def largest_rate(
    epsilon: Number, delta: Number, k: int, rows: int, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Fraction:
    """Return the largest rate of six significant digits at which k keeps (ε, δ) for a person with several rows.

    >>> float(largest_rate(1, "1e-6", 15, 3)) >= 0.1
    True
    """
    wanted = wanted_delta(delta)

    def meets(rate: Fraction) -> bool:
        return Fraction(person_delta(lambda x: log_delta(k, rate, x, adjacency), epsilon, rows)) <= wanted

    return largest_decimal(meets, wanted, k)
