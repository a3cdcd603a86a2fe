"""Least squares by matrices: slow, obvious, for small domains; the oracle of every closed form."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.queries.workloads.marginals import Axes

Floats = NDArray[np.float64]


def marginal_matrix(sizes: Sequence[int], axes: Axes) -> Floats:
    """Return which cells of the whole domain each cell of a marginal counts."""
    cells = list(itertools.product(*map(range, sizes)))
    groups = list(itertools.product(*(range(sizes[axis]) for axis in axes)))
    return np.array([[float(tuple(cell[axis] for axis in axes) == group) for cell in cells] for group in groups])


def least_squares(asked: Floats, parts: Sequence[Floats], precisions: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the factors of all measurements in each answer, and the variances of the answers."""
    strategy = np.concatenate(parts)
    weights = np.concatenate([np.full(len(part), precision) for part, precision in zip(parts, precisions, strict=True)])
    scaled = np.sqrt(weights)[:, None] * strategy
    factors = asked @ np.linalg.pinv(scaled, rcond=1e-12) * np.sqrt(weights)[None, :]
    assert np.allclose(factors @ strategy, asked, atol=1e-8), "the strategy does not tell what is asked"
    return factors, (factors**2 / weights[None, :]).sum(axis=1)
