"""Expectation: what will probably come out of a plan with crowds, from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.accounting.suppression.binomial import upper_tails
from incrowd.core.recoding import Recoding
from incrowd.core.steps.counts import SuppressCounts
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.suppression import Suppress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.plan import Plan
    from incrowd.core.schema import Schema

LEAST, MOST = 0.05, 0.25
"""A release is likely empty if an even spread leaves less than the first share, and Zipf's law less than the second."""
_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
_RANKS = 2000
_DIGITS = 10
_WIDTH = 20


@dataclass(frozen=True)
class Expectation:
    """How large crowds will be against k, and a band for the share of the sampled rows that is in a crowd.

    `even` is the share if rows spread evenly over the cells, `skewed` if the r-th most common cell has a share in
    proportion to 1/r (Zipf's law); `low` and `high` are the least and the largest from an even spread to a strong
    concentration, in proportion to r^−2.  `guessed` are open text columns whose classes cannot be listed: each
    character of a prefix is taken for one of ten.
    """

    rows: int
    cells: int
    k: int
    rate: Fraction
    even: float
    skewed: float
    low: float
    high: float
    guessed: tuple[str, ...] = ()

    @property
    def crowd(self) -> float:
        """How many sampled rows a cell holds, spread evenly."""
        return self.rows * float(self.rate) / self.cells

    @property
    def likely_empty(self) -> bool:
        """Whether hardly a row is left where rows spread evenly, and few where they follow Zipf's law."""
        return self.even < LEAST and self.skewed < MOST

    @property
    def sentence(self) -> str:
        """What to expect, for people."""
        crowd = f"{self.crowd:,.3g}" if self.crowd < 10 else f"{self.crowd:,.0f}"
        spread = f"{self.cells:,} cells of {crowd} sampled rows each on average, k = {self.k}"
        even, skewed, low, high = (f"{100 * each:.0f} %" for each in (self.even, self.skewed, self.low, self.high))
        shares = f"of the sampled rows {even} are kept if spread evenly, {skewed} by Zipf's law, {low} to {high} in all"
        return f"{spread}: {shares}; {self._verdict}"

    @property
    def _verdict(self) -> str:
        if self.even >= LEAST:
            return "this will likely be useful"
        return "this will likely be empty" if self.likely_empty else "it hangs on whether most rows share few cells"

    @property
    def bar(self) -> str:
        """The band on a line from nothing to everything."""
        start = min(math.floor(self.low * _WIDTH), _WIDTH - 1)
        end = max(math.ceil(self.high * _WIDTH), start + 1)
        return f"[{' ' * start}{'=' * (end - start)}{' ' * (_WIDTH - end)}]"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return {
            "cells": self.cells,
            "crowd": self.crowd,
            "k": self.k,
            "even": self.even,
            "skewed": self.skewed,
            "low": self.low,
            "high": self.high,
            "guessed": list(self.guessed),
            "likely_empty": self.likely_empty,
            "sentence": self.sentence,
        }


def expectation(plan: Plan, schema: Schema, rows: int | None) -> Expectation | None:
    """Return what will probably come out; None where crowds do not decide, or the number of people or cells is open.

    Nothing of it depends on rows: k, rate and levels are those of the steps, the cells those of the declaration.
    """
    if rows is None or rows < 1:
        return None
    k = next((step.k for step in plan.steps if isinstance(step, Suppress | SuppressCounts)), None)
    recode = next((step for step in plan.steps if isinstance(step, Recode)), None)
    sample = next((step for step in plan.steps if isinstance(step, EveryRow | SecretSample)), None)
    if k is None or recode is None or sample is None or not all(_plain(each.level) for each in recode.columns):
        return None
    rate = sample.rate if isinstance(sample, SecretSample) else Fraction(1)
    recodings = [Recoding(schema[each.column], int(each.level)) for each in recode.columns]
    classes = [classes_of(each) for each in recodings]
    known = [number for number in classes if number is not None]
    if len(known) < len(classes):
        return None
    guessed = tuple(each.column.name for each in recodings if each.classes is None)
    return expected(rows, math.prod(known), k, rate, guessed)


def expected(rows: int, cells: int, k: int, rate: Fraction, guessed: tuple[str, ...] = ()) -> Expectation:
    """Return the shares that are kept between an even spread and a strong concentration.

    A sampled row is kept if at least k − 1 others of its cell are sampled: with N rows, a cell of probability p and the
    rate β that has the chance P[Bin(N − 1, pβ) ≥ k − 1].

    >>> [round(expected(10_000, cells, 20, Fraction(1, 2)).even, 6) for cells in (100, 10**6)]
    [1.0, 0.0]
    """
    shares = {exponent: _share(rows, min(cells, 10**18), exponent, k, float(rate)) for exponent in _EXPONENTS}
    low, high = min(shares.values()), max(shares.values())
    return Expectation(rows, cells, k, rate, shares[0.0], shares[1.0], low, high, guessed)


def _share(rows: int, cells: int, exponent: float, k: int, rate: float) -> float:
    edges = np.unique(np.round(np.geomspace(1, cells + 1, _RANKS)))
    first, last = edges[:-1], edges[1:] - 1
    weights, sizes = ((first + last) / 2) ** -exponent, last - first + 1
    chances = weights / float(weights @ sizes)
    return min(1.0, float((chances * sizes) @ _in_crowd(chances * rate, rows, k)))


def _in_crowd(chances: NDArray[np.float64], rows: int, k: int) -> NDArray[np.float64]:
    """Return P[Bin(N − 1, p) ≥ k − 1]."""
    return upper_tails(k - 1, rows - 1, np.minimum(chances, 1.0))


def classes_of(recoding: Recoding) -> int | None:
    """Return how many classes a column has beside missing and outside values; guessed for prefixes, else None."""
    if recoding.classes is not None:
        return max(1, len(recoding.classes.marks))
    characters = recoding.column.hierarchy.characters(recoding.level)
    return None if characters is None else _DIGITS ** min(characters, 18)


def _plain(level: int | str) -> bool:
    return isinstance(level, int) or level.isdecimal()
