"""Every possible sample of a small table goes through the real method: the law of its output, and delta, are exact."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache

import pyarrow as pa
import pytest

from incrowd.accounting.suppression import tight_delta
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Crowd, Grouped, Sampled
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.anonymity.safe import Safe
from incrowd.verifier.slow_accountant import derive
from tests.audit.auditing import Claim, Law, distance, worst_crowd
from tests.coins import ScriptedCoins
from tests.tables import Batches, as_counter

SCHEMA = Schema((Column("cell", Role.QUASI, hierarchy=Flat(Categories(("a", "b")))),))
LARGEST = 8
EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5)


@cache
def outputs(k: int, cells: str) -> tuple[tuple[int, object], ...]:
    """Return for every sample how many rows it has and what is released of it."""
    safe = Safe({}, delta=Fraction(1, 2), rate=Fraction(1, 2), k=k)
    table = Table(SCHEMA, Batches(pa.table({"cell": pa.array(list(cells), pa.string())})), LocalEngine())
    found = []
    for members in itertools.product((False, True), repeat=len(cells)):
        inside = [place for place, drawn in enumerate(members) if drawn]
        counted = as_counter(safe.release(table, ScriptedCoins(inside)).counts)
        found.append((len(inside), tuple(sorted(counted.items()))))
    return tuple(found)


def law(k: int, rate: Fraction, cells: str) -> Law:
    """Return the law of the release of a table that is written as one letter a row."""
    masses: defaultdict[object, float] = defaultdict(float)
    for size, released in outputs(k, cells):
        masses[released] += float(rate**size * (1 - rate) ** (len(cells) - size))
    return dict(masses)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 4), Fraction(1, 10)], ids=str)
def test_no_removal_or_addition_exceeds_the_claim_and_the_worst_one_meets_it(k: int, rate: Fraction) -> None:
    laws = [law(k, rate, "a" * n) for n in range(LARGEST + 1)]
    for epsilon in EPSILONS:
        claim = Claim(k, rate, epsilon)
        seen = [
            max(distance(laws[n], laws[n - 1], epsilon), distance(laws[n - 1], laws[n], epsilon))
            for n in range(1, LARGEST + 1)
        ]
        assert max(seen) <= claim.delta * (1 + 1e-12)
        if worst_crowd(claim)[0] <= LARGEST and epsilon > 0.7:
            assert max(seen) == pytest.approx(claim.delta, rel=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_the_crowds_of_others_do_not_matter(k: int) -> None:
    rate = Fraction(1, 2)
    for epsilon in (0.1, 0.5, 1.0):
        alone = distance(law(k, rate, "aaa"), law(k, rate, "aa"), epsilon)
        among_others = distance(law(k, rate, "aaabbb"), law(k, rate, "aabbb"), epsilon)
        assert among_others == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 4)], ids=str)
def test_no_replacement_exceeds_the_claim(k: int, rate: Fraction) -> None:
    pairs = [("a" * n + "b" * (m - 1), "a" * (n - 1) + "b" * m) for n in range(1, 5) for m in range(1, 5)]
    for epsilon in EPSILONS:
        worst = max(distance(law(k, rate, one), law(k, rate, other), epsilon) for one, other in pairs)
        assert worst <= tight_delta.delta(k, rate, epsilon, Adjacency.REPLACE) * (1 + 1e-12)


def test_a_replacement_shows_more_than_a_removal() -> None:
    half = Fraction(1, 2)
    replaced = distance(law(3, half, "aaaabbb"), law(3, half, "aaabbbb"), 0.3)
    assert replaced == pytest.approx(0.16524650872393723)
    assert tight_delta.delta(3, half, 0.3) == pytest.approx(0.14376764905300476)


@pytest.mark.parametrize("rows", ["aa", "ab", "aaa", "aab"])
def test_no_person_with_several_rows_exceeds_the_claim_for_people(rows: str) -> None:
    k, rate = 2, Fraction(1, 4)
    for epsilon in EPSILONS[1:]:
        derived = derive(Grouped(len(rows), Sampled(rate, Crowd(k))), Unit(), epsilon, 0)
        assert derived is not None
        assert derived.whole
        claimed = derived.delta
        for others in ("", "a", "ab", "aab", "aabb"):
            without, with_person = law(k, rate, others), law(k, rate, others + rows)
            assert distance(with_person, without, epsilon) <= claimed * (1 + 1e-12)
            assert distance(without, with_person, epsilon) <= claimed * (1 + 1e-12)


def test_a_person_with_several_rows_shows_more_than_a_row() -> None:
    shown = distance(law(2, Fraction(1, 4), "aaa"), law(2, Fraction(1, 4), ""), 0.5)
    assert shown > 2 * tight_delta.delta(2, Fraction(1, 4), 0.5)
