"""Course: rounds one after the other, until everyone is in a class."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from incrowd.methods.anonymity.local.joining import joined
from incrowd.methods.anonymity.local.rounds import Chosen, Ground, Round
from incrowd.methods.anonymity.search.optimal import ENDLESS, Patience

_ALIKE, _FREE = Fraction(1, 2), Fraction(0)
"""Factors: what is not released has lost everything; or it waits, and has lost no more than the others."""


@dataclass(frozen=True)
class Course:
    """How rounds go: at most so many, and the share of its rows that each may leave to the next.

    `suppression` is the share of all rows that may be left out in the end, and `patience` is how long the search of a
    round may take.
    """

    most: int
    left: Fraction
    suppression: Fraction = Fraction(0)
    patience: Patience = ENDLESS

    def allowed(self, ground: Ground) -> int:
        """Return how many rows of a table may be left out."""
        return self.suppression.numerator * int(ground.rows.sum()) // self.suppression.denominator


def recoded(ground: Ground, course: Course) -> tuple[Round, ...]:
    """Return rounds that release all rows but a share, and lose no more than the best single round; none if none can.

    Each round takes, of all levels at which at most the share `left` of its rows must wait, those that lose least; what
    waits is the next round's, until nobody waits or no levels help.  If then more wait than may be left out, there are
    two ways.  They join classes of earlier rounds; or the last round is taken back and its rows are searched together
    with them, and so on, until that succeeds.  The better way is taken, or the single round if that is better still.
    """
    everyone = np.ones(len(ground.rows), np.bool_)
    single = ground.search(everyone, course.suppression, _ALIKE, course.patience) if len(everyone) else None
    if single is None:
        return ()
    rounds, rest = _forward(ground, course, everyone)
    ways: list[tuple[Round, ...]] = [(single,)]
    if int(ground.rows[rest].sum()) <= course.allowed(ground):
        ways.append(rounds)
    else:
        ways += [way for way in (joined(ground, rounds, rest),) if way is not None]
        ways.append(_backward(ground, course, rounds, rest))
    return min((way for way in ways if way), key=ground.loss)


def _forward(ground: Ground, course: Course, rest: Chosen) -> tuple[tuple[Round, ...], Chosen]:
    """Return round after round, and what is left when nobody waits, when no levels help, or after the last round."""
    rounds: list[Round] = []
    while rest.any() and len(rounds) < course.most:
        found = ground.search(rest, course.left, _FREE, course.patience)
        if found is None:
            break
        rounds.append(found)
        rest = rest & ~found.chosen
    return tuple(rounds), rest


def _backward(ground: Ground, course: Course, rounds: tuple[Round, ...], rest: Chosen) -> tuple[Round, ...]:
    """Take back rounds from the last on, until levels are found for their rows and the rest together; or all."""
    for place in range(len(rounds) - 1, 0, -1):
        rest = rest | rounds[place].chosen
        share = Fraction(course.allowed(ground), int(ground.rows[rest].sum()))
        again = ground.search(rest, share, _ALIKE, course.patience)
        if again is not None:
            return (*rounds[:place], again)
    return ()
