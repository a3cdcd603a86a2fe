"""Membership from published statistics: whether a person is among those whose frequencies were published."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import CodedColumns, Codes, ColumnMatch, distinct, match
from incrowd.attacks.cover import numbers
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import are_numbers
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

ALARM = 0.05  # share of the control group that may be called members by mistake
_LEAST = 60  # 5 % of 60 are three people: fewer give no threshold
_LABELS = 1000  # a column of more labels names people rather than describing them
_CUTS = np.linspace(0, 1, 21)[1:-1]  # between twenty parts of equal size
Numbers = NDArray[np.float64]


def membership(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Decide by the likelihood ratio for each person whether the published frequencies include them.

    Knows: all published columns of a person, and the frequencies in the population, from a third of the control group;
    numbers that a mask moved, or that have too many values, count in twenty parts of that third.  A second third sets
    the threshold that 5 % of them pass.  Success: a person in the data passes it.  Baseline: 5 %,
    for every person.  The last third is the control group of the finding.

    Meaningless if the control group comes from another population: then its frequencies, not the release, separate the
    groups.

    Source: Sankararaman, Obozinski, Jordan & Halperin 2009; Homer et al. 2008.
    """
    trial = Trial.of(published, knowledge, need_control("membership", control))
    reference, judges, tested = control_in_thirds(trial)
    records, pool = _attributes(trial, reference)
    scores = log_ratios(records, pool, records[reference].mean(axis=0))
    limit = threshold(scores[judges])
    inside = scores[: trial.inside] > limit
    success = Rate(int(inside.sum()), trial.inside)
    baseline = Rate(round(ALARM * trial.inside), trial.inside)
    control_rate = Rate(int((scores[tested] > limit).sum()), len(tested))
    story = _story(trial, scores, limit) if inside.any() else ()
    knows, notes = "all published columns of a person", trial.as_published("membership", numbers=False)
    return Finding("membership", Risk.INFERENCE, knows, success, baseline, control_rate, story, notes)


def _story(trial: Trial, scores: Numbers, limit: float) -> tuple[str, ...]:
    person = int(np.argmax(scores[: trial.inside]))
    columns = tuple(name for name in trial.published.columns if name in trial.everyone.column_names)
    return (
        f"The attacker knows of a person: {trial.person_text(person, columns[:6])}{', …' if len(columns) > 6 else ''}.",
        f"In the published table such a person is exp({scores[person]:.1f}) times as likely as in the population.",
        f"Of the control group 95 % stay below exp({limit:.1f}): the attacker rightly concludes membership.",
    )


def log_ratios(records: Numbers, pool: Numbers, reference: Numbers) -> Numbers:
    """Return the log-likelihood ratio of each record of zeros and ones: the pool's frequencies against the reference.

    Frequencies are moved away from 0 and 1 by half a person: a value that nobody has is rare, not impossible.
    """
    edge = 1.0 / (2.0 * max(len(records), 1))
    p, q = np.clip(pool, edge, 1.0 - edge), np.clip(reference, edge, 1.0 - edge)
    ratios: Numbers = records @ np.log(p / q) + (1.0 - records) @ np.log((1.0 - p) / (1.0 - q))
    return ratios


def power(attributes: int, pool: int, alarm: float = ALARM) -> float:
    """Return how often members pass a test that others pass with probability `alarm`, for independent attributes.

    >>> round(power(500, 100), 4)
    0.7228
    """
    from scipy.stats import norm

    return float(norm.cdf(math.sqrt(attributes / pool) - norm.isf(alarm)))


def _attributes(trial: Trial, reference: Codes) -> tuple[Numbers, Numbers]:
    """Return everybody as zeros and ones over all published labels, and the share of published rows with each."""
    records, pool = [], []
    weights = trial.published.weights
    for name in trial.published.columns:
        if name not in trial.everyone.column_names or name == trial.knowledge.person:
            continue
        column = match(trial.published, trial.everyone, name)
        moved = name in (trial.published.masks or ()) or len(column.labels.texts) > _LABELS
        if moved and are_numbers(column):
            inside, labels = _parts(column, reference)
        elif len(column.labels.texts) <= _LABELS:
            inside, labels = _covered(column), column.labels.codes
        else:
            continue
        records.append(inside)
        pool.append(np.bincount(labels, weights, inside.shape[1]) / max(1, weights.sum()))
    if not records:
        raise InvalidParameter(
            f"membership needs a published column of numbers, or with at most {_LABELS} labels: there is none."
        )
    return np.hstack(records), np.concatenate(pool)


def _parts(column: ColumnMatch, reference: Codes) -> tuple[Numbers, Codes]:
    """Return in which part of the reference's numbers everybody is, as zeros and ones, and each published row."""
    values, labels = (numbers(side.texts)[side.codes] for side in (column.values, column.labels))
    part = values[reference]
    cuts = np.unique(np.quantile(part[np.isfinite(part)], _CUTS)) if np.isfinite(part).any() else np.zeros(1)
    places, published = (np.searchsorted(cuts, side) for side in (values, labels))  # what is no number comes last
    return np.eye(len(cuts) + 1)[places], published


def _covered(column: ColumnMatch) -> Numbers:
    table = np.zeros((len(column.values.texts), len(column.labels.texts)))
    table[np.repeat(np.arange(len(table)), np.diff(column.cover.starts)), column.cover.labels] = 1.0
    return table[column.values.codes]


def need_control(attack: str, control: pa.Table | None) -> pa.Table:
    """Return the control group, or refuse one that is missing or too small to be split into three."""
    if control is None or control.num_rows < _LEAST:
        raise InvalidParameter(f"{attack} needs a control group of at least {_LEAST} people from the same population.")
    return control


def control_in_thirds(trial: Trial) -> tuple[Codes, Codes, Codes]:
    """Return the places of the control group in three random parts that depend on values, not on positions."""
    outside = trial.everyone.slice(trial.inside)
    _, which = distinct([CodedColumns.of(outside.column(name)).codes for name in outside.column_names])
    rank = trial.knowledge.chance.permutation(int(which.max()) + 1)
    first, second, third = np.array_split(trial.inside + np.argsort(rank[which], kind="stable"), 3)
    return first, second, third


def threshold(scores: Numbers) -> float:
    """Return the score that 5 % of a control group pass at most.

    >>> threshold(np.arange(100.0))
    94.0
    """
    return float(np.sort(scores)[math.ceil((1.0 - ALARM) * len(scores)) - 1])
