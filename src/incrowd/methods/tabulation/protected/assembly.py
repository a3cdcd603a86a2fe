"""Assembly: the task of a table from its true cells, together with the tables that were released before it."""

from __future__ import annotations

from contextlib import suppress as suppress_errors
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from incrowd.errors import Infeasible, SourceInvalid
from incrowd.methods.tabulation.protected.boxes import NEVER, Costs, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Owners
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole
from incrowd.methods.tabulation.protected.rules import CellFacts, Contributions, Rules
from incrowd.methods.tabulation.protected.selection import first_totals, selected
from incrowd.methods.tabulation.protected.sources import Joint
from incrowd.methods.tabulation.protected.suppression import Pattern, suppress
from incrowd.methods.tabulation.protected.task import SuppressionTask

_STAYS, _TOTALS, _FIRST = 1e12, 1000.0, 1e-6
"""What a cell costs that must stay open, how much dearer first totals are, and what a cell costs that goes first."""
_NAMED = 3


@dataclass(frozen=True)
class CellMarks:
    """What is kept small, whether zeros are published, and which cells stay open or are emptied first, by name."""

    weigh: str
    zeros: str
    open: tuple[str, ...]
    empty: tuple[str, ...]

    def weights(self, frame: TableFrame, cells: Whole, sensitive: Flags) -> Costs:
        """Return what it costs to leave each cell of a table empty: first totals are dear, and some are never empty."""
        if self.weigh == "values":
            weights = np.maximum(cells, 1).astype(np.float64)
        elif self.weigh == "levels":
            weights = np.asarray(frame.matrix.sum(axis=1), np.float64).ravel()
        else:
            weights = np.ones(frame.size)
        weights[first_totals(frame)] *= _TOTALS
        for text in self.empty:
            weights[selected(frame, text)] = _FIRST
        if self.zeros == "published":
            weights[(cells == 0) & ~sensitive] = NEVER
        weights[self.stays(frame)] = NEVER
        weights[0] = NEVER
        return weights

    def stays(self, frame: TableFrame) -> Flags:
        """Return the cells that must stay open because they are named."""
        flags = np.zeros(frame.size, np.bool_)
        for text in self.open:
            flags |= selected(frame, text)
        return flags


@dataclass(frozen=True)
class AttackerKnowledge:
    """Whether cells are counts, how many contributors share what they know, and how well finest cells are known."""

    counts: bool
    sharing: int
    prior: Fraction | None


@dataclass(frozen=True, eq=False)
class TaskAssembly:
    """A table, the tables before it, the rules, the marks of cells, and what attackers know."""

    frame: TableFrame
    joint: Joint
    rules: Rules
    marks: CellMarks
    knowledge: AttackerKnowledge

    def protect(self, facts: CellFacts, contributions: Contributions, truth: Whole, width: int) -> Pattern:
        """Return a pattern; where what must stay open prevents one, name the cells that would have to be empty."""
        task, demands = self.task(facts, contributions, truth)
        try:
            return suppress(task, demands, width)
        except Infeasible as error:
            stays = np.zeros(len(task.weights), np.bool_)
            stays[self.joint.own[1:]] = self.marks.stays(self.frame)[1:]
            stays[self.joint.before] = False
            stays &= task.cells > 0
            share = np.asarray(task.frame.matrix.sum(axis=1), np.float64).ravel() / len(task.truth)
            softer = replace(task, weights=np.where(stays, _STAYS * (1 + share), task.weights))  # totals are dearer
            cells: list[int] = []
            if stays.any():
                with suppress_errors(Infeasible):
                    cells = np.flatnonzero(suppress(softer, demands, width).suppressed & stays).tolist()
            if not cells:
                raise
            names = "; ".join(self.joint.frame.place(cell) for cell in cells[:_NAMED])
            more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
            raise Infeasible(f"{error} The smallest change that was found: do not keep {names}{more} open.") from None

    def task(
        self, facts: CellFacts, contributions: Contributions, truth: Whole
    ) -> tuple[SuppressionTask, list[ProtectionDemand]]:
        """Return what is to be protected, and how far each sensitive cell must stay open."""
        joint = self.joint
        if np.any(joint.frame.matrix[joint.before] @ truth.ravel() != joint.values):
            raise SourceInvalid(
                "a table that was released before has other numbers than these rows give: it was made of other rows, "
                "or its numbers are rounded or perturbed."
            )
        demands = self._demands(facts, contributions)
        weights = np.zeros(joint.frame.size)
        sensitive = np.isin(joint.own, list(demands))
        weights[joint.own] = self.marks.weights(self.frame, facts.values.ravel(), sensitive)
        weights[joint.before] = NEVER
        stated = np.unique(np.concatenate([joint.own, joint.before, joint.empty]))
        owners = Owners.of(joint.frame, contributions, self.knowledge.sharing).only(stated)
        low, high = self._bounds(truth)
        task = SuppressionTask(joint.frame, truth.ravel(), weights, low, high, owners, self._floors(truth))
        return task, list(demands.values())

    def _demands(self, facts: CellFacts, contributions: Contributions) -> dict[int, ProtectionDemand]:
        """Return the demands of this table, and of empty cells of those before it that break the same rules."""
        joint, counts = self.joint, self.knowledge.counts
        down, up = (demand.ravel() for demand in self.rules.demands(facts, self.frame, counts=counts))
        demands = {
            int(joint.own[cell]): ProtectionDemand(int(joint.own[cell]), int(down[cell]), int(up[cell]))
            for cell in np.flatnonzero(up).tolist()
        }
        if len(joint.empty):
            every = contributions.facts(joint.frame, self.rules.depth)
            below, above = (part.ravel() for part in self.rules.demands(every, joint.frame, counts=counts))
            for cell in joint.empty[above[joint.empty] > 0].tolist():
                demands.setdefault(cell, ProtectionDemand(cell, int(below[cell]), int(above[cell])))
        return demands

    def _bounds(self, truth: Whole) -> tuple[Whole, Whole]:
        """Return what everybody knows of each finest cell: one that is not zero is 1 at least, if zeros are published.

        Of cells that are finer than this table and those before it nobody knows that.
        """
        flat, prior = truth.ravel(), self.knowledge.prior
        low = np.minimum(flat, int(self.joint.alone and self.marks.zeros == "published"))
        if prior is None:
            return low, np.full(len(flat), -1, np.int64)
        off = np.array([-(-int(value) * prior.numerator // prior.denominator) for value in flat], np.int64)
        return np.maximum(low, flat - off), flat + off

    def _floors(self, truth: Whole) -> Flags | None:
        """Return the cells of this table and the empty ones of those before it that are known not to be zero."""
        if self.joint.alone:
            return None
        floors = np.zeros(self.joint.frame.size, np.bool_)
        floors[self.joint.empty] = True
        if self.marks.zeros == "published":
            floors[self.joint.own] = True
        return np.asarray(floors & (self.joint.frame.matrix @ truth.ravel() > 0))


def of_own(frame: TableFrame, joint: Joint, contributions: Contributions) -> Contributions:
    """Return contributions to the finest cells of this table, from those of all tables."""
    where = np.unravel_index(contributions.cells, joint.frame.leaf_shape)
    own = []
    for axis, finer, leaves in zip(frame.axes, joint.frame.axes, where, strict=False):
        lines = {label: place for place, label in enumerate(axis.labels[node] for node in axis.leaves)}
        table = [next(lines[finer.labels[n]] for n in path if finer.labels[n] in lines) for path in finer.paths]
        own.append(np.array(table, np.intp)[leaves])
    return replace(contributions, cells=np.ravel_multi_index(own, frame.leaf_shape))


def for_holder(frame: TableFrame, rules: Rules, facts: CellFacts, pattern: Pattern) -> dict[str, Any]:
    """Return which empty cells are sensitive and which are not, and what the pattern weighs: never published."""
    sensitive = rules.sensitive(facts).ravel()
    empty = np.flatnonzero(pattern.suppressed).tolist()
    return {
        "sensitive": [frame.place(cell) for cell in empty if sensitive[cell]],
        "suppressed beside": [frame.place(cell) for cell in empty if not sensitive[cell]],
        "weight": pattern.weight,
        "least possible weight": pattern.bound,
    }
