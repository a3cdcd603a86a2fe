"""Learn: estimators for scikit-learn whose `fit` is a certified release under a policy.

They need the extra `learn`.  What a policy declares (columns, bounds, classes, budget) is all that they know before
`fit`; `fit` charges the ledger before it reads a row, and each further `fit` is another charge, or is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.learn.estimators import PCA, Classifier, KMeans, Regressor
    from incrowd.learn.search import PrivacyWarning

__all__ = ["PCA", "Classifier", "KMeans", "PrivacyWarning", "Regressor"]


def __getattr__(name: str) -> Any:
    """Load an estimator when it is first used, and with it scikit-learn."""
    if name not in __all__:
        raise AttributeError(f"module 'incrowd.learn' has no attribute {name!r}")
    from importlib import import_module

    from incrowd.errors import PackageMissing

    try:
        return getattr(import_module("incrowd.learn.estimators"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise PackageMissing("scikit-learn is not installed: pip install 'incrowd[learn]'.") from None


def __dir__() -> list[str]:
    """List the estimators."""
    return list(__all__)
