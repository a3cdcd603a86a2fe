"""Perturbation of all cells: controlled rounding, which keeps totals, and noise by cell keys, which repeats.

Every record has a key, uniform below 2^64.  A cell's key is the sum of its records' keys; for a cell that is not empty
it is uniform, too.  It picks the noise from a row of a table of probabilities, one row a count.  So the same records
always get the same noise.

Source: Cox 1987 (rounding is always possible in two dimensions); Salazar-González 2005 for its program; Thompson,
Broadfoot & Elazar 2013 for cell keys; Marley & Leaver 2011 for the largest entropy.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole

_SECONDS, _GAP = 45.0, 0.02
"""So long a rounding is sought, or until it is so near to the best one; then the best so far is taken."""
_EXACT = 1000
"""Up to so many finest cells the best rounding is sought."""


@dataclass(frozen=True, eq=False)
class NearTable:
    """All cells as published; how far they are from the truth together, and how far every such table is at least.

    Both numbers follow from true cells, and are for the data holder alone.
    """

    cells: Whole
    distance: int
    least: float

    @property
    def for_holder(self) -> dict[str, float]:
        """The distances."""
        return {"distance": self.distance, "least possible distance": self.least}


def round_cells(frame: TableFrame, leaves: Whole, base: int, seconds: float = _SECONDS) -> NearTable:
    """Return all cells, rounded so that totals add up, as near to the truth in the finest cells as could be found.

    A multiple of the base stays what it is; of any other number one of the two neighbors is taken.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> round_cells(sex, np.array([6, 11]), 5).cells.tolist()
    [15, 5, 10]
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cells = frame.totals(leaves).ravel()
    down, rest = np.divmod(leaves.ravel(), base)
    least, most = cells // base - frame.matrix @ down, -(-cells // base) - frame.matrix @ down
    upper = np.setdiff1d(np.arange(frame.size), frame.leaves)
    solution = milp(
        (base - 2 * rest).astype(np.float64),
        constraints=LinearConstraint(frame.matrix[upper], least[upper], most[upper]),
        bounds=Bounds(0, (rest > 0).astype(np.float64)),
        integrality=np.ones(len(rest)),
        options={"time_limit": seconds, "mip_rel_gap": 0.0 if len(rest) <= _EXACT else _GAP},
    )
    if solution.x is not None:
        rounded = base * (down + np.rint(solution.x).astype(np.int64))
        result: Whole = frame.totals(rounded.reshape(leaves.shape))
        if np.all(np.abs(result.ravel() - cells) < base):
            distance = int(np.abs(rounded - leaves.ravel()).sum())
            return NearTable(result, distance, float(rest.sum() + solution.mip_dual_bound))
    raise Infeasible(
        f"this table cannot be rounded to multiples of {base} so that every cell is a neighbor of the truth and all "
        "totals add up, or no such rounding was found: with three columns, or two nested ones, there may be none. "
        "Choose another base, fewer columns, or suppression."
    )


Row = dict[int, Fraction]
"""The noise that a count can get, with its probability."""

_WORD = 2**64  # a cell key is compared as a number of 64 bits
_FINE = 2**60
_LEAST_KEY = 32  # bytes: as long as the HMAC's digest, beyond guessing
_MOST = 50  # larger noise hides the counts that a table is for


@dataclass(frozen=True)
class KeyNoise:
    """Noise of at most `largest`, with mean zero and a variance; no published count is from 1 to `gap`.

    >>> KeyNoise(5, Fraction(3)).zero_to_one() > Fraction(37, 100)
    True
    """

    largest: int
    variance: Fraction
    gap: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.largest <= _MOST:
            raise InvalidParameter(f"the largest noise of a count is from 1 to {_MOST}.")
        if not 0 <= self.gap < self.largest:
            raise InvalidParameter(
                "gap is the largest count that is never published: from 0 to below the largest noise."
            )
        for count in range(1, self.rows + 1):
            self._check(count)

    @property
    def rows(self) -> int:
        """From this count on all have the same noise."""
        return self.largest + self.gap + 1 if self.gap else self.largest

    def allowed(self, count: int) -> list[int]:
        """Return the noise that a count can get: nothing below zero, nothing in the gap."""
        values = range(-min(count, self.largest), self.largest + 1)
        return [value for value in values if not 0 < count + value <= self.gap]

    def row(self, count: int) -> Row:
        """Return the probabilities of noise on a count, in exact numbers: they sum to 1, mean zero, the variance."""
        return {0: Fraction(1)} if count == 0 else _row(self, min(count, self.rows))

    @cached_property
    def _thresholds(self) -> tuple[tuple[NDArray[np.uint64], NDArray[np.int64]], ...]:
        """For each count the noise in order, and for all but the last the keys from which on it is not drawn."""
        thresholds = []
        for count in range(self.rows + 1):
            row = self.row(count)
            sums = np.cumsum(np.array([int(p * _WORD) for p in row.values()], object))[:-1]
            thresholds.append((np.array([int(total) for total in sums], np.uint64), np.array(list(row), np.int64)))
        return tuple(thresholds)

    def draw(self, counts: Whole, keys: NDArray[np.uint64]) -> Whole:
        """Return the noise of each count by its cell's key."""
        noise = np.zeros(len(counts), np.int64)
        rows = np.minimum(counts, self.rows)
        for count in np.unique(rows).tolist():
            edges, values = self._thresholds[count]
            noise[rows == count] = values[np.searchsorted(edges, keys[rows == count], side="right")]
        return noise

    def zero_to_one(self) -> Fraction:
        """Return the δ between a cell of nobody and one of one person, which no ε makes smaller."""
        return 1 - self.row(1).get(-1, Fraction(0))

    def delta(self, count: int, epsilon: float) -> float:
        """Return the δ at ε between a count and the next, of one cell published once, whichever is the truth."""
        here, there = ({count + n + v: float(p) for v, p in self.row(count + n).items()} for n in (0, 1))
        factor = exp(min(epsilon, 700.0))
        return max(
            sum(max(0.0, p - factor * second.get(x, 0.0)) for x, p in first.items())
            for first, second in ((here, there), (there, here))
        )

    def ends(self, count: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the two pairs of noise of which the least and the largest variance with mean zero consist."""
        values = self.allowed(count)
        near = (0, 0) if 0 in values else (max(v for v in values if v < 0), min(v for v in values if v > 0))
        return near, (min(values), max(values))

    def _check(self, count: int) -> None:
        least, most = (-low * high for low, high in self.ends(count))
        if not (least <= self.variance <= most and self.variance > 0):
            raise Infeasible(
                f"a count of {count} cannot get noise of variance {self.variance} with mean zero: it lies between "
                f"{least} and {most}. Choose another variance, a larger noise, or a smaller gap."
            )


@lru_cache(maxsize=4096)
def _row(noise: KeyNoise, count: int) -> Row:
    """Return the distribution of largest entropy: p(v) ∝ exp(a v + b v²), by Newton's method, then made exact."""
    for low, high in noise.ends(count):
        if -low * high == noise.variance:  # only these two values have it
            return {low: Fraction(high, high - low), high: Fraction(-low, high - low)}
    values = noise.allowed(count)
    v = np.array(values, np.float64)
    moments = np.stack([v, v * v - float(noise.variance)])
    point = np.zeros(2)
    for _ in range(500):
        p = _weights(point, moments)
        slope = moments @ p
        if np.abs(slope).max() < 1e-15:
            break
        bend = (moments * p) @ moments.T - np.outer(slope, slope)
        step = np.asarray(np.linalg.solve(bend + 1e-14 * np.eye(2), slope), np.float64)
        point = _damped(point, step, moments)
    return _exact(values, _weights(point, moments), noise.variance)


def _weights(at: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    score = at @ moments
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum())


def _damped(at: NDArray[np.float64], step: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Go along a step as far as the dual falls."""

    def dual(place: NDArray[np.float64]) -> float:
        score = place @ moments
        return float(score.max() + np.log(np.exp(score - score.max()).sum()))

    here, length = dual(at), 1.0
    while length > 1e-6 and dual(at - length * step) > here:
        length /= 2
    return at - length * step


def _exact(values: list[int], p: NDArray[np.float64], variance: Fraction) -> Row:
    """Return probabilities whose sum, mean and variance are exact: three likely neighbors take up the rounding."""
    best = max(
        range(len(values) - 2), key=lambda place: (values[place + 2] - values[place] == 2, p[place : place + 3].min())
    )
    three = range(best, best + 3)
    rest = {
        v: Fraction(round(float(q) * _FINE), _FINE)
        for n, (v, q) in enumerate(zip(values, p, strict=True))
        if n not in three
    }
    mass = 1 - sum(rest.values())
    mean = -sum(v * q for v, q in rest.items())
    square = variance - sum(v * v * q for v, q in rest.items())
    x, y, z = (values[n] for n in three)
    solved = {
        one: (square - (two + three_) * mean + two * three_ * mass) / ((one - two) * (one - three_))
        for one, two, three_ in ((x, y, z), (y, x, z), (z, x, y))
    }
    return dict(sorted({**rest, **solved}.items()))


def record_keys(secret: bytes, names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the key of each record from the holder's secret and the record's name, the same in every table.

    >>> record_keys(bytes(32), ["p1", "p2"])[1] == record_keys(bytes(32), ["p2"])[0]
    np.True_
    """
    if len(secret) < _LEAST_KEY:
        raise InvalidParameter(
            "the secret of record keys needs at least 32 bytes of chance: make one with 'openssl rand -out FILE 32'."
        )
    words = b"".join(hmac.digest(secret, b"record key\n" + name.encode(), "sha256")[:8] for name in names)
    return np.frombuffer(words, np.uint64)


def read_secret(file: str) -> bytes:
    """Return the secret behind the keys of records."""
    try:
        secret = Path(file).read_bytes()
    except OSError as error:
        raise InvalidParameter(f"the file key cannot be read: {error.strerror or 'no reason given'}.") from None
    record_keys(secret, ())
    return secret


def cell_keys(frame: TableFrame, cells: NDArray[np.intp], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the key of each cell: the sum of the keys of its records, each in a finest cell, modulo 2^64."""
    leaves = np.zeros(int(np.prod(frame.leaf_shape)), np.uint64)
    np.add.at(leaves, cells, keys)
    return np.asarray(frame.totals(leaves.reshape(frame.leaf_shape)).ravel())
