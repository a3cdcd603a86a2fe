"""Choices: a dozen combinations of levels, k and rate that are worth a look, from public numbers alone.

Levels lie on one path from the finest to the coarsest: at each step the column rises that saves most cells for the
detail it gives up.  Along it, for each rate, those are taken whose average crowd lies from far below k, where only
rows that gather in few cells are kept, to above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from incrowd.core.domain import Text
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.anonymity.shared.scores import DETAIL, details_of, expected_rows
from incrowd.methods.shared.sampling import Parameters, SampledSuppression, Target, solve
from incrowd.workflows.plan.expectation import classes_of
from incrowd.workflows.plan.preview.steps import FINENESS, WeighedChoice

if TYPE_CHECKING:
    pass

MOST = 12
"""So many choices are weighed, at most: noise grows with their number."""
_RATES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))
_NEAR = Fraction(3, 2)
_CROWDS = (-6.0, -3.0, -1.0, 1.0)
_MANY = 10**18  # stands for classes that cannot be counted
_LITTLE = 1e-9  # no division by zero where two levels keep equal detail

Levels = tuple[int, ...]


@dataclass(frozen=True)
class LevelLadder:
    """One column: its levels from the lowest that may be released, and what each has in classes and detail."""

    name: str
    classes: Mapping[int, int]
    detail: Mapping[int, float]

    def gain(self, level: int) -> float:
        """Return how much one level more saves in cells, for the detail that it gives up."""
        fewer = math.log(self.classes[level] / self.classes[level + 1])
        return fewer / (self.detail[level] - self.detail[level + 1] + _LITTLE)


def ladders(schema: Schema) -> tuple[LevelLadder, ...]:
    """Return the ladder of each released column; free text and names start at level 1."""
    columns = []
    for column in schema.released:
        least = 1 if column.pseudonymous or isinstance(column.domain, Text) else 0
        recodings = {level: Recoding(column, level) for level in range(least, column.hierarchy.height + 1)}
        classes = {level: classes_of(recoding) or _MANY for level, recoding in recodings.items()}
        columns.append(
            LevelLadder(column.name, classes, {level: _detail(recoding) for level, recoding in recodings.items()})
        )
    return tuple(columns)


def details_at(schema: Schema, choices: Sequence[Levels]) -> tuple[float, ...]:
    """Return what a released row keeps of its details on average, as the declaration says: from 0, all `*`, to 1."""
    columns = ladders(schema)
    details = [[column.detail[level] for column, level in zip(columns, levels, strict=True)] for levels in choices]
    return tuple(sum(column_details) / len(column_details) for column_details in details)


def path(columns: tuple[LevelLadder, ...]) -> tuple[Levels, ...]:
    """Return combinations of levels, each coarser than the one before, without the one in which everything is `*`."""
    levels = [min(column.classes) for column in columns]
    combinations: list[Levels] = []
    while any(level < max(column.classes) for column, level in zip(columns, levels, strict=True)):
        combinations.append(tuple(levels))
        below = [place for place, column in enumerate(columns) if levels[place] < max(column.classes)]
        levels[max(below, key=lambda place: columns[place].gain(levels[place]))] += 1
    return tuple(combinations)


def choices_of(method: SampledSuppression, schema: Schema, rows: int | None) -> tuple[WeighedChoice, ...]:
    """Return the choices for a policy: its own first, then others along the path for its rate and others."""
    columns = ladders(schema)
    own = method.parameters(schema.unit)
    cells = method.cells(schema)
    choices = {(tuple(recoding.level for recoding in cells.recodings), own.rate): own.k}
    solved = _solved(method, own, schema)
    for parameters in solved:
        for levels in _taken(path(columns), columns, parameters, rows)[: MOST // len(solved)]:
            if len(choices) < MOST:
                choices.setdefault((levels, parameters.rate), parameters.k)
    return tuple(
        WeighedChoice(levels, k, rate, expected_rows(k, rate, FINENESS).most) for (levels, rate), k in choices.items()
    )


def _solved(method: SampledSuppression, own: Parameters, schema: Schema) -> list[Parameters]:
    """Return the policy's own parameters, and those at other rates for the same ε and δ where there are such."""
    if method.delta is None:
        raise InvalidParameter("a private preview needs a secret sample: give a rate below 1.")
    target = Target(own.delta, method.epsilon or Fraction(own.epsilon))
    solutions = [own]
    for rate in _RATES:
        if max(rate, own.rate) >= _NEAR * min(rate, own.rate):
            try:
                solutions.append(solve(None, rate, target, schema.unit))
            except Infeasible:  # this rate gives no solution; others may
                continue
    return solutions


def _taken(
    levels: tuple[Levels, ...], columns: tuple[LevelLadder, ...], parameters: Parameters, rows: int | None
) -> list[Levels]:
    """Return the levels with crowds nearest to those wanted; where the number of rows is not known, evenly spaced."""
    if not levels:
        return []
    if rows is None:
        places = [round(part * (len(levels) - 1) / (len(_CROWDS) - 1)) for part in range(len(_CROWDS))]
        return list(dict.fromkeys(levels[place] for place in places))
    sampled = math.log2(rows) + math.log2(parameters.rate) - math.log2(parameters.k)
    crowds = {level: sampled - _cells(level, columns) for level in levels}
    return list(dict.fromkeys(min(levels, key=lambda candidate: abs(crowds[candidate] - target)) for target in _CROWDS))


def _cells(levels: Levels, columns: tuple[LevelLadder, ...]) -> float:
    return sum(math.log2(column.classes[level]) for column, level in zip(columns, levels, strict=True))


def _detail(recoding: Recoding) -> float:
    hierarchy = recoding.column.hierarchy
    if recoding.classes is None:
        return 1.0 - recoding.level / max(1, hierarchy.height)
    details = details_of(recoding.classes)[: len(recoding.classes.marks)]
    return float(details.mean()) / DETAIL if len(details) else 0.0
