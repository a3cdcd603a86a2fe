"""Assembly: the task of tables from their true cells, together with the tables that were released before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress as suppress_errors
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import Infeasible, SourceInvalid
from incrowd.methods.tabulation.protected.boxes import NEVER, Costs, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Owners
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole
from incrowd.methods.tabulation.protected.joint import Joint
from incrowd.methods.tabulation.protected.rules import CellFacts, Contributions, Rules
from incrowd.methods.tabulation.protected.selection import first_totals, named_cells
from incrowd.methods.tabulation.protected.suppression import Pattern, suppress
from incrowd.methods.tabulation.protected.task import SuppressionTask

_STAYS, _TOTALS, _FIRST = 1e12, 1000.0, 1e-6
"""What a cell costs that must stay open, how much dearer first totals are, and what a cell costs that goes first."""
_NAMED = 3
_TRIED = 2000
"""Up to so many cells other knowledge of attackers is tried for a refusal."""


@dataclass(frozen=True)
class CellMarks:
    """What is kept small, whether zeros are published, and which cells stay open or are emptied first, by name."""

    weigh: str
    zeros: str
    open: tuple[str, ...]
    empty: tuple[str, ...]

    def weights(self, frames: Sequence[TableFrame], joint: Joint, facts: Sequence[CellFacts]) -> Costs:
        """Return what it costs to leave each cell empty: first totals are dear, and what no table has costs nothing."""
        weights = np.zeros(joint.frame.size)
        for frame, cells, part in zip(frames, facts, joint.parts, strict=True):
            np.maximum.at(weights, part, self._costs(frame, cells.values.ravel()))
        weights[named_cells(frames, joint, self.empty)] = _FIRST
        weights[named_cells(frames, joint, self.open)] = NEVER
        weights[0] = NEVER
        return weights

    def _costs(self, frame: TableFrame, cells: Whole) -> Costs:
        if self.weigh == "values":
            weights = np.maximum(np.abs(cells), 1).astype(np.float64)
        elif self.weigh == "levels":
            weights = np.asarray(frame.matrix.sum(axis=1), np.float64).ravel()
        else:
            weights = np.ones(frame.size)
        weights[first_totals(frame)] *= _TOTALS
        return weights


@dataclass(frozen=True)
class AttackerKnowledge:
    """Whether cells are counts, how many contributors share what they know, and how well finest cells are known.

    `bounds` are those of one contribution, where it can be negative: then everybody is taken to know how many rows, or
    which sum of weights, each finest cell has.
    """

    counts: bool
    sharing: int
    prior: Fraction | None
    bounds: tuple[Fraction, Fraction] | None = None


@dataclass(frozen=True, eq=False)
class TaskAssembly:
    """Tables, those before them, the rules, the marks of cells, and what attackers know."""

    frames: tuple[TableFrame, ...]
    joint: Joint
    rules: Rules
    marks: CellMarks
    knowledge: AttackerKnowledge

    def protect(self, facts: Sequence[CellFacts], contributions: Contributions, truth: Whole, width: int) -> Pattern:
        """Return a pattern, or refuse with the cell that stands in the way and the smallest change that helps."""
        task, demands = self.task(facts, contributions, truth)
        try:
            self._require_hidden(task, demands)
            return suppress(task, demands, width)
        except Infeasible as error:
            change = self._smallest_change(task, demands, width)
            if change is None and len(task.weights) <= _TRIED:
                change = next(self._other_knowledge(facts, contributions, truth, width), None)
            if change is None:
                raise
            raise Infeasible(f"{error} The smallest change that was found: {change}.") from None

    def _require_hidden(self, task: SuppressionTask, demands: list[ProtectionDemand]) -> None:
        """Refuse sensitive cells that are published whatever happens, by name."""
        cells = [demand.cell for demand in demands if task.weights[demand.cell] >= NEVER]
        if not cells:
            return
        names = self._names([cell for cell in cells if cell] or cells)
        if 0 in cells:
            why = "the total of everything is sensitive itself, and it is always published. Choose weaker rules, or do"
            raise Infeasible(f"{why} not publish this table.")
        if np.isin(cells, self.joint.before).any():
            raise Infeasible(f"{names}: sensitive, and published before. No pattern protects it: choose weaker rules.")
        raise Infeasible(f"{names}: sensitive, and said to stay open.")

    def _smallest_change(self, task: SuppressionTask, demands: list[ProtectionDemand], width: int) -> str | None:
        """Return which cells need not stay open for a pattern to exist; None where that does not help."""
        stays = named_cells(self.frames, self.joint, self.marks.open)
        stays[0], stays[self.joint.before] = False, False
        stays &= task.cells > 0
        share = np.asarray(task.frame.matrix.sum(axis=1), np.float64).ravel() / len(task.truth)
        softer = replace(task, weights=np.where(stays, _STAYS * (1 + share), task.weights))  # totals are dearer
        if stays.any():
            with suppress_errors(Infeasible):
                cells = np.flatnonzero(suppress(softer, demands, width).suppressed & stays).tolist()
                return f"do not keep {self._names(cells)} open" if cells else None
        return None

    def _other_knowledge(
        self, facts: Sequence[CellFacts], contributions: Contributions, truth: Whole, width: int
    ) -> Iterator[str]:
        """Yield changes of what attackers know under which there is a pattern, the smaller ones first."""
        marks, knowledge = self.marks, self.knowledge
        tried = [(f"coalition: {size}", marks, size) for size in range(knowledge.sharing - 1, 0, -1)]
        if marks.zeros == "published":
            tried.append(("zeros: suppressible", replace(marks, zeros="suppressible"), knowledge.sharing))
        tried += [("coalition: 0", marks, 0)] if knowledge.sharing else []
        for text, other, size in tried:
            with suppress_errors(Infeasible):
                weaker = replace(self, marks=other, knowledge=replace(knowledge, sharing=size))
                suppress(*weaker.task(facts, contributions, truth), width)
                yield text

    def _names(self, cells: list[int]) -> str:
        names = "; ".join(self.joint.frame.place(cell) for cell in cells[:_NAMED])
        return names + (f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else "")

    def task(
        self, facts: Sequence[CellFacts], contributions: Contributions, truth: Whole
    ) -> tuple[SuppressionTask, list[ProtectionDemand]]:
        """Return what is to be protected, and how far each sensitive cell must stay open."""
        joint = self.joint
        cells = joint.frame.matrix @ truth.ravel()
        if np.any(cells[joint.before] != joint.values):
            why = "it was made of other rows, or its numbers are rounded or perturbed."
            if contributions.weights is not None:
                why = (
                    "weighted numbers are rounded in the finest cells of a release, and those of another table differ. "
                    "Release weighted tables together, as a list under tables."
                )
            raise SourceInvalid(f"a table that was released before has other numbers than these rows give: {why}")
        demands = self._demands(facts, contributions)
        weights = self.marks.weights(self.frames, joint, facts)
        if self.marks.zeros == "published":
            zeros = joint.own[cells[joint.own] == 0]
            weights[np.setdiff1d(zeros, list(demands))] = NEVER
        weights[joint.before] = NEVER
        stated = np.unique(np.concatenate([joint.own, joint.before, joint.empty]))
        owners = Owners.of(joint.frame, contributions, self.knowledge.sharing)
        owners = owners.only(stated, None if joint.alone else joint.frame)
        low, high = self._bounds(truth, contributions)
        task = SuppressionTask(joint.frame, truth.ravel(), weights, low, high, owners, self._floors(truth))
        if self.knowledge.bounds is None:
            alone = joint.alone and len(self.frames) == 1
            return task, [demand if alone else self._within_parts(demand, cells) for demand in demands.values()]
        least, most = (joint.frame.matrix @ end - cells for end in (low, high))
        within = [
            replace(demand, down=min(demand.down, -int(least[cell])), up=min(demand.up, int(most[cell])))
            for cell, demand in demands.items()
        ]
        return replace(task, truth=task.truth - low, low=low - low, high=high - low), within

    def _demands(self, facts: Sequence[CellFacts], contributions: Contributions) -> dict[int, ProtectionDemand]:
        """Return the demands of all tables, and of empty cells of those before them that break the same rules.

        A cell that two tables share is demanded once; how far down is said of one table, and seen to after this.
        """
        joint, counts = self.joint, self.knowledge.counts
        demands: dict[int, ProtectionDemand] = {}
        for frame, part, own in zip(self.frames, facts, joint.parts, strict=True):
            down, up = (demand.ravel() for demand in self.rules.demands(part, frame, counts=counts))
            for place in np.flatnonzero(up).tolist():
                cell = int(own[place])
                demands[cell] = ProtectionDemand(cell, int(down[place]), int(up[place]))
        if len(joint.empty):
            every = contributions.facts(joint.frame, self.rules.depth)
            above = self.rules.demands(every, joint.frame, counts=counts)[1].ravel()
            for cell in joint.empty[above[joint.empty] > 0].tolist():
                demands.setdefault(cell, ProtectionDemand(cell, int(above[cell]), int(above[cell])))
        return demands

    def _within_parts(self, demand: ProtectionDemand, cells: Whole) -> ProtectionDemand:
        """Return a demand that does not reach below what some table says: 1 in each finest cell of it above zero."""
        parts = tuple(tuple(part[cells[part] > 0].tolist()) for part in self.joint.parts_of(demand.cell))
        least = max(map(len, parts), default=0)
        return replace(demand, down=min(demand.up, int(cells[demand.cell]) - least), parts=parts)

    def _bounds(self, truth: Whole, contributions: Contributions) -> tuple[Whole, Whole]:
        """Return what everybody knows of each finest cell: one that is not zero is 1 at least, if zeros are published.

        Of cells that are finer than these tables and those before them nobody knows that.  Where contributions can be
        negative, a cell lies between its rows, times their weights, times the bounds of one contribution; all numbers
        of the task are then counted from the lower end, which changes no difference.
        """
        flat, prior, bounds = truth.ravel(), self.knowledge.prior, self.knowledge.bounds
        low = np.minimum(flat, int(self.joint.alone and self.marks.zeros == "published"))
        high = np.full(len(flat), -1, np.int64)
        if bounds is not None:
            least, most = sums_within(contributions.mass(len(flat)), bounds)
            low, high = np.minimum(flat, least), np.maximum(flat, most)
        if prior is None:
            return low, high
        off = np.array([abs(int(value)) * prior.numerator // prior.denominator for value in flat], np.int64)
        return np.maximum(low, flat - off), flat + off if bounds is None else np.minimum(high, flat + off)

    def _floors(self, truth: Whole) -> Flags | None:
        """Return the cells of this table and the empty ones of those before it that are known not to be zero."""
        if self.joint.alone or self.knowledge.bounds is not None:
            return None
        floors = np.zeros(self.joint.frame.size, np.bool_)
        floors[self.joint.empty] = True
        if self.marks.zeros == "published":
            floors[self.joint.own] = True
        return np.asarray(floors & (self.joint.frame.matrix @ truth.ravel() > 0))


def sums_within(mass: NDArray[np.float64], bounds: tuple[Fraction, Fraction]) -> tuple[Whole, Whole]:
    """Return between which whole numbers the sums of finest cells lie, by their rows and the bounds of one number.

    Each row's number is rounded first, and a sum is whole: a reader who knows both rules out whatever lies beyond.

    >>> [ends.tolist() for ends in sums_within(np.array([3.0, 0.1 + 0.2, 2.5]), (Fraction("-0.4"), Fraction(10)))]
    [[0, 0, 0], [30, 3, 25]]
    """
    least, most = (mass * round(end) for end in bounds)
    slack = 1e-9 * (1.0 + np.maximum(np.abs(least), np.abs(most)))  # of sums of weights in floating point
    return np.ceil(least - slack).astype(np.int64), np.floor(most + slack).astype(np.int64)


def for_holder(task: TaskAssembly, facts: Sequence[CellFacts], pattern: Pattern) -> dict[str, Any]:
    """Return which empty cells are sensitive and which are not, and what the pattern weighs: never published."""
    sensitive = np.zeros(task.joint.frame.size, np.bool_)
    for part, own in zip(facts, task.joint.parts, strict=True):
        sensitive[own[task.rules.sensitive(part).ravel()]] = True
    empty = np.flatnonzero(pattern.suppressed).tolist()
    place = task.joint.frame.place
    return {
        "sensitive": [place(cell) for cell in empty if sensitive[cell]],
        "suppressed beside": [place(cell) for cell in empty if not sensitive[cell]],
        "weight": pattern.weight,
        "least possible weight": pattern.bound,
    }
