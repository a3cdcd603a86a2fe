"""Runs: how many there are, how rows are put into folds, and how many rows a model gets right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from incrowd.methods.learning.records import Integers, Records

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.methods.learning.classifier.recipes import FittedScores

Outcome = TypeVar("Outcome")
_PIECE = 2**20
_FINE = 2.0**20
_LARGEST = 2.0**20


def number_of_runs(gamma: Fraction, coins: Coins) -> int:
    """Draw K of the logarithmic law exactly: a geometric number k, taken with chance 1/k, or else another."""
    while True:
        number = 1
        while not coins.bernoulli(gamma, 1)[0]:
            number += 1
        if coins.below(number, 1)[0] == 0:
            return number


def best_run(gamma: Fraction, run: Callable[[Coins], tuple[int, Outcome]], coins: Coins) -> Outcome:
    """Run a secret random number of times, and return what the run with the best score made, the first among equals."""
    best, kept = run(coins)
    for _ in range(number_of_runs(gamma, coins) - 1):
        score, made = run(coins)
        if score > best:
            best, kept = score, made
    return kept


@dataclass(frozen=True, eq=False)
class Folds:
    """Records whose rows were put into folds, an own coin each: how many rows of each record are in each fold."""

    records: Records
    counts: Integers

    @classmethod
    def deal(cls, records: Records, folds: int, coins: Coins) -> Folds:
        """Put each row into a fold of its own, whatever the others are."""
        ends = np.cumsum(records.counts.counts)
        total, counts = int(ends[-1]) if len(ends) else 0, np.zeros((len(ends), folds), np.int64)
        for start in range(0, total, _PIECE):
            rows = np.arange(start, min(total, start + _PIECE))
            places = np.searchsorted(ends, rows, side="right") * folds + coins.below(folds, len(rows))
            counts += np.bincount(places, minlength=counts.size).reshape(counts.shape)
        return cls(records, counts)

    def pairs(self) -> Iterator[tuple[Records, Records]]:
        """Return for each fold the rows of the others, and its own."""
        every = self.counts.sum(axis=1)
        for fold in range(self.counts.shape[1]):
            own = self.counts[:, fold]
            yield self._of(every - own), self._of(own)

    def _of(self, counts: Integers) -> Records:
        return Records(replace(self.records.counts, counts=counts), self.records.sizes)


def right_rows(found: FittedScores, records: Records, outputs: int) -> int:
    """Return for how many rows the largest score is that of their class, the scores taken as whole numbers.

    The target is the last column of the records; rows of classes of it from `outputs` on are never right.
    """
    offset, tables = _whole(found.offset), [_whole(table) for table in found.tables]
    right = 0
    for codes, times in records.pieces():
        scores = np.tile(offset, (len(codes), 1))
        for place, table in enumerate(tables):
            scores += table[codes[:, place]]
        right += int(times[(scores.argmax(axis=1) == codes[:, -1]) & (codes[:, -1] < outputs)].sum())
    return right


def _whole(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Integers:
    return np.rint(_FINE * np.clip(numbers, -_LARGEST, _LARGEST)).astype(np.int64)
