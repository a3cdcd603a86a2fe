"""Trial: a graph that is known with names, one that was published without, and who is who; judged beside a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.core.graph import Graph
from incrowd.errors import InvalidParameter

Places = NDArray[np.int64]
_BLOCK = 512
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class GraphTrial:
    """What is known, what was published, and for the judge alone where each known node is in it.

    `crowd` says which published nodes the release itself does not tell apart: all of a graph are one crowd, and those
    of a super-node are one.  The control is the same attack with names exchanged at random within each crowd: what it
    hits is luck.
    """

    known: Graph
    published: Graph
    truth: Places
    crowd: Places
    trials: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.truth) != self.known.size or len(self.crowd) != self.published.size:
            raise InvalidParameter(
                "every known node has a place in what was published, and every published one a crowd."
            )

    @property
    def chance(self) -> np.random.Generator:
        """The laboratory's own dice."""
        return np.random.default_rng(self.seed)

    @property
    def targets(self) -> Places:
        """Whom the attacker looks for: nodes with an edge, at most so many."""
        nodes = np.flatnonzero(self.known.degrees > 0)
        return np.sort(self.chance.permutation(nodes)[: self.trials])

    def exchanged(self) -> Places:
        """Return the truth with names exchanged within each crowd."""
        chance = np.random.default_rng(self.seed + 1)
        order = np.lexsort((chance.random(len(self.crowd)), self.crowd))
        places = np.empty(len(self.crowd), np.int64)
        places[np.lexsort((np.arange(len(self.crowd)), self.crowd))] = order
        return places[self.truth]

    def finding(self, attack: str, knows: str, targets: Places, guesses: Places) -> Finding:
        """Judge guesses at the places of targets, beside a blind guess and the control."""
        blind = np.random.default_rng(self.seed + 2).integers(0, max(1, self.published.size), len(targets))
        rates = [int((guess == truth[targets]).sum()) for guess, truth in self._pairs(guesses, blind)]
        number = len(targets)
        return Finding(
            attack,
            Risk.SINGLING_OUT,
            knows,
            Rate(rates[0], number),
            Rate(rates[1], number),
            Rate(rates[2], number),
            notes=("outsiders are the same nodes with names exchanged at random",),
        )

    def _pairs(self, guesses: Places, blind: Places) -> tuple[tuple[Places, Places], ...]:
        return (guesses, self.truth), (blind, self.truth), (guesses, self.exchanged())


class GraphAttack(Protocol):
    """An adversary: what is known and what was published come to a finding."""

    def __call__(self, trial: GraphTrial) -> Finding:
        """Attack, and hold the success against a blind guess and a control."""


def nearest(known: NDArray[np.float64], published: NDArray[np.float64], seed: int) -> Places:
    """Return for each row the nearest row on the other side; where several are as near, one of them at random."""
    chance, found = np.random.default_rng(seed), []
    squares = (published**2).sum(axis=1)
    for start in range(0, len(known), _BLOCK):
        rows = known[start : start + _BLOCK]
        apart = (rows**2).sum(axis=1)[:, None] + squares - 2 * rows @ published.T
        least = apart.min(axis=1, keepdims=True)
        ties = apart <= least + _TIE * (1 + (rows**2).sum(axis=1)[:, None])
        found.append(np.where(ties, chance.random(apart.shape), -1.0).argmax(axis=1))
    return np.concatenate(found) if found else np.zeros(0, np.int64)
