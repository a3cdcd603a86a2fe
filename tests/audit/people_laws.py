"""Exact laws of real releases over small databases of people with one row or two, in fractions.

What is kept of each person is what the engine keeps, for every order of the coins; a sample is every subset of it, by
one coin for each row; what is released of rows that are left is what the method releases of them, for every noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.coins import Sample
from incrowd.core.plan import Plan
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import ExtraRowsRule, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.shared.columns import row_limits
from tests.coins import EveryCoin, ScriptedCoins, ScriptedSample, law
from tests.tables import Batches
from tests.theorems.crowd_laws import blend, mixture, with_record, without_record
from tests.theorems.exact_laws import Law, excess

PEOPLE = 4
ONE_ROW = ("a", "b")
TWO_ROWS = (*ONE_ROW, "aa", "ab", "bb")
"""A person is written as the cells of that person's rows."""

Database = tuple[str, ...]


class WholeSample(EveryCoin):
    """Noise that comes up in every way, and a sample of everything; no order, for nobody has a second row."""

    def sample(self, rate: Fraction) -> Sample:
        return ScriptedSample(rate, frozenset(range(2 * PEOPLE)))

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)


@dataclass(frozen=True, eq=False)
class Left:
    """What a method releases of rows that are all that is left: those that were kept, and drawn."""

    plan: Plan
    schema: Schema
    show: Callable[[Any], Hashable]

    @cache  # noqa: B019 - a handful of methods, as long as the tests run
    def law(self, cells: Database) -> Law:
        """Return the probability of every output, for every noise."""
        table = table_of(self.schema, cells)
        laws = law(lambda branching: self.show(self.plan.release(table, WholeSample(branching, reach=2))))
        return {outcome: Fraction(mass) for outcome, mass in laws.items()}


@dataclass(frozen=True, eq=False)
class Release:
    """A planned release of people, the rate of its sample, and what is released of rows that are left."""

    plan: Plan
    rate: Fraction
    left: Left

    @property
    def unit(self) -> Unit:
        """Whom the guarantee protects."""
        return self.plan.unit

    @cache  # noqa: B019 - a handful of releases, as long as the tests run
    def law(self, database: Database) -> Law:
        """Return the probability of every output for a database of people, in the order of their data."""
        parts = []
        for chance, cells in kept(self.unit)[database]:
            for coins in product((False, True), repeat=len(cells)):
                drawn = tuple(cell for cell, coin in zip(cells, coins, strict=True) if coin)
                weight = chance * self.rate ** len(drawn) * (1 - self.rate) ** (len(cells) - len(drawn))
                if weight:
                    parts.append((weight, self.left.law(drawn)))
        return mixture(parts)


def table_of(schema: Schema, people: Sequence[str]) -> Table:
    """Return the rows of people, one after the other."""
    rows = [(f"p{who}", str("ab".index(cell))) for who, cells in enumerate(people) for cell in cells]
    columns = {name: [row[0 if name == "id" else 1] for row in rows] for name in schema.names}
    made = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return Table(schema, Batches(made), LocalEngine())


Kept = dict[Database, list[tuple[Fraction, Database]]]


def kept(unit: Unit) -> Kept:
    """Return for every database the cells of the rows that the engine keeps, with their chances."""
    return _kept(unit.column, unit.more)


@cache
def _kept(column: str | None, more: ExtraRowsRule | None) -> Kept:
    """Ask the engine once, about all databases and all orders of a person's rows, each with people of their own."""
    if column is None:
        return {database: [(Fraction(1), tuple(sorted("".join(database))))] for database in databases(TWO_ROWS)}
    cases = [(database, way) for database in databases(TWO_ROWS) for way in product(*map(_orders, database))]
    schema = Schema((Column("id", Role.IDENTIFIER), Column("x")), Unit(Kind.PERSON, column=column, more=more))
    people = [person for database, _ in cases for person in database]
    coins = ScriptedCoins(below=[coin for _, way in cases for order in way for coin in order])
    (choice,) = row_limits(table_of(schema, people), coins)
    mask = iter(choice.at(0, len("".join(people))).tolist())
    found: Kept = {database: [] for database, _ in cases}
    for database, way in cases:
        left = [cell for cell in "".join(database) if next(mask)]
        found[database].append((Fraction(1, 2 ** sum(len(order) - 1 for order in way)), tuple(sorted(left))))
    return found


def _orders(person: str) -> list[tuple[int, ...]]:
    return [(0,)] if len(person) == 1 else [(0, 1), (1, 0)]


def databases(kinds: Sequence[str], people: int = PEOPLE) -> Iterator[Database]:
    """Yield every database of so many people at most."""
    for size in range(people + 1):
        yield from combinations_with_replacement(sorted(kinds), size)


def crowds(mechanism: Callable[[Database], Law], kinds: Sequence[str], k: int, ratio: Fraction) -> bool:
    """Whether everyone is one of at least k people who could stand in for each other, or changes nothing."""
    alike = blend(mechanism, kinds, PEOPLE, ratio)
    for database in databases(kinds):
        for person in set(database):
            crowd = sum(times for other, times in Counter(database).items() if alike(person, other))
            alone = without_record(database, person)
            if crowd < k and furthest(mechanism(database), mechanism(alone), ratio) > 0:
                return False
    return True


def furthest(one: Law, other: Law, ratio: Fraction) -> Fraction:
    """Return the least δ at this ratio, in both directions."""
    return max(excess(one, other, ratio), excess(other, one, ratio))


def added(mechanism: Callable[[Database], Law], kinds: Sequence[str], ratio: Fraction) -> Fraction:
    """Return the largest δ between a database and the same with one person more."""
    return max(
        furthest(mechanism(with_record(database, person)), mechanism(database), ratio)
        for database in databases(kinds, PEOPLE - 1)
        for person in kinds
    )


def replaced(mechanism: Callable[[Database], Law], kinds: Sequence[str], ratio: Fraction) -> Fraction:
    """Return the largest δ between two databases that differ in what one person's data is."""
    return max(
        furthest(mechanism(with_record(database, one)), mechanism(with_record(database, other)), ratio)
        for database in databases(kinds, PEOPLE - 1)
        for one in kinds
        for other in kinds
    )
