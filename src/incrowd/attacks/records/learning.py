"""Inferential disclosure by learning: a model of the secret, trained on what was published, asked about people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, Codes, ColumnMatch, match
from incrowd.attacks.cover import ends_of, numbers
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Hits, Trial
from incrowd.errors import InvalidParameter

_TREES, _LABELS, _ROWS = 60, 40, 20_000
Numbers = NDArray[np.float64]


def learning(published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None = None) -> Finding:
    """Learn from the published rows how the secret follows from the known columns, and say it of people.

    Knows: some columns of a person.  Success: the model's guess is the person's secret; of a secret number that a mask
    moved, if at most 1 % of the people have one that is nearer to it.  Blind guess: the commonest secret.  The model is
    a forest of scikit-learn's (extra `learn`), for masked numbers of extremely random trees that keep every published
    row; a better one may infer more.

    Meaningless without outsiders: a good model of the world is right about everybody, and to learn such a thing is what
    data is published for.  Only what it knows better about the people in the data betrays them.

    Source: Cormode 2011, inference by classifiers; Breiman 2001, forests.
    """
    trial = Trial.of(published, knowledge, outsiders)
    secret = trial.column(trial.secret)
    columns = [
        match(published, trial.everyone, name, knowledge.slack.get(name))
        for name in trial.known
        if name != trial.secret
    ]
    rows, people = zip(*(_features(each, published.weights) for each in columns), strict=True)
    if secret.near is not None and len(secret.labels.texts) > _LABELS:
        return _numbers(trial, secret, np.hstack(rows), np.hstack(people))
    said = _guesses(np.hstack(rows), secret.labels.codes, published.weights, np.hstack(people), knowledge)
    hits, overall = secret.fits(said), secret.labels.codes[trial.commonest_row(trial.secret)]
    blind = secret.fits(np.full(len(said), overall))
    story = _story(trial, hits & ~blind, secret.labels.texts[said])
    return trial.finding("learning", Risk.INFERENCE, hits, blind, story)


def _numbers(trial: Trial, secret: ColumnMatch, rows: Numbers, people: Numbers) -> Finding:
    """Learn a secret number, and judge how near the guesses are."""
    shown = numbers(secret.labels.texts)[secret.labels.codes]
    used = np.flatnonzero((trial.published.weights > 0) & np.isfinite(shown))
    order = used[np.lexsort([*rows[used].T, shown[used]])]
    chosen = order[trial.knowledge.chance.permutation(len(order))[:_ROWS]]
    forest = _forest("ExtraTreesRegressor", trial.knowledge.seed)
    forest.fit(rows[chosen], shown[chosen], sample_weight=trial.published.weights[chosen])
    said = np.asarray(forest.predict(people), np.float64)
    hits, overall = secret.fits_number(said), secret.labels.codes[trial.commonest_row(trial.secret)]
    blind = secret.fits(np.full(len(said), overall))
    return trial.finding("learning", Risk.INFERENCE, hits, blind, _story(trial, hits & ~blind, said.astype(str)))


def _story(trial: Trial, hits: Hits, said: NDArray[np.str_]) -> tuple[str, ...]:
    person = trial.victim(hits)
    if person is None:
        return ()
    return (
        f"The attacker trains a model of {trial.secret} on the published rows.",
        f"Asked about a person with {trial.told(person, trial.known)}, the model says {said[person]}.",
        f"The truth about the person: {trial.told(person, (trial.secret,))}.",
    )


def _features(column: ColumnMatch, weights: Codes) -> tuple[Numbers, Numbers]:
    """Return a column as numbers, of the published rows and of people: its middle, or one number for each label."""
    labels = column.labels.texts
    middles = np.array([_middle(label) for label in labels.tolist()])
    theirs = _labels_of_people(column, weights)
    if np.isfinite(middles).mean() > 0.5:
        each, own = np.nan_to_num(middles, nan=-1.0), np.nan_to_num(numbers(column.values.texts), nan=-1.0)
        people = np.where(theirs >= 0, each[theirs], own[column.values.codes])
        return each[column.labels.codes][:, None], people[:, None]
    common = np.argsort(-np.bincount(column.labels.codes, weights, len(labels)), kind="stable")[:_LABELS]
    rows = (column.labels.codes[:, None] == common[None, :]).astype(float)
    return rows, (theirs[:, None] == common[None, :]).astype(float)


def _labels_of_people(column: ColumnMatch, weights: Codes) -> Codes:
    """Return the commonest label that covers each person's value, −1 if none does."""
    often = np.bincount(column.labels.codes, weights, len(column.labels.texts))
    cover = column.cover
    value = np.repeat(np.arange(len(cover.starts) - 1), np.diff(cover.starts))
    order = np.lexsort((-cover.labels, often[cover.labels], value))
    best = np.full(len(cover.starts) - 1, NONE)
    best[value[order]] = cover.labels[order]
    return best[column.values.codes]


def _middle(label: str) -> float:
    ends = ends_of(label)
    return float(numbers(np.array([label]))[0]) if ends is None else (ends[0] + ends[1]) / 2.0


def _guesses(rows: Numbers, secrets: Codes, weights: Codes, people: Numbers, knowledge: Knowledge) -> Codes:
    used = np.flatnonzero(weights > 0)
    order = used[np.lexsort([*rows[used].T, secrets[used]])]
    chosen = order[knowledge.chance.permutation(len(order))[:_ROWS]]
    frequent = np.argsort(-np.bincount(secrets[chosen]), kind="stable")[:_LABELS]
    chosen = chosen[np.isin(secrets[chosen], frequent)]
    forest = _forest("RandomForestClassifier", knowledge.seed)
    forest.fit(rows[chosen], secrets[chosen], sample_weight=weights[chosen])
    return np.asarray(forest.predict(people), np.int64)


def _forest(kind: str, seed: int) -> Any:
    try:
        from sklearn import ensemble
    except ImportError:
        raise InvalidParameter(
            "learning needs scikit-learn: install incrowd[learn], or leave this attack out."
        ) from None
    return getattr(ensemble, kind)(_TREES, random_state=seed)
