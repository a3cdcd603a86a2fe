"""Estimators: private models as scikit-learn knows them.

What could betray rows is not there: classes are the declared ones, and neither labels, counts, numbers of rows nor
scores of the rows that were learned from are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self
from warnings import warn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from incrowd.core.domain import Categories, Type, listed
from incrowd.core.reading import parse
from incrowd.core.schema import Column
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import InvalidParameter
from incrowd.workflows.plan.forecast import Forecast
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.release.learn import learn_model

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate
    from incrowd.methods.learning.shared.models import LearnedModel

_FROM_TEXT: dict[Type, Callable[[str], object]] = {Type.INTEGER: int, Type.DECIMAL: float, Type.BOOLEAN: "true".__eq__}


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: a policy, its plan, and a fit that is charged before a row is read.

    `policy` is a file, its text or a mapping, with a method that learns.  After `fit` there are `model_`, which says
    what it says of any rows for nothing, and `certificate_`.
    """

    method: ClassVar[str]
    also: ClassVar[tuple[str, ...]] = ()

    model_: LearnedModel
    certificate_: Certificate

    def __init__(self, policy: PolicyLike | None = None) -> None:
        self.policy = policy

    def plan(self) -> Forecast:
        """Return what `fit` would guarantee and cost, from the policy alone; nothing is spent and no row is read."""
        return forecast(self._policy())

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803 - the names that scikit-learn gives them
        """Learn from rows, charged to the ledger before one is read; a further fit is a further charge."""
        policy = self._policy()
        names, target = _inputs(policy), getattr(policy.method, "target_column", None)
        table = _table(X, names, type(self).__name__)
        if target is not None and y is None and target not in table.column_names:
            raise InvalidParameter(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give y, or a frame with the "
                f"column {target}."
            )
        if target is not None and y is not None:
            table = table.drop_columns([target]) if target in table.column_names else table
            table = table.append_column(target, _target(y))
        if target is not None:
            _check_kind(policy.schema[target], table.schema.field(target).type)
        learned = learn_model(table, policy)
        self.model_, self.certificate_ = learned.model, learned.certificate
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        return self

    def _policy(self) -> Policy:
        if self.policy is None:
            raise InvalidParameter(
                f"{type(self).__name__} needs a policy: what the columns are and may cost, with method: {self.method}."
            )
        policy = load_policy(self.policy)
        if policy.plan.method not in (self.method, *self.also):
            raise InvalidParameter(
                f"{type(self).__name__} learns by method: {self.method}, and the policy says {policy.plan.method!r}."
            )
        return policy

    def _rows(self, X: object) -> pa.Table:  # noqa: N803 - the name that scikit-learn gives it
        check_is_fitted(self, "model_")
        return _table(X, list(self.feature_names_in_), type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        """Say that rows may hold text and missing values, and that two fits differ by their noise."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        tags.non_deterministic = True
        return tags


class Classifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """A private model that predicts a class; its policy says `method: classifier`, or `method: tuning`."""

    method = "classifier"
    also = ("tuning",)

    @property
    def classes_(self) -> NDArray[Any]:
        """The declared classes, whatever rows hold; in numpy's order, by which scikit-learn reads probabilities."""
        return np.sort(self._model_classes)

    @property
    def _model_classes(self) -> NDArray[Any]:
        """The classes in the order in which they are declared, which is that of the model."""
        check_is_fitted(self, "model_")
        return _labels(self.model_.outputs, self._policy().schema[self.model_.target or ""].type)

    def predict_proba(self, X: object) -> NDArray[np.float64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the chance of each class for each row, in the order of `classes_`; it costs nothing."""
        rows = self._rows(X)
        return self.model_.chances(rows)[:, np.argsort(self._model_classes, kind="stable")]

    def predict(self, X: object) -> NDArray[Any]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the likeliest class of each row; it costs nothing."""
        check_is_fitted(self, "model_")
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


class Regressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A private model that predicts a number; its policy says `method: regressor`."""

    method = "regressor"

    def predict(self, X: object) -> NDArray[np.float64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the number that is expected for each row, within the declared bounds; it costs nothing."""
        rows = self._rows(X)
        return self.model_.numbers(rows)


class KMeans(ClusterMixin, PrivateEstimator):  # type: ignore[misc]
    """Private centers of clusters; its policy says `method: kmeans`.  Labels of the rows learned from are not kept."""

    method = "kmeans"

    @property
    def cluster_centers_(self) -> NDArray[np.float64]:
        """The centers: a number for each column of numbers in its units, and for each class of other columns."""
        check_is_fitted(self, "model_")
        return _vectors(self.model_)

    def predict(self, X: object) -> NDArray[np.int64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the number of the nearest center for each row; it costs nothing, and is as private as the row."""
        rows = self._rows(X)
        return self.model_.nearest(rows)

    def fit_predict(self, X: object, y: object = None, **_: object) -> NDArray[np.int64]:  # noqa: N803
        """Refuse: labels of the rows that were learned from are not part of the release."""
        raise InvalidParameter("labels of private rows are no part of a model: use fit, then predict on other rows.")


class PCA(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Private principal components; its policy says `method: pca`."""

    method = "pca"

    @property
    def components_(self) -> NDArray[np.float64]:
        """The components over scaled columns: half of the declared range of a number is 1, and a class is 1."""
        check_is_fitted(self, "model_")
        return _vectors(self.model_)

    def transform(self, X: object) -> NDArray[np.float64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return a number for each component of each row; it costs nothing, and is as private as the row."""
        rows = self._rows(X)
        return self.model_.scores(rows)


def _labels(outputs: Sequence[str], kind: Type) -> NDArray[Any]:
    """Return labels as values of the declared type; those of intervals are text.

    >>> _labels(["1", "0"], Type.INTEGER).tolist(), _labels(["< 5", ">= 5"], Type.INTEGER).tolist()
    ([1, 0], ['< 5', '>= 5'])
    """
    try:
        return np.array([_FROM_TEXT.get(kind, str)(output) for output in outputs])
    except ValueError:
        return np.array(outputs)


def _check_kind(target: Column, stored: pa.DataType) -> None:
    """Refuse numbers or truth values as labels where the declared classes are other words: none would be learned."""
    if target.type is not Type.TEXT or not isinstance(target.domain, Categories):
        return
    words = target.domain.values
    if pa.types.is_boolean(stored):
        labels, fit = "truth values", any(word in ("true", "false") for word in words)
    elif pa.types.is_integer(stored) or pa.types.is_floating(stored):
        labels, fit = "numbers", any(parse(word, Type.DECIMAL) is not None for word in words)
    else:
        return
    if not fit:
        raise InvalidParameter(
            f"the labels of {target.name!r} are {labels}, and the policy declares the classes {listed(words)}: no row "
            "would have a class. Give the declared words, or declare the classes as the labels are. Tools that number "
            "the labels first, such as VotingClassifier, need type: integer and categories: [0, 1, …]. Nothing was "
            "charged."
        )


def _vectors(model: LearnedModel) -> NDArray[np.float64]:
    return np.zeros((0, 0)) if model.vectors is None else model.vectors


def _inputs(policy: Policy) -> list[str]:
    """Return the columns that a policy's model reads, in order."""
    target = getattr(policy.method, "target_column", None)
    sets = getattr(policy.method, "column_sets", {}).values()
    chosen = getattr(policy.method, "columns", ()) or dict.fromkeys(name for names in sets for name in names)
    return list(chosen) or [column.name for column in policy.schema.released if column.name != target]


def _table(rows: object, names: list[str], estimator: str) -> pa.Table:
    """Return a frame as it is, and an array with the columns that the policy declares, in that order."""
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "to_arrow"):
        return _whole(open_source(rows))
    if hasattr(rows, "toarray"):
        raise InvalidParameter("sparse rows are not read: give a frame with named columns, or a dense array.")
    array = np.asarray(rows)
    if array.dtype.kind == "c":
        raise InvalidParameter("Complex data not supported: a column is of numbers, texts or days.")
    if array.ndim != 2:
        raise InvalidParameter("Expected 2D array. Reshape your data: a line for each row, a column for each declared.")
    if array.shape[1] != len(names):
        mismatch = f"X has {array.shape[1]} features, but {estimator} is expecting {len(names)} features as input"
        empty = "" if array.shape[1] else f" (0 feature(s) (shape={array.shape}) while a minimum of 1 is required)"
        raise InvalidParameter(
            f"{mismatch}{empty}: those that the policy declares, {', '.join(names)}. Give a frame with named "
            "columns, or such an array."
        )
    return pa.table({name: _column(array[:, place]) for place, name in enumerate(names)})


def _whole(source: Source) -> pa.Table:
    batches = list(source.batches(source.names))
    empty = {name: pa.array([], pa.string()) for name in source.names}
    return pa.Table.from_batches(batches) if batches else pa.table(empty)


def _target(values: object) -> pa.Array:
    """Return a target as a column; one that is a single column of a table is taken with a warning."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=3)
        array = array[:, 0]
    return _column(array)


def _column(values: object) -> pa.Array:
    """Return values as text if they are of several kinds, else as they are."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidParameter("a target is one column.")
    if array.dtype.kind in "biuf":
        return pa.array(array)
    plain = array.tolist()
    kinds = {type(value) for value in plain if value is not None}
    if kinds and (kinds <= {int, float} or kinds == {bool}):  # numbers that numpy holds as objects
        return pa.array(plain)
    return pa.array([None if value is None else str(value) for value in plain], pa.string())
