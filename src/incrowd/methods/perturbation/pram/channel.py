"""Channel: categories change at random by a matrix of exact probabilities, which bounds the privacy loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from incrowd.core.claims.claim import GROUPS, Claim, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, ExtraRowsRule, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.steps import (
    Exactness,
    KeptStatistic,
    Masking,
    Statistics,
    by_group,
    column_list,
    reads_unreleased,
)

Matrix = tuple[tuple[Fraction, ...], ...]
Labels = tuple[str | None, ...]
_LARGEST = 2**62
"""The largest common denominator of a row: coins draw whole numbers below it."""
_DIGITS = 60  # of a logarithm that is rounded up at the 18th decimal
_STEPS = 2**40  # probabilities are multiples of 2⁻⁴⁰, so that they are drawn exactly, and a file of them is short
_WORST = 1e10
"""The largest condition number behind which frequencies are estimated."""

_SOURCE = Theorem(
    "pram-ratio",
    "Warner 1965; Gouweleeuw et al. 1998: each record is changed by itself, and no outcome is"
    " likelier by more than the largest ratio within a column of the matrix",
)
_EVERY = Condition(
    "matrix-fixed-without-rows",
    "every released column is changed by a matrix without zeros that was fixed without the rows",
)
_ALONE = Condition("row-changed-alone", "each row is changed independently of the others")
_NUMBER = Exposure(
    "number-of-rows-shown",
    "how many rows there are: the output has as many, and a replaced row leaves their number as it is",
)


def check_matrix(matrix: Matrix, size: int, name: str) -> None:
    """Refuse what is not a matrix of probabilities of `size` categories.

    >>> check_matrix(((Fraction(1, 2), Fraction(1, 3)), (Fraction(0), Fraction(1))), 2, "sex")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: row 1 of the matrix of 'sex' adds up to 5/6, not to 1.
    """
    if len(matrix) != size or any(len(row) != size for row in matrix):
        raise InvalidParameter(f"{name!r} has {size} categories with missing and other: its matrix needs {size} rows.")
    for number, row in enumerate(matrix, 1):
        if any(entry < 0 for entry in row):
            raise InvalidParameter(f"row {number} of the matrix of {name!r} has a probability below 0.")
        if sum(row) != 1:
            raise InvalidParameter(f"row {number} of the matrix of {name!r} adds up to {sum(row)}, not to 1.")
        if math.lcm(*(entry.denominator for entry in row)) > _LARGEST:
            raise InvalidParameter(f"row {number} of the matrix of {name!r} has too many digits for exact draws.")


def staying(stay: Fraction, blocks: Sequence[int]) -> Matrix:
    """Return the matrix by which a category stays with some probability, and else becomes another one of its block.

    >>> [" ".join(map(str, row)) for row in staying(Fraction(4, 5), (0, 0, 1))]
    ['4/5 1/5 0', '1/5 4/5 0', '0 0 1']
    """
    never, sizes = Fraction(0), Counter(blocks)
    moves = {block: (1 - stay) / (size - 1) if size > 1 else never for block, size in sizes.items()}
    rows = []
    for row, block in enumerate(blocks):
        entries = [moves[block] if block == other else never for other in blocks]
        entries[row] = stay if sizes[block] > 1 else Fraction(1)
        rows.append(tuple(entries))
    return tuple(rows)


def invariant(matrix: Matrix, frequencies: Sequence[Fraction]) -> Matrix:
    """Return the matrix made from another one that preserves some frequencies on average, to 2⁻⁴⁰.

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
    """Whether frequencies can be estimated from the output of a matrix without losing nearly all digits.

    >>> invertible(staying(Fraction(4, 5), (0, 0))), invertible(staying(Fraction(1, 2), (0, 0)))
    (True, False)
    """
    return bool(np.linalg.cond(np.array([[float(entry) for entry in row] for row in matrix])) < _WORST)


def ratio(matrix: Matrix) -> Fraction | None:
    """Return the largest ratio of the probabilities of one outcome under two categories; None without a bound.

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
    """Return an upper bound of the logarithm of a number of at least 1, within 2e-18.

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
class Channel:
    """How columns change together: the labels of each, and the probabilities of all combinations, the last fastest.

    A category stays with probability `stay` and else becomes another one of its block; or `matrix` has all
    probabilities.  Without either, the matrix was made from the rows.
    """

    columns: tuple[str, ...]
    labels: tuple[Labels, ...]
    stay: Fraction | None = None
    blocks: tuple[int, ...] | None = None
    matrix: Matrix | None = None

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.labels) or not self.columns:
            raise InvalidParameter("each column that changes has a list of its labels.")
        if self.stay is not None and (self.matrix is not None or not 0 <= self.stay <= 1):
            raise InvalidParameter("a category stays with a probability from 0 to 1, or a matrix says all.")
        if self.blocks is not None and (self.stay is None or len(self.blocks) != self.size):
            raise InvalidParameter("blocks are stated for each category, with the probability to stay.")
        if self.matrix is not None:
            check_matrix(self.matrix, self.size, ", ".join(self.columns))

    @property
    def size(self) -> int:
        """The number of combinations."""
        return math.prod(map(len, self.labels))

    @cached_property
    def probabilities(self) -> Matrix | None:
        """The probabilities, or None if they were made from the rows."""
        if self.stay is None:
            return self.matrix
        return staying(self.stay, self.blocks or (0,) * self.size)

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of the probabilities of an outcome under two records; None without a bound."""
        return None if self.probabilities is None else ratio(self.probabilities)


@dataclass(frozen=True, kw_only=True)
class Randomize(Masking):
    """Categories change at random; `others` are released columns that do not.

    `drafted`: some domain was drafted from rows.  `drops`: a row may be suppressed because of its values.
    """

    kind: ClassVar[str] = "randomize"
    title: ClassVar[str] = "Change at random"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "pram-unbiased", "Gouweleeuw et al. 1998: P⁻ᵀ applied to the released counts is unbiased"
    )

    channels: tuple[Channel, ...]
    others: tuple[str, ...]
    drafted: bool
    drops: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if set(self.others) & set(self.changes):
            raise InvalidParameter("a column is changed, or it is not.")

    @property
    def changes(self) -> tuple[str, ...]:
        return tuple(name for channel in self.channels for name in channel.columns)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        return {
            name: Displacement(DistanceKind.CATEGORY, 0.1 if channel.stay is None else float(1 - channel.stay))
            for channel in self.channels
            for name in channel.columns
        }

    @property
    def statistics(self) -> Statistics:
        """Frequencies of rows, on average or by an estimate; none where households change as one."""
        matrices = [channel.probabilities for channel in self.channels]
        if self.household is not None:
            return ()
        if None in matrices:
            return ((KeptStatistic.FREQUENCIES, Exactness.MEAN),) if not any(matrices) else ()
        possible = all(invertible(matrix) for matrix in matrices if matrix is not None)
        return ((KeptStatistic.FREQUENCIES, Exactness.ESTIMATED),) if possible else ()

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed separately, by probabilities that were not made from all rows."""
        return self.household is None and all(channel.probabilities is not None for channel in self.channels)

    def ratio(self, unit: Unit) -> Fraction | None:
        """Return the largest ratio of the probabilities of an output under neighboring tables; None without a bound."""
        one_row = unit.max_rows == 1 and unit.more is not ExtraRowsRule.DROP
        whole = not self.others and not self.drafted and not self.drops and self.record_wise
        if not whole or unit.adjacency is not Adjacency.REPLACE or not one_row:
            return None
        ratios = [channel.ratio for channel in self.channels if channel.ratio is not None]
        return math.prod(ratios, start=Fraction(1)) if len(ratios) == len(self.channels) else None

    def check_order(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:
        """Refuse a mask before this one after which a column may have values without probabilities here.

        Otherwise the presence of such a value would decide, after the charge, whether anything can be released.
        """
        super().check_order(before, after)
        labels = {
            name: frozenset(labels)
            for channel in self.channels
            for name, labels in zip(channel.columns, channel.labels, strict=True)
        }
        for step in before:
            names = sorted(name for name in {*step.changes} & {*labels} if not step.stays_among(name, labels[name]))
            if names:
                raise InvalidParameter(
                    f"{names[0]!r} changes at random among its declared values, and after the step {step.kind!r} may "
                    "show others: read it at a higher level, or put that step later."
                )

    def stays_among(self, name: str, labels: frozenset[str | None]) -> bool:
        return True

    @property
    def sentence(self) -> str:
        stated = all(channel.probabilities is not None for channel in self.channels)
        how = "by the probabilities named here" if stated else "by probabilities made from all rows, which are not told"
        unit = "row by row" if self.household is None else "for each household as one"
        return f"Categories of {column_list(self.changes)} change at random, {unit}, {how}{by_group(self.within)}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε to each record that is changed whole; the steps that follow must read the changed table alone."""
        worst = self.ratio(unit)
        if worst is None or reads_unreleased(inner):
            return super().around(inner, unit)
        return StepGuarantee(Pure(logarithm_up(worst)), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim also differential privacy, where it is guaranteed."""
        preserved = super().claims(basis)
        if basis.guarantee.syntactic or self.ratio(basis.unit) is None:
            return preserved
        unit = basis.unit
        private = PurePrivacy(
            epsilon=basis.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            unit=unit,
            theorem=(_SOURCE,),
            preconditions=(*proved(_EVERY, _ALONE), *assumed(basis.guarantee.assumes)),
            not_protected=(GROUPS, _NUMBER),
        )
        return (private, *preserved)
