"""Masked columns: published values that a mask moved, matched by distance and judged by nearness.

A mask publishes 52,013.7 where the data has 52,000.  Equal values then match nobody, which protects nobody: an attacker
takes the nearest record.  The mask and its parameters are published, so distance is measured in units of how far the
mask moves values: the nearest record is the likeliest one.  A table whose method is unknown counts as masked if most of
its rows fit nobody in the data; its distances are differences of ranks.

Source: Pagliuca & Seri 1999 and Domingo-Ferrer & Torra 2001, record linkage by distance; Nin, Herranz & Torra 2008 for
attackers who know the mask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.spatial import KDTree

from incrowd.attacks.candidates import CandidateSearch, Codes, ColumnMatch, match
from incrowd.attacks.cover import numbers
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.displacement import Displacement, DistanceKind

Numbers = NDArray[np.float64]
_FAR = 1e9
"""The coordinate of a value that is missing or not a number: near its like alone."""
_CATEGORIES = 40  # each is a dimension of the distance
_SAME = 1 + 1e-9  # distances equal up to rounding are ties


@dataclass(frozen=True, eq=False)
class NearestSearch(CandidateSearch):
    """Which classes of published rows are nearest to which people in masked columns, and fit in all others."""

    places: Numbers
    points: Numbers
    groups: tuple[tuple[Codes, Codes], ...]
    """Targets and classes that agree in all columns that are not masked."""
    mutual: bool
    """Whether a row counts only for those on a list who are nearest to it: it can be one person's alone."""

    @classmethod
    def of(
        cls, published: PublishedTable, people: pa.Table, columns: Sequence[str], knowledge: Knowledge
    ) -> CandidateSearch:
        """Prepare to look for people by these columns; where none of them is masked, only rows that fit count."""
        plain = CandidateSearch.of(published, people, columns, knowledge)
        sides = {
            name: _sides(match(published, people, name), _displacement(published, name))
            for name in columns
            if name in masked_columns(published, people, columns) and name not in knowledge.slack
        }
        moved = [side for side in sides.values() if side is not None]
        if not moved or (published.masks is None and _fits_people(published, knowledge, columns)):
            return plain
        person, row = _first(plain.target_of, len(plain.targets)), _first(plain.class_of, len(plain.classes))
        others = [name for name in columns if sides.get(name) is None]
        groups = _groups(CandidateSearch.of(published, people, others, knowledge), person, row) if others else None
        everyone = (np.arange(len(plain.targets)), np.arange(len(plain.classes)))
        return cls(
            *(plain.covers, plain.targets, plain.target_of, plain.classes, plain.class_of, plain.rows),
            np.hstack([places for places, _ in moved])[person],
            np.hstack([points for _, points in moved])[row],
            (everyone,) if groups is None else groups,
            knowledge.listed,
        )

    def blocks(self) -> Iterator[tuple[Codes, Codes]]:
        """Yield pairs of a target and a nearest class, all that are equally near."""
        parts = [self._inside(owner, classes[self.rows[classes] > 0]) for owner, classes in self.groups]
        owner, classes = (np.concatenate([part[place] for part in parts]) for place in range(2))
        far = np.concatenate([part[2] for part in parts])
        near = far <= _least(owner, far, len(self.targets)) * _SAME
        if self.mutual:
            near &= far <= _least(classes, far, len(self.classes)) * _SAME
        yield owner[near], classes[near]

    def _inside(self, owner: Codes, classes: Codes) -> tuple[Codes, Codes, Numbers]:
        """Return the nearest classes of a group to each of its targets, and how far they are."""
        if not len(owner) or not len(classes):
            return owner[:0], classes[:0], np.zeros(0)
        tree = KDTree(self.points[classes])
        far = tree.query(self.places[owner])[0]
        near = tree.query_ball_point(self.places[owner], far * _SAME)
        sizes = [len(places) for places in near]
        flat = np.concatenate([np.sort(places) for places in near]).astype(np.int64)
        return np.repeat(owner, sizes), classes[flat], np.repeat(far, sizes)


def _fits_people(published: PublishedTable, knowledge: Knowledge, columns: Sequence[str]) -> bool:
    """Whether at least half of the published rows fit somebody in the data as they are."""
    search = CandidateSearch.of(published, knowledge.people, columns, knowledge)
    fitting = np.zeros(len(search.classes), bool)
    for _, classes in search.blocks():
        fitting[classes] = True
    return bool(2 * search.rows[fitting].sum() >= search.rows.sum())


def masked_columns(published: PublishedTable, people: pa.Table, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose published values may have been moved: as the steps say, or all numbers if none do."""
    if published.masks is not None:
        return tuple(name for name in columns if name in published.masks)
    return tuple(name for name in columns if are_numbers(match(published, people, name)))


def are_numbers(column: ColumnMatch) -> bool:
    """Whether most values and labels of a column are numbers."""
    return all(np.isfinite(numbers(side.texts)).mean() > 0.5 for side in (column.values, column.labels))


def _displacement(published: PublishedTable, name: str) -> Displacement:
    return (published.masks or {}).get(name, Displacement())


def _sides(column: ColumnMatch, moved: Displacement) -> tuple[Numbers, Numbers] | None:
    """Return people's values and published ones as coordinates, in units of how far a mask moves them.

    None for categories that are too many, which are matched as they are.
    """
    if are_numbers(column) and moved.measured is not DistanceKind.CATEGORY:
        scale = _Scale.of(column, moved)
        return scale(column.values.texts)[column.values.codes], scale(column.labels.texts)[column.labels.codes]
    categories = np.unique(np.append(column.values.texts, column.labels.texts))
    if len(categories) > _CATEGORIES:
        return None
    sides = [np.searchsorted(categories, side.texts)[side.codes] for side in (column.values, column.labels)]
    corners = np.eye(len(categories)) * moved.mismatch / np.sqrt(2.0)
    return corners[sides[0]], corners[sides[1]]


@dataclass(frozen=True, eq=False)
class _Scale:
    """A column's published numbers in order, and in what the distance between two of them is counted."""

    order: Numbers
    ranks: Numbers
    unit: float
    by_rank: bool

    @classmethod
    def of(cls, column: ColumnMatch, moved: Displacement) -> _Scale:
        rows = numbers(column.labels.texts)[column.labels.codes]
        order, counts = np.unique(rows[np.isfinite(rows)], return_counts=True)
        ranks = (np.cumsum(counts) - counts / 2.0) / max(1, counts.sum())
        unit = moved.size * (np.nanstd(rows) if moved.measured is DistanceKind.DEVIATION else 1.0)
        return cls(order, ranks, float(unit) or 1.0, moved.measured is DistanceKind.RANK)

    def __call__(self, texts: NDArray[np.str_]) -> Numbers:
        """Return texts as a coordinate."""
        values = numbers(texts)
        if self.by_rank and len(self.order):
            values = np.where(np.isfinite(values), np.interp(values, self.order, self.ranks), np.nan)
        return np.asarray(np.nan_to_num(values / self.unit, nan=_FAR)[:, None])


def _groups(search: CandidateSearch, person: Codes, row: Codes) -> tuple[tuple[Codes, Codes], ...]:
    """Return which targets and which classes fit each other in the columns that are not masked."""
    targets, classes = _members(search.target_of[person]), _members(search.class_of[row])
    pairs = [_by_class(owner, held) for owner, held in search.blocks()]
    groups = [
        (np.concatenate([targets[target] for target in owner]), classes[held]) for part in pairs for held, owner in part
    ]
    return tuple(groups) or ((np.zeros(0, np.int64), np.zeros(0, np.int64)),)


def _by_class(owner: Codes, held: Codes) -> list[tuple[int, Codes]]:
    """Return pairs of a target and a class as each class with its targets."""
    order = np.argsort(held, kind="stable")
    names, starts = np.unique(held[order], return_index=True)
    return list(zip(names.tolist(), np.split(owner[order], starts[1:]), strict=True)) if len(names) else []


def _least(codes: Codes, far: Numbers, size: int) -> Numbers:
    """Return for each place the least number among all with its code."""
    least = np.full(size, np.inf)
    np.minimum.at(least, codes, far)
    return np.asarray(least[codes])


def _members(codes: Codes) -> list[Codes]:
    """Return for each code the places that have it."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, int(codes.max(initial=0)) + 1)))


def _first(codes: Codes, size: int) -> Codes:
    """Return the first place of each code."""
    first = np.zeros(size, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first
