"""Singling out: descriptions, taken from published rows, that exactly one person in the data fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import Codes, ColumnMatch, match
from incrowd.attacks.cover import numbers
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial

# columns of a description, descriptions, and people they are tried on
_COLUMNS, _DESCRIPTIONS, _PEOPLE = 4, 500, 200_000
_WORK, _TRIES = 1 << 28, 10  # more combinations of columns are tried for a row where there are few rows
Hits = NDArray[np.bool_]
Places = slice | Codes


def singling_out(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Describe people by a few columns of published rows, and count the descriptions that exactly one person fits.

    Knows: nothing of anybody beforehand.  A description takes up to four columns of a published row: labels as they
    are, numbers as "at least" above the median and "at most" below.  It is used if no other published row fits it; each
    of 500 rows at most gets one.  Success: exactly one person fits, who was not yet singled out.  Baseline: the same
    with each column from another published row.  On the control group a success is a description that fits exactly one
    of them; if the group is smaller than the data, both are cut to the smaller number, and the attack has less power.

    Meaningless for a single unlikely value: with many columns, descriptions single out people by chance, and the
    control group as well.

    Source: Opinion 05/2014 of the Article 29 Working Party; Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter);
    Cohen & Nissim 2020.
    """
    trial = Trial.of(published, replace(knowledge, trials=_PEOPLE), control)
    columns = {name: _Described.of(trial, name) for name in (*trial.known_columns, *trial.rest)}
    size = min(trial.inside, trial.everyone.num_rows - trial.inside) or trial.inside
    descriptions, mixed = (_descriptions(columns, knowledge, together) for together in (True, False))
    sides = [slice(0, size), slice(trial.inside, trial.inside + size)]
    success, baseline = (_alone(columns, tried, sides[0]) for tried in (descriptions, mixed))
    control_rate = _alone(columns, descriptions, sides[1]) if trial.inside < trial.everyone.num_rows else None
    story = _story(trial, columns, descriptions, sides[0])
    knows, notes = "nothing but what was published", trial.as_published("singling-out")
    return Finding("singling-out", Risk.SINGLING_OUT, knows, success, baseline, control_rate, story, notes)


Description = tuple[tuple[str, int], ...]
"""Columns, each with the published row whose value is described."""


@dataclass(frozen=True, eq=False)
class _Described:
    """A column, and where it has numbers those of people and published rows, and the median of what was published."""

    column: ColumnMatch
    values: NDArray[np.float64] | None = None
    labels: NDArray[np.float64] | None = None
    median: float = np.nan

    @classmethod
    def of(cls, trial: Trial, name: str) -> _Described:
        column = match(trial.published, trial.everyone, name)
        labels = numbers(column.labels.texts)
        if np.isfinite(labels).mean() <= 0.5:
            return cls(column)
        rows = labels[column.labels.codes]
        return cls(column, numbers(column.values.texts)[column.values.codes], rows, float(np.nanmedian(rows)))

    def number(self, row: int) -> float:
        """Return the number that a published row shows here, NaN for none."""
        return np.nan if self.labels is None else float(self.labels[row])

    def people(self, row: int, which: Places) -> Hits:
        """Return which of some people fit what a published row shows here."""
        number = self.number(row)
        if self.values is None or np.isnan(number):
            values = np.arange(len(self.column.values.texts))
            covered = self.column.cover.contains(values, np.full(len(values), self.column.labels.codes[row]))
            return np.asarray(covered[self.column.values.codes[which]], bool)
        value = self.values[which]
        return np.asarray(value >= number if number >= self.median else value <= number, bool)

    def rows(self, row: int, which: Places) -> Hits:
        """Return which of some published rows fit."""
        number = self.number(row)
        if self.labels is None or np.isnan(number):
            return np.asarray(self.column.labels.codes[which] == self.column.labels.codes[row], bool)
        labels = self.labels[which]
        return np.asarray(labels >= number if number >= self.median else labels <= number, bool)

    def words(self, row: int) -> str:
        """Return the description in words."""
        label, number = self.column.labels.texts[self.column.labels.codes[row]], self.number(row)
        if np.isnan(number):
            return str(label)
        return f"at least {label}" if number >= self.median else f"at most {label}"


def _descriptions(columns: dict[str, _Described], knowledge: Knowledge, together: bool) -> list[Description]:
    """Return descriptions, each from one published row that it singles out, or each column from another row."""
    names, chance = list(columns), knowledge.chance
    order = chance.permutation(np.lexsort([column.column.labels.codes for column in columns.values()]))
    tries = int(np.clip(_WORK // len(order) // _DESCRIPTIONS, 1, _TRIES))
    descriptions: list[Description] = []
    for row in order[:_DESCRIPTIONS]:
        for _ in range(tries):
            chosen = chance.choice(len(names), min(_COLUMNS, len(names)), replace=False)
            rows = order[chance.integers(0, len(order), len(chosen))]
            description = tuple((names[c], int(row if together else r)) for c, r in zip(chosen, rows, strict=True))
            if not together or len(_fit_rows(columns, description)) == 1:
                descriptions.append(description)
                break
    return descriptions


def _alone(columns: dict[str, _Described], descriptions: list[Description], which: slice) -> Rate:
    """Return how many people are singled out, as a share of the published rows from which descriptions were made.

    A person whom several descriptions single out counts once: one extreme person would else be many successes.
    """
    people = (_fit(columns, description, which) for description in descriptions)
    hits = {int(fitting[0]) for fitting in people if len(fitting) == 1}
    rows = len(next(iter(columns.values())).column.labels.codes)
    return Rate(len(hits), min(rows, _DESCRIPTIONS))


def _fit(columns: dict[str, _Described], description: Description, which: slice) -> Codes:
    return _fitting([partial(columns[name].people, row) for name, row in description], which)


def _fit_rows(columns: dict[str, _Described], description: Description) -> Codes:
    rows = len(next(iter(columns.values())).column.labels.codes)
    return _fitting([partial(columns[name].rows, row) for name, row in description], slice(0, rows))


def _fitting(parts: Sequence[Callable[[Places], Hits]], which: slice) -> Codes:
    """Return the places that fit all parts of a description; each part looks only at those that fit the ones before."""
    places: Codes = which.start + np.flatnonzero(parts[0](which))
    for part in parts[1:]:
        places = places[part(places)]
    return places


def _story(
    trial: Trial, columns: dict[str, _Described], descriptions: list[Description], which: slice
) -> tuple[str, ...]:
    for description in descriptions:
        fitting = _fit(columns, description, which)
        if len(fitting) == 1:
            words = ", ".join(f"{name} {columns[name].words(row)}" for name, row in description)
            return (
                f"A published row suggests a description: {words}.",
                "No other published row fits it.",
                f"Exactly one person of the data does: {trial.person_text(int(fitting[0]), tuple(dict(description)))}.",
            )
    return ()
