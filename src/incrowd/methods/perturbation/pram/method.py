"""PRAM: categories change at random by a matrix of probabilities, from which frequencies can be estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.coins import Coins
from incrowd.core.recoding import Classes
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.pram.channel import Channel, Matrix, Randomize, invariant, staying
from incrowd.methods.perturbation.shared.frame import Places, RowFrame
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import Masking
from incrowd.methods.shared.columns import released_cells
from incrowd.verifier.check import Problem

_MOST = 4096  # the matrix of probabilities is square: 16 million entries


@dataclass(frozen=True)
class Change:
    """How one column changes, alone or across others: by a probability to stay, or by a matrix of its own.

    `within` is a level of the column's hierarchy: categories change within its classes only.  `invariant` makes from
    the matrix one that leaves frequencies as they are on average: those of the rows, or public `margins`.
    """

    stay: Fraction | None = None
    matrix: Matrix | None = None
    across: tuple[str, ...] = ()
    within: int | None = None
    invariant: bool = False
    margins: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class Pram(GroupedMask):
    """Post-randomization: each row's categories change at random by known probabilities, independently of other rows.

    Guarantee: ε for each record under replaced rows, if every released column is changed by a matrix without zeros that
    was fixed without the rows; else none to people.  Frequencies can be estimated without bias (`incrowd estimate`).

    Assumes: the matrices were not chosen by looking at the rows.

    Source: Gouweleeuw, Kooiman, Willenborg & de Wolf 1998; Warner 1965.

    >>> Pram({"sex": Change(stay=Fraction(4, 5))}).settings()
    {'pram': 'sex'}
    """

    name: ClassVar[str] = "pram"

    columns: Mapping[str, Change] = field(default_factory=dict)

    def step(self, schema: Schema) -> Randomize:
        channels = tuple(self._channel(schema, name, change) for name, change in self.columns.items())
        changed = {name for channel in channels for name in channel.columns}
        released = released_cells(schema, self.levels).recodings
        others = tuple(recoding.column.name for recoding in released if recoding.column.name not in changed)
        drops = any(recoding.column.may_drop for recoding in released)
        scope = self.scope(schema, tuple(name for channel in channels for name in channel.columns))
        if scope["within"] and any(channel.probabilities is not None for channel in channels):
            raise InvalidParameter(
                "declared probabilities are the same in every group: leave within out, or make each column invariant."
            )
        return Randomize(channels=channels, others=others, drafted=bool(schema.drafted), drops=drops, **scope)

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with their categories changed, each row separately."""
        frame, schema = rows.frame, rows.schema
        for name, change in self.columns.items():
            channel = self._channel(schema, name, change)
            codes = _codes(frame, channel)
            matrix = channel.probabilities
            if matrix is None:
                matrix = invariant(_base(change, channel, self._blocks(schema, name, change)), _shares(codes, channel))
            frame = _relabeled(frame, channel, _draw(codes, matrix, rows.coins))
        return frame

    def _channel(self, schema: Schema, name: str, change: Change) -> Channel:
        columns = (name, *change.across)
        classes = (self._classes(schema, column).values() for column in columns)
        labels = tuple(tuple(pc.cast(values, pa.string()).to_pylist()) for values in classes)
        size = math.prod(map(len, labels))
        if size > _MOST:
            raise InvalidParameter(f"{', '.join(columns)} have {size:,} categories together: at most {_MOST:,} change.")
        if (change.stay is None) == (change.matrix is None):
            raise InvalidParameter(f"{name!r} needs either stay, the probability to keep a value, or a matrix.")
        blocks = self._blocks(schema, name, change)
        declared = Channel(columns, labels, change.stay, blocks, change.matrix)
        if not change.invariant:
            return declared
        if not change.margins:
            return Channel(columns, labels)
        if len(change.margins) != size or sum(change.margins) != 1 or min(change.margins) < 0:
            raise InvalidParameter(f"the margins of {name!r} are {size} shares that add up to 1.")
        return Channel(columns, labels, matrix=invariant(_base(change, declared, blocks), change.margins))

    def _blocks(self, schema: Schema, name: str, change: Change) -> tuple[int, ...] | None:
        if change.within is None:
            return None
        if change.across or change.stay is None:
            raise InvalidParameter(f"{name!r} changes within classes by a probability to stay, and alone.")
        return tuple(self._classes(schema, name).rise(change.within)[1].tolist())

    def _classes(self, schema: Schema, name: str) -> Classes:
        recodings = {recoding.column.name: recoding for recoding in released_cells(schema, self.levels).recodings}
        if name not in recodings:
            schema[name]
            raise InvalidParameter(f"{name!r} is an identifier: it is never released, so it need not be changed.")
        classes = recodings[name].classes
        if classes is None:
            raise InvalidParameter(
                f"the values of {name!r} are not declared one by one: list its categories, or use a higher level."
            )
        return classes

    def settings(self) -> dict[str, Any]:
        return {"pram": ", ".join(name for key, change in self.columns.items() for name in (key, *change.across))}


def _base(change: Change, channel: Channel, blocks: tuple[int, ...] | None) -> Matrix:
    """Return the declared matrix, before it is made invariant."""
    if change.matrix is not None:
        return change.matrix
    return staying(change.stay or Fraction(0), blocks or (0,) * channel.size)


def _codes(frame: RowFrame, channel: Channel) -> Places:
    """Return for each row the number of its combination."""
    codes = np.zeros(len(frame), np.int64)
    for name, labels in zip(channel.columns, channel.labels, strict=True):
        text = pc.cast(frame.values(name), pa.string())
        place = pc.index_in(text, value_set=pa.array(labels, pa.string())).to_numpy(zero_copy_only=False)
        codes = codes * len(labels) + place.astype(np.int64)
    return codes


def _shares(codes: Places, channel: Channel) -> list[Fraction]:
    """Return the frequencies of the combinations; without rows they are equal."""
    counts = np.bincount(codes, minlength=channel.size).tolist()
    return [Fraction(count, sum(counts)) if len(codes) else Fraction(1, channel.size) for count in counts]


def _draw(codes: Places, matrix: Matrix, coins: Coins) -> Places:
    """Draw for each row what its combination becomes, from whole-number weights."""
    sample = np.empty_like(codes)
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        kinds = {id(entry): entry for entry in matrix[code]}  # few different fractions, each many times
        total = math.lcm(*(entry.denominator for entry in kinds.values()))
        weights = {key: int(entry * total) for key, entry in kinds.items()}
        ends = np.cumsum([weights[id(entry)] for entry in matrix[code]], dtype=np.int64)
        sample[rows] = np.searchsorted(ends, coins.below(total, len(rows)), side="right")
    return sample


def _relabeled(frame: RowFrame, channel: Channel, codes: Places) -> RowFrame:
    """Return the rows with these combinations, in the types that their columns had."""
    columns = {}
    for name, labels in zip(reversed(channel.columns), reversed(channel.labels), strict=True):
        values = pa.array(labels, pa.string()).take(pa.array(codes % len(labels)))
        columns[name] = values.cast(frame.values(name).type)
        codes = codes // len(labels)
    return frame.replaced(**columns)


class PramCheck(MaskCheck):
    """Tables changed at random: ε depends on what the step says of the other columns and of the rules of reading."""

    def step_contradiction(self, step: Masking, statement: Statement) -> Problem | None:
        if not isinstance(step, Randomize):
            return None
        recode = statement.basis.need(Recode)
        others = tuple(name for name in recode.names if name not in step.changes)
        drops = any("drop" in (column.missing, column.outside) for column in recode.columns)
        if (step.others, step.drafted, step.drops) != (others, bool(recode.drafted), drops):
            return Problem("the step that randomizes contradicts the columns that are read, or their rules")
        return None


CHECK = PramCheck(Randomize, claims=(PurePrivacy,))
PICTURE = MaskPicture()
METHOD = Pram
