"""Linkage: how often a masked record is still nearest to its original.

It needs tables whose rows correspond: `released[i]` was made from `original[i]`.

Distances are Euclidean after dividing each column by the standard deviation of the *original*.  Robust distances center
by the median, divide by the median absolute deviation and remove the correlations of ranks, so that a few extreme
values do not determine distances.  Of t records at the same distance, each is chosen with probability 1/t.

Source: Pagliuca & Seri 1999; Templ, Meindl & Kowarik 2015 for robust distances; Domingo-Ferrer & Torra 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score, share

Matrix = NDArray[np.float64]
_CELLS = 2**22  # distances in memory at a time: 32 MB
_MOST = 20_000  # rows that are linked, evenly spaced: fewer is faster, more is finer
_NORMAL = 1.482602218505602  # the median absolute deviation of a normal law, inverted
_LINKED = "share of released records whose original is among the {} nearest"


def record_linkage(original: Matrix, released: Matrix, nearest: int = 1, *, robust: bool = False) -> Score:
    """Return how often the right record is among the nearest; at most 20,000 records, evenly spaced, are tested.

    >>> x = np.array([[1.0, 10], [2, 20], [3, 30], [4, 40], [10, 100]])
    >>> y = np.array([[1.2, 12], [2.9, 24], [2.8, 33], [4.4, 39], [9, 90]])
    >>> record_linkage(x, y).value
    0.8
    """
    x, y = _both(original, released)
    if nearest < 1:
        raise InvalidParameter("the number of nearest records must be at least 1.")
    to = _robust(x) if robust else _standard(x)
    one, other = to(x), to(y)
    rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), _MOST)).astype(np.intp))
    right = sum(
        float(_shared(one, other, part, nearest).sum())
        for part in np.array_split(rows, max(1, -(-len(rows) * len(x) // _CELLS)))
    )
    return share("record linkage", right, len(rows), _LINKED.format(nearest))


def _shared(x: Matrix, y: Matrix, rows: NDArray[np.intp], nearest: int) -> Matrix:
    """Return for each tested record the probability that its original is among the nearest; ties share places."""
    distance = np.zeros((len(rows), len(x)))
    for column in range(x.shape[1]):  # differences first: sums of squares minus products lose the ties
        distance += (y[rows, column][:, None] - x[None, :, column]) ** 2
    own = distance[np.arange(len(rows)), rows][:, None]
    closer, equal = (distance < own).sum(axis=1), (distance == own).sum(axis=1)
    return np.asarray(np.clip((nearest - closer) / equal, 0.0, 1.0))


def _both(original: Matrix, released: Matrix) -> tuple[Matrix, Matrix]:
    x, y = np.asarray(original, np.float64), np.asarray(released, np.float64)
    if x.ndim != 2 or x.shape != y.shape or not len(x):
        raise InvalidParameter(
            "linkage compares row by row: give two tables of numbers with the same rows and columns, at least one."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InvalidParameter("distances need numbers in every cell: omit rows with missing values.")
    return x, y


def _spread(x: Matrix) -> Matrix:
    spread = x.std(axis=0, ddof=1) if len(x) > 1 else np.ones(x.shape[1])
    return np.asarray(np.where(spread > 0, spread, 1.0))


Scaling = Callable[[Matrix], Matrix]
"""A linear map that makes columns comparable."""


def _scaled(center: Matrix, factors: Matrix, table: Matrix) -> Matrix:
    return np.asarray((table - center) @ factors)


def _standard(x: Matrix) -> Scaling:
    return partial(_scaled, np.zeros(x.shape[1]), np.diag(1.0 / _spread(x)))


def _robust(x: Matrix) -> Scaling:
    """Return the map of robust Mahalanobis distances: medians, absolute deviations, correlations of ranks."""
    center = np.median(x, axis=0)
    spread = _NORMAL * np.median(np.abs(x - center), axis=0)
    spread = np.where(spread > 0, spread, _spread(x))
    if x.shape[1] == 1:
        return partial(_scaled, center, np.diag(1.0 / spread))
    values, vectors = np.linalg.eigh(_correlation(_ranks(x)))
    whitened = vectors / np.sqrt(np.maximum(values, 1e-3))
    return partial(_scaled, center, np.diag(1.0 / spread) @ whitened)


def _correlation(ranks: Matrix) -> Matrix:
    """Return Pearson's correlations as those of ranks imply them for normal columns; a constant column has none."""
    centered = ranks - ranks.mean(axis=0)
    length = np.sqrt((centered**2).sum(axis=0))
    related = centered.T @ centered / np.where(length > 0, length, 1.0)[:, None] / np.where(length > 0, length, 1.0)
    normal = 2.0 * np.sin(np.pi / 6.0 * np.clip(related, -1.0, 1.0))
    np.fill_diagonal(normal, 1.0)
    return np.asarray(normal)


def _ranks(table: Matrix) -> Matrix:
    """Return ranks from 1 by column; equal numbers share the middle of theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(table, axis=0), np.float64)
