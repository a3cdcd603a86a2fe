"""Identity: who can be told apart in the data and in the release, by every measure that applies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.classes import SetOfColumns, ranking
from incrowd.measures.risk.population import LogLinearRisk, expected_links, log_linear_risk, population_uniqueness
from incrowd.measures.risk.special_uniques import SpecialUniques, data_intrusion, special_uniques
from incrowd.measures.score import Score
from incrowd.workflows.check.raw_cells import as_is

_WORK = 2**25
_RANKED = 12


@dataclass(frozen=True)
class SpecialRows:
    """How many rows few columns single out, by how few; and what each column contributes to the scores."""

    rows: int
    by_size: tuple[int, ...]
    contributions: dict[str, float]
    highest: float


@dataclass(frozen=True)
class IdentityRisk:
    """What can be said about who is whom, before and after; what needs a population is there if one is declared."""

    special: tuple[SpecialRows, SpecialRows | None]
    ranking: tuple[SetOfColumns, ...]
    population: tuple[Score, Score | None] | None
    intrusion: tuple[Score, Score | None] | None
    log_linear: LogLinearRisk | None
    links: Score | None


def special_rows(names: Sequence[str], columns: Sequence[NDArray[np.integer]], rows: NDArray[np.int64]) -> SpecialRows:
    """Return the special uniques of counted tuples; a tuple of several rows is as good as one of two."""
    places = np.repeat(np.arange(len(rows)), np.minimum(rows, 2))
    found = special_uniques([column[places] for column in columns], _size(len(columns), len(places)))
    shares = dict(zip(names, found.contributions.tolist(), strict=True))
    return SpecialRows(found.rows, found.by_size, shares, _highest(found))


def _highest(found: SpecialUniques) -> float:
    return float(found.scores.max(initial=0.0))


def _size(columns: int, rows: int) -> int | None:
    """Return up to which size sets of columns are gone through, so that it takes seconds."""
    sets, size = 0.0, 0
    while size < columns:
        sets += float(np.prod([(columns - place) / (place + 1) for place in range(size + 1)]))
        if size and sets * rows > _WORK:
            return size
        size += 1
    return None


def ranked(counts: Counts) -> tuple[SetOfColumns, ...]:
    """Return how far sets of up to three quasi-identifiers tell rows apart, of two where there are many columns."""
    return ranking(counts, 3 if len(counts.names) <= _RANKED else 2)


def in_population(before: NDArray[np.int64], after: NDArray[np.int64] | None, people: int | None) -> PopulationScores:
    """Return the estimated uniqueness and intrusion risk of both tables in a population; nothing if it is too small."""
    if people is None or not len(before) or int(before.sum()) > people:
        return None, None
    both = [before] if after is None or not len(after) else [before, after]
    unique = [population_uniqueness(sizes, people) for sizes in both]
    alone = [(int((sizes == 1).sum()), int((sizes == 2).sum()), Fraction(int(sizes.sum()), people)) for sizes in both]
    intrusion = [data_intrusion(*each) for each in alone]
    return (unique[0], unique[1] if both[1:] else None), (intrusion[0], intrusion[1] if both[1:] else None)


PopulationScores = tuple[tuple[Score, Score | None] | None, tuple[Score, Score | None] | None]


def by_model(
    columns: Sequence[NDArray[np.integer]], rows: NDArray[np.int64], people: int | None
) -> LogLinearRisk | None:
    """Return the risk by a log-linear model; None without a population, or where there are too many cells for one."""
    total = int(rows.sum())
    if people is None or not 0 < total <= people or not columns:
        return None
    try:
        return log_linear_risk(columns, rows, Fraction(total, people))
    except InvalidParameter:
        return None


def by_weights(rows: Rows, quasi: Sequence[str], weights: str, engine: Engine) -> Score:
    """Return how many rows are expected to be linked, by survey weights in a column of the data."""
    require(rows.names, [weights])
    if weights in quasi:
        raise InvalidParameter(f"{weights!r} is a quasi-identifier: a weight is how many people a row stands for.")
    counts = engine.count(rows, as_is(rows, [*quasi, weights], engine))
    values = counts.classes[-1].labels().to_pylist()
    each = np.array([_number(value) for value in values])[counts.codes()[-1]]
    if not (np.isfinite(each) & (each > 0)).all():
        raise InvalidParameter(
            f"some rows have no weight in {weights!r}, or one that is not a number above 0: a weight is how many "
            "people a row stands for. Leave such rows out, or name another column."
        )
    classes = counts.marginal(quasi)
    places = np.searchsorted(classes.keys, classes.layout.pack(counts.codes()[:-1]))
    total = np.bincount(places, counts.counts * each, len(classes))
    return expected_links(classes.counts, np.maximum(total, classes.counts))


def _number(value: str | None) -> float:
    try:
        return np.nan if value is None else float(value)
    except ValueError:
        return np.nan
