"""How often a test of chance may fail by chance, and the test itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

FALSE_ALARM = 1e-6

_FEWEST = 20.0


def p_value(draws: NDArray[np.int64], masses: Mapping[int, float]) -> float:
    """Return the chance of draws that fit `masses` no better than these (chi-square).

    Outcomes of which fewer than 20 are expected are counted together with everything that has no mass listed.
    """
    from scipy.stats import chi2

    common = {outcome: mass for outcome, mass in masses.items() if mass * draws.size >= _FEWEST}
    values, counts = np.unique(draws, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    expected = [mass * draws.size for mass in common.values()]
    observed = [float(seen.get(outcome, 0)) for outcome in common]
    rest = draws.size - sum(expected)
    cells = len(common)
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    if rest >= _FEWEST:
        statistic += (draws.size - sum(observed) - rest) ** 2 / rest
        cells += 1
    return float(chi2.sf(statistic, cells - 1))
