"""Contributors who know their own cells, alone or two together, infer no sensitive cell: exact programs try for each.

`python -m tests.methods.tabulation.test_coalitions 500` tries so many tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.assembly import AttackerKnowledge, CellMarks, TaskAssembly
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.joint import Joint
from incrowd.methods.tabulation.protected.rules import Contributions, Dominance, Rules
from tests.methods.tabulation.frames import flat, nested

SHAPES = (
    (flat(4, "a"), flat(3, "b")),
    (nested((2, 2), "a"), flat(3, "b")),
    (nested((2, 1), "a"), nested((2, 1), "b")),
    (flat(2, "a"), flat(3, "b"), flat(2, "c")),
    (nested((3, 3), "a"),),
)
RULES = (
    Rules(minimum=3),
    Rules(minimum=4, protection=2),
    Rules(p=Fraction(1, 5)),
    Rules(dominance=Dominance(1, Fraction(3, 5))),
    Rules(minimum=3, dominance=Dominance(2, Fraction(9, 10)), margin=Fraction(1, 4)),
)


def joint_of(frame: TableFrame) -> Joint:
    nothing = np.zeros(0, np.intp)
    return Joint(frame, {}, (np.arange(frame.size),), nothing, nothing.astype(np.int64), nothing)


def contributions(frame: TableFrame, chance: np.random.Generator, *, counts: bool) -> Contributions:
    """Return rows of some holdings in random cells: firms with several rows, and people with one each."""
    rows = int(chance.integers(20, 60))
    cells = chance.choice(len(frame.leaves), rows, p=chance.dirichlet(np.ones(len(frame.leaves))))
    holders = chance.integers(0, 12, rows) if chance.random() < 0.5 else np.arange(rows)
    amounts = np.ones(rows, np.int64) if counts else (chance.pareto(1.0, rows) * 5).astype(np.int64) + 1
    return Contributions(cells, holders.astype(np.int64), amounts, np.ones(rows, np.int64))


def extremes(frame: TableFrame, known: dict[int, int], goal: int, low: Whole) -> tuple[int, int]:
    """Return the least and largest whole number of a cell over all tables with the cells that somebody knows."""
    rows = list(known)
    values = np.array([known[row] for row in rows])
    sums = LinearConstraint(frame.matrix[rows], values, values)
    row = frame.matrix[[goal]].toarray().ravel().astype(float)
    results = [
        milp(sign * row, constraints=sums, bounds=Bounds(low, np.inf), integrality=np.ones(len(low)))
        for sign in (1, -1)
    ]
    assert results[0].x is not None
    return round(results[0].fun), round(-results[1].fun) if results[1].x is not None else sys.maxsize


def own_cells(frame: TableFrame, given: Contributions) -> list[set[int]]:
    """Return who contributed to each cell, the slow way."""
    names: list[set[int]] = [set() for _ in range(frame.size)]
    sums = frame.matrix.tocsc()
    for cell, holder in zip(given.cells.tolist(), given.holders.tolist(), strict=True):
        for row in sums.indices[sums.indptr[cell] : sums.indptr[cell + 1]].tolist():
            names[row].add(holder)
    return names


def attacked(seed: int) -> Iterator[tuple[int, bool]]:
    """Protect one random table and yield, for each sensitive cell and attacker, whether the interval holds."""
    chance = np.random.default_rng(seed)
    frame, rules = TableFrame(SHAPES[seed % len(SHAPES)]), RULES[chance.integers(len(RULES))]
    counts, size = not rules.depth and bool(chance.random() < 0.7), seed % 3
    zeros = "published" if chance.random() < 0.8 else "suppressible"
    given = contributions(frame, chance, counts=counts)
    facts = given.facts(frame, rules.depth)
    marks = CellMarks(("values", "cells", "levels")[seed % 3], zeros, (), ())
    assembly = TaskAssembly((frame,), joint_of(frame), rules, marks, AttackerKnowledge(counts, size, None))
    width = (rules.reach or 1) if counts else 1
    try:
        pattern = assembly.protect((facts,), given, frame.finest(facts.values), width)
    except Infeasible:
        return
    true, published = facts.values.ravel(), ~pattern.suppressed
    down, up = (part.ravel() for part in rules.demands(facts, frame, counts=counts))
    finest, names = frame.finest(facts.values).ravel(), own_cells(frame, given)
    low = np.minimum(finest, int(zeros == "published"))
    who = sorted({name for people in names if 0 < len(people) <= size for name in people})
    for coalition in (set(part) for number in range(size + 1) for part in combinations(who, number)):
        mine = [cell for cell in range(frame.size) if names[cell] and names[cell] <= coalition]
        known = {cell: int(true[cell]) for cell in [*np.flatnonzero(published).tolist(), *mine]}
        inside = np.where(np.isin(frame.leaves, mine), finest, low)
        for cell in np.flatnonzero(up).tolist():
            if cell not in mine:
                least, most = extremes(frame, known, cell, low)
                reach = min(int(down[cell]), int(true[cell] - (frame.matrix @ inside)[cell]))
                yield cell, least <= true[cell] - reach and most >= true[cell] + up[cell]


@pytest.mark.parametrize("seed", range(30))
def test_no_attacker_who_is_named_infers_a_sensitive_cell_within_its_interval(seed: int) -> None:
    assert all(holds for _, holds in attacked(seed))


def main() -> None:
    """Try many tables."""
    checked = 0
    for seed in range(int(sys.argv[1])):
        results = list(attacked(seed))
        checked += len(results)
        assert all(holds for _, holds in results), seed
    print(f"{checked:,} pairs of a sensitive cell and an attacker: none inside its interval")


if __name__ == "__main__":
    main()
