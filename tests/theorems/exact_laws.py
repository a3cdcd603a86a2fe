"""The slow and obvious way: exact laws of what is published, outcome by outcome, in fractions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import product

Law = Mapping[Hashable, Fraction]
Database = tuple[int, ...]


def e_to_the(epsilon: Fraction) -> Fraction:
    """Return e^epsilon to fifty digits."""
    context = Context(prec=50)
    return Fraction(context.exp(context.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))))


def binomial(n: int, j: int, rate: Fraction) -> Fraction:
    """Return P[Bin(n, rate) = j]."""
    return math.comb(n, j) * rate**j * (1 - rate) ** (n - j)


@cache
def published_count(n: int, k: int, rate: Fraction) -> Law:
    """Return the law of a sampled count of n records that is shown as 0 below k."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    for j in range(n + 1):
        law[j if j >= k else 0] += binomial(n, j, rate)
    return law


@cache
def published_table(database: Database, k: int, rate: Fraction) -> Law:
    """Return the law of the published table of a database (the cell of each record): all samples, one by one."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    for coins in product((False, True), repeat=len(database)):
        counts: dict[int, int] = defaultdict(int)
        for cell, chosen in zip(database, coins, strict=True):
            counts[cell] += chosen
        shown = tuple(sorted((cell, count) for cell, count in counts.items() if count >= k))
        law[shown] += rate ** sum(coins) * (1 - rate) ** (len(coins) - sum(coins))
    return law


def pair(left: Law, right: Law) -> Law:
    """Return the law of two independent outcomes."""
    return {(x, y): p * q for x, p in left.items() for y, q in right.items()}


def excess(left: Law, right: Law, ratio: Fraction) -> Fraction:
    """Return the hockey-stick divergence: how much `left` exceeds `ratio` times `right`, over the best event."""
    gaps = (mass - ratio * right.get(outcome, Fraction(0)) for outcome, mass in left.items())
    return sum((gap for gap in gaps if gap > 0), Fraction(0))


def bad_mass(left: Law, right: Law, ratio: Fraction) -> Fraction:
    """Return what the "probabilistic" definition counts: all mass whose likelihood ratio leaves [1/ratio, ratio]."""
    return sum(
        (
            mass
            for outcome, mass in left.items()
            if mass > ratio * right.get(outcome, Fraction(0)) or right.get(outcome, Fraction(0)) > ratio * mass
        ),
        Fraction(0),
    )
