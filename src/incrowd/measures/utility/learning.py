"""Learning: models trained on the release, tested on original rows they have not seen.

Each model is trained twice: on the release, and on a part of the original.  Both are tested on the other part of the
original; AUC is the mean over the classes of one against the rest, and *accuracy* is the share of right answers.  The
baseline always guesses the most frequent class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter, PackageMissing
from incrowd.measures.coded import Coded
from incrowd.measures.score import Score, share
from incrowd.measures.utility.regressions import Features, Matrix

_MOST = 10_000  # rows that a model learns from: more is slower and changes little
_CLASSES = 10  # numbers are predicted by tenths
MODELS = ("logistic regression", "decision tree", "naive Bayes")


@dataclass(frozen=True)
class ModelScore:
    """A model, how often it is right after training on the original and on the release, and its AUC both times."""

    model: str
    original: Score
    released: Score
    auc: tuple[float | None, float | None]


@dataclass(frozen=True)
class LearnedScore:
    """What can be learned about one column: the baseline, and every model."""

    target: str
    baseline: Score
    models: tuple[ModelScore, ...]

    @property
    def gain(self) -> float:
        """By how much the best model trained on the release exceeds the baseline."""
        return max((model.released.value for model in self.models), default=0.0) - self.baseline.value


def learning(before: Coded, after: Coded, target: str, models: tuple[str, ...] = MODELS) -> LearnedScore | None:
    """Return how well a column can be learned from the release; None without rows, features or several classes.

    Every second of at most 20,000 original rows is a test row; the release was made from both halves.
    """
    place = before.place(target)
    others = [column for column in range(len(before.names)) if column != place]
    rows = before.picked(2 * _MOST)
    held = np.arange(len(rows)) % 2 == 1
    train, test, released = rows.some(~held), rows.some(held), after.picked(_MOST)
    classes = _classes(before, place)
    if not others or not len(test) or not len(train) or not len(released):
        return None
    features = Features(before, others)
    if not features.width:
        return None
    sets = [(features.of(table), classes[table.codes[place]]) for table in (train, released, test)]
    test_set = sets[2]
    if len(np.unique(test_set[1])) < 2:
        return None
    common = int(np.bincount(sets[1][1]).argmax())
    baseline = _right(test_set[1] == common, f"{target}: always the most frequent class of the release")
    return LearnedScore(target, baseline, tuple(_scored(name, sets[0], sets[1], test_set) for name in models))


def _classes(table: Coded, column: int) -> NDArray[np.intp]:
    """Return the class of each value: itself if it is among the most frequent ones, an interval, or all others."""
    positions, size = table.positions[column], table.sizes[column]
    if positions is None or size <= _CLASSES:
        order = np.argsort(-table.marginal(column), kind="stable")
        ranks = np.empty(size, np.intp)
        ranks[order] = np.arange(size)
        return np.minimum(ranks, _CLASSES - 1)
    order = np.argsort(positions, kind="stable")
    upto = np.cumsum(table.marginal(column)[order])
    classes = np.empty(size, np.intp)
    classes[order] = np.minimum((np.concatenate(([0.0], upto[:-1])) * 4.0).astype(np.intp), 3)  # quarters of the rows
    classes[~np.isfinite(positions)] = 4
    return classes


Labeled = tuple[Matrix, NDArray[np.intp]]


def _scored(name: str, original: Labeled, released: Labeled, test: Labeled) -> ModelScore:
    scores, aucs = [], []
    for table, labels in (original, released):
        guesses, auc = _tested(name, table, labels, test)
        scores.append(_right(guesses == test[1], f"share of test rows that a {name} classifies correctly"))
        aucs.append(auc)
    return ModelScore(name, scores[0], scores[1], (aucs[0], aucs[1]))


def _tested(name: str, table: Matrix, labels: NDArray[np.intp], test: Labeled) -> tuple[NDArray[np.intp], float | None]:
    """Return the guesses of a model for the test rows, and its AUC; after a single class it always guesses that."""
    if len(np.unique(labels)) < 2:
        return np.full(len(test[1]), labels[0]), 0.5
    model = _model(name).fit(table, labels)
    chances = model.predict_proba(test[0])
    aucs = [
        _auc(chances[:, place], test[1] == label)
        for place, label in enumerate(model.classes_)
        if 0 < np.count_nonzero(test[1] == label) < len(test[1])
    ]
    return np.asarray(model.classes_[chances.argmax(axis=1)]), float(np.mean(aucs)) if aucs else None


def _auc(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return how often a positive row has the higher score, ties counting half."""
    from scipy.stats import rankdata

    ranks, ones = rankdata(scores), int(np.count_nonzero(positive))
    return float((ranks[positive].sum() - ones * (ones + 1) / 2.0) / (ones * (len(scores) - ones)))


def _right(right: NDArray[np.bool_], means: str) -> Score:
    return share("accuracy", int(np.count_nonzero(right)), len(right), means)


def _model(name: str) -> Any:
    """Return an untrained model of scikit-learn."""
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import GaussianNB
        from sklearn.tree import DecisionTreeClassifier
    except ImportError:
        raise PackageMissing(
            "models are trained by scikit-learn, which is not installed: pip install 'incrowd[learn]'."
        ) from None
    models = {
        MODELS[0]: lambda: LogisticRegression(max_iter=500),
        MODELS[1]: lambda: DecisionTreeClassifier(max_depth=8, min_samples_leaf=5, random_state=0),
        MODELS[2]: GaussianNB,
    }
    if name not in models:
        raise InvalidParameter(f"there is no model {name!r}: there are {', '.join(MODELS)}.")
    return models[name]()
