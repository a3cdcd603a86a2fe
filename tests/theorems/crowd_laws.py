"""Mechanisms on small databases and on secret samples of them, with their exact laws, in fractions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

from tests.theorems.exact_laws import Law, excess

Record = str
Database = tuple[Record, ...]
Mechanism = Callable[[Database], Law]

ONE = Fraction(1)


def sure(outcome: Hashable) -> Law:
    return {outcome: ONE}


def mixture(parts: Iterable[tuple[Fraction, Law]]) -> Law:
    mixed: dict[Hashable, Fraction] = defaultdict(Fraction)
    for weight, law in parts:
        for outcome, mass in law.items():
            mixed[outcome] += weight * mass
    return mixed


def response(truth: bool, ratio: Fraction) -> Law:
    """One bit of randomized response with likelihood ratio `ratio`."""
    return {truth: ratio / (1 + ratio), not truth: 1 / (1 + ratio)}


def clamped_geometric(count: int, top: int, fall: Fraction) -> Law:
    """`count` plus two-sided geometric noise of parameter `fall`, clamped to 0..top."""
    inner: dict[Hashable, Fraction] = {
        value: (1 - fall) / (1 + fall) * fall ** abs(value - count) for value in range(1, top)
    }
    return inner | ({0: fall**count / (1 + fall), top: fall ** (top - count) / (1 + fall)} if top else {0: ONE})


def delta(one: Law, other: Law, ratio: Fraction) -> Fraction:
    """The least δ at e^ε = ratio, in both directions."""
    return max(excess(one, other, ratio), excess(other, one, ratio))


def close(one: Law, other: Law, ratio: Fraction) -> bool:
    return delta(one, other, ratio) == 0


def databases(universe: Sequence[Record], size: int) -> Iterator[Database]:
    for people in range(size + 1):
        yield from combinations_with_replacement(universe, people)


def with_record(database: Database, record: Record) -> Database:
    return tuple(sorted((*database, record)))


def without_record(database: Database, record: Record) -> Database:
    place = database.index(record)
    return database[:place] + database[place + 1 :]


def blend(mechanism: Mechanism, universe: Sequence[Record], size: int, ratio: Fraction) -> Callable[[str, str], bool]:
    """Which two records no database of up to `size` people lets the mechanism tell apart."""
    alike = {
        (one, other)
        for one, other in product(universe, repeat=2)
        if all(
            close(mechanism(with_record(rest, one)), mechanism(with_record(rest, other)), ratio)
            for rest in databases(universe, size - 1)
        )
    }
    return lambda one, other: (one, other) in alike


def is_crowd_blending(
    mechanism: Mechanism, universe: Sequence[Record], size: int, k: int, ratio: Fraction = ONE
) -> bool:
    """Definition 4, database by database: everyone blends with k people of the database, or is ignored."""
    alike = blend(mechanism, universe, size, ratio)
    for database in databases(universe, size):
        for record in set(database):
            crowd = sum(count for other, count in Counter(database).items() if alike(record, other))
            ignored = close(mechanism(database), mechanism(without_record(database, record)), ratio)
            if crowd < k and not ignored:
                return False
    return True


def on_sample(mechanism: Mechanism, people: Sequence[tuple[Record, Fraction]]) -> Law:
    """The mechanism on a secret sample: every subset of the people, each drawn by an own coin of an own rate."""
    parts = []
    for coins in product((False, True), repeat=len(people)):
        chance = ONE
        for (_, rate), chosen in zip(people, coins, strict=True):
            chance *= rate if chosen else 1 - rate
        drawn = tuple(sorted(record for (record, _), chosen in zip(people, coins, strict=True) if chosen))
        if chance:
            parts.append((chance, mechanism(drawn)))
    return mixture(parts)


def suppressed_histogram(bins: Mapping[Record, str], k: int) -> Mechanism:
    """Example 1: counts from k on, 0 below."""

    def release(database: Database) -> Law:
        counts = Counter(bins[record] for record in database)
        return sure(tuple((name, counts[name] if counts[name] >= k else 0) for name in sorted(set(bins.values()))))

    return release


def noisy_when_small(bins: Mapping[Record, str], k: int, fall: Fraction, *, flagged: bool = False) -> Mechanism:
    """Example 2: counts from k on, geometric noise clamped to 0..k−1 below, empty bins included."""

    def release(database: Database) -> Law:
        counts = Counter(bins[record] for record in database)
        law: Law = {(): ONE}
        for name in sorted(set(bins.values())):
            exact_count = counts[name] >= k
            shown = sure(counts[name]) if exact_count else clamped_geometric(counts[name], k - 1, fall)
            law = {
                (*outcome, (value, exact_count) if flagged else value): mass * chance
                for outcome, mass in law.items()
                if isinstance(outcome, tuple)
                for value, chance in shown.items()
            }
        return law

    return release
