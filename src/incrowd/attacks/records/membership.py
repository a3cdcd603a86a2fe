"""Membership from published statistics: was this person among those whose averages were published, or not."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import CodedColumns, ColumnMatch, distinct, match
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_ALARM = 0.05
_LEAST = 60
_LABELS = 1000
Numbers = NDArray[np.float64]


def membership(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Decide for each person whether the published frequencies were made with them, by the likelihood ratio.

    Knows: all published columns of a person, and the frequencies in the population, taken from a third of the
    outsiders; a second third sets the threshold that 5 % of them pass.  Success: a person in the data passes it.  Blind
    guess: 5 %, whoever the person is.  The last third are the outsiders of the finding.

    Meaningless if outsiders come from another population: their frequencies, not the release, would tell them apart.

    Source: Sankararaman, Obozinski, Jordan & Halperin 2009; Homer et al. 2008.
    """
    if outsiders is None or outsiders.num_rows < _LEAST:
        raise InvalidParameter(
            f"membership needs outsiders to know what is usual: give at least {_LEAST}, from the same population."
        )
    trial = Trial.of(published, knowledge, outsiders)
    records, pool = _attributes(trial)
    mixed = _in_thirds(trial)
    reference, judges, control = np.array_split(mixed, 3)
    scores = log_ratios(records, pool, records[reference].mean(axis=0))
    limit = np.sort(scores[judges])[math.ceil((1.0 - _ALARM) * len(judges)) - 1]
    inside = scores[: trial.inside] > limit
    success = Rate(int(inside.sum()), trial.inside)
    blind = Rate(round(_ALARM * trial.inside), trial.inside)
    outside = Rate(int((scores[control] > limit).sum()), len(control))
    story = _story(trial, scores, limit) if inside.any() else ()
    knows, notes = "all published columns of a person", trial.as_published("membership")
    return Finding("membership", Risk.INFERENCE, knows, success, blind, outside, story, notes)


def _story(trial: Trial, scores: Numbers, limit: float) -> tuple[str, ...]:
    person = int(np.argmax(scores[: trial.inside]))
    known = tuple(name for name in trial.published.columns if name in trial.everyone.column_names)
    return (
        f"The attacker knows of a person: {trial.told(person, known[:6])}{' and so on' if len(known) > 6 else ''}.",
        f"By the published frequencies such a person is exp({scores[person]:.1f}) times as likely as usual.",
        f"Of outsiders 95 % stay below exp({limit:.1f}): the attacker says that the person is in the data. That is so.",
    )


def log_ratios(records: Numbers, pool: Numbers, reference: Numbers) -> Numbers:
    """Return for each record of zeros and ones how much likelier it is under the pool's frequencies than otherwise.

    Frequencies are kept away from 0 and 1 by half a person of what the other side could have missed.
    """
    edge = 1.0 / (2.0 * max(len(records), 1))
    p, q = np.clip(pool, edge, 1.0 - edge), np.clip(reference, edge, 1.0 - edge)
    ratios: Numbers = records @ np.log(p / q) + (1.0 - records) @ np.log((1.0 - p) / (1.0 - q))
    return ratios


def power(attributes: int, pool: int, alarm: float = _ALARM) -> float:
    """Return how often members pass a test that others pass with chance `alarm`, for independent attributes.

    >>> round(power(500, 100), 4)
    0.7228
    """
    from scipy.stats import norm

    return float(norm.cdf(math.sqrt(attributes / pool) - norm.isf(alarm)))


def _attributes(trial: Trial) -> tuple[Numbers, Numbers]:
    """Return everybody as zeros and ones over all published labels, and the share of published rows with each."""
    records, pool = [], []
    weights = trial.published.weights
    for name in trial.published.columns:
        if name not in trial.everyone.column_names or name == trial.knowledge.person:
            continue
        column = match(trial.published, trial.everyone, name)
        if len(column.labels.texts) <= _LABELS:
            records.append(_covered(column))
            pool.append(np.bincount(column.labels.codes, weights, len(column.labels.texts)) / max(1, weights.sum()))
    if not records:
        raise InvalidParameter(f"no published column has at most {_LABELS} labels, so that there are no frequencies.")
    return np.hstack(records), np.concatenate(pool)


def _covered(column: ColumnMatch) -> Numbers:
    found = np.zeros((len(column.values.texts), len(column.labels.texts)))
    found[np.repeat(np.arange(len(found)), np.diff(column.cover.starts)), column.cover.labels] = 1.0
    return found[column.values.codes]


def _in_thirds(trial: Trial) -> NDArray[np.int64]:
    """Return the places of outsiders in an order that depends on what they hold and not on where they stand."""
    outside = trial.everyone.slice(trial.inside)
    _, which = distinct([CodedColumns.of(outside.column(name)).codes for name in outside.column_names])
    rank = trial.knowledge.chance.permutation(int(which.max()) + 1)
    return trial.inside + np.argsort(rank[which], kind="stable")
