"""Expectation: the expected output of a plan with crowds, from public numbers alone."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.accounting.suppression.binomial import upper_tails
from incrowd.core.recoding import Recoding
from incrowd.core.steps.choices import SuppressChosen
from incrowd.core.steps.counts import SuppressCounts
from incrowd.core.steps.rows import Recode, RecodedColumn
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.suppression import Suppress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.plan import Plan
    from incrowd.core.schema import Schema

LEAST, MOST = 0.05, 0.25
"""A release is likely empty if an even spread leaves less than the first share, and Zipf's law less than the second."""
HALF = 0.5
"""What a combination of levels keeps of the sampled rows, spread evenly, that counts as useful."""
# of a power law: 0 is even, 2 is more concentrated than any table that people publish
_EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
_RANKS = 2000  # steps of the law; between them it is smooth
_DIGITS = 10
_WIDTH = 20


@dataclass(frozen=True)
class Expectation:
    """How large crowds will be against k, and a band for the share of the sampled rows that is in a crowd.

    `even` is the share if rows spread evenly over the cells, `skewed` if the r-th most common cell has a share in
    proportion to 1/r (Zipf's law); `low` and `high` are the least and the largest from an even spread to a strong
    concentration, in proportion to r^−2.  `guessed` are open text columns whose classes cannot be listed: each
    character of a prefix is taken for one of ten.  Where levels are chosen `among` several combinations, `useful` is
    how many of them keep half of the sampled rows spread evenly, and all else is about the one with the most cells
    among those, or with the fewest of all where there is none.
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
    among: int = 1
    useful: int = 0

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
        """The expected output in one sentence."""
        return f"{self.spread}: {'; '.join(self.lines)}"

    @property
    def spread(self) -> str:
        """How many cells there are, and how many sampled rows a cell has on average."""
        crowd = f"{self.crowd:,.3g}" if self.crowd < 10 else f"{self.crowd:,.0f}"
        return f"{self._choice}{self.cells:,} cells of {crowd} sampled rows each on average, k = {self.k}"

    @property
    def lines(self) -> tuple[str, str, str]:
        """The share of sampled rows that is released: for an even spread, a concentrated one, and the range."""
        even, skewed, low, high = (f"{100 * share:.0f} %" for share in (self.even, self.skewed, self.low, self.high))
        return (
            f"evenly spread: {even} of the sampled rows are released",
            f"concentrated (Zipf's law): {skewed}",
            f"range: {low} to {high}; {self._verdict}",
        )

    @property
    def _choice(self) -> str:
        if self.among == 1:
            return ""
        where = "for the one with most cells of these" if self.useful else "for the one with fewest cells"
        return (
            f"levels are chosen among {self.among:,} combinations, of which {self.useful or 'none'} "
            f"{'keeps' if self.useful < 2 else 'keep'} at least half of the sampled rows if evenly spread; {where}: "
        )

    @property
    def _verdict(self) -> str:
        if self.even >= LEAST:
            return "this will likely be useful"
        return "this will likely be empty" if self.likely_empty else "it depends on how concentrated the rows are"

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
            "among": self.among,
            "useful": self.useful,
            "likely_empty": self.likely_empty,
            "sentence": self.sentence,
        }


def expectation(plan: Plan, schema: Schema, rows: int | None) -> Expectation | None:
    """Return the expected output; None where crowds do not decide, or the number of people or cells is open.

    Nothing of it depends on rows: k, rate and levels are those of the steps, the cells those of the declaration.
    """
    if rows is None or rows < 1:
        return None
    k = next((step.k for step in plan.steps if isinstance(step, Suppress | SuppressChosen | SuppressCounts)), None)
    recode = next((step for step in plan.steps if isinstance(step, Recode)), None)
    sample = next((step for step in plan.steps if isinstance(step, EveryRow | SecretSample)), None)
    if k is None or recode is None or sample is None:
        return None
    rate = sample.rate if isinstance(sample, SecretSample) else Fraction(1)
    recodings = [_recodings(column, schema) for column in recode.columns]
    classes = [[number for recoding in column if (number := classes_of(recoding)) is not None] for column in recodings]
    if not all(classes):
        return None
    guessed = tuple(
        column[0].column.name for column in recodings if any(recoding.classes is None for recoding in column)
    )
    return _among(classes, partial(expected, rows, k=k, rate=rate, guessed=guessed))


def _recodings(column: RecodedColumn, schema: Schema) -> list[Recoding]:
    """Return the ways in which a column may be recoded."""
    return [Recoding(schema[column.column], level) for level in column.levels]


def _among(classes: Sequence[Sequence[int]], one: Callable[[int], Expectation]) -> Expectation:
    """Return what to expect of the combination with the most cells that keeps half; more cells never keep more.

    >>> found = _among([[2, 1], [100, 10, 1]], partial(expected, 1000, k=20, rate=Fraction(1, 2)))
    >>> found.cells, found.among, found.useful
    (20, 6, 4)
    """
    cells = sorted(math.prod(combination) for combination in product(*classes))
    useful = bisect_left(cells, True, key=lambda number: one(number).even < HALF)
    return replace(one(cells[max(useful - 1, 0)]), among=len(cells), useful=useful)


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
