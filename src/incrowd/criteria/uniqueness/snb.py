"""The slide negative binomial model: each class of the population has one person, and as many more as a coin decides.

The number of further people is negative binomial with size α and probability β, so P(one person) = β^α.  If a share π
of the people is drawn, a class of the model shows one row, or two, with the probabilities (q = 1 − β, D = β + πq)

    P₁ = π (β/D)^α (1 + α(1 − π)q/D)        P₂ = π²αq (β/D)^α (2D + (1 − π)(α + 1)q) / (2D²):

put 1 − π + πs for s in the generating function s·(β/(1 − qs))^α, and take the coefficients of s and s².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.uniqueness.roots import root

_LOGITS = np.linspace(-30.0, 15.0, 361)


def classes_of_population(sizes: NDArray[np.int64], drawn: float) -> float:
    """Return an estimate of how many classes the population has, from those of a sample that drew a share of it.

    Source: Haas & Stokes 1998, the third modification of Shlosser's estimator.

    >>> classes_of_population(np.array([1, 1, 2, 3]), 1.0)
    4.0
    """
    each, times = np.unique(sizes, return_counts=True)
    alone = float(times[each == 1].sum())
    absent = (1 - drawn) ** each * times
    if not alone or drawn == 1:
        return float(len(sizes))
    once = (each * drawn * (1 - drawn) ** (each - 1.0) * times).sum()
    squared = (each * drawn**2 * (1 - drawn**2) ** (each - 1.0) * times).sum()
    return float(len(sizes) + alone * squared / (absent * ((1 + drawn) ** each - 1)).sum() * (absent.sum() / once) ** 2)


def uniques(sizes: NDArray[np.int64], people: int) -> float | None:
    """Return the estimated number of unique people in a population of so many, or None if no parameters fit.

    With the number of classes estimated first, α and β are where the expected numbers of classes of one row and of two
    are those seen.  For each β, P₂/P₁ grows with α, and the α that gives the seen ratio solves a quadratic equation;
    what is left is one equation in β.

    Precondition: the rows are a simple random sample of the population.

    Source: Chen & Keller-McNulty 1998, "Estimation of identification disclosure risk in microdata"; the probabilities
    are derived in the module.

    >>> round(uniques(np.repeat([1, 2, 3, 4], [50, 30, 15, 5]), 400), 3)
    28.676
    """
    drawn = float(sizes.sum()) / people
    one, two = int((sizes == 1).sum()), int((sizes == 2).sum())
    if not one or drawn == 1:
        return float(one)
    if not two:
        return None
    classes = classes_of_population(sizes, drawn)

    def excess(logit: float) -> float:
        alpha, rest, inner = _fitting(logit, drawn, two / one)
        beta = 1 - rest
        share = np.exp(alpha * np.log(beta / inner)) * (1 + alpha * (1 - drawn) * rest / inner)
        return float(classes * drawn * share - one)

    values = np.array([excess(float(logit)) for logit in _LOGITS])
    turns = np.flatnonzero(np.diff(np.sign(values)) != 0)
    if not len(turns) or not np.isfinite(values).all():
        return None
    place = int(turns[-1])
    sign = 1.0 if values[place] > 0 else -1.0
    found = root(lambda logit: sign * excess(logit), float(_LOGITS[place]), float(_LOGITS[place + 1]))
    alpha, rest, _ = _fitting(found, drawn, two / one)
    return min(float(people), classes * float(np.exp(alpha * np.log1p(-rest))))


def _fitting(logit: float, drawn: float, ratio: float) -> tuple[float, float, float]:
    """Return for β, given by its logit, the α with which P₂/P₁ is the ratio, and q and D."""
    rest = float(1 / (1 + np.exp(logit)))
    inner = 1 - (1 - drawn) * rest
    more = (1 - drawn) * rest
    wanted = 2 * inner * ratio / (drawn * rest)  # α(2D + B(α + 1)) / (D + αB) with B = (1 − π)q
    half = 2 * inner + more - wanted * more
    reach = float(np.sqrt(half**2 + 4 * more * wanted * inner))
    alpha = 2 * wanted * inner / (half + reach) if half > 0 else (reach - half) / (2 * more)  # neither cancels
    return alpha, rest, inner
