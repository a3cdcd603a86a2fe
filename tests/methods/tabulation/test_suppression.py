"""No sensitive cell can be inferred within its protection interval: everything that agrees is tried, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected import suppression
from incrowd.methods.tabulation.protected.attacker import Together, narrowed, never, spread
from incrowd.methods.tabulation.protected.boxes import NEVER, ProtectionDemand
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.program import least_pattern
from incrowd.methods.tabulation.protected.suppression import Pattern, SuppressionTask, suppress, task_of
from tests.methods.tabulation.frames import agreeing, ends, few, flat, nested

WIDTH = 2
SHAPES = (
    (flat(3, "a"), flat(3, "b")),
    (flat(4, "a"), flat(2, "b")),
    (nested((2, 2), "a"), flat(2, "b")),
    (nested((2, 1), "a"), nested((2, 1), "b")),
    (flat(2, "a"), flat(2, "b"), flat(2, "c")),
    (nested((3, 2), "a"),),
)


def tables(number: int, seed: int) -> Iterator[tuple[TableFrame, Whole]]:
    """Yield small tables of counts, with zeros among them."""
    chance = np.random.default_rng(seed)
    for place in range(number):
        frame = TableFrame(SHAPES[place % len(SHAPES)])
        yield frame, chance.integers(0, 5, frame.leaf_shape) * (chance.random(frame.leaf_shape) < 0.9)


def require_open(frame: TableFrame, cells: Whole, demands: list[ProtectionDemand], pattern: Pattern) -> None:
    """Go through all tables that agree until every sensitive cell was seen far enough below and above the truth."""
    true, empty = cells.ravel(), np.flatnonzero(pattern.suppressed)
    below, above = true.copy(), true.copy()
    for demand in demands:
        below[demand.cell] -= demand.down
        above[demand.cell] += demand.up
    low, high = true.copy(), true.copy()
    for table in agreeing(frame, cells, ~pattern.suppressed.reshape(frame.shape), least=1):
        seen = frame.matrix @ table
        low, high = np.minimum(low, seen), np.maximum(high, seen)
        wide = (high - low)[empty].min(initial=WIDTH) >= WIDTH
        if wide and np.all(low <= below) and np.all(high >= above):
            return
    raise AssertionError("a sensitive cell can be inferred within its protection interval")


@pytest.mark.parametrize("searched", [False, True])
def test_whatever_is_tried_every_sensitive_cell_of_a_small_table_stays_open(
    searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 tables with both ways to find a pattern; some cannot be protected, most can."""
    if searched:
        monkeypatch.setattr(suppression, "small_enough", lambda *_, **__: False)
    protected = 0
    for frame, leaves in tables(150, seed=int(searched)):
        cells = frame.totals(leaves)
        demands = few(frame, cells, 3, 2)
        try:
            pattern = suppress(task_of(frame, leaves), demands, WIDTH)
        except Infeasible:
            continue
        require_open(frame, cells, demands, pattern)
        assert not pattern.suppressed[0]
        protected += bool(demands)
    assert protected > 75


def test_the_program_finds_the_least_weight_of_all_patterns() -> None:
    chance, shapes = np.random.default_rng(4), ((flat(2, "a"), flat(2, "b")), (nested((2, 1), "a"), flat(2, "b")))
    for place in range(10):
        frame = TableFrame(shapes[place % 4 == 3])
        task = task_of(frame, chance.integers(0, 5, frame.leaf_shape))
        demands = few(frame, task.cells, 3, 2)
        program = least_pattern(task, demands)
        least = _least_by_trying(task, demands)
        assert (None if program is None else task.weights[program.suppressed].sum()) == least
        assert program is None or abs(program.bound - task.weights[program.suppressed].sum()) < 1e-6


def _least_by_trying(task: SuppressionTask, demands: list[ProtectionDemand]) -> float | None:
    """Try every pattern, the lightest first."""
    primary = [demand.cell for demand in demands]
    free = [cell for cell in np.flatnonzero(task.weights < NEVER).tolist() if cell not in primary]
    patterns = [each for size in range(len(free) + 1) for each in combinations(free, size)]
    for more in sorted(patterns, key=lambda each: float(task.weights[list(each)].sum())):
        hidden = np.zeros(task.frame.size, np.bool_)
        hidden[[*primary, *more]] = True
        low, high = ends(task.frame, task.cells.reshape(task.frame.shape), ~hidden.reshape(task.frame.shape), 1)
        down, up = task.cells - low, high - task.cells
        if all(down[each.cell] >= each.down and up[each.cell] >= each.up for each in demands):
            return float(task.weights[hidden].sum())
    return None


def test_the_auditor_finds_what_trying_finds_and_narrowing_is_never_closer() -> None:
    chance = np.random.default_rng(3)
    for frame, leaves in tables(24, seed=2):
        cells, known = frame.totals(leaves), chance.random(frame.shape) < 0.6
        known[(0,) * known.ndim] = True
        expected = ends(frame, cells, known)
        found = spread(Together.of((frame,), [(np.where(known, cells, 0), known)]).reader(0), frame.matrix, never)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
        low, high = narrowed(frame, np.where(known, cells, 0), known)
        assert np.all(low.ravel() <= expected[0])
        assert np.all(high.ravel() >= expected[1])


def test_a_table_whose_total_is_sensitive_is_refused() -> None:
    frame = TableFrame((flat(2, "a"),))
    with pytest.raises(Infeasible, match="the total of the whole table"):
        suppress(task_of(frame, np.array([1, 1])), [ProtectionDemand(0, 2, 3)], 4)


def test_a_cell_that_nothing_can_protect_is_refused_with_its_place() -> None:
    frame = TableFrame((flat(2, "a"),))
    with pytest.raises(Infeasible, match="a = a0"):
        suppress(task_of(frame, np.array([1, 0])), [ProtectionDemand(1, 1, 3)], 4)


@pytest.mark.parametrize("scale", [12, 24, 60])
def test_no_linear_program_infers_a_sensitive_cell_of_a_large_table(scale: int) -> None:
    """Sparse, middling and dense counts: over all tables that agree with what is published, ends of sensitive cells."""
    frame = TableFrame((nested((4, 4, 4, 4), "a"), flat(12, "b"), flat(6, "c")))
    leaves = (np.random.default_rng(scale).pareto(1.0, frame.leaf_shape) * scale).astype(np.int64)
    cells = frame.totals(leaves).ravel()
    demands = few(frame, frame.totals(leaves), 3, 3)
    pattern = suppress(task_of(frame, leaves), demands, 3)
    sums = csr_matrix(frame.matrix)
    shown = np.flatnonzero(~pattern.suppressed)
    bounds = [(float(low), None) for low in pattern.suppressed[frame.leaves]]
    for place in np.linspace(0, len(demands) - 1, 5).astype(int):
        demand = demands[place]
        goal = sums[[demand.cell]].toarray().ravel()
        low, high = (linprog(sign * goal, A_eq=sums[shown], b_eq=cells[shown], bounds=bounds) for sign in (1, -1))
        assert low.fun <= cells[demand.cell] - demand.down + 1e-6
        assert -high.fun >= cells[demand.cell] + demand.up - 1e-6


def test_a_larger_table_is_proved_cell_by_cell() -> None:
    frame = TableFrame((nested((4, 4, 4), "a"), flat(8, "b"), flat(5, "c")))
    leaves = (np.random.default_rng(1).pareto(1.0, frame.leaf_shape) * 10).astype(np.int64)
    task = task_of(frame, leaves)
    demands = few(frame, frame.totals(leaves), 3, 3)
    pattern = suppress(task, demands, 3)
    assert len(demands) > 30
    for demand in demands:
        assert pattern.least[demand.cell] <= task.cells[demand.cell] - demand.down
        assert pattern.largest[demand.cell] >= task.cells[demand.cell] + demand.up
