"""Preservation: the statistics that a masked release claims to preserve, compared with the rows it was made from.

The tables are compared as tables: which released row was made from which is not known, nor which household is which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.table import Engine, Rows, Table
from incrowd.core.unit import ExtraRowsRule
from incrowd.methods.perturbation.shared.frame import Places, RowFrame, covariance
from incrowd.methods.perturbation.shared.steps import Exactness, KeptStatistic, Preservation
from incrowd.workflows.assess.released import ReadRelease
from incrowd.workflows.policy.policy import Policy

_EXACT = (Exactness.EXACT, Exactness.ROUNDED, Exactness.NEARLY)
_ROUNDING = 1e-9  # sums of floats in another order are equal up to this
_MOMENTS = 1e-6  # means and covariances after a rotation are equal up to this

Both = tuple[RowFrame, RowFrame]
"""The rows as they were read, and as they were released."""


@dataclass(frozen=True)
class PreservedStatistic:
    """A claim that a statistic is preserved, and whether it is; None where the two tables cannot show it."""

    columns: tuple[str, ...]
    sentence: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """The result as text."""
        return {True: "preserved", False: "NOT PRESERVED", None: "not shown by the two tables"}[self.holds]


def preserved_statistics(
    released: ReadRelease, original: Rows, policy: Policy, engine: Engine
) -> tuple[PreservedStatistic, ...]:
    """Check the claims of masks; where rows were removed at random before masking, they cannot be checked."""
    claims = [claim for claim in released.claims if isinstance(claim, Preservation)]
    if not claims:
        return ()
    unit = policy.schema.unit
    if not released.whole or (unit.column is not None and unit.more is not ExtraRowsRule.REFUSE):
        return tuple(PreservedStatistic(claim.columns, claim.sentence, None) for claim in claims)
    levels = {name: level[0] for name, level in released.levels.items()}
    before = RowFrame.read(Table(policy.schema, original, engine), levels, ())
    after = _unfolded(released)
    return tuple(
        PreservedStatistic(claim.columns, claim.sentence, preserved(claim, before, after, policy.schema.weight))
        for claim in claims
    )


def _unfolded(released: ReadRelease) -> RowFrame:
    """Return the released rows one by one, as text."""
    (tuples,) = released.tables
    rows = np.ones(tuples.labels.num_rows, np.int64) if tuples.rows is None else tuples.rows
    return RowFrame(tuples.labels.take(pa.array(np.repeat(np.arange(len(rows)), rows))))


def preserved(claim: Preservation, before: RowFrame, after: RowFrame, weight: str | None = None) -> bool | None:
    """Return whether a statistic is preserved; None where two tables cannot show it, or it holds on average only.

    >>> claim = Preservation(
    ...     columns=("age",), statistic=KeptStatistic.VALUES, exactness=Exactness.EXACT, unit="one row", theorem="swap"
    ... )
    >>> old, new = (RowFrame(pa.table({"age": ages})) for ages in ([30, 40, 40], [40, 30, 40]))
    >>> preserved(claim, old, new), preserved(claim, old, RowFrame(pa.table({"age": [30, 30, 40]})))
    (True, False)
    """
    check = _CHECKS.get(claim.statistic)
    if check is None or claim.households or claim.exactness not in _EXACT:
        return None
    if claim.statistic is KeptStatistic.TABLES:
        return _same_rows((before, after), [name for name in after.table.column_names if name not in claim.columns])
    groups = _groups((before, after), claim.within or ())
    return all(check(claim, (before.take(one), after.take(other)), weight) for one, other in groups)


def _groups(both: Both, names: Sequence[str]) -> list[tuple[Places, Places]]:
    """Return the rows of each group that either table has, in both."""
    number, rows = _together(both, names), len(both[0])
    old, new = number[:rows], number[rows:]
    return [(np.flatnonzero(old == group), np.flatnonzero(new == group)) for group in np.unique(number)]


def _together(both: Both, names: Sequence[str]) -> Places:
    """Return the groups of the rows of both tables, one after the other, by the text of some columns."""
    if not names:
        return np.zeros(sum(map(len, both)), np.int64)
    table = pa.table({name: pa.concat_arrays([_text(frame, name) for frame in both]) for name in names})
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
    shares = [None if weight is None else frame.numbers(weight) for frame in both]
    return all(
        abs(np.average(old, weights=shares[0]) - np.average(new, weights=shares[1])) <= _ROUNDING * (1 + _largest(old))
        for old, new in ((before.numbers(name), after.numbers(name)) for name in claim.columns)
    )


def _plain_means(claim: Preservation, both: Both, _: str | None) -> bool:
    return _means(claim, both, None)


def _moments(claim: Preservation, both: Both, _: str | None) -> bool:
    old, new = (frame.matrix(claim.columns) for frame in both)
    if len(old) != len(new) or not len(old):
        return len(old) == len(new)
    scale = np.abs(old).max(axis=0) + 1.0
    apart = np.abs(covariance(old / scale) - covariance(new / scale)).max()
    return bool(apart <= _MOMENTS) and _means(claim, both, None)


def _totals(claim: Preservation, both: Both, _: str | None) -> bool:
    (name,) = claim.columns
    old, new = (float(frame.numbers(name).sum()) for frame in both)
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
