"""Outside: how many values lie outside what is declared, and what they become; for the terminal of the data holder.

Nothing of it goes into a certificate, and no release with an ε is held back by it: it is counted across people.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Categories, Dates, Numbers
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import OTHER, Column, Outside, Role
from incrowd.core.steps.rows import Recode
from incrowd.core.table import Engine, Rows
from incrowd.errors import Refused
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.plan.published import bound_columns
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import LEARNING

_MOST = 0.01  # of the values of a column


@dataclass(frozen=True)
class OutsideValues:
    """A column with values outside what is declared: how many of how many, and what becomes of them."""

    column: str
    outside: int
    values: int
    declared: str
    becomes: str

    @property
    def sentence(self) -> str:
        """What the data holder is told.

        >>> OutsideValues("born", 3000, 3000, "bounds", "will be published as '2024 or earlier'").sentence
        "3,000 of 3,000 values of born lie outside the declared bounds and will be published as '2024 or earlier'."
        """
        verb = "lies" if self.outside == 1 else "lie"
        return (
            f"{self.outside:,} of {self.values:,} values of {self.column} {verb} outside the declared {self.declared} "
            f"and {self.becomes}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"column": self.column, "outside": self.outside, "values": self.values, "sentence": self.sentence}


def require_outside_rules(policy: Policy) -> None:
    """Refuse, by the policy alone, a release whose published numbers would not say what a bound stands for.

    Open-ended labels are true of all values beyond a bound.  A number published as a number has no label, so the
    declaration says what a bound stands for, unless the release has no ε: there `require_few_outside` counts.
    """
    if policy.section.release is None:
        return
    for name in bound_columns(policy.plan) if policy.plan.method not in LEARNING else ():
        declared = policy.schema[name].outside
        if declared is Outside.ENDS or (declared is None and not policy.plan.guarantee.syntactic):
            raise Refused(
                f"{name!r} may be published as numbers, which have no labels for values beyond its bounds. Write "
                f"outside: bound below {name!r} (the bound then stands for those beyond it), other, or drop; or raise "
                "its lowest level."
            )


def require_few_outside(policy: Policy, rows: Rows, engine: Engine) -> None:
    """Refuse a release without an ε if many values lie outside bounds, and the policy does not say what to do."""
    if not policy.plan.guarantee.syntactic:
        return
    columns = tuple(column for column in policy.schema.columns if _undecided(column))
    names = _levels(policy) or policy.schema.names
    for counted in outside_of(policy, rows, engine, tuple(column for column in columns if column.name in names)):
        if counted.outside > _MOST * counted.values:
            raise Refused(
                f"{counted.sentence} Correct the bounds; or say what to do: write outside: ends (labels such as '2024 "
                f"or earlier'), bound (numbers), other or drop below {counted.column!r}."
            )


def _undecided(column: Column) -> bool:
    """Whether values of a column can lie beyond its bounds, and nothing says what becomes of them."""
    return column.outside is None and isinstance(column.domain, Numbers | Dates) and _counts(column)


class OutsideCounter:
    """Counts values of columns that are there, below and above bounds, or outside a list, batch by batch.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.domain import Type
    >>> counter = OutsideCounter((Column("n", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 9))),))
    >>> counter.add(pa.record_batch({"n": ["-3", "5", "12", ""]}))
    >>> dict(counter.counts["n"])
    {'values': 3, 'below': 1, 'above': 1}
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self.counts: dict[str, Counter[str]] = {column.name: Counter() for column in columns}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count some rows."""
        for column in self._columns:
            self.counts[column.name].update(_counted(batch.column(column.name), column))

    def merge(self, other: OutsideCounter) -> None:
        """Add what was counted of other rows."""
        for name, counts in other.counts.items():
            self.counts[name].update(counts)


def _counted(array: pa.Array, column: Column) -> dict[str, int]:
    values, indices = as_dictionary(array)
    stored = read(values, column.type).values
    times = np.ones(len(values), np.int64) if indices is None else np.bincount(indices, minlength=len(values) + 1)
    rows = times[: len(values)]
    present = stored.is_valid().to_numpy(zero_copy_only=False)
    counts = {"values": int(rows[present].sum())}
    if isinstance(column.domain, Numbers | Dates):
        low, high = (None if end is None else pa.scalar(end, stored.type) for end in column.stored_bounds)
        below = pc.less(stored, low) if low is not None else None
        above = pc.greater(stored, high) if high is not None else None
        for side, flags in (("below", below), ("above", above)):
            if flags is not None:
                counts[side] = int(rows[pc.fill_null(flags, False).to_numpy(zero_copy_only=False)].sum())
        return counts
    unlisted = present & ~column.domain.contains(canonical(stored))
    return counts | {"unlisted": int(rows[unlisted].sum())}


def outside_of(
    policy: Policy, rows: Rows, engine: Engine, columns: tuple[Column, ...] | None = None
) -> tuple[OutsideValues, ...]:
    """Read the rows of people who take part once, and return which columns hold values outside what is declared."""
    levels = _levels(policy)
    if columns is None:
        names = levels or policy.schema.names  # no step of a model, or of questions, names a level
        columns = tuple(column for column in policy.schema.columns if column.name in names and _counts(column))
    if not columns:
        return ()
    taking = taking_part(engine, rows, policy)
    counts_by_name = engine.learn(taking, [column.name for column in columns], partial(OutsideCounter, columns)).counts
    outside_values = []
    for column in columns:
        counts = counts_by_name[column.name]
        outside = counts["below"] + counts["above"] + counts["unlisted"]
        if outside:
            declared = "categories" if isinstance(column.domain, Categories) else "bounds"
            becomes = _becomes(column, counts, levels.get(column.name))
            becomes = becomes.replace("their rows", "its row") if outside == 1 else becomes
            outside_values.append(OutsideValues(column.name, outside, counts["values"], declared, becomes))
    return tuple(outside_values)


def _counts(column: Column) -> bool:
    """Whether values of a column can leave, or count, and some can lie outside what is declared."""
    return column.domain.closed and column.separator is None and not Role.IDENTIFIER.covers(column.role)


def _levels(policy: Policy) -> dict[str, range]:
    """Return the levels at which columns leave, as far as the steps name them; several where one is chosen."""
    if policy.section.release is None:
        return {}
    recode_steps = [step for step in policy.plan.steps if isinstance(step, Recode)]
    summed = {getattr(step, "value", None): range(1) for step in policy.plan.steps}
    named = {column.column: column.levels for step in recode_steps for column in step.columns}
    return {name: levels for name, levels in summed.items() if name in policy.schema.names and named} | named


def _becomes(column: Column, counts: Counter[str], levels: range | None) -> str:
    match column.rule_outside:
        case Outside.DROP:
            return "their rows will be suppressed"
        case Outside.OTHER:
            return f"will be published as {OTHER!r}" if column.has_other else "will count as missing"
    if levels is None:
        return "will count as the nearest bound"
    ends = zip(("below", "above"), column.stored_bounds, strict=True)
    moved = pa.array([end for side, end in ends if end is not None and counts[side]], column.domain.storage)
    hierarchy = column.hierarchy
    labels = hierarchy.names(hierarchy.lift(moved, levels[0]), levels[0]).to_pylist()
    coarser = ", or coarser" if len(levels) > 1 else ""
    return f"will be published as {' or '.join(repr(label) for label in dict.fromkeys(labels))}{coarser}"
