"""Extremes: where ranges are fitted to the rows, each end of a range is one person's value."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, CandidateSearch, Codes, ColumnMatch
from incrowd.attacks.cover import ends_of, numbers
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter


def extremes(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Take the upper end of a person's range as the person's value.

    Knows: some columns of a person, but not the one that is published as a range (the secret, or else one of the
    known).  Success: the person's value is exactly the end.  In classes of k that is right about one in k, and always
    right about a person who is known to have the largest value.  Baseline: the commonest end, for every person.

    Meaningless where people share few values: then ends are right by chance, for the control group too.

    Source: Li, Qardaji & Su 2010, §3, and Gehrke, Hay, Lui & Pass 2012: clustering with local recoding shows the net
    worth of the richest.
    """
    trial = Trial.of(published, knowledge, control)
    ranged = _ranged(trial)
    others = tuple(name for name in trial.known_columns if name != ranged)
    column = trial.column(ranged)
    ends = np.array([_end(label) for label in column.labels.texts.tolist()])
    labels = _labels(trial, others, column)
    value = numbers(column.values.texts)[column.values.codes]
    guess = np.where(labels >= 0, ends[labels], np.nan)
    hits, usual = guess == value, ends[column.labels.codes[_commonest(trial, column, ends)]]
    return trial.finding("extremes", Risk.INFERENCE, hits, value == usual, _story(trial, hits, ranged, guess))


def _ranged(trial: Trial) -> str:
    """Return the column whose ranges are read: the secret if it has any, else a known one."""
    for name in (trial.knowledge.secret, *trial.known_columns):
        if name in trial.published.columns:
            labels = trial.column(name).labels.texts.tolist()
            if not all(math.isnan(_end(label)) for label in labels):
                return name
    raise InvalidParameter(
        "no known or secret column was published as ranges that include their upper end: this attack needs one."
    )


def _end(label: str) -> float:
    """Return the upper end of a range that holds it, NaN for anything else: `[20, 30)` was not fitted to rows."""
    ends = ends_of(label)
    return math.nan if ends is None or label.endswith((")", "[")) else ends[1]


def _labels(trial: Trial, columns: tuple[str, ...], column: ColumnMatch) -> Codes:
    """Return the label of the range that each person is in, the commonest if several fit, −1 if none does."""
    if not columns:
        return np.full(trial.everyone.num_rows, NONE)
    search = CandidateSearch.of(trial.published, trial.everyone, columns, trial.knowledge)
    return search.commonest(column.labels.codes, trial.published.weights)


def _commonest(trial: Trial, column: ColumnMatch, ends: NDArray[np.float64]) -> int:
    rows = np.flatnonzero(np.isfinite(ends[column.labels.codes]))
    often = np.bincount(column.labels.codes[rows], trial.published.weights[rows])
    return int(rows[column.labels.codes[rows] == often.argmax()][0])


def _story(trial: Trial, hits: Hits, ranged: str, guess: NDArray[np.float64]) -> tuple[str, ...]:
    victims = np.flatnonzero(hits[: trial.inside])
    if not len(victims):
        return ()
    person = int(victims[np.argmax(guess[victims])])
    others = tuple(name for name in trial.known_columns if name != ranged)
    described = trial.person_text(person, others)
    return (
        f"The attacker knows of a person: {described}; and that no similar person has more {ranged}.",
        f"The published range of {ranged} for such people ends at {guess[person]:g}.",
        f"The truth about the person: {trial.person_text(person, (ranged,))}. A fitted end is one person's value.",
    )
