"""Joining: the last ones, whom no levels of their own help, are released together with classes that were released."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.anonymity.local.rounds import Chosen, Ground, Round
from incrowd.methods.anonymity.search.lattice import Node
from incrowd.methods.anonymity.search.rollup import Roller

_WORK = 2**22
"""Nodes times tuples that may be looked at."""


def joined(ground: Ground, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...] | None:
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
        ids = Roller(ground.lattice)(node).ids
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
