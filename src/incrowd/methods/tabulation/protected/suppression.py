"""Suppression: which cells are left empty beside the sensitive ones, so that none of these can be inferred too closely.

Every pattern comes with its proof: for each sensitive cell moves of the finest cells that change nothing published, far
enough up and down, of which no coalition knows a cell of each.  Searches and solvers propose; the proof is added up in
whole numbers, in time that grows with its length.

Source: Fischetti & Salazar 2001; Giessing & Repsilber 2002; Hundepool et al. 2012, section 4.4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.boxes import NEVER, Places, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Owners
from incrowd.methods.tabulation.protected.frame import Flags, Whole
from incrowd.methods.tabulation.protected.moves import Move, NoMove
from incrowd.methods.tabulation.protected.program import amounts, least_pattern, small_enough
from incrowd.methods.tabulation.protected.search import PatternSearch
from incrowd.methods.tabulation.protected.task import SuppressionTask, task_of

if TYPE_CHECKING:
    from scipy.sparse import csc_array

__all__ = ["Pattern", "SuppressionTask", "suppress", "task_of"]

_ROUNDS = 5
_CUTS = 12


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which cells are suppressed, and the least and largest value of each among the tables that prove it.

    `weight` is what is left out, and `bound` what any pattern leaves out at least, where that was computed: both follow
    from hidden cells, and are for the data holder alone.
    """

    suppressed: Flags
    least: Whole
    largest: Whole
    weight: float = 0.0
    bound: float | None = None


def suppress(task: SuppressionTask, demands: list[ProtectionDemand], width: int) -> Pattern:
    """Return a pattern under which every demand is met and every suppressed cell is open at least so wide.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame
    >>> side = (("*", "a", "b", "c"), (-1, 0, 0, 0))
    >>> frame = TableFrame((TableAxis("row", *side), TableAxis("column", *side)))
    >>> task = task_of(frame, np.array([[20, 50, 10], [8, 19, 22], [17, 32, 12]]))
    >>> suppress(task, [ProtectionDemand(9, 4, 4)], 5).suppressed.reshape(4, 4).astype(int).tolist()
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1]]
    """
    if any(task.weights[demand.cell] >= NEVER for demand in demands):
        raise Infeasible(
            "the total of the whole table is sensitive itself, or so is a cell that must stay open or was published "
            "before: no pattern protects it. Choose weaker rules, or do not publish this table."
        )
    return _suppressed(_TaskKey(task, tuple(demands), width))


@dataclass(frozen=True, eq=False)
class _TaskKey:
    """A task that is compared by what it holds: a release finds the pattern that its examination computed."""

    task: SuppressionTask
    demands: tuple[ProtectionDemand, ...]
    width: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TaskKey) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    @cached_property
    def _digest(self) -> bytes:
        task, digest = self.task, sha256(repr((self.task.frame, self.demands, self.width)).encode())
        for part in (task.truth, task.weights, task.low, task.high, task.owners.first, task.owners.second):
            digest.update(part.tobytes())
        digest.update(b"" if task.floors is None else task.floors.tobytes())
        return digest.digest()


@lru_cache(maxsize=1)
def _suppressed(key: _TaskKey) -> Pattern:
    task, width = key.task, key.width
    demands = sorted(key.demands, key=lambda demand: -demand.up)
    search = PatternSearch(task)
    moves = search.run(demands, width)
    searched = _proved(task, search.demands, moves)
    if np.any(_narrow(searched, width)):
        raise AssertionError("an empty cell is not open widely enough")
    if not small_enough(task, demands):
        return searched
    return _lighter(task, demands, searched, width)


def _narrow(pattern: Pattern, width: int) -> Flags:
    return np.asarray(pattern.suppressed & (pattern.largest - pattern.least < width))


def _lighter(task: SuppressionTask, demands: list[ProtectionDemand], searched: Pattern, width: int) -> Pattern:
    """Return the lighter of a pattern and the one that a program finds, with what every pattern weighs at least."""
    required, bound = demands, None
    for _ in range(_ROUNDS):
        least = _least(task, required)
        if least is None:
            break
        bound = least.bound if bound is None else bound
        narrow = np.flatnonzero(_narrow(least, width))
        if not len(narrow):
            return replace(min(least, searched, key=lambda pattern: pattern.weight), bound=bound)
        wider = set(narrow.tolist()) - {demand.cell for demand in required}
        required = [*required, *(ProtectionDemand(cell, 0, width, readers_only=True) for cell in sorted(wider))]
    return replace(searched, bound=bound)


def _least(task: SuppressionTask, demands: list[ProtectionDemand]) -> Pattern | None:
    """Return the pattern of least weight; what a coalition breaks becomes a demand, and it is sought again."""
    required = list(demands)
    for _ in range(_CUTS):
        program = least_pattern(task, required)
        if program is None:
            return None
        inside = replace(task, weights=np.where(program.suppressed | (task.weights == 0), task.weights, NEVER))
        try:
            moves = PatternSearch(inside).run(demands)
        except NoMove as missing:
            known_cells = tuple(missing.known_cells.tolist())
            cut = next(replace(demand, known_cells=known_cells) for demand in demands if demand.cell == missing.cell)
            if cut in required or not small_enough(task, required):
                return None
            required.append(cut)
            continue
        pattern = _proved(task, demands, moves)
        return replace(pattern, bound=program.bound)
    return None


def _proved(task: SuppressionTask, demands: list[ProtectionDemand], moves: list[Move]) -> Pattern:
    """Return the pattern, after every move was found to agree with all that is published, in exact whole numbers.

    A cell is suppressed if it is demanded or changed by a move.  For each demand there are moves as far as it asks, and
    no coalition knows a changed cell of each.
    """
    from scipy.sparse import csc_array

    atoms = np.concatenate([np.zeros(0, np.intp), *(move.atoms for move in moves)])
    steps = np.concatenate([np.zeros(0, np.int64), *(move.steps for move in moves)])
    ends = np.cumsum([0, *(len(move.atoms) for move in moves)])
    table = csc_array((steps, atoms, ends), (len(task.truth), len(moves)))
    changed = (task.frame.matrix.astype(np.int64) @ table).tocsc()
    changed.eliminate_zeros()
    suppressed = np.zeros(task.frame.size, np.bool_)
    suppressed[[demand.cell for demand in demands]] = True
    suppressed[changed.indices] = True
    moved = task.truth[atoms] + steps
    inside = (moved >= task.low[atoms]) & ((task.high[atoms] < 0) | (moved <= task.high[atoms]))
    if np.any(task.weights[suppressed] >= NEVER) or not inside.all():
        raise AssertionError("a move changes what is published")
    _require_open(task, demands, (changed, (task.frame.matrix.astype(np.int64) @ abs(table)).tocsc()), moves)
    least, largest = task.cells.copy(), task.cells.copy()
    if len(moves):
        least += np.minimum(0, changed.min(axis=1).toarray().ravel())
        largest += np.maximum(0, changed.max(axis=1).toarray().ravel())
    if task.floors is not None and np.any(least[task.floors] < 1):
        raise AssertionError("a move makes zero of a sum that is known not to be")
    return Pattern(suppressed & (task.weights > 0), least, largest, float(task.weights[suppressed].sum()))


def _require_open(
    task: SuppressionTask, demands: list[ProtectionDemand], effects: tuple[csc_array, csc_array], moves: list[Move]
) -> None:
    """Refuse a proof in which a demand is not met, or is met only for readers who know nothing of their own.

    `effects` are by how much every move changes each cell, and how much it moves inside.
    """
    changed, inside = effects
    touched = changed if task.owners.frame is None else inside
    columns = [touched.indices[touched.indptr[n] : touched.indptr[n + 1]] for n in range(len(moves))]
    reached = changed[[move.cell for move in moves], np.arange(len(moves))] if moves else []
    sets: dict[tuple[int, bool], list[tuple[int, Places]]] = {}
    for column, move, amount in zip(columns, moves, reached, strict=True):
        if amount != move.amount:
            raise AssertionError("a move falls short of its amount")
        sets.setdefault((move.cell, move.amount > 0), []).append((abs(move.amount), column))
    for demand in demands:
        owners = Owners.none(task.frame.size) if demand.readers_only else task.owners
        for amount in amounts(demand):
            proofs = sets.get((demand.cell, amount > 0), [])
            if owners.breach(demand.cell, proofs, partial(task.need, demand, amount)) is not None:
                raise AssertionError("a sensitive cell has no proof against a reader or a coalition")
