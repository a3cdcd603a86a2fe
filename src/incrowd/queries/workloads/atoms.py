"""Atoms: least squares over noisy counts of blocks of a domain, where queries tell no two cells of an atom apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter

Labels = NDArray[np.int64]
"""For each cell, or atom, its place among some blocks or groups, −1 where it is in none."""

MOST_ATOMS = 2048  # the strategy's matrix is square in them: 32 MB
MOST_NUMBERS = 2**21  # entries of a strategy: 16 MB
_FEW, _BRANCHINGS = 100, (2, 3, 4, 8, 16, 32)  # trees tried as strategies; more is slower, every one is private
_ROUNDS = 4  # of balancing shares; what is returned is priced exactly
_SMALL = 1e-6  # floats this near to a whole number are one


@dataclass(frozen=True)
class Blocks:
    """Disjoint sets of atoms that are counted: `size` neighbors each, or what disjoint queries count."""

    size: int | None = None
    questions: tuple[int, ...] = ()


@dataclass(frozen=True)
class AtomStrategy:
    """Blocks to be measured, their shares of the price as whole numbers, and the total of variances at a price of 1."""

    parts: tuple[Blocks, ...]
    shares: tuple[int, ...]
    error: float


def atoms_of(labels: Sequence[Labels], cells: int) -> Labels:
    """Return for each cell its atom, in the order of the cells: one for all cells that no query tells apart.

    Cells that no query counts are in none.  Where there are too many atoms, they are not told apart any further.

    >>> atoms_of([np.array([0, 0, 1, -1, 1])], 5).tolist()
    [0, 0, 1, -1, 1]
    """
    code, counted = np.zeros(cells, dtype=np.int64), np.zeros(cells, dtype=np.bool_)
    for label in labels:
        counted |= label >= 0
        code = np.unique(code * (int(label.max(initial=-1)) + 2) + label + 1, return_inverse=True)[1].reshape(-1)
        if code.max(initial=0) > MOST_ATOMS:
            break
    atoms = np.full(cells, -1, dtype=np.int64)
    _, first, place = np.unique(code[counted], return_index=True, return_inverse=True)
    atoms[counted] = np.argsort(np.argsort(first))[place.reshape(-1)]
    return atoms


@dataclass(frozen=True, eq=False)
class Atoms:
    """Queries over atoms: `labels` tells for each in which of its groups an atom is, `groups` how many it has."""

    labels: tuple[Labels, ...]
    groups: tuple[int, ...]
    number: int

    @cached_property
    def matrix(self) -> Floats:
        """Which atoms each number counts, one row for each group of each query."""
        rows = [
            np.arange(groups)[:, None] == label[None, :] for label, groups in zip(self.labels, self.groups, strict=True)
        ]
        return np.concatenate(rows).astype(np.float64)

    def blocks(self, part: Blocks) -> Labels:
        """Return for each atom the block in which it is counted."""
        if part.size is not None:
            return np.arange(self.number, dtype=np.int64) // part.size
        block_of, start = np.full(self.number, -1, dtype=np.int64), 0
        for query in part.questions:
            inside = self.labels[query] >= 0
            if (block_of[inside] >= 0).any():
                raise InvalidParameter("queries that are counted in one table count no row twice.")
            block_of[inside] = start + self.labels[query][inside]
            start += self.groups[query]
        return block_of

    def count(self, part: Blocks) -> int:
        """Return how many blocks a part has."""
        if part.size is not None:
            return -(-self.number // part.size)
        return sum(self.groups[query] for query in part.questions)

    def strategy(self, noise: NoiseKind) -> AtomStrategy:
        """Return the blocks and shares with nearly the least total of variances among those considered.

        Considered are all atoms one by one, hierarchies of several branchings over their order, the queries
        themselves, and the queries beside the atoms; the best of them also with balanced shares.
        """
        strategies = [self.weighed(parts, (1,) * len(parts), noise) for parts in self.candidates(noise)]
        best = min(strategies, key=lambda strategy: (strategy.error, len(strategy.parts)))
        return min((best, *self._balanced(best, noise)), key=lambda strategy: strategy.error)

    def candidates(self, noise: NoiseKind) -> Iterator[tuple[Blocks, ...]]:
        """Yield what is considered."""
        yield (Blocks(1),)
        for branching in _BRANCHINGS:
            levels = math.ceil(math.log(self.number, branching)) if self.number > 1 else 0
            sizes = [branching**level for level in range(levels) if branching**level < self.number]
            if len(sizes) > 1:
                yield tuple(Blocks(size) for size in sizes)
        if self.number > _FEW:
            return
        own, alone = self.colors, float(self.matrix.sum())  # alone: the atoms one by one
        if len(own) ** (noise.value - 1) * len(self.labels) <= alone:
            yield own
            yield (Blocks(1), *own)

    @cached_property
    def colors(self) -> tuple[Blocks, ...]:
        """The queries in few parts of disjoint ones: by where they begin, each into the first part that fits."""
        begin = [int(np.argmax(label >= 0)) for label in self.labels]
        parts: list[tuple[list[int], NDArray[np.bool_]]] = []
        for query in sorted(range(len(self.labels)), key=lambda query_: (begin[query_], query_)):
            inside = self.labels[query] >= 0
            fitting = next((part for part in parts if not (part[1] & inside).any()), None)
            if fitting is None:
                parts.append(([query], inside.copy()))
            else:
                fitting[0].append(query)
                np.logical_or(fitting[1], inside, out=fitting[1])
        return tuple(Blocks(questions=tuple(sorted(queries))) for queries, _ in parts)

    def weighed(self, parts: tuple[Blocks, ...], shares: tuple[int, ...], noise: NoiseKind) -> AtomStrategy:
        """Return blocks with shares, and what their total of variances is."""
        exact = np.array([float(share) for share in exact_shares(list(shares))])
        solved = self.solution(parts, noise.precisions(exact).tolist())
        return AtomStrategy(parts, shares, float(solved.variances.sum()))

    def _balanced(self, best: AtomStrategy, noise: NoiseKind) -> Iterator[AtomStrategy]:
        if len(best.parts) == 1:
            return

        def gains(precisions: Floats) -> tuple[float, Floats]:
            solved = self.solution(best.parts, precisions.tolist())
            falls = [(solved.within(part) ** 2).sum() for part in best.parts]
            return float(solved.variances.sum()), np.array(falls)

        shares, _ = balanced(equal_shares(len(best.parts)), noise, gains, _ROUNDS)
        whole = [(part, share) for part, share in zip(best.parts, whole_shares(shares), strict=True) if share]
        parts = tuple(part for part, _ in whole)
        if Blocks(1) in parts or len(parts) == len(best.parts):
            yield self.weighed(parts, tuple(share for _, share in whole), noise)

    def solution(self, parts: Sequence[Blocks], precisions: Sequence[float]) -> Solution:
        """Return the least squares answers of blocks that are measured with these precisions, as factors of counts."""
        levels = sorted((part.size or 0, precision) for part, precision in zip(parts, precisions, strict=True))
        sizes = [size for size, _ in levels]
        if sizes[0] == 1 and all(large % small == 0 for small, large in itertools.pairwise(sizes)):
            return Solution(self, _solved_by_levels(self.matrix.T, levels), tuple(precisions))
        normal = np.zeros((self.number, self.number))
        for part, precision in zip(parts, precisions, strict=True):
            labels = self.blocks(part)
            normal += precision * ((labels[:, None] == labels[None, :]) & (labels >= 0)[None, :])
        sure = any(part.size == 1 for part in parts)
        inverse = np.linalg.inv(normal) if sure else np.linalg.pinv(normal, hermitian=True)
        return Solution(self, np.asarray(inverse, dtype=np.float64) @ self.matrix.T, tuple(precisions))


def _solved_by_levels(right: Floats, levels: Sequence[tuple[int, float]]) -> Floats:
    """Return M⁻¹ `right` for M = Σ v B B' over blocks of atoms that lie within each other, the atoms themselves first.

    Without its coarser levels M falls into blocks; with one level more each block gets v 1 1', and its inverse loses
    u u' v / (1 + v 1'u) with u = M⁻¹ 1 (Sherman and Morrison).
    """
    (_, first), *coarser = levels
    solved, ones = right / first, np.full(len(right), 1.0 / first)
    for size, precision in coarser:
        starts = np.arange(0, len(right), size)
        part = precision / (1.0 + precision * np.add.reduceat(ones, starts))
        lengths = np.diff([*starts, len(right)])
        solved -= ones[:, None] * np.repeat(part[:, None] * np.add.reduceat(solved, starts), lengths, axis=0)
        ones = ones * np.repeat(part / precision, lengths)
    return np.asarray(solved)


@dataclass(frozen=True, eq=False)
class Solution:
    """(Σ v A'A)⁺ W', with a column for each number that is asked for."""

    atoms: Atoms
    columns: Floats
    precisions: tuple[float, ...]

    @cached_property
    def variances(self) -> Floats:
        """The variance of each number."""
        return np.asarray((self.columns * self.atoms.matrix.T).sum(axis=0))

    def within(self, part: Blocks) -> Floats:
        """Return the sums of the columns over the blocks of a part."""
        if part.size is not None:
            return np.asarray(np.add.reduceat(self.columns, np.arange(0, self.atoms.number, part.size)))
        labels = self.atoms.blocks(part)
        sums = np.zeros((self.atoms.count(part), self.columns.shape[1]))
        np.add.at(sums, labels[labels >= 0], self.columns[labels >= 0])
        return sums

    def whole(self, parts: Sequence[Blocks]) -> bool:
        """Return whether every answer is a sum of measured counts, so that it is a whole number."""
        factors = (v * self.within(part) for part, v in zip(parts, self.precisions, strict=True))
        return all(bool(np.abs(factor - np.rint(factor)).max(initial=0.0) < _SMALL) for factor in factors)

    def answers(self, parts: Sequence[Blocks], noisy: Sequence[NDArray[np.int64]]) -> list[Floats]:
        """Return the least squares answers from noisy counts of the blocks, one array for each query."""
        total = np.zeros(self.atoms.number)
        for part, precision, counts in zip(parts, self.precisions, noisy, strict=True):
            labels = self.atoms.blocks(part)
            total[labels >= 0] += precision * counts[labels[labels >= 0]]
        ends = np.cumsum(self.atoms.groups)[:-1]
        return list(np.split(total @ self.columns, ends))


Floats = NDArray[np.float64]

_FINE = 1000  # shares are thousandths, whole numbers, so that the sensitivity is exact
_LEAST = 4  # thousandths: a smaller share would be noise alone


class NoiseKind(IntEnum):
    """How the precision of a count, one over its variance, grows with the share of the price that it has."""

    GAUSSIAN = 1
    """The price is ρ: the precision is in proportion to the share."""
    LAPLACE = 2
    """The price is ε: the precision is in proportion to the square of the share."""

    def precisions(self, shares: Floats) -> Floats:
        """Return the precisions, where all that is paid buys a precision of 1.

        >>> NoiseKind.LAPLACE.precisions(np.array([0.5, 0.5])).tolist()
        [0.25, 0.25]
        """
        return np.asarray(shares**self.value)


def equal_shares(number: int) -> Floats:
    """Return the same share for each.

    >>> equal_shares(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    return np.full(number, 1.0 / number)


def balanced(
    shares: Floats, noise: NoiseKind, gains: Callable[[Floats], tuple[float, Floats]], rounds: int
) -> tuple[Floats, float]:
    """Return shares with a smaller total of variances, and that total; never a larger one than these shares have.

    `gains` gives for precisions the total, and by how much it falls with each of them.  Where the total is least, a
    share times its gain (with its power) is the same for all that have one: each round multiplies them towards that.
    """
    best, least = shares, np.inf
    for _ in range(rounds + 1):
        total, falls = gains(noise.precisions(shares))
        if total < least:
            best, least = shares, total
        pull = np.maximum(shares ** (noise.value - 1) * falls, 0.0) ** (1.0 / (noise.value + 1))
        shares = shares * pull
        shares = shares / shares.sum()
    return best, float(least)


def whole_shares(shares: Floats) -> list[int]:
    """Return shares in thousandths, as whole numbers; 0 where next to nothing is left.

    >>> whole_shares(np.array([0.5, 0.4995, 0.0005]))
    [500, 500, 0]
    """
    thousandths = [round(float(share) * _FINE) for share in shares]
    return [share if share >= _LEAST else 0 for share in thousandths]


def exact_shares(parts: list[int]) -> tuple[Fraction, ...]:
    """Return whole numbers as shares that add up to 1.

    >>> exact_shares([1, 3])
    (Fraction(1, 4), Fraction(3, 4))
    """
    return tuple(Fraction(part, sum(parts)) for part in parts)
