"""Preserved: whether what a mask claims to keep is kept, by comparing a released table with the rows as they were read.

The tables are compared as tables: which released row was made from which is not known, nor which household is whose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.methods.perturbation.covariance import covariance
from incrowd.methods.perturbation.frame import Places, RowFrame
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Preservation

_EXACT = (Exactness.EXACT, Exactness.ROUNDED, Exactness.NEARLY)
_ROUNDING = 1e-9
_MOMENTS = 1e-6

Both = tuple[RowFrame, RowFrame]
"""The rows as they were read, and as they were released."""


def preserved(claim: Preservation, before: RowFrame, after: RowFrame, weight: str | None = None) -> bool | None:
    """Return whether a statistic is kept as claimed; None where two tables cannot show it, or it holds on average only.

    >>> claim = Preservation(
    ...     columns=("age",), kept=KeptStatistic.VALUES, how=Exactness.EXACT, unit="one row", theorem="a swap"
    ... )
    >>> old, new = (RowFrame(pa.table({"age": ages})) for ages in ([30, 40, 40], [40, 30, 40]))
    >>> preserved(claim, old, new), preserved(claim, old, RowFrame(pa.table({"age": [30, 30, 40]})))
    (True, False)
    """
    check = _CHECKS.get(claim.kept)
    if check is None or claim.households or claim.how not in _EXACT:
        return None
    if claim.kept is KeptStatistic.TABLES:
        return _same_rows((before, after), [name for name in after.table.column_names if name not in claim.columns])
    groups = _groups((before, after), claim.within or ())
    return all(check(claim, (before.take(one), after.take(other)), weight) for one, other in groups)


def _groups(both: Both, names: Sequence[str]) -> list[tuple[Places, Places]]:
    """Return the rows of each group that either table has, in both."""
    number, rows = _together(both, names), len(both[0])
    old, new = number[:rows], number[rows:]
    return [(np.flatnonzero(old == each), np.flatnonzero(new == each)) for each in np.unique(number)]


def _together(both: Both, names: Sequence[str]) -> Places:
    """Return the groups of the rows of both tables, one after the other, by the text of some columns."""
    if not names:
        return np.zeros(sum(map(len, both)), np.int64)
    table = pa.table({name: pa.concat_arrays([_text(each, name) for each in both]) for name in names})
    return RowFrame(table).groups(names)


def _same_rows(both: Both, names: Sequence[str]) -> bool:
    number, rows = _together(both, names), len(both[0])
    size = int(number.max(initial=-1)) + 1
    return bool(np.array_equal(np.bincount(number[:rows], minlength=size), np.bincount(number[rows:], minlength=size)))


def _text(frame: RowFrame, name: str) -> pa.Array:
    """Return a column as text, numbers by their value however they are spelled."""
    values = frame.values(name)
    try:
        return pc.cast(pc.cast(values, pa.float64()), pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pc.cast(values, pa.string())


def _values(claim: Preservation, both: Both, _: str | None) -> bool:
    return all(_same_rows(both, [name]) for name in claim.columns)


def _means(claim: Preservation, both: Both, weight: str | None) -> bool:
    before, after = both
    if not len(before) or not len(after):
        return len(before) == len(after)
    shares = [None if weight is None else each.numbers(weight) for each in both]
    return all(
        abs(np.average(old, weights=shares[0]) - np.average(new, weights=shares[1])) <= _ROUNDING * (1 + _largest(old))
        for old, new in ((before.numbers(name), after.numbers(name)) for name in claim.columns)
    )


def _plain_means(claim: Preservation, both: Both, _: str | None) -> bool:
    return _means(claim, both, None)


def _moments(claim: Preservation, both: Both, _: str | None) -> bool:
    old, new = (each.matrix(claim.columns) for each in both)
    if len(old) != len(new) or not len(old):
        return len(old) == len(new)
    scale = np.abs(old).max(axis=0) + 1.0
    apart = np.abs(covariance(old / scale) - covariance(new / scale)).max()
    return bool(apart <= _MOMENTS) and _means(claim, both, None)


def _totals(claim: Preservation, both: Both, _: str | None) -> bool:
    (name,) = claim.columns
    old, new = (float(each.numbers(name).sum()) for each in both)
    return abs(new - old) <= float(claim.share or 0) * old + _ROUNDING * (1 + abs(old))


def _largest(values: NDArray[np.float64]) -> float:
    return float(np.abs(values).max())


_CHECKS: dict[KeptStatistic, Callable[[Preservation, Both, str | None], bool]] = {
    KeptStatistic.VALUES: _values,
    KeptStatistic.MEANS: _plain_means,
    KeptStatistic.WEIGHTED_MEANS: _means,
    KeptStatistic.MOMENTS: _moments,
    KeptStatistic.TOTALS: _totals,
    KeptStatistic.TABLES: _values,
}
"""How each statistic is compared that two tables can show."""
