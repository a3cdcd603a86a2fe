"""Schedule: rounds one after the other, until everyone is in a class; the last ones may join earlier classes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.local.rounds import Chosen, Ground, Round
from incrowd.methods.anonymity.search.lattice import Node
from incrowd.methods.anonymity.search.optimal import ENDLESS, SearchLimits
from incrowd.methods.anonymity.search.rollup import RollupCache

_ALIKE, _FREE = Fraction(1, 2), Fraction(0)
"""Factors: what is not released has lost everything; or it waits, and has lost no more than the others."""


@dataclass(frozen=True)
class Schedule:
    """How rounds go: at most so many, and the share of its rows that each may leave to the next.

    `suppression` is the share of all rows that may be left out in the end, and `patience` is how long the search of a
    round may take.
    """

    most: int
    left: Fraction
    suppression: Fraction = Fraction(0)
    patience: SearchLimits = ENDLESS

    def allowed(self, ground: Ground) -> int:
        """Return how many rows of a table may be left out."""
        return self.suppression.numerator * int(ground.rows.sum()) // self.suppression.denominator


def recode_in_rounds(ground: Ground, schedule: Schedule) -> tuple[Round, ...]:
    """Return rounds that release all rows but a share, and lose no more than the best single round; none if none can.

    Each round takes, of all levels at which at most the share `left` of its rows must wait, those that lose least; what
    waits is the next round's, until nobody waits or no levels help.  If then more wait than may be left out, there are
    two ways.  They join classes of earlier rounds; or the last round is taken back and its rows are searched together
    with them, and so on, until that succeeds.  The better way is taken, or the single round if that is better still.
    """
    everyone = np.ones(len(ground.rows), np.bool_)
    single = ground.search(everyone, schedule.suppression, _ALIKE, schedule.patience) if len(everyone) else None
    if single is None:
        return ()
    rounds, rest = _forward(ground, schedule, everyone)
    ways: list[tuple[Round, ...]] = [(single,)]
    if int(ground.rows[rest].sum()) <= schedule.allowed(ground):
        ways.append(rounds)
    else:
        ways += [way for way in (join_rest(ground, rounds, rest),) if way is not None]
        ways.append(_backward(ground, schedule, rounds, rest))
    return min((way for way in ways if way), key=ground.loss)


def _forward(ground: Ground, schedule: Schedule, rest: Chosen) -> tuple[tuple[Round, ...], Chosen]:
    """Return round after round, and what is left when nobody waits, when no levels help, or after the last round."""
    rounds: list[Round] = []
    while rest.any() and len(rounds) < schedule.most:
        found = ground.search(rest, schedule.left, _FREE, schedule.patience)
        if found is None:
            break
        rounds.append(found)
        rest = rest & ~found.chosen
    return tuple(rounds), rest


def _backward(ground: Ground, schedule: Schedule, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...]:
    """Take back rounds from the last on, until levels are found for their rows and the rest together; or all."""
    for place in range(len(rounds) - 1, 0, -1):
        rest = rest | rounds[place].chosen
        share = Fraction(schedule.allowed(ground), int(ground.rows[rest].sum()))
        again = ground.search(rest, share, _ALIKE, schedule.patience)
        if again is not None:
            return (*rounds[:place], again)
    return ()


_WORK = 2**22
"""Nodes times tuples that may be looked at."""


def join_rest(ground: Ground, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...] | None:
    """Return rounds that release the rest too, at the levels where that adds the least loss; None if none are found.

    At some levels, those of the rest are in classes together with rows of earlier rounds that are nowhere coarser.
    Classes at finer levels lie within classes at coarser ones, so whole classes leave their rounds, and what stays
    there is as it was.  Where a table is large, nothing is tried.
    """
    if not rest.any() or ground.lattice.nodes * len(rest) > _WORK:
        return None
    rows, now = ground.rows, np.zeros(len(rest))
    for each in rounds:
        now[each.chosen] = ground.prices(each.node)[each.chosen]
    least: tuple[float, Node, Chosen] | None = None
    for node in product(*(range(len(ladder)) for ladder in ground.lattice.ladders)):
        ids = RollupCache(ground.lattice)(node).ids
        taken = _taken(rounds, rest, node, ids)
        added = float(((ground.prices(node) - now)[taken] * rows[taken]).sum())
        if least is not None and added >= least[0]:
            continue
        if ground.holds(np.where(taken, ids, ids.max(initial=0) + 1).astype(np.int32), ~taken):
            least = added, node, taken
    if least is None:
        return None
    left = (Round(each.node, each.chosen & ~least[2]) for each in rounds)
    return (*(each for each in left if each.chosen.any()), Round(least[1], least[2]))


def _taken(rounds: tuple[Round, ...], rest: Chosen, node: Node, ids: NDArray[np.int32]) -> Chosen:
    """Return the rest, and all of earlier rounds who are in one class with them at a node."""
    taken = rest.copy()
    for each in rounds:
        if all(low <= high for low, high in zip(each.node, node, strict=True)):
            taken |= each.chosen
    met = np.zeros(int(ids.max(initial=-1)) + 1, np.bool_)
    met[ids[rest]] = True
    return taken & met[ids]
