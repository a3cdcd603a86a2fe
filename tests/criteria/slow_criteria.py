"""Every criterion and every quality model once more, row by row, as slow and obvious as can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.hierarchy.tree import tree
from incrowd.criteria.closeness import EqualCloseness, HierarchicalCloseness, OrderedCloseness
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.disclosure import DeltaDisclosure, PresentDisclosure
from incrowd.criteria.diversity import DistinctDiversity, EntropyDiversity, Estimator, RecursiveDiversity
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness

SENSITIVE = "ill"
ILLNESSES = tree({"lungs": ["cough", "flu"], "heart": ["attack", "murmur"], "none": ["healthy"]})
VALUES = ("cough", "flu", "attack", "murmur", "healthy")
BRANCH = {"cough": 0, "flu": 0, "attack": 1, "murmur": 1, "healthy": 2}

Histogram = Counter[str]
Holds = Callable[[Histogram, Histogram], bool]


def share(values: Histogram, value: str) -> Fraction:
    return Fraction(values[value], values.total())


def equal(here: Histogram, everywhere: Histogram) -> Fraction:
    return sum((abs(share(here, v) - share(everywhere, v)) for v in everywhere), Fraction(0)) / 2


def ordered(here: Histogram, everywhere: Histogram) -> Fraction:
    met = [value for value in VALUES if everywhere[value]]
    gaps = [share(here, value) - share(everywhere, value) for value in met]
    moved = sum((abs(sum(gaps[: place + 1], Fraction(0))) for place in range(len(gaps))), Fraction(0))
    return moved / max(1, len(met) - 1)


def hierarchical(here: Histogram, everywhere: Histogram) -> Fraction:
    """The paper's recursion: at each inner node, what its children have too much meets what others have too little."""
    gaps = {value: share(here, value) - share(everywhere, value) for value in VALUES}
    branches: dict[int, list[Fraction]] = {0: [], 1: [], 2: []}
    for value, gap in gaps.items():
        branches[BRANCH[value]].append(gap)
    cost = sum((_met(children) for children in branches.values()), Fraction(0)) / 2
    return cost + _met([sum(children, Fraction(0)) for children in branches.values()])


def _met(gaps: Sequence[Fraction]) -> Fraction:
    return min(sum((g for g in gaps if g > 0), Fraction(0)), -sum((g for g in gaps if g < 0), Fraction(0)))


def entropy(here: Histogram) -> float:
    return -sum(float(share(here, v)) * math.log(share(here, v)) for v in here)


def grassberger(here: Histogram) -> float:
    def logarithm(count: int) -> float:
        return -0.5772156649015329 - math.log(2) + sum(2 / (2 * j - 1) for j in range(1, count // 2 + 1))

    return logarithm(here.total()) - sum(n * logarithm(n) for n in here.values()) / here.total()


def recursive(here: Histogram, c: Fraction, least: int, harmless: frozenset[str] = frozenset()) -> bool:
    """Definition 4.3 of the l-diversity paper, with its two cases."""
    counts = here.most_common()
    hurting = [place for place, (value, _) in enumerate(counts, 1) if value not in harmless]
    if not hurting:
        return True
    y = hurting[0]
    r = [0, *(count for _, count in counts)]
    if y <= least - 1:
        return r[y] < c * sum(r[least:])
    return r[y] < c * (sum(r[least - 1 : y]) + sum(r[y + 1 :]))


def disclosed(here: Histogram, everywhere: Histogram) -> bool:
    return any(not Fraction(1, 4) < share(here, v) / share(everywhere, v) < 4 for v in everywhere)


def gain(here: Histogram, everywhere: Histogram, beta: float, enhanced: bool) -> bool:
    for value in here:
        q = float(share(everywhere, value))
        allowed = min(beta, -math.log(q)) if enhanced else beta
        if float(share(here, value) / share(everywhere, value)) - 1 > allowed + 1e-12:
            return False
    return True


@dataclass(frozen=True)
class Slow:
    """A criterion, and the same for one class: its sensitive values and those of the whole table."""

    criterion: Criterion
    holds: Holds


_WELL = frozenset({"healthy"})
CRITERIA: dict[str, Slow] = {
    "k": Slow(KAnonymity(3), lambda here, _: here.total() >= 3),
    "distinct": Slow(DistinctDiversity(SENSITIVE, 2), lambda here, _: len(here) >= 2),
    "distinct, harmless": Slow(
        DistinctDiversity(SENSITIVE, 2, _WELL), lambda here, _: len(here) >= 2 or set(here) <= _WELL
    ),
    "entropy": Slow(EntropyDiversity(SENSITIVE, "1.8"), lambda here, _: entropy(here) >= math.log(1.8) - 1e-12),
    "entropy, harmless": Slow(
        EntropyDiversity(SENSITIVE, "1.8", harmless=_WELL),
        lambda here, _: entropy(here) >= math.log(1.8) - 1e-12 or set(here) <= _WELL,
    ),
    "entropy, corrected": Slow(
        EntropyDiversity(SENSITIVE, "1.8", Estimator.GRASSBERGER),
        lambda here, _: grassberger(here) >= math.log(1.8) - 1e-12 and len(here) >= 2,
    ),
    "recursive": Slow(RecursiveDiversity(SENSITIVE, "1.5", 2), lambda here, _: recursive(here, Fraction(3, 2), 2)),
    "recursive, three": Slow(RecursiveDiversity(SENSITIVE, 3, 3), lambda here, _: recursive(here, Fraction(3), 3)),
    "recursive, harmless": Slow(
        RecursiveDiversity(SENSITIVE, 2, 3, _WELL), lambda here, _: recursive(here, Fraction(2), 3, _WELL)
    ),
    "close": Slow(EqualCloseness(SENSITIVE, "0.4"), lambda here, all_: equal(here, all_) <= Fraction(2, 5)),
    "close, harmless": Slow(
        EqualCloseness(SENSITIVE, "0.4", _WELL),
        lambda here, all_: equal(here, all_) <= Fraction(2, 5) or set(here) <= _WELL,
    ),
    "close, ordered": Slow(
        OrderedCloseness(SENSITIVE, "0.2"), lambda here, all_: ordered(here, all_) <= Fraction(1, 5)
    ),
    "close, hierarchical": Slow(
        HierarchicalCloseness(SENSITIVE, "0.3"), lambda here, all_: hierarchical(here, all_) <= Fraction(3, 10)
    ),
    "disclosure": Slow(DeltaDisclosure(SENSITIVE, 2), lambda here, all_: not disclosed(here, all_)),
    "disclosure, present": Slow(
        PresentDisclosure(SENSITIVE, 2),
        lambda here, all_: all(Fraction(1, 4) < share(here, v) / share(all_, v) < 4 for v in here),
    ),
    "likeness": Slow(BasicLikeness(SENSITIVE, 1), lambda here, all_: gain(here, all_, 1, enhanced=False)),
    "likeness, enhanced": Slow(EnhancedLikeness(SENSITIVE, 1), lambda here, all_: gain(here, all_, 1, enhanced=True)),
    "k and distinct": Slow(
        KAnonymity(2) & DistinctDiversity(SENSITIVE, 2), lambda here, _: here.total() >= 2 and len(here) >= 2
    ),
    "k and close": Slow(
        KAnonymity(2) & EqualCloseness(SENSITIVE, "0.5"),
        lambda here, all_: here.total() >= 2 and equal(here, all_) <= Fraction(1, 2),
    ),
}
