"""Replaying: a real release of one table, and the same transcript forced upon its neighbor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.core.loss import Sampled, Sequence, walk
from incrowd.core.plan import Plan
from incrowd.core.unit import Adjacency, Unit
from tests.replay.guarantees import ceiling, ratio
from tests.replay.laws import Divergence, SelectionLaw
from tests.replay.transcript import Chance, Event, Recorder, Replayer, Unequal, followed

TOLERANCE = 1e-9
Released = Callable[[Any], Any]
"""What a release publishes, as something that can be compared."""


@dataclass(frozen=True)
class Replay:
    """What a transcript lost between two neighbors, mechanism by mechanism, and the worst selection beside its own ε.

    Of several runs of which the best is kept, it is what one of them lost, on average.
    """

    lost: tuple[Divergence, ...]
    selection: float

    @property
    def total(self) -> Divergence:
        """The loss of the whole transcript."""
        return Divergence.total(self.lost)


@dataclass(frozen=True, eq=False)
class Recording:
    """A real release: its plan and randomness, the transcript, and what was published."""

    plan: Plan
    chance: Chance
    events: list[Event]
    published: Any
    released: Released

    @classmethod
    def of(cls, plan: Plan, rows: Any, chance: Chance, released: Released) -> Recording:
        """Release rows, and write the transcript down."""
        recorder = Recorder(chance)
        with followed():
            published = released(plan.release(rows, recorder))
        check_samples(plan, recorder.rates)
        return cls(plan, chance, recorder.events, published, released)

    def replay(self, neighbor: Any) -> Replay:
        """Force the transcript upon a neighbor, and return what was lost; both must publish the same."""
        replayer = Replayer(self.chance, self.events)
        with followed():
            published = self.released(self.plan.release(neighbor, replayer))
        lost = replayer.divergences()
        if published != self.published:
            raise Unequal(
                "the same transcript gives another output: something beside the outcomes depends on the rows."
            )
        runs = self.chance.runs
        parts = [Divergence(item.epsilon / runs, item.rho / runs, item.delta / runs) for item in lost]
        return Replay(tuple(parts), worst_selection(replayer, self.plan.unit))


def check_samples(plan: Plan, rates: list[Fraction]) -> None:
    """Refuse a release that draws other secret samples than its loss counts on: each once, at the stated rate."""
    stated = [part.rate for part in walk(plan.guarantee.loss) if isinstance(part, Sampled)]
    if sorted(rates) != sorted(stated):
        raise Unequal(
            f"the loss counts on samples at {sorted(map(str, stated))}; {sorted(map(str, rates))} were drawn."
        )


def worst_selection(replayer: Replayer, unit: Unit) -> float:
    """Return the largest part of its own stated ε that a selection lost; a unit of several rows may lose so many."""
    rows = unit.max_rows * (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2)
    parts = [
        _selected(event.law, event.inputs, inputs) / float(event.law.stated)
        for event, inputs in zip(replayer.events, replayer.inputs, strict=True)
        if isinstance(event.law, SelectionLaw)
    ]
    return max(parts, default=0.0) / rows


def _selected(law: SelectionLaw, one: Any, other: Any) -> float:
    return law.divergence(one, other).epsilon if law.flips else law.range(one, other)


def check_rounds(plan: Plan, replay: Replay) -> None:
    """Refuse a round on a fresh sample that loses more than its own part of the guarantee, though others lose less."""
    loss = plan.guarantee.loss
    rounds = loss.parts if isinstance(loss, Sequence) and all(isinstance(part, Sampled) for part in loss.parts) else ()
    if len(rounds) == len(replay.lost):
        own = [ratio(lost, ceiling(part)) for lost, part in zip(replay.lost, rounds, strict=True)]
        assert max(own, default=0.0) <= 1 + TOLERANCE, f"a round loses {max(own):.4f} times its part of the guarantee"


def part_of_guarantee(plan: Plan, replays: Iterable[Replay]) -> float:
    """Return the largest part of a plan's guarantee that transcripts lost; it is at most 1."""
    allowed = ceiling(plan.guarantee.loss)
    worst = 0.0
    for item in replays:
        part = ratio(item.total, allowed)
        assert part <= 1 + TOLERANCE, f"a transcript loses {part:.4f} times the guarantee"
        assert item.selection <= 1 + TOLERANCE, f"a selection loses {item.selection:.4f} times the ε that it states"
        worst = max(worst, part)
        check_rounds(plan, item)
    assert math.isfinite(worst)
    return worst
