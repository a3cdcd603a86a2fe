"""A proof of a pattern that is wrong anywhere is not accepted: real proofs, changed at one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from incrowd.methods.tabulation.protected import suppression
from incrowd.methods.tabulation.protected.boxes import NEVER, ProtectionDemand
from incrowd.methods.tabulation.protected.coalitions import Owners
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.methods.tabulation.protected.rules import Contributions
from incrowd.methods.tabulation.protected.suppression import SuppressionTask, suppress, task_of
from tests.methods.tabulation.frames import flat

FRAME = TableFrame((flat(3, "r"), flat(4, "c")))
LEAVES = np.array([[20, 50, 10, 1], [8, 19, 22, 4], [17, 32, 12, 9]])
CELL, DEMAND = 7, ProtectionDemand(7, 2, 3)
Moves = list[Any]


def task(**more: Any) -> SuppressionTask:
    """Return a table in which each cell of one row and of the last column belongs to one firm alone."""
    cells = np.arange(12)
    firms = Contributions(cells, np.where(cells < 8, cells, 100 + cells), LEAVES.ravel(), np.ones(12, np.int64))
    return replace(task_of(FRAME, LEAVES, owners=Owners.of(FRAME, firms, 1)), **more)


def proof(
    given: SuppressionTask, monkeypatch: pytest.MonkeyPatch, demand: ProtectionDemand = DEMAND
) -> tuple[list[ProtectionDemand], Moves]:
    """Return what a real search hands to the proof."""
    seen: list[tuple[list[ProtectionDemand], Moves]] = []
    check = suppression._proved

    def record(task: SuppressionTask, demands: list[ProtectionDemand], moves: Moves) -> Any:
        seen.append((list(demands), list(moves)))
        return check(task, demands, moves)

    suppression._suppressed.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(suppression, "_proved", record)
        suppress(given, [demand], 3)
    return seen[0]


def longer(moves: Moves) -> Moves:
    """Return moves of which the first goes further in one finest cell."""
    steps = moves[0].steps.copy()
    steps[0] += 1
    return [replace(moves[0], steps=steps), *moves[1:]]


def boasting(moves: Moves) -> Moves:
    """Return moves of which the first is said to go further than it does."""
    return [replace(moves[0], amount=moves[0].amount + (1 if moves[0].amount > 0 else -1)), *moves[1:]]


def falling(moves: Moves) -> Moves:
    """Return moves of which one takes away more than there is."""
    far = [replace(move, steps=100 * move.steps, amount=100 * move.amount) for move in moves]
    return [*moves, *far]


def one_way(moves: Moves) -> Moves:
    """Return the moves up, without those down."""
    return [move for move in moves if move.amount > 0]


def single(moves: Moves) -> Moves:
    """Return one move up and one down: some firm knows a cell of each."""
    return [next(move for move in moves if (move.amount > 0) == up) for up in (True, False)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (longer, "a move changes what is published|falls short"),
        (boasting, "falls short of its amount"),
        (falling, "a move changes what is published"),
        (one_way, "no proof against a reader"),
        (single, "no proof against a reader or a coalition"),
    ],
)
def test_a_wrong_proof_is_refused(
    change: Callable[[Moves], Moves], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    demands, moves = proof(task(), monkeypatch)
    assert suppression._proved(task(), demands, moves).suppressed[CELL]
    with pytest.raises(AssertionError, match=words):
        suppression._proved(task(), demands, change(moves))


def test_a_proof_that_moves_a_published_cell_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    demands, moves = proof(task(), monkeypatch)
    suppressed = suppression._proved(task(), demands, moves).suppressed
    for cell in np.flatnonzero(suppressed).tolist():
        weights = task().weights.copy()
        weights[cell] = NEVER
        with pytest.raises(AssertionError, match="what is published"):
            suppression._proved(task(weights=weights), demands, moves)


def test_every_cell_that_a_proof_moves_is_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    demands, moves = proof(task(), monkeypatch)
    suppressed = suppression._proved(task(), demands, moves).suppressed
    change = np.zeros(len(task().truth), np.int64)
    for move in moves:
        change[:] = 0
        change[move.atoms] = move.steps
        assert not np.any((FRAME.matrix @ change)[~suppressed])


def test_a_proof_in_which_a_sum_known_to_be_above_zero_vanishes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a list of tables the bounds of finest cells do not say so: floors of sums do."""
    small = 14
    free = task(low=np.zeros(len(task().truth), np.int64))
    demands, moves = proof(free, monkeypatch, ProtectionDemand(small, int(free.cells[small]), 3))
    assert suppression._proved(free, demands, moves).least[small] == 0
    floors = np.zeros(FRAME.size, np.bool_)
    floors[small] = True
    with pytest.raises(AssertionError, match="makes zero of a sum"):
        suppression._proved(replace(free, floors=floors), demands, moves)
