"""Linked tables: numbers of rows, parent-child and child-child distances, beside two baselines and beside the truth.

    python bench/relational.py                       # 20,000 people, two runs at each ε
    python bench/relational.py --people 2000 --runs 3

Two invented worlds: a hospital (patients, stays, procedures) and a shop (customers, orders, lines).  All methods have
the same (ε, δ) for a person with all rows.  *independent*: each table by `marginals`, at a third of ρ, for people with
so many rows; every row gets a random parent.  *flattened*: one row for each item, joined with all above it, by
`marginals`; each row becomes a person with one visit and one item.  *truth*: another draw of the world of the same
size.  Figures are total variation (`incrowd/measures/utility/relational.py`), the mean of runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.accounting.concentrated import largest_rho
from incrowd.core.linked import ChildTable, LinkedSchema, LinkedTables
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LOCAL
from incrowd.measures.utility.relational import Link, LinkDistance, LinkedRows
from incrowd.methods.synthesis.linked.method import Linked
from incrowd.methods.synthesis.linked.rows import LevelRows, read_levels
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.noise.system import SystemCoins
from incrowd.workflows.assess.linked import released_rows
from incrowd.workflows.policy.policy import load_policy

DELTA = Fraction(1, 10**6)
Tables = dict[str, pa.Table]
_FEW = {"missing": "drop", "outside": "drop"}
_KEY = {"role": "identifier"}
_DAY = {"role": "withheld", "type": "integer", "bounds": [0, 9999]}


def _category(number: int) -> dict[str, Any]:
    return {"categories": [str(n) for n in range(number)], **_FEW}


def hospital(people: int, seed: int) -> Tables:
    """Older people have more stays; wards follow each other; procedures depend on ward and urgency."""
    chance = np.random.default_rng(seed)
    sex, age, region = chance.integers(0, 2, people), chance.integers(0, 9, people), chance.integers(0, 6, people)
    number = np.minimum(chance.poisson(0.2 + 0.35 * age), 12)
    owner = np.repeat(np.arange(people), number)
    day = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    ward = (age[owner] // 2 + chance.integers(0, 4, len(owner))) % 8
    for row in range(1, len(owner)):  # six of ten stays are on the ward of the one before
        if day[row] and chance.random() < 0.6:
            ward[row] = ward[row - 1]
    urgent = (chance.random(len(owner)) < 0.2 + 0.05 * ward + 0.1 * (number[owner] > 3)).astype(int)
    length = np.minimum(chance.geometric(0.5 - 0.04 * age[owner]), 8) - 1
    items = np.minimum(chance.poisson(0.4 + 0.3 * length), 6)
    stay = np.repeat(np.arange(len(owner)), items)
    code = (2 * ward[stay] + urgent[stay] + (chance.random(len(stay)) < 0.3) * chance.integers(0, 20, len(stay))) % 20
    first = _table(sex=sex, age=age, region=region)
    second = _table(person=owner, visit=np.arange(len(owner)), day=day, ward=ward, urgent=urgent, length=length)
    return {"people": first, "visits": second, "items": _table(person=owner[stay], visit=stay, code=code)}


def shop(people: int, seed: int) -> Tables:
    """Members order more, on the channel of the order before; lines depend on channel and the customer's group."""
    chance = np.random.default_rng(seed)
    group, member, city = chance.integers(0, 5, people), chance.integers(0, 2, people), chance.integers(0, 12, people)
    number = np.minimum(chance.geometric(0.55 - 0.25 * member) - 1, 15)
    owner = np.repeat(np.arange(people), number)
    day = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    channel = (group[owner] + (chance.random(len(owner)) < 0.4) * chance.integers(0, 4, len(owner))) % 4
    for row in range(1, len(owner)):
        if day[row] and chance.random() < 0.7:
            channel[row] = channel[row - 1]
    paid = (channel + (chance.random(len(owner)) < 0.3)) % 3
    items = np.minimum(chance.poisson(0.8 + 0.5 * member[owner]) + 1, 6)
    order = np.repeat(np.arange(len(owner)), items)
    product = (6 * channel[order] + group[owner[order]] + chance.integers(0, 4, len(order))) % 24
    pieces = np.minimum(chance.geometric(0.6, len(order)), 5) - 1
    first = _table(group=group, member=member, city=city)
    second = _table(person=owner, visit=np.arange(len(owner)), day=day, channel=channel, paid=paid)
    return {
        "people": first,
        "visits": second,
        "items": _table(person=owner[order], visit=order, product=product, pieces=pieces),
    }


def _table(**columns: Any) -> pa.Table:
    first = next(iter(columns.values()))
    keyed = columns if "person" in columns else {"person": np.arange(len(first)), **columns}
    return pa.table({name: pa.array(values).cast(pa.string()) for name, values in keyed.items()})


WORLDS: dict[str, tuple[Callable[[int, int], Tables], dict[str, dict[str, int]]]] = {
    "hospital": (
        hospital,
        {
            "people": {"sex": 2, "age": 9, "region": 6},
            "visits": {"ward": 8, "urgent": 2, "length": 8},
            "items": {"code": 20},
        },
    ),
    "shop": (
        shop,
        {
            "people": {"group": 5, "member": 2, "city": 12},
            "visits": {"channel": 4, "paid": 3},
            "items": {"product": 24, "pieces": 5},
        },
    ),
}
VISITS, ITEMS = 12, 30


def schema_of(world: str, epsilon: str) -> tuple[LinkedSchema, Linked]:
    """Return what a policy declares of a world."""
    columns = {
        name: {column: _category(size) for column, size in own.items()} for name, own in WORLDS[world][1].items()
    }
    visits = {"person": _KEY, "visit": _KEY, "day": _DAY, **columns["visits"]}
    items = {"person": _KEY, "visit": _KEY, **columns["items"]}
    policy = {
        "incrowd": 1,
        "dataset": {"name": "people", "unit": {"column": "person"}},
        "columns": {"person": _KEY, **columns["people"]},
        "tables": {
            "visits": {
                "source": "-",
                "parent": "people",
                "unit": "person",
                "id": "visit",
                "order": "day",
                "max_rows": VISITS,
                "columns": visits,
            },
            "items": {
                "source": "-",
                "parent": "visits",
                "unit": "person",
                "foreign_key": "visit",
                "max_rows": ITEMS,
                "depends_on": [*columns["visits"], *(f"people.{name}" for name in columns["people"])],
                "columns": items,
            },
        },
        "release": {"method": "linked", "epsilon": epsilon, "delta": str(float(DELTA))},
    }
    loaded = load_policy(policy)
    assert isinstance(loaded.schema, LinkedSchema)
    assert isinstance(loaded.method, Linked)
    return loaded.schema, loaded.method


def opened(schema: LinkedSchema, tables: Tables) -> LinkedTables:
    """Return tables as a plan takes them."""
    rows = (Table(schema.columns_of(name), LOCAL.open(tables[name]), LOCAL) for name in schema.table_names)
    return LinkedTables(schema, tuple(rows))


def true_rows(schema: LinkedSchema, method: Linked, tables: Tables) -> dict[str, LevelRows]:
    """Return the rows that a release reads."""
    return read_levels(opened(schema, tables), tuple(method.classes(schema).values()), SystemCoins())


def linked(schema: LinkedSchema, method: Linked, tables: Tables) -> dict[str, LevelRows]:
    """Return the rows of a release."""
    output = method.plan(schema).release(opened(schema, tables), SystemCoins())
    classes = method.classes(schema)
    return {name: released_rows(schema, name, classes[name], output.tables[name]) for name in schema.table_names}  # type: ignore[attr-defined]


def _at_rho(rho: Fraction) -> Fraction:
    """Return the ε whose budget is ρ."""
    low, high = Fraction(0), Fraction(100)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if largest_rho(middle, DELTA) < rho else (low, middle)
    return Fraction(round(high * 2**30), 2**30)


def _drawn(columns: tuple[Column, ...], most: int, rows: pa.Table, rho: Fraction) -> dict[str, np.ndarray]:
    """Return codes of rows drawn by `marginals`, for people with so many rows."""
    schema = Schema(columns, Unit(Kind.PERSON, column="person", max_rows=most))
    method = Marginals(_at_rho(rho), DELTA)
    table = method.plan(schema).release(Table(schema, LOCAL.open(rows), LOCAL), SystemCoins()).table  # type: ignore[attr-defined]
    return {name: np.array([int(value) for value in table[name].to_pylist()]) for name in table.column_names}


def independent(schema: LinkedSchema, method: Linked, tables: Tables) -> dict[str, LevelRows]:
    """Return each table by itself, with random parents."""
    chance, rows = np.random.default_rng(), dict[str, LevelRows]()
    above = 0
    for name in schema.table_names:
        most = 1 if name == schema.name else schema.table(name).max_rows
        own = _drawn(schema.columns_of(name).columns, most, tables[name], method.single().rho / 3)
        number = len(next(iter(own.values())))
        parent = np.sort(chance.integers(0, max(1, above), number)) if above else np.full(number, -1)
        rows[name] = LevelRows(tuple(own), np.array(list(own.values())), parent, parent)
        above = number
    return rows


def flattened(schema: LinkedSchema, method: Linked, tables: Tables) -> dict[str, LevelRows]:
    """Return one joined table, each row of which becomes a person with a visit and an item."""
    whole = tables["items"].join(tables["visits"], ["person", "visit"]).join(tables["people"], "person")
    names = {name: [column.name for column in schema.columns_of(name).released] for name in schema.table_names}
    columns = tuple(column for name in names for column in schema.columns_of(name).released)
    own = _drawn((schema["person"], *columns), ITEMS, whole, method.single().rho)
    number = len(next(iter(own.values())))
    parents = {name: np.full(number, -1) if name == schema.name else np.arange(number) for name in names}
    return {
        name: LevelRows(tuple(mine), np.array([own[column] for column in mine]), parents[name], parents[name])
        for name, mine in names.items()
    }


def distances(
    schema: LinkedSchema, method: Linked, rows: dict[str, LevelRows], before: dict[str, LevelRows]
) -> dict[str, LinkDistance]:
    """Return how far each table is from the original."""
    classes = method.classes(schema)

    def link(side: dict[str, LevelRows], child: ChildTable) -> Link:
        ends = [
            LinkedRows(tuple(map(len, classes[name])), side[name].codes, side[name].parent)
            for name in (child.parent, child.name)
        ]
        return Link(ends[0], ends[1], child.max_rows)

    return {child.name: link(rows, child).distance(link(before, child)) for child in schema.tables}


def main() -> None:
    """Print a table for each world."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epsilon", nargs="*", default=["0.3", "1", "3"])
    options = parser.parse_args()
    for world, (make, _) in WORLDS.items():
        print(f"\n{world}, {options.people:,} people: total variation, mean of {options.runs} runs")
        print(
            "epsilon method       | visits: numbers by-parent parent-child child-child | items: the same | keys  CPU s"
        )
        for epsilon in options.epsilon:
            schema, method = schema_of(world, epsilon)
            for way in (linked, independent, flattened, None):
                figures, seconds, keys = [], 0.0, 1.0
                for run in range(options.runs):
                    tables = make(options.people, run)
                    before, start = true_rows(schema, method, tables), time.process_time()
                    made = (
                        true_rows(schema, method, make(options.people, 100 + run))
                        if way is None
                        else way(schema, method, tables)
                    )
                    seconds += (time.process_time() - start) / options.runs
                    both = distances(schema, method, made, before)
                    keys = min(keys, *(part.integrity for part in both.values()))
                    figures.append(
                        [
                            figure or 0.0
                            for part in both.values()
                            for figure in (part.cardinality, part.by_parent, part.parent_child, part.child_child)
                        ]
                    )
                mean = [f"{value:.3f}" for value in np.mean(figures, axis=0)]
                name = "truth" if way is None else way.__name__
                line = (
                    f"{epsilon:7} {name:12} | {' '.join(mean[:4])} | {' '.join(mean[4:])} | {keys:.0%} {seconds:5.1f}"
                )
                print(line, flush=True)


if __name__ == "__main__":
    main()
