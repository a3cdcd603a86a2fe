"""Estimators: private models as scikit-learn knows them.

What could betray rows is not there: classes are the declared ones, and neither labels, counts, numbers of rows nor
scores of the rows that were learned from are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self
from warnings import warn
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from incrowd.core.domain import Categories, Type, listed
from incrowd.core.reading import parse
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.learn.rows import digest_of_rows, kind_of, table_of, target_of
from incrowd.learn.search import PrivacyWarning, announce, is_searched
from incrowd.workflows.plan.forecast import Forecast
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.release.learn import learn_model

if TYPE_CHECKING:
    from incrowd.core.certificate import Amounts, Certificate
    from incrowd.methods.learning.shared.models import LearnedModel

_FROM_TEXT: dict[Type, Callable[[str], object]] = {Type.INTEGER: int, Type.DECIMAL: float, Type.BOOLEAN: "true".__eq__}


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: a policy, its plan, and a fit that is charged before a row is read.

    `policy` is a file, its text or a mapping, with a method that learns.  Every other parameter takes the place of
    the one of that name under `release:` of the policy, unless it is None: searches and pipelines can set it.  After
    `fit` there are `model_`, which says what it says of any rows for nothing, `certificate_`, and `budget_spent_`.
    """

    method: ClassVar[str]
    also: ClassVar[tuple[str, ...]] = ()

    policy: PolicyLike | None
    model_: LearnedModel
    certificate_: Certificate

    @property
    def budget_spent_(self) -> Amounts:
        """The ε and the δ that the fit was charged, rounded up."""
        check_is_fitted(self, "model_")
        return self.certificate_.accounting.spent

    def plan(self) -> Forecast:
        """Return what `fit` would guarantee and cost, from the policy alone; nothing is spent and no row is read."""
        return forecast(self._policy())

    def fit(self, X: object, y: object = None) -> Self:  # noqa: N803 - the names that scikit-learn gives them
        """Learn from rows, charged to the ledger before one is read; a further fit is a further charge."""
        policy = self._policy()
        names, target = _inputs(policy), getattr(policy.method, "target_column", None)
        table = table_of(X, names, type(self).__name__)
        if target is not None and y is None and target not in table.column_names:
            raise InvalidParameter(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give y, or a frame with the "
                f"column {target}."
            )
        if target is not None and y is not None:
            table = table.drop_columns([target]) if target in table.column_names else table
            table = table.append_column(target, target_of(y))
        if target is not None:
            _check_kind(policy.schema[target], table.schema.field(target).type if y is None else kind_of(y))
        for column in policy.schema.released:  # those that this model does not read may be left out
            if column.name not in (*table.column_names, *names):
                table = table.append_column(column.name, pa.nulls(table.num_rows, pa.string()))
        learned = learn_model(table, policy, searched=is_searched())
        self.model_, self.certificate_ = learned.model, learned.certificate
        _TRAINED[self] = digest_of_rows(table.select(names))
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        return self

    def _policy(self) -> Policy:
        if self.policy is None:
            raise InvalidParameter(
                f"{type(self).__name__} needs a policy: what the columns are and may cost, with method: {self.method}."
            )
        changes = {name: value for name, value in self.get_params(deep=False).items() if value is not None}
        policy = load_policy(changes.pop("policy"), changes=changes and {"method": self.method} | changes)
        if policy.plan.method not in (self.method, *self.also):
            raise InvalidParameter(
                f"{type(self).__name__} learns by method: {self.method}, and the policy says {policy.plan.method!r}."
            )
        return policy

    def _rows(self, X: object) -> pa.Table:  # noqa: N803 - the name that scikit-learn gives it
        check_is_fitted(self, "model_")
        return table_of(X, list(self.feature_names_in_), type(self).__name__)

    def _warn_of_training_rows(self, X: object) -> None:  # noqa: N803 - the name that scikit-learn gives it
        """Warn of a score of the rows that were learned from: it is too good, and no guarantee covers it."""
        if _TRAINED.get(self) == digest_of_rows(self._rows(X).select(list(self.feature_names_in_))):
            warn(
                "these are the rows that the model was learned from: their score is too good, has no noise, and is "
                "not covered by the guarantee. Keep it internal; score other rows, or use method: tuning with folds.",
                PrivacyWarning,
                stacklevel=3,
            )

    def __sklearn_clone__(self) -> Any:
        """Copy the parameters; where a search asks for it, say first what all its fits will cost."""
        announce(self)
        return super().__sklearn_clone__()

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

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by its name
        self,
        policy: PolicyLike | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        model: str | None = None,
        target_column: str | None = None,
        columns: Sequence[str] | None = None,
        bins: int | None = None,
        expected_rows: int | None = None,
        depth: int | None = None,
        smallest_share: float | str | None = None,
    ) -> None:
        self.policy = policy
        self.epsilon = epsilon
        self.delta = delta
        self.model = model
        self.target_column = target_column
        self.columns = columns
        self.bins = bins
        self.expected_rows = expected_rows
        self.depth = depth
        self.smallest_share = smallest_share

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

    def score(self, X: object, y: object, sample_weight: object = None) -> float:  # noqa: N803
        """Return the accuracy, with a warning where the rows are those that were learned from."""
        self._warn_of_training_rows(X)
        return float(super().score(X, y, sample_weight))


class Regressor(RegressorMixin, PrivateEstimator):  # type: ignore[misc]
    """A private model that predicts a number; its policy says `method: regressor`, or `method: tuning`."""

    method = "regressor"
    also = ("tuning",)

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by its name
        self,
        policy: PolicyLike | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        model: str | None = None,
        target_column: str | None = None,
        columns: Sequence[str] | None = None,
        bins: int | None = None,
        expected_rows: int | None = None,
        depth: int | None = None,
    ) -> None:
        self.policy = policy
        self.epsilon = epsilon
        self.delta = delta
        self.model = model
        self.target_column = target_column
        self.columns = columns
        self.bins = bins
        self.expected_rows = expected_rows
        self.depth = depth

    def predict(self, X: object) -> NDArray[np.float64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the number that is expected for each row, within the declared bounds; it costs nothing."""
        rows = self._rows(X)
        return self.model_.numbers(rows)

    def predict_interval(self, X: object, level: float = 0.95) -> NDArray[np.float64]:  # noqa: N803
        """Return the ends of an interval for each row, two columns: for `model: linear`, and it costs nothing."""
        return np.column_stack(self.model_.intervals(self._rows(X), level))

    def score(self, X: object, y: object, sample_weight: object = None) -> float:  # noqa: N803
        """Return R², with a warning where the rows are those that were learned from."""
        self._warn_of_training_rows(X)
        return float(super().score(X, y, sample_weight))


class KMeans(PrivateEstimator):
    """Private centers of clusters; its policy says `method: kmeans`.

    Labels of the rows that were learned from are no part of a release: there is neither `labels_` nor `fit_predict`.
    """

    method = "kmeans"

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by its name
        self,
        policy: PolicyLike | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        model: str | None = None,
        clusters: int | None = None,
        rounds: int | None = None,
        columns: Sequence[str] | None = None,
        bins: int | None = None,
        expected_rows: int | None = None,
    ) -> None:
        self.policy = policy
        self.epsilon = epsilon
        self.delta = delta
        self.model = model
        self.clusters = clusters
        self.rounds = rounds
        self.columns = columns
        self.bins = bins
        self.expected_rows = expected_rows

    @property
    def cluster_centers_(self) -> NDArray[np.float64]:
        """The centers: a number for each column of numbers in its units, and for each class of other columns."""
        check_is_fitted(self, "model_")
        return _vectors(self.model_)

    def predict(self, X: object) -> NDArray[np.int64]:  # noqa: N803 - the name that scikit-learn gives it
        """Return the number of the nearest center for each row; it costs nothing, and is as private as the row."""
        rows = self._rows(X)
        return self.model_.nearest(rows)

    def __sklearn_tags__(self) -> Any:
        """Say that it clusters."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


class PCA(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Private principal components; its policy says `method: pca`."""

    method = "pca"

    def __init__(  # noqa: PLR0913 - scikit-learn wants every parameter by its name
        self,
        policy: PolicyLike | None = None,
        *,
        epsilon: float | str | None = None,
        delta: float | str | None = None,
        components: int | None = None,
        columns: Sequence[str] | None = None,
        bins: int | None = None,
    ) -> None:
        self.policy = policy
        self.epsilon = epsilon
        self.delta = delta
        self.components = components
        self.columns = columns
        self.bins = bins

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
            f"labels of {target.name!r} are {labels}, and the policy declares the classes {listed(words)}: a row with "
            "such a label has no class. Give the declared words, or declare the classes as the labels are. Tools that "
            "number the labels first, such as VotingClassifier, need type: integer and categories: [0, 1, …]. Nothing "
            "was charged."
        )


def _vectors(model: LearnedModel) -> NDArray[np.float64]:
    return np.zeros((0, 0)) if model.vectors is None else model.vectors


def _inputs(policy: Policy) -> list[str]:
    """Return the columns that a policy's model reads, in order."""
    target = getattr(policy.method, "target_column", None)
    sets = getattr(policy.method, "column_sets", {}).values()
    chosen = getattr(policy.method, "columns", ()) or dict.fromkeys(name for names in sets for name in names)
    return list(chosen) or [column.name for column in policy.schema.released if column.name != target]


_TRAINED: WeakKeyDictionary[PrivateEstimator, bytes] = WeakKeyDictionary()
"""Keyed digests of the rows that were learned from; they stay in this process, and out of a saved estimator."""
