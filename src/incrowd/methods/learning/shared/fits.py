"""Fits: models from noisy statistics alone, in floating point; nothing here reads a row or costs anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.learning.shared.statistics import RESIDUAL, SCORE, Integers

Floats = NDArray[np.float64]
_MOMENTUM = 0.9  # usual value; what follows here works on noisy sums only, so every constant is private
_DAMPING = 0.6  # of a start from other tables, which trust themselves too much
_LARGEST = 8.0  # e^8: a score beyond is as good as certain
_STARTS, _LLOYD = 8, 20  # of k-means on noisy points; more is slower and rarely better


@dataclass(frozen=True, eq=False)
class Scores:
    """A score for each class of the target: one for all rows, and one for each class of each column, stacked."""

    intercepts: Floats
    tables: Floats

    @property
    def rounded(self) -> tuple[Integers, Integers]:
        """The same as whole numbers, which is what rows are scored by."""
        return tuple(np.rint(SCORE * np.clip(part, -_LARGEST, _LARGEST)).astype(np.int64) for part in self._both)  # type: ignore[return-value]

    @property
    def _both(self) -> tuple[Floats, Floats]:
        return self.intercepts, self.tables

    @property
    def paired(self) -> Scores:
        """The same with a score for both of two classes, where there is one for the second alone."""
        if len(self.intercepts) != 1:
            return self
        first, second = (np.concatenate([np.zeros_like(part), part], axis=-1) for part in self._both)
        return Scores(first, second)

    def centered(self, shares: Floats, sizes: Sequence[int]) -> Scores:
        """Return the same sums, where the scores of each column are 0 on average over shares of its classes."""
        tables, intercepts, start = self.tables.copy(), self.intercepts.copy(), 0
        for size in sizes:
            part = slice(start, start + size)
            mean = shares[part] @ tables[part] / max(1e-12, float(shares[part].sum()))
            tables[part], intercepts, start = tables[part] - mean, intercepts + mean, start + size
        return Scores(intercepts, tables)


def total_rows(tables: Integers, sizes: Sequence[int]) -> Floats:
    """Return how many rows each class of the target has, from all tables; one with few classes counts more."""
    starts = np.cumsum([0, *sizes])[:-1]
    sums = np.add.reduceat(tables.astype(np.float64), starts, axis=0)
    weights = 1.0 / np.array(sizes, np.float64)
    rows: Floats = np.maximum(1.0, weights @ sums / weights.sum())
    return rows


def naive_bayes(tables: Integers, sizes: Sequence[int], deviation: float) -> Scores:
    """Return the scores of naive Bayes from noisy tables of each column by the target, smoothed by their noise."""
    rows = total_rows(tables, sizes)
    scores, start = np.empty(tables.shape), 0
    for size in sizes:
        part = slice(start, start + size)
        counts = np.maximum(tables[part], 0.0)
        alike = counts.sum(axis=1, keepdims=True) / max(1.0, counts.sum())
        prior = (deviation + 1.0) * (alike * size + 0.1)
        smooth = counts + prior
        scores[part] = np.log(smooth / smooth.sum(axis=0))
        start += size
    return Scores(np.log(rows / rows.sum()), scores)


@dataclass(frozen=True)
class Descent:
    """How gradients are followed: how many, how far, and how many rows there are, by a noisy count.

    A penalty of so many rows draws every number but those of all rows to 0.
    """

    rounds: int
    rate: float
    rows: float
    penalty: float = 0.0


Measured = Callable[[Integers, Integers], Integers]
"""A noisy gradient at whole numbers: those of all rows, and those of each class of each column."""


def descend(measured: Measured, descent: Descent, columns: int, start: Scores) -> Scores:
    """Follow noisy gradients with momentum, and return the mean of the last half of the way."""
    flat = np.concatenate([start.tables, start.intercepts[None]])
    speed, mean, last = np.zeros_like(flat), np.zeros_like(flat), descent.rounds // 2
    step = descent.rate / (descent.rows * (columns + 1))
    for number in range(descent.rounds):
        slopes = measured(*Scores(flat[-1], flat[:-1]).rounded) / RESIDUAL
        speed = _MOMENTUM * speed + (1 - _MOMENTUM) * slopes
        flat = np.clip(flat + step * speed, -_LARGEST, _LARGEST)
        if number >= last:
            mean += flat / (descent.rounds - last)
    return Scores(mean[-1], mean[:-1])


def refine(measured: Measured, descent: Descent, start: Scores, counts: Floats) -> Scores:
    """Follow noisy gradients from a damped start, each class of a column at the pace of its own noisy count."""
    flat = np.concatenate([_DAMPING * start.tables, start.intercepts[None]])
    weights = np.append(counts, descent.rows)[:, None]
    penalty = np.append(np.full(len(counts), descent.penalty), 0.0)[:, None]
    mean, last = np.zeros_like(flat), descent.rounds // 2
    for number in range(descent.rounds):
        slopes = measured(*Scores(flat[-1], flat[:-1]).rounded) / RESIDUAL
        flat = np.clip(flat + descent.rate * (slopes - penalty * flat) / weights, -_LARGEST, _LARGEST)
        if number >= last:
            mean += flat / (descent.rounds - last)
    return Scores(mean[-1], mean[:-1])


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear function: what it says of the vector 0, and of each feature, a column for each output."""

    intercepts: Floats
    slopes: Floats


@dataclass(frozen=True, eq=False)
class RowSpread:
    """What moments say: how many rows, the mean of vectors and targets, and how they vary together, per row."""

    rows: float
    mean: Floats
    covariance: Floats

    @classmethod
    def of(cls, moments: Integers, features: int, one: int, noise: float) -> RowSpread:
        """Return means and covariances of everything but the constant, which stands after the features.

        There are at least about as many rows as noise could be, and means shrink where they are mostly noise.
        """
        others, doubt = np.delete(np.arange(len(moments)), features), noise / one**2
        rows = max(1.0, doubt, float(moments[features, features]) / one**2)
        mean = moments[others, features] / (one * rows) * rows**2 / (rows**2 + doubt**2)
        second = moments[np.ix_(others, others)] / rows
        return cls(rows, mean, second - np.outer(mean, mean))


def ridge(spread: RowSpread, features: int, noise: float) -> LinearModel:
    """Return the least squares line with a penalty as large as the noise, per row; the intercept has none."""
    own, cross = spread.covariance[:features, :features], spread.covariance[:features, features:]
    values, basis = np.linalg.eigh(own)
    inverse = 1.0 / (np.maximum(values, 0.0) + noise / spread.rows)
    slopes = basis @ (inverse[:, None] * (basis.T @ cross))
    mean = spread.mean
    return LinearModel(mean[features:] - mean[:features] @ slopes, slopes)


def shrunken(shares: Floats, deviation: float) -> Floats:
    """Return shares of classes, drawn to equal ones by as much as noise of a deviation alone would set them apart.

    >>> shrunken(np.array([0.5, 0.3, 0.2]), 0.0).round(3).tolist(), shrunken(np.array([0.4, 0.3, 0.3]), 9.0).tolist()
    ([0.5, 0.3, 0.2], [0.3333333333333333, 0.3333333333333333, 0.3333333333333333])
    """
    apart = shares - shares.mean()
    noise = 2.0 * (len(shares) - 1) * deviation**2
    share = max(0.0, 1.0 - noise / max(1e-300, float(apart @ apart)))
    equal: Floats = 1.0 / len(shares) + share * apart
    return equal


def spread_points(number: int, width: int, length: float) -> Floats:
    """Return public points far from each other, of about this length: the farthest of many, one after the other."""
    chance = np.random.default_rng(20_110_331)
    pool = chance.normal(size=(64 * number, width))
    pool *= length / np.maximum(1e-9, np.linalg.norm(pool, axis=1))[:, None]
    chosen = [pool[0]]
    while len(chosen) < number:
        away = np.min([((pool - center) ** 2).sum(axis=1) for center in chosen], axis=0)
        chosen.append(pool[int(away.argmax())])
    return np.array(chosen)


def even_points(number: int, width: int, most: float) -> Floats:
    """Return at least so many public points that part rows evenly, each number between −most and most.

    They are the middles of a grid over all axes.  Where two parts of each axis would be more than enough, they lie on
    both sides of the middle along fewer public directions: a row is nearest to the point on its own side of each.
    """
    if 2**width <= number:
        parts = next(parts for parts in range(2, number + 1) if parts**width >= number)
        middles = most * ((2.0 * np.arange(parts) + 1.0) / parts - 1.0)
        return np.stack(np.meshgrid(*[middles] * width, indexing="ij"), axis=-1).reshape(-1, width)
    bits = max(1, (number - 1).bit_length())
    axes = np.linalg.qr(np.random.default_rng(20_110_402).normal(size=(width, bits)))[0].T
    sides = ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1) - 0.5
    points: Floats = most * (sides @ (np.eye(width) if bits == width else axes))
    return points


def found_centers(sums: Floats, counts: Floats, doubt: float, number: int, length: float) -> Floats:
    """Return so many centers of the noisy means of groups of rows, of which those below twice their noise say nothing.

    Where fewer groups remain than there are centers, public points follow them.
    """
    enough = counts > 2.0 * doubt
    means = sums[enough] / counts[enough][:, None]
    if len(means) < number:
        return np.concatenate([means, spread_points(number, sums.shape[1], length)])[:number]
    return weighted_centers(means, counts[enough], number, length)


def weighted_centers(points: Floats, weights: Floats, number: int, length: float) -> Floats:
    """Return centers of weighted points by Lloyd's steps, the best of several public starts; weights are not negative.

    One start lies far apart; the others take points one after the other, each with a chance that grows with its weight
    and its squared distance from those before.
    """
    chance = np.random.default_rng(20_110_401)
    if not weights.sum():
        return spread_points(number, points.shape[1], length)
    starts = [spread_points(number, points.shape[1], length)]
    for _ in range(_STARTS):
        chosen = [points[chance.choice(len(points), p=weights / weights.sum())]]
        while len(chosen) < number:
            away = weights * np.min([((points - result) ** 2).sum(axis=1) for result in chosen], axis=0)
            total = away.sum()
            chosen.append(points[chance.choice(len(points), p=away / total if total > 0 else weights / weights.sum())])
        starts.append(np.array(chosen))
    results = [_lloyd(points, weights, start) for start in starts]
    return min(results, key=lambda result: result[1])[0]


def _lloyd(points: Floats, weights: Floats, centers: Floats) -> tuple[Floats, float]:
    """Return centers after some of Lloyd's steps, and how far points then lie from them."""
    for _ in range(_LLOYD):
        nearest = _distances(points, centers).argmin(axis=1)
        rows = np.bincount(nearest, weights, len(centers))
        sums = np.stack([np.bincount(nearest, weights * coordinate, len(centers)) for coordinate in points.T], axis=1)
        centers = np.where(rows[:, None] > 0, sums / np.maximum(rows, 1e-9)[:, None], centers)
    return centers, float(weights @ _distances(points, centers).min(axis=1))


def _distances(points: Floats, centers: Floats) -> Floats:
    away: Floats = (centers**2).sum(axis=1) - 2.0 * points @ centers.T + (points**2).sum(axis=1)[:, None]
    return np.maximum(away, 0.0)
