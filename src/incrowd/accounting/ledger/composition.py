"""Composition: which releases may be combined at all, whatever their budget."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.core.loss import (
    THE_ROWS,
    Crowd,
    Grouped,
    Loss,
    Parallel,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    samples_named,
)
from incrowd.errors import DoesNotCompose, SampleReused

COUNTEREXAMPLE = (
    "Suppose k people are at v and one is at w: a table by {v, w} together says k + 1, a table by v says k, and the "
    "difference is the one person."
)
"""Why crowds do not compose, in one sentence; Gehrke, Hay, Lui & Pass 2012, §4."""
DERIVE = (
    "a coarser table of what was released is free and safe: incrowd coarsen makes it from the release, not from rows"
)


@dataclass(frozen=True)
class Footprint:
    """What of a loss matters to later releases: crowds without a secret sample, syntactic parts, samples it names."""

    crowds: int
    syntactic: int
    samples: tuple[str, ...]

    @property
    def unbounded(self) -> bool:
        """Whether some part has no ε by its nature."""
        return self.crowds + self.syntactic > 0

    @property
    def whole(self) -> bool:
        """Whether the rows themselves are its secret sample, so that nothing else can be released from them."""
        return THE_ROWS in self.samples


def footprint(loss: Loss) -> Footprint:
    """Return the footprint of a loss, or refuse a loss whose own parts do not compose.

    Source: Gehrke, Hay, Lui & Pass 2012, §4: crowd-blending privacy is not closed under composition (one partition
    into {v, w}, another into {v} and {w}, with k people at v and one at w: the outputs together show the one).  Beside
    differential privacy it is safe, with losses added.  Blocks of a partition do not overlap: a person
    blends within one block.  Two crowd releases from one secret sample can differ by one person, as two from rows can.

    >>> from fractions import Fraction
    >>> footprint(Sequence((Crowd(5), Sampled(Fraction(1, 10), Crowd(5), "s1"))))
    Footprint(crowds=1, syntactic=0, samples=('s1',))
    """
    crowds, syntactic = _count(loss)
    if crowds > 1 or (crowds and syntactic):
        raise DoesNotCompose(
            "this guarantee joins a crowd-blending release with another release that is not differentially private; "
            f"together they can show one person. {COUNTEREXAMPLE} Release them from separate secret samples, or "
            f"release the joint cells: {DERIVE}."
        )
    samples = samples_named(loss)
    if len(set(samples)) < len(samples):
        raise SampleReused(
            "two parts of this guarantee use one secret sample; together they can reveal who is in it. Draw a fresh "
            "sample for each, or release the joint cells once and compute both from the release."
        )
    if THE_ROWS in samples and not isinstance(loss, RobustlySampled):
        raise SampleReused(
            "this guarantee joins a release whose secret sample is the dataset itself with another from the same rows; "
            f"such rows have one release, ever. {COUNTEREXAMPLE} Release the joint cells: {DERIVE}."
        )
    return Footprint(crowds, syntactic, samples)


def refuse_company(new: Footprint, crowds: int, unbounded: int) -> None:
    """Refuse a release that does not compose with earlier ones of its dataset, whatever its budget or columns.

    `crowds` counts earlier crowd-blending releases without a sample, `unbounded` all earlier releases without an ε.

    >>> refuse_company(Footprint(1, 0, ()), crowds=0, unbounded=0)
    """
    if (new.crowds and unbounded) or (new.unbounded and crowds):
        raise DoesNotCompose(
            "crowd-blending does not compose: beside an earlier release of this dataset that is not differentially "
            f"private, this one could show one person, whatever its columns. {COUNTEREXAMPLE} Release it from a fresh "
            f"secret sample; or compute it from what was already released: {DERIVE}."
        )


def refuse_second_use(new: Footprint, root: str, charges: int) -> None:
    """Refuse a release whose secret sample is the dataset itself, if anything was released from these rows before.

    Source: Gehrke, Hay, Lui & Pass 2012, Theorem 2, holds for one release: its randomness is the drawing of the
    rows, which every other release from the same rows shares.  So losses do not add up, not even beside differential
    privacy: a private table of two bins v and w, at ε′ each, and the suppressed count of both together tell a person at
    w from one at v by a factor of e^(2ε′), however small the ε of the biased sample.

    >>> refuse_second_use(Footprint(0, 0, (THE_ROWS,)), "survey", charges=0)
    """
    if new.whole and charges:
        raise SampleReused(
            f"this guarantee takes the rows of dataset {root} themselves for its secret sample, and something was "
            f"released from them already: both would share one drawing. {COUNTEREXAMPLE} Such rows have one release, "
            f"ever; {DERIVE}."
        )


def refuse_used_rows(root: str) -> None:
    """Refuse anything more from rows that are themselves the secret sample of an earlier release.

    >>> refuse_used_rows("survey")
    Traceback (most recent call last):
    ...
    incrowd.errors.SampleReused: the rows of dataset survey are themselves the secret sample of an earlier release...
    """
    raise SampleReused(
        f"the rows of dataset {root} are themselves the secret sample of an earlier release, and that was the only one "
        f"they have: a second would share its drawing. {COUNTEREXAMPLE} Instead, {DERIVE}."
    )


def _count(loss: Loss) -> tuple[int, int]:
    """Return how many crowds without a sample and how many syntactic parts one row can meet."""
    match loss:
        case Crowd():
            return 1, 0
        case Syntactic():
            return 0, 1
        case Sequence(parts):
            counts = [_count(part) for part in parts]
            return sum(crowds for crowds, _ in counts), sum(syntactic for _, syntactic in counts)
        case Parallel(parts):
            counts = [_count(part) for part in parts]
            return max((crowds for crowds, _ in counts), default=0), max((forms for _, forms in counts), default=0)
        case Grouped(inner=inner):
            return _count(inner)
        case Sampled(inner=inner):
            crowds, syntactic = _count(inner)
            if crowds > 1:
                raise SampleReused(
                    "two crowd-blending releases use one secret sample; their difference can reveal one person. Draw "
                    "a fresh sample for each."
                )
            return (crowds if syntactic else 0), syntactic
        case RobustlySampled():
            return 0, 0
    return 0, 0
