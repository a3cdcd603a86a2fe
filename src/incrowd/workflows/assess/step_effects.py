"""Step effects: risk and utility of masked rows after each step, compared with the rows as read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.measures.risk.classes import Sizes
from incrowd.measures.risk.linkage import record_linkage
from incrowd.workflows.attack.attack import INTERNAL

READ = "As read"
_LINKED = 2000
_SAME = 1e-9
"""How far apart, in proportion, two floats may be that count as one number: arithmetic on them rounds."""


class MaskingStep(Protocol):
    """A step of a chain: its title, its sentence, and the columns that it changes."""

    @property
    def title(self) -> str: ...

    @property
    def sentence(self) -> str: ...

    @property
    def changes(self) -> tuple[str, ...]: ...


class StageRows(Protocol):
    """Rows as a step left them, and their places among those that were read."""

    @property
    def table(self) -> pa.Table: ...

    @property
    def places(self) -> NDArray[np.int64]: ...

    def groups(self, names: Sequence[str]) -> NDArray[np.int64]: ...


class MaskedStage(Protocol):
    """What a step left; without a step, the rows as they were read."""

    @property
    def step(self) -> MaskingStep | None: ...

    @property
    def frame(self) -> StageRows: ...


@dataclass(frozen=True)
class ColumnEffect:
    """Effects on one column: shares of its cells that were changed and that are empty, and its numbers.

    `moved` is how far its frequencies are from those as read: half the sum of the differences.
    """

    name: str
    changed: float
    empty: float
    moved: float
    mean: float | None = None
    deviation: float | None = None
    correlation: float | None = None


@dataclass(frozen=True)
class StepEffect:
    """Rows after a step: their equivalence classes, how often a link is right, and what columns lost.

    `sizes` is the number of classes by size.  `blind` is the share of rows linked correctly at random within their
    class, `near` the share whose nearest row as read is their own, by the numbers that some step changes.  `untouched`
    is the number of rows in which no masked value differs from the one as read.
    """

    title: str
    sentence: str
    rows: int
    alone: int
    smallest: int
    blind: float
    near: float | None
    sizes: Mapping[str, int]
    columns: tuple[ColumnEffect, ...]
    untouched: int


def step_effects(stages: Sequence[MaskedStage], quasi: Sequence[str]) -> tuple[StepEffect, ...]:
    """Return the effects as read and after each step, on all columns that some step changes."""
    names = tuple(dict.fromkeys(name for stage in stages if stage.step is not None for name in stage.step.changes))
    first = stages[0].frame.table
    return tuple(_effect(stage, first, names, quasi) for stage in stages)


def plain_effects(effects: Sequence[StepEffect]) -> dict[str, Any]:
    """Return the values for JSON, as stored with the internal files of a release."""
    return {"internal": INTERNAL, "steps": [asdict(effect) for effect in effects]}


def _effect(stage: MaskedStage, first: pa.Table, names: Sequence[str], quasi: Sequence[str]) -> StepEffect:
    frame = stage.frame
    before = first.select(names).take(pa.array(frame.places))
    classes = np.bincount(frame.groups(quasi)).astype(np.int64) if frame.table.num_rows else np.zeros(0, np.int64)
    sizes = Sizes(classes)
    distinct_sizes, times = np.unique(classes, return_counts=True)
    return StepEffect(
        READ if stage.step is None else stage.step.title,
        "" if stage.step is None else stage.step.sentence,
        sizes.rows,
        sizes.unique,
        sizes.smallest or 0,
        sizes.classes / sizes.rows if sizes.rows else 0.0,
        _near(before, frame.table, names),
        {str(size): int(number) for size, number in zip(distinct_sizes.tolist(), times.tolist(), strict=True)},
        tuple(_column(name, first, before, frame.table) for name in names),
        _untouched(before, frame.table, names),
    )


def _untouched(before: pa.Table, after: pa.Table, names: Sequence[str]) -> int:
    if not names:
        return int(after.num_rows)
    untouched: NDArray[np.bool_] = np.logical_and.reduce([_unchanged(before[name], after[name]) for name in names])
    return int(untouched.sum())


def _column(name: str, first: pa.Table, before: pa.Table, after: pa.Table) -> ColumnEffect:
    old, new = _text(before[name]), _text(after[name])
    rows = max(1, len(new))
    empty = int(new.null_count - old.null_count) / rows
    changed = float(np.count_nonzero(~_unchanged(before[name], after[name]))) / rows
    shares = (changed, max(0.0, empty), _moved(_text(first[name]), new))
    if not _numeric(after[name].type):
        return ColumnEffect(name, *shares)
    x, y = _numbers(before[name]), _numbers(after[name])
    there = np.isfinite(x) & np.isfinite(y)
    x, y = x[there], y[there]
    if not len(y):
        return ColumnEffect(name, *shares)
    vary = len(y) > 1 and x.std() > 0 and y.std() > 0
    related = float(np.corrcoef(x, y)[0, 1]) if vary else None
    return ColumnEffect(name, *shares, float(y.mean()), float(y.std()), related)


def _unchanged(before: pa.ChunkedArray, after: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which cells are as before: equal text, numbers that differ by rounding of floats only, or both empty."""
    if _numeric(before.type) and _numeric(after.type):
        near: NDArray[np.bool_] = np.isclose(_numbers(before), _numbers(after), rtol=_SAME, atol=0.0, equal_nan=True)
        return near
    old, new = _text(before), _text(after)
    both_empty = pc.and_(pc.is_null(old), pc.is_null(new))
    return np.asarray(pc.or_(pc.fill_null(pc.equal(old, new), False), both_empty).to_numpy(zero_copy_only=False))


def _moved(old: pa.Array, new: pa.Array) -> float:
    """Return the total variation distance of what occurs in two columns."""
    both = pa.concat_arrays([old, new]).dictionary_encode(null_encoding="encode").indices.to_numpy()
    if not len(old) or not len(new):
        return 0.0
    size = int(both.max()) + 1
    one, other = (np.bincount(part, minlength=size) / len(part) for part in (both[: len(old)], both[len(old) :]))
    return float(np.abs(one - other).sum() / 2)


def _near(before: pa.Table, after: pa.Table, names: Sequence[str]) -> float | None:
    """Return how often the nearest row as read is the right one, among a few thousand rows, by complete numbers."""
    places = pa.array(np.unique(np.linspace(0, max(0, after.num_rows - 1), _LINKED).astype(np.int64)))
    numeric = [name for name in names if _numeric(before[name].type) and _numeric(after[name].type)]
    if not numeric or not after.num_rows:
        return None
    one, other = (
        np.column_stack([_numbers(table[name].take(places)) for name in numeric]) for table in (before, after)
    )
    there = np.isfinite(one).all(axis=1) & np.isfinite(other).all(axis=1)
    return record_linkage(one[there], other[there]).value if there.any() else None


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(pc.cast(column, pa.float64()).combine_chunks().to_numpy(zero_copy_only=False))


def _text(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as text; whole and other numbers that are the same number are the same text."""
    whole = column.combine_chunks()
    plain = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    return pc.cast(pc.cast(plain, pa.float64()) if _numeric(plain.type) else plain, pa.string())
