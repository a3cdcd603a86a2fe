"""Search: what a search or a cross-validation of scikit-learn around a fit costs, said before it starts.

Each of its fits is a charge, and its choice reads scores of the rows without noise, so the choice has no ε.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import FrameType
from typing import TYPE_CHECKING, Any
from warnings import warn
from weakref import WeakSet

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from incrowd.core.words import counted, short_up
from incrowd.errors import Refused

if TYPE_CHECKING:
    from incrowd.workflows.plan.forecast import Forecast

_SEARCH = GridSearchCV.__base__  # what all searches of scikit-learn derive from
_VALIDATION = "sklearn.model_selection._validation"
_ANNOUNCED: WeakSet[Any] = WeakSet()


class PrivacyWarning(UserWarning):
    """Something that scikit-learn does around a private model costs more, or shows more, than it seems."""


def is_searched() -> bool:
    """Whether a search of scikit-learn made the fit that asks: it chooses by scores without noise."""
    return any(_is_search(frame) for frame in _frames())


def announce(estimator: Any) -> None:
    """Say what a search or a cross-validation that clones an estimator will cost; refuse one that the budget forbids.

    Scikit-learn clones before it fits, in the process of the caller: nothing is charged yet.
    """
    frames = list(_frames())
    if any(frame.f_code is announce.__code__ for frame in frames[1:]):  # a clone of our own, to plan a candidate
        return
    around = next((frame for frame in frames if _is_search(frame) or _is_validation(frame)), None)
    if around is None or not _is_first(around):
        return
    cost = _cost_of(around, estimator)
    forecast = estimator.plan()
    left = _left(forecast)
    if cost.epsilon > left:
        raise Refused(
            f"{cost.sentence}, and epsilon {short_up(left)} of the budget remains. Nothing was charged. Take fewer "
            "candidates or folds, or method: tuning, which chooses within one charge."
        )
    choice = (
        " Its choice reads scores without noise and has no epsilon; method: tuning makes one that has."
        if _is_search(around)
        else ""
    )
    warn(f"{cost.sentence}. Every fit is charged.{choice}", PrivacyWarning, stacklevel=2)


@dataclass(frozen=True)
class SearchCost:
    """What all fits of a search cost together; at least that where it makes more of them later."""

    fits: int
    epsilon: Decimal
    at_least: bool = False

    @property
    def sentence(self) -> str:
        """The total, for people."""
        least = "at least " if self.at_least else ""
        return f"this makes {least}{counted(self.fits, 'fit')} for {least}epsilon {short_up(self.epsilon)} in total"


def _is_first(around: FrameType) -> bool:
    """Whether nothing was fitted yet: a search clones its estimator once before, a cross-validation for each fit."""
    if _is_search(around):
        return "base_estimator" not in around.f_locals
    own = around.f_locals.get("parallel")  # an object that each cross-validation makes for itself
    if own is None or own in _ANNOUNCED:
        return False
    _ANNOUNCED.add(own)
    return True


def _cost_of(around: FrameType, estimator: Any) -> SearchCost:
    """Return what a search will cost, each candidate by its own plan."""
    owner = around.f_locals.get("self")
    folds = around.f_locals.get("n_splits") or getattr(owner, "n_splits_", None)  # where older and newer versions are
    if owner is None:  # a cross-validation
        cv: Any = around.f_locals.get("cv")
        fits = cv.get_n_splits() if hasattr(cv, "get_n_splits") else 1
        return SearchCost(fits, fits * estimator.plan().epsilon, at_least=fits == 1)
    if isinstance(owner, GridSearchCV) and folds is not None:
        models = [clone(owner.estimator).set_params(**candidate) for candidate in ParameterGrid(owner.param_grid)]
        costs = [_epsilon(model, estimator) for model in models]
    else:
        costs = [estimator.plan().epsilon] * int(getattr(owner, "n_iter", 1))
    again = max(costs) if owner.refit else Decimal(0)
    sure = folds is not None and isinstance(owner, GridSearchCV)
    return SearchCost(
        (folds or 1) * len(costs) + bool(owner.refit), (folds or 1) * sum(costs, Decimal(0)) + again, not sure
    )


def _epsilon(model: Any, kind: Any) -> Decimal:
    """Return what one fit of a candidate costs: of itself, or of the private models within it."""
    parts = (model, *model.get_params(deep=True).values())
    return sum((part.plan().epsilon for part in parts if isinstance(part, type(kind))), Decimal(0))


def _left(forecast: Forecast) -> Decimal:
    """Return what remains of the budget; where none is declared, the first fit is all of it."""
    if forecast.standing is not None:
        left = forecast.standing.left
        return Decimal("Infinity") if left is None else left.epsilon
    budget = forecast.policy.budget
    return forecast.epsilon if budget is None else budget.limit.epsilon


def _is_search(frame: FrameType) -> bool:
    return frame.f_code.co_name == "fit" and isinstance(frame.f_locals.get("self"), _SEARCH)


def _is_validation(frame: FrameType) -> bool:
    named = frame.f_code.co_name in ("cross_validate", "cross_val_predict")
    return named and frame.f_globals.get("__name__") == _VALIDATION


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - scikit-learn tells an estimator nothing of its search
    while frame is not None:
        yield frame
        frame = frame.f_back
