"""Identity: re-identification risk in the data and in the release, by every measure that applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.classes import SetOfColumns, Sizes, household_risk, ranking
from incrowd.measures.risk.population import LogLinearRisk, expected_links, log_linear_risk, population_uniqueness
from incrowd.measures.risk.special_uniques import data_intrusion, special_uniques
from incrowd.measures.score import Score
from incrowd.workflows.check.raw_cells import as_is

_WORK = 2**25  # sets of columns times rows: bounds the time
_RANKED = 12  # up to so many columns triples are ranked, else pairs


@dataclass(frozen=True)
class SpecialRows:
    """How many rows few columns single out, by how few; and what each column contributes to the scores."""

    rows: int
    by_size: tuple[int, ...]
    contributions: dict[str, float]
    highest: float
    example: dict[str, str | None] = field(default_factory=dict)
    """The fewest values that single out the row with the highest score, where its labels are at hand."""


@dataclass(frozen=True)
class IdentityRisk:
    """Re-identification risk before and after; estimates for a population are set if its size is declared."""

    special: tuple[SpecialRows, SpecialRows | None]
    ranking: tuple[SetOfColumns, ...]
    population: tuple[Score, Score | None] | None
    intrusion: tuple[Score, Score | None] | None
    log_linear: LogLinearRisk | None
    links: Score | None
    households: Score | None = None
    """Of the data alone: which rows are one household is never released."""


def special_rows(
    names: Sequence[str],
    columns: Sequence[NDArray[np.integer]],
    rows: NDArray[np.int64],
    label: Callable[[int, int], str | None] | None = None,
) -> SpecialRows:
    """Return the special uniques of counted tuples; a tuple of several rows is as good as one of two."""
    places = np.repeat(np.arange(len(rows)), np.minimum(rows, 2))
    uniques = special_uniques([column[places] for column in columns], _size(len(columns), len(places)))
    shares = dict(zip(names, uniques.contributions.tolist(), strict=True))
    special = SpecialRows(uniques.rows, uniques.by_size, shares, float(uniques.scores.max(initial=0.0)))
    if label is None or not special.rows:
        return special
    row = int(places[np.argmax(uniques.scores)])
    members = _fewest([column == column[row] for column in columns], rows)
    return replace(special, example={names[place]: label(place, int(columns[place][row])) for place in members})


def _fewest(alike: Sequence[NDArray[np.bool_]], rows: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the fewest columns in which only one row is alike."""
    sets = (members for size in range(1, len(alike)) for members in combinations(range(len(alike)), size))
    single = (
        members for members in sets if rows[np.logical_and.reduce([alike[place] for place in members])].sum() == 1
    )
    return next(single, tuple(range(len(alike))))


def _size(columns: int, rows: int) -> int | None:
    """Return the largest size of sets of columns to visit, so that it takes seconds."""
    sets, size = 0.0, 0
    while size < columns:
        sets += float(np.prod([(columns - place) / (place + 1) for place in range(size + 1)]))
        if size and sets * rows > _WORK:
            return size
        size += 1
    return None


def identity_risk(
    coded: Counts,
    sizes: tuple[Sizes, Sizes | None],
    people: int | None,
    special_after: SpecialRows | None,
    links: Score | None,
) -> IdentityRisk:
    """Return all measures for counted quasi-identifiers, with the classes before and after the release."""
    before, after = sizes
    unique, intrusion = in_population(before.counts, None if after is None else after.counts, people)
    special = special_rows(coded.names, coded.codes(), coded.counts, partial(_label, coded)), special_after
    # Sets of three among many columns are too many to rank.
    ranks = ranking(coded, 3 if len(coded.names) <= _RANKED else 2)
    return IdentityRisk(special, ranks, unique, intrusion, by_model(coded.codes(), coded.counts, people), links)


def _label(coded: Counts, place: int, code: int) -> str | None:
    label: str | None = coded.classes[place].labels()[code].as_py()
    return label


def in_population(before: NDArray[np.int64], after: NDArray[np.int64] | None, people: int | None) -> PopulationScores:
    """Return the estimated uniqueness and intrusion risk of both tables in a population; nothing if it is too small."""
    if people is None or not len(before) or int(before.sum()) > people:
        return None, None
    both = [before] if after is None or not len(after) else [before, after]
    unique = [population_uniqueness(sizes, people) for sizes in both]
    alone = [(int((sizes == 1).sum()), int((sizes == 2).sum()), Fraction(int(sizes.sum()), people)) for sizes in both]
    intrusion = [data_intrusion(*counts) for counts in alone]
    return (unique[0], unique[1] if both[1:] else None), (intrusion[0], intrusion[1] if both[1:] else None)


PopulationScores = tuple[tuple[Score, Score | None] | None, tuple[Score, Score | None] | None]


def by_model(
    columns: Sequence[NDArray[np.integer]], rows: NDArray[np.int64], people: int | None
) -> LogLinearRisk | None:
    """Return the risk by a log-linear model; None without a population."""
    total = int(rows.sum())
    if people is None or not 0 < total <= people or not columns:
        return None
    return log_linear_risk(columns, rows, Fraction(total, people))


def by_weights(rows: Rows, quasi: Sequence[str], weights: str, engine: Engine) -> Score:
    """Return how many rows are expected to be linked, by survey weights in a column of the data."""
    require(rows.names, [weights])
    if weights in quasi:
        raise InvalidParameter(
            f"{weights!r} is a quasi-identifier: a weight must be the number of people that a row represents."
        )
    counts = engine.count(rows, as_is(rows, [*quasi, weights], engine))
    values = counts.classes[-1].labels().to_pylist()
    weight_of_row = np.array([_number(value) for value in values])[counts.codes()[-1]]
    if not (np.isfinite(weight_of_row) & (weight_of_row > 0)).all():
        raise InvalidParameter(
            f"some rows have no weight in {weights!r}, or one that is not a number above 0: a weight is the number of "
            "people that a row represents. Omit such rows, or name another column."
        )
    classes = counts.marginal(quasi)
    places = np.searchsorted(classes.keys, classes.layout.pack(counts.codes()[:-1]))
    total = np.bincount(places, counts.counts * weight_of_row, len(classes))
    return expected_links(classes.counts, np.maximum(total, classes.counts))


def by_household(rows: Rows, quasi: Sequence[str], household: str, engine: Engine) -> Score | None:
    """Return how often a household is found by one of its members; None if no row has a household."""
    counts = engine.count(rows, as_is(rows, [*quasi, household], engine))
    classes = counts.marginal(quasi)
    places = np.searchsorted(classes.keys, classes.layout.pack(counts.codes()[:-1]))
    housed = np.array([label is not None for label in counts.classes[-1].labels().to_pylist()])[counts.codes()[-1]]
    if not housed.any():
        return None
    return household_risk(counts.codes()[-1][housed], classes.counts[places][housed], counts.counts[housed])


def _number(value: str | None) -> float:
    try:
        return np.nan if value is None else float(value)
    except ValueError:
        return np.nan
