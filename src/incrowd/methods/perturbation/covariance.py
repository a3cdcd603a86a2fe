"""Covariance: how columns vary together, plainly or robustly, and what is refused where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.errors import Infeasible, PackageMissing
from incrowd.methods.perturbation.frame import shuffled

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.methods.perturbation.frame import Numbers, RowFrame

_SINGULAR = 1e-10
_FITTED = 5000


def covariance(values: Numbers) -> Numbers:
    """Return the covariances of columns, with the number of rows as divisor.

    >>> covariance(np.array([[1.0, 2.0], [3.0, 6.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    return np.atleast_2d(np.cov(values, rowvar=False, bias=True))


def robust_covariance(values: Numbers, coins: Coins) -> Numbers:
    """Return the covariances of the part of the rows that lies closest together; of many rows, some are looked at.

    Source: Rousseeuw & Van Driessen 1999, the minimum covariance determinant, as scikit-learn computes it.
    """
    seed = int(coins.below(2**31, 1)[0])
    some = values[shuffled(coins, len(values))[:_FITTED]]
    found: Numbers = robust_estimator()(random_state=seed).fit(some).covariance_
    return found


def robust_estimator() -> Any:
    """Return scikit-learn's estimator, or say how to install it; a plan asks for it, so that nothing is charged."""
    try:
        from sklearn.covariance import MinCovDet
    except ImportError:
        raise PackageMissing("robust covariances need scikit-learn: pip install 'incrowd[learn]'.") from None
    return MinCovDet


def root(covariances: Numbers) -> Numbers:
    """Return a matrix with which independent standard normal rows get these covariances."""
    sizes, directions = np.linalg.eigh(covariances)
    half: Numbers = (directions * np.sqrt(np.maximum(sizes, 0.0))).T
    return half


def need_spread(frame: RowFrame, names: Sequence[str], *, whole: bool) -> None:
    """Refuse columns that do not vary and, as a `whole`, columns one of which follows from the others."""
    values = frame.matrix(names)
    for name, column in zip(names, values.T, strict=True):
        if len(column) < 2 or not np.nanstd(column) > 0:
            raise Infeasible(f"{name!r} is the same in every row: there is nothing to mask in it. Leave it out.")
    if not whole:
        return
    if len(values) <= len(names):
        raise Infeasible("there are no more rows than columns that are masked together. Mask fewer columns.")
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    if np.linalg.eigvalsh(covariance(scaled)).min() < _SINGULAR:
        raise Infeasible(
            f"the covariances of {', '.join(names)} are singular: one of these columns follows from the others. "
            "Leave it out, and compute it again from the released ones."
        )
