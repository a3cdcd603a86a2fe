"""Matrix: with which probability each category becomes which, exactly; its price, and the frequencies behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

Matrix = tuple[tuple[Fraction, ...], ...]
_LARGEST = 2**62
_DIGITS = 60
_STEPS = 2**40
_WORST = 1e10


def check_matrix(matrix: Matrix, size: int, name: str) -> None:
    """Refuse what is no matrix of probabilities of so many categories.

    >>> check_matrix(((Fraction(1, 2), Fraction(1, 3)), (Fraction(0), Fraction(1))), 2, "sex")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: row 1 of the matrix of 'sex' adds up to 5/6, not to 1.
    """
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise InvalidParameter(
            f"{name!r} has {size} categories, missing and other ones counted: so many rows and columns."
        )
    for number, row in enumerate(matrix, 1):
        if any(entry < 0 for entry in row):
            raise InvalidParameter(f"row {number} of the matrix of {name!r} has a probability below 0.")
        if sum(row) != 1:
            raise InvalidParameter(f"row {number} of the matrix of {name!r} adds up to {sum(row)}, not to 1.")
        if math.lcm(*(entry.denominator for entry in row)) > _LARGEST:
            raise InvalidParameter(
                f"row {number} of the matrix of {name!r} has too many digits to be drawn from exactly."
            )


def staying(stay: Fraction, blocks: Sequence[int]) -> Matrix:
    """Return the matrix by which a category stays with some probability, and else becomes another one of its block.

    >>> [" ".join(map(str, row)) for row in staying(Fraction(4, 5), (0, 0, 1))]
    ['4/5 1/5 0', '1/5 4/5 0', '0 0 1']
    """
    never, sizes = Fraction(0), Counter(blocks)
    moves = {block: (1 - stay) / (size - 1) if size > 1 else never for block, size in sizes.items()}
    rows = []
    for row, mine in enumerate(blocks):
        entries = [moves[mine] if mine == other else never for other in blocks]
        entries[row] = stay if sizes[mine] > 1 else Fraction(1)
        rows.append(tuple(entries))
    return tuple(rows)


def invariant(matrix: Matrix, frequencies: Sequence[Fraction]) -> Matrix:
    """Return the matrix made from another one that leaves some frequencies as they are on average, to 2⁻⁴⁰.

    Source: Gouweleeuw, Kooiman, Willenborg & de Wolf 1998: R = PQ with Q_lk = P_kl T_k / Σ_j P_jl T_j.
    """
    size = range(len(matrix))
    reached = [sum((matrix[j][column] * frequencies[j] for j in size), Fraction(0)) for column in size]
    back = [
        [
            matrix[k][column] * frequencies[k] / reached[column] if reached[column] else Fraction(int(k == column))
            for k in size
        ]
        for column in size
    ]
    return tuple(
        _shortened(
            [sum((matrix[row][middle] * back[middle][column] for middle in size), Fraction(0)) for column in size], row
        )
        for row in size
    )


def _shortened(entries: list[Fraction], own: int) -> tuple[Fraction, ...]:
    """Return probabilities in steps of 2⁻⁴⁰, those of other categories rounded down, so that they are drawn exactly."""
    others = [
        Fraction(int(entry * _STEPS), _STEPS) if place != own else Fraction(0) for place, entry in enumerate(entries)
    ]
    others[own] = 1 - sum(others, Fraction(0))
    return tuple(others)


def invertible(matrix: Matrix) -> bool:
    """Whether frequencies can be estimated behind a matrix, without losing nearly all digits.

    >>> invertible(staying(Fraction(4, 5), (0, 0))), invertible(staying(Fraction(1, 2), (0, 0)))
    (True, False)
    """
    return bool(np.linalg.cond(np.array([[float(entry) for entry in row] for row in matrix])) < _WORST)


def ratio(matrix: Matrix) -> Fraction | None:
    """Return by how much one outcome is likelier for one category than for another, at most; None without a bound.

    >>> ratio(staying(Fraction(4, 5), (0, 0)))
    Fraction(4, 1)
    """
    worst = Fraction(1)
    for column in zip(*matrix, strict=True):
        if max(column) == 0:
            continue
        if min(column) == 0:
            return None
        worst = max(worst, max(column) / min(column))
    return worst


def logarithm_up(value: Fraction) -> Fraction:
    """Return a fraction that is not below the logarithm of a number of at least 1, and hardly above it.

    >>> 0 <= float(logarithm_up(Fraction(4))) - math.log(4) < 1e-15
    True
    >>> logarithm_up(Fraction(1))
    Fraction(0, 1)
    """
    if value == 1:
        return Fraction(0)
    with localcontext() as context:
        context.prec = _DIGITS
        near = (Decimal(value.numerator) / Decimal(value.denominator)).ln()
        return Fraction(math.ceil(Fraction(near) * 10**18 + Fraction(1, 10**20)), 10**18)


@dataclass(frozen=True)
class FrequencyEstimate:
    """Estimated frequencies of categories before they were changed, with covariances over the coins."""

    counts: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of each estimate."""
        return np.sqrt(np.maximum(0.0, np.diag(self.covariance)))


def estimate(matrix: Matrix, released: NDArray[np.int64]) -> FrequencyEstimate:
    """Return unbiased estimates of how often each category occurred, from how often each was released.

    T̂ = P⁻ᵀ T*, whose covariance is P⁻ᵀ [Σ_k T_k (diag p_k − p_k p_kᵀ)] P⁻¹, with the estimates in place of T.

    Source: Gouweleeuw, Kooiman, Willenborg & de Wolf 1998; the covariance is a plug-in estimate.

    >>> estimate(staying(Fraction(3, 4), (0, 0)), np.array([60, 40])).counts.round(6).tolist()
    [70.0, 30.0]
    """
    probabilities = np.array([[float(entry) for entry in row] for row in matrix])
    if not invertible(matrix):
        raise InvalidParameter("this matrix cannot be inverted: the frequencies behind it cannot be estimated.")
    inverse = np.linalg.inv(probabilities)
    counts = inverse.T @ released.astype(np.float64)
    spread = sum(
        max(0.0, count) * (np.diag(row) - np.outer(row, row)) for count, row in zip(counts, probabilities, strict=True)
    )
    return FrequencyEstimate(np.asarray(counts, np.float64), inverse.T @ spread @ inverse)
