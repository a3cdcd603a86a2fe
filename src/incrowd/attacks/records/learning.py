"""Inferential disclosure by learning: a model of the secret, trained on the published rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, Codes, ColumnMatch
from incrowd.attacks.cover import ends_of, numbers
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_TREES, _LABELS, _ROWS = 60, 40, 20_000  # of a forest: more is slower and guesses a little better
Numbers = NDArray[np.float64]
Rows = list[NDArray[Any]]
"""Features of published rows, column by column."""


def learning(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Learn from the published rows how the secret follows from the known columns, and guess it for people.

    Knows: some columns of a person.  Success: the model's guess is the person's secret; of a secret number that a mask
    moved, if at most 1 % of the people have one that is nearer to it.  Baseline: the commonest secret.  The model is
    a forest of scikit-learn's (extra `learn`), for masked numbers of extremely random trees that keep every published
    row; a better one may infer more.

    Meaningless without a control group: a good model of the world is right about everybody, and data is published to
    learn such facts.  A release leaks only where the model is better on the people in the data.

    Source: Cormode 2011, inference by classifiers; Breiman 2001, forests.
    """
    trial = Trial.of(published, knowledge, control)
    secret = trial.column(trial.secret)
    columns = trial.columns(name for name in trial.known_columns if name != trial.secret)
    features = [_features(column, published.weights) for column in columns]
    rows, people = [part for side, _ in features for part in side], np.hstack([side for _, side in features])
    if secret.near is not None and len(secret.labels.texts) > _LABELS:
        numeric = _numbers(trial, secret, rows, people)
        hits, guesses = secret.fits_number(numeric), numeric.astype(str)
    else:
        codes = _labels(trial, secret, rows, people)
        hits, guesses = secret.fits(codes), secret.labels.texts[codes]
    baseline = trial.commonest_secret
    story = trial.story(
        hits & ~baseline,
        lambda person: [
            f"A model of {trial.secret}, trained on the published rows, guesses {guesses[person]} for this person."
        ],
    )
    return trial.finding("learning", Risk.INFERENCE, hits, baseline, story)


def _numbers(trial: Trial, secret: ColumnMatch, rows: Rows, people: Numbers) -> Numbers:
    """Return guesses of a secret number."""
    published = numbers(secret.labels.texts)[secret.labels.codes]
    chosen = _training_rows(trial, rows, published)
    forest = _ensemble().ExtraTreesRegressor(_TREES, random_state=trial.knowledge.seed)
    forest.fit(_chosen(rows, chosen), published[chosen], sample_weight=trial.published.weights[chosen])
    return np.asarray(forest.predict(people), np.float64)


def _labels(trial: Trial, secret: ColumnMatch, rows: Rows, people: Numbers) -> Codes:
    """Return guesses of a secret label, among the most frequent ones."""
    codes = secret.labels.codes
    chosen = _training_rows(trial, rows, codes)
    frequent = np.argsort(-np.bincount(codes[chosen]), kind="stable")[:_LABELS]
    chosen = chosen[np.isin(codes[chosen], frequent)]
    forest = _ensemble().RandomForestClassifier(_TREES, random_state=trial.knowledge.seed)
    with warnings.catch_warnings():  # scikit-learn warns where nearly every row has a label of its own
        warnings.simplefilter("ignore", UserWarning)
        forest.fit(_chosen(rows, chosen), codes[chosen], sample_weight=trial.published.weights[chosen])
    return np.asarray(forest.predict(people), np.int64)


def _chosen(rows: Rows, places: Codes) -> Numbers:
    return np.column_stack([column[places] for column in rows]).astype(np.float64)


def _training_rows(trial: Trial, rows: Rows, secrets: Codes | Numbers) -> Codes:
    """Return the places of at most `_ROWS` published rows, sampled by their values, whose secret is a number."""
    used = np.flatnonzero((trial.published.weights > 0) & np.isfinite(secrets))
    order = used[np.lexsort([*(column[used] for column in rows), secrets[used]])]
    return order[trial.knowledge.chance.permutation(len(order))[:_ROWS]]


def _features(column: ColumnMatch, weights: Codes) -> tuple[Rows, Numbers]:
    """Return a column as numbers, of the published rows and of people: its middle, or one number for each label."""
    labels = column.labels.texts
    middles = np.array([_middle(label) for label in labels.tolist()])
    theirs = _labels_of_people(column, weights)
    if np.isfinite(middles).mean() > 0.5:
        published, own = np.nan_to_num(middles, nan=-1.0), np.nan_to_num(numbers(column.values.texts), nan=-1.0)
        people = np.where(theirs >= 0, published[theirs], own[column.values.codes])
        return [published[column.labels.codes]], people[:, None]
    common = np.argsort(-np.bincount(column.labels.codes, weights, len(labels)), kind="stable")[:_LABELS]
    rows = [np.asarray(column.labels.codes == label) for label in common]  # a byte each: there may be many rows
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


def _ensemble() -> Any:
    try:
        from sklearn import ensemble
    except ImportError:
        raise InvalidParameter("learning needs scikit-learn: install incrowd[learn], or omit this attack.") from None
    return ensemble
