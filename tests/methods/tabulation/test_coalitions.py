"""Contributors who know their own cells, alone or two together, infer no sensitive cell: exact programs try for each.

So it is of one table and of several that are protected together.

`python -m tests.methods.tabulation.test_coalitions 500` tries so many tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, islice

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from incrowd.errors import Infeasible
from incrowd.methods.tabulation.protected.assembly import AttackerKnowledge, CellMarks, TaskAssembly
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, Whole, union
from incrowd.methods.tabulation.protected.joint import Joint
from incrowd.methods.tabulation.protected.rules import CellFacts, Contributions, Dominance, Rules
from incrowd.methods.tabulation.protected.sources import _weighted
from tests.methods.tabulation.frames import flat, nested

COARSE = TableAxis("a", ("*", "a0", "a1"), (-1, 0, 0))
SHAPES: tuple[tuple[tuple[TableAxis, ...], ...], ...] = (
    ((flat(4, "a"), flat(3, "b")),),
    ((nested((2, 2), "a"), flat(3, "b")),),
    ((nested((2, 1), "a"), nested((2, 1), "b")),),
    ((flat(2, "a"), flat(3, "b"), flat(2, "c")),),
    ((nested((3, 3), "a"),),),
    ((flat(3, "a"), flat(2, "b")), (flat(3, "a"), flat(2, "c"))),
    ((flat(3, "a"), flat(2, "b")), (flat(2, "b"), flat(3, "c")), (flat(3, "c"), flat(3, "a"))),
    ((nested((2, 2), "a"), flat(2, "b")), (flat(3, "c"), COARSE)),
    ((nested((2, 2), "a"), flat(2, "b")), (COARSE,), (flat(2, "b"),)),
)
RULES = (
    Rules(minimum=3),
    Rules(minimum=4, protection=2),
    Rules(p=Fraction(1, 5)),
    Rules(dominance=Dominance(1, Fraction(3, 5))),
    Rules(minimum=3, dominance=Dominance(2, Fraction(9, 10)), margin=Fraction(1, 4)),
    Rules(p=Fraction(1, 5), q=Fraction(1, 2)),
)
LARGEST = 12
"""The largest contribution, up or down, where it can be negative."""


def joint_of(frames: tuple[TableFrame, ...]) -> Joint:
    cross, parts = union(frames)
    nothing = np.zeros(0, np.intp)
    finest = tuple(part[frame.leaves] for part, frame in zip(parts, frames, strict=True))
    return Joint(cross, {}, parts, nothing, nothing.astype(np.int64), nothing, finest)


def contributions(frame: TableFrame, chance: np.random.Generator, kind: str) -> Contributions:
    """Return rows of some holdings in random cells: firms with several rows, and people with one each."""
    rows = int(chance.integers(20, 60))
    cells = chance.choice(len(frame.leaves), rows, p=chance.dirichlet(np.ones(len(frame.leaves))))
    holders = chance.integers(0, 12, rows) if chance.random() < 0.5 else np.arange(rows)
    amounts = np.ones(rows, np.int64) if kind == "counts" else (chance.pareto(1.0, rows) * 5).astype(np.int64) + 1
    weights = None
    if kind == "signed":
        amounts = np.minimum(amounts, LARGEST) * chance.choice([-1, 1], rows)
    if kind == "weighted":
        weights = np.round(chance.gamma(2.0, 2.0, rows), 2)
        amounts = _weighted(cells, np.minimum(amounts, LARGEST) * weights)
    ones = np.ones(rows, np.int64)
    return Contributions(cells, holders.astype(np.int64), amounts, ones, weights, kind == "signed")


def extremes(frame: TableFrame, known: dict[int, int], goal: int, above: list[int], bounds: Bounds) -> tuple[int, int]:
    """Return the least and largest whole number of a cell over all tables with the cells that somebody knows.

    Cells in `above` are known to be 1 at least, and the finest ones to lie between bounds.
    """
    rows = list(known)
    values = np.array([known[row] for row in rows])
    sums = [LinearConstraint(frame.matrix[rows], values, values)]
    if above:
        sums.append(LinearConstraint(frame.matrix[above], 1, np.inf))
    row = frame.matrix[[goal]].toarray().ravel().astype(float)
    results = [milp(sign * row, constraints=sums, bounds=bounds, integrality=np.ones(len(row))) for sign in (1, -1)]
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
    """Protect random tables and yield, for each sensitive cell and attacker, whether the interval holds."""
    chance = np.random.default_rng(seed)
    frames = tuple(map(TableFrame, SHAPES[seed % len(SHAPES)]))
    rules, joint, size = RULES[chance.integers(len(RULES))], joint_of(frames), int(chance.integers(3))
    kind = str(chance.choice(["sums", "signed", "weighted"] if rules.depth else ["counts", "counts", "signed", "sums"]))
    zeros = "published" if kind != "signed" and chance.random() < 0.8 else "suppressible"
    given = contributions(joint.frame, chance, kind)
    marks = CellMarks(("values", "cells", "levels")[seed % 3], zeros, (), ())
    yield from attacks_on(frames, rules, given, marks, kind=kind, size=size)


def attacks_on(
    frames: tuple[TableFrame, ...], rules: Rules, given: Contributions, marks: CellMarks, *, kind: str, size: int
) -> Iterator[tuple[int, bool]]:
    """Protect tables and yield, for each sensitive cell and attacker, whether the interval holds."""
    joint = joint_of(frames)
    cross, zeros = joint.frame, marks.zeros
    facts = tuple(joint.within(frame, given).facts(frame, rules.depth) for frame in frames)
    bounds = (Fraction(-LARGEST), Fraction(LARGEST)) if kind == "signed" else None
    knowledge = AttackerKnowledge(kind == "counts", size, None, bounds)
    finest = np.bincount(given.cells, given.amounts, len(cross.leaves)).astype(np.int64)
    width = (rules.reach or 1) if kind == "counts" else 1
    try:
        pattern = TaskAssembly(frames, joint, rules, marks, knowledge).protect(facts, given, finest, width)
    except Infeasible:
        return
    true, names = cross.matrix @ finest, own_cells(cross, given)
    published = [cell for cell in joint.own.tolist() if not pattern.suppressed[cell]]
    above = [cell for cell in joint.own.tolist() if pattern.suppressed[cell] and true[cell] and zeros == "published"]
    low, high = np.minimum(finest, int(zeros == "published" and joint.alone)), np.full(len(finest), np.inf)
    if bounds is not None:
        rows = np.bincount(given.cells, minlength=len(finest))
        low, high = -LARGEST * rows, LARGEST * rows
    who = sorted({name for people in names if 0 < len(people) <= size for name in people})
    demands = demanded(frames, joint, facts, rules, counts=kind == "counts")
    for coalition in (set(part) for number in range(size + 1) for part in combinations(who, number)):
        mine = [cell for cell in joint.own.tolist() if names[cell] and names[cell] <= coalition]
        known = {cell: int(true[cell]) for cell in [*published, *mine]}
        own = cross.matrix[mine].toarray().sum(0) > 0  # who knows a cell knows what is in it, too
        ends = Bounds(np.where(own, finest, np.minimum(low, 0)), np.where(own, finest, high))
        for cell, (down, up) in demands.items():
            if cell not in mine:
                least, most = extremes(cross, known, cell, above, ends)
                atoms = cross.matrix[[cell]].toarray().ravel() > 0
                below, beyond = (np.where(own, finest, end)[atoms].sum() for end in (low, high))
                if kind != "signed":
                    below = max(
                        below, *(known_within(cross, part, cell, true, mine) for part in finest_of(joint, frames))
                    )
                yield cell, least <= max(true[cell] - down, below) and most >= min(true[cell] + up, beyond)


def finest_of(joint: Joint, frames: tuple[TableFrame, ...]) -> list[list[int]]:
    return [own[frame.leaves].tolist() for own, frame in zip(joint.parts, frames, strict=True)]


def known_within(cross: TableFrame, finest: list[int], cell: int, true: Whole, mine: list[int]) -> int:
    """Return what somebody knows to be in a cell by the finest cells of a table: own ones, and 1 in others."""
    whole = cross.matrix[[cell]].toarray().ravel() > 0
    parts = [part for part in finest if not np.any(cross.matrix[[part]].toarray().ravel() > whole)]
    return sum(int(true[part]) if part in mine else int(true[part] > 0) for part in parts)


def demanded(
    frames: tuple[TableFrame, ...], joint: Joint, facts: tuple[CellFacts, ...], rules: Rules, *, counts: bool
) -> dict[int, tuple[int, int]]:
    """Return how far each sensitive cell of some table must stay open, the least of what its tables demand below."""
    demands: dict[int, tuple[int, int]] = {}
    for frame, part, own in zip(frames, facts, joint.parts, strict=True):
        down, up = (end.ravel() for end in rules.demands(part, frame, counts=counts))
        for place in np.flatnonzero(up).tolist():
            cell = int(own[place])
            demands[cell] = (min(int(down[place]), demands.get(cell, (sys.maxsize, 0))[0]), int(up[place]))
    return demands


@pytest.mark.parametrize("seed", range(36))
def test_no_attacker_who_is_named_infers_a_sensitive_cell_within_its_interval(seed: int) -> None:
    assert all(holds for _, holds in islice(attacked(seed), 120))


def test_who_is_alone_in_a_cell_of_one_table_knows_it_in_the_others() -> None:
    """Somebody alone in a × b knows the own c, too: no proof may move amounts about inside that cell."""
    frames = (TableFrame((flat(2, "a"), flat(3, "b"))), TableFrame((flat(2, "a"), flat(3, "c"))))
    cells = np.array([10, 9, 10, 14, 10, 15, 13, 12, 10, 2, 10, 15, 0, 3, 10, 3, 10])
    ones = np.ones(len(cells), np.int64)
    people = Contributions(cells, np.arange(len(cells)), ones, ones)
    marks = CellMarks("levels", "published", (), ())
    pairs = list(attacks_on(frames, Rules(minimum=2), people, marks, kind="counts", size=2))
    assert len(pairs) > 50
    assert all(holds for _, holds in pairs)


@pytest.mark.parametrize(
    ("sides", "cells", "amounts", "margin", "released"),
    [
        (  # two know all of a sum but one cell above zero: nothing is asked below that
            (("b", 2), ("c", 2), ("a", 3)),
            [4, 5, 5, 8, 1, 7, 4, 3, 2, 5, 6, 11, 4],
            [6, 1217, 1, 1, 2, 1, 4, 1, 14, 2, 3, 2, 17],
            Fraction(1, 10),
            True,
        ),
        (
            (("a", 2), ("b", 2), ("c", 2)),
            [4, 0, 0, 1, 0, 5, 3, 3, 1],
            [3, 3, 3, 4, 4, 1, 3, 1, 5],
            Fraction(1, 2),
            False,
        ),
    ],
)
def test_sums_over_two_tables_stay_open_downward_to_two_firms_as_far_as_they_do_not_know(
    sides: tuple[tuple[str, int], ...], cells: list[int], amounts: list[int], margin: Fraction, *, released: bool
) -> None:
    one, two, three = (flat(size, name) for name, size in sides)
    first = (one,) if one.column == "b" else (one, two)
    frames = (TableFrame(first), TableFrame((two, three) if one.column == "b" else (one, three)))
    people = np.arange(len(cells))
    firms = Contributions(np.array(cells), people, np.array(amounts), np.ones(len(cells), np.int64))
    marks, rules = CellMarks("values", "published", (), ()), Rules(minimum=3, margin=margin)
    pairs = list(attacks_on(frames, rules, firms, marks, kind="sums", size=2))
    assert bool(pairs) == released  # else it was refused
    assert all(holds for _, holds in pairs)


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
