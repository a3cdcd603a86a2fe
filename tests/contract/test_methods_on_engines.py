"""Every method sees rows through the verbs of an engine alone, so that what verbs are held to holds for methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.linked import LinkedTables
from incrowd.core.schema import Column
from incrowd.core.table import Engine, Learned, RowFilter, Rows, Table
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.settings import Spark, engine_of, open_table
from incrowd.methods import METHODS
from incrowd.methods.synthesis.linked.levels import weighted_rows
from incrowd.methods.synthesis.linked.rows import read_levels
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.tables import release
from tests import linked
from tests.contract import kinds
from tests.contract.agreed import CoinsApart
from tests.contract.examples import EXAMPLES, POLICIES, rows
from tests.policies import PEOPLE, tuples, with_ledger
from tests.postgres_tables import load
from tests.tables import as_counter


def people_apart() -> pa.Table:
    """Nobody has two rows: who is left out because of others is no matter of coins."""
    table = rows()
    ids = [None if n % 40 == 0 else f"p{n}" for n in range(len(table))]
    return table.set_column(table.column_names.index("id"), "id", pa.array(ids, pa.string()))


def released(policy: Policy, table: Table) -> Counter[tuple[object, ...]]:
    return tuples(policy.plan.draw(table, CoinsApart(11)).to_arrow())


@dataclass(frozen=True)
class Sealed:
    """Rows that nobody but their engine can read."""

    content: Rows = field(repr=False)

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"a method asked the rows themselves for their {name}")


@dataclass(frozen=True)
class Verbs:
    """An engine that does what methods may ask for and nothing else."""

    engine: Engine
    asked: list[str] = field(default_factory=list)

    def count(self, rows: Sealed, cells: Cells, *kept: RowFilter, at_least: int = 1) -> Counts:
        self.asked.append("count")
        return self.engine.count(rows.content, cells, *kept, at_least=at_least)

    def limit(self, rows: Sealed, column: Column, at_most: int, coins: Coins) -> RowFilter:
        self.asked.append("limit")
        return self.engine.limit(rows.content, column, at_most, coins)

    def exclude(self, rows: Sealed, column: Column, beyond: int, coins: Coins) -> RowFilter:
        self.asked.append("exclude")
        return self.engine.exclude(rows.content, column, beyond, coins)

    def learn(self, rows: Sealed, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        self.asked.append("learn")
        return self.engine.learn(rows.content, columns, empty)


def test_every_method_has_an_example() -> None:
    missing = [name for name in METHODS if not POLICIES.get(name)]
    assert not missing, f"write a policy for each of {missing} into POLICIES in tests/contract/examples.py"


@pytest.mark.parametrize(("method", "name"), EXAMPLES)
def test_a_method_sees_rows_through_count_limit_and_learn_alone(method: str, name: str) -> None:
    policy = load_policy(POLICIES[method][name])
    opened = open_table(people_apart(), policy.schema, policy.options)
    verbs: Any = Verbs(LOCAL)
    sealed: Any = Sealed(opened.rows)
    found = released(policy, Table(policy.schema, sealed, verbs))
    assert found, "nothing was released, so nothing was compared"
    assert {"count", "learn"} & set(verbs.asked)
    assert found == released(policy, opened)


def example_with_people(method: str) -> dict[str, Any]:
    """Return the first policy of a method that limits people, which asks most of an engine, or else its first."""
    policies = POLICIES[method].values()
    return next((policy for policy in policies if "column" in policy["dataset"].get("unit", {})), next(iter(policies)))


@pytest.mark.parametrize("method", POLICIES)
def test_the_same_coins_release_the_same_rows_on_spark(method: str, spark_engine: Engine, tmp_path: Path) -> None:
    policy = load_policy(example_with_people(method))
    here = open_table(people_apart(), policy.schema, policy.options)
    there = kinds.parquet_folder(people_apart(), tmp_path)
    expected = released(policy, here)
    assert released(policy, open_table(there, policy.schema, policy.options, spark_engine)) == expected


@pytest.mark.parametrize("name", ["two levels", "values and constraints"])
def test_linked_tables_on_spark_are_cut_and_joined_as_here(name: str, spark_engine: Engine, tmp_path: Path) -> None:
    """Nobody has more rows than are read, so that no coin decides, and days differ within a patient."""
    policy = linked.example(name)
    tables = linked.chosen(policy, linked.hospital(30))
    tables["stays"] = tables["stays"].filter(pc.less(tables["stays"]["day"], 4))
    if "procedures" in tables:
        numbers = Counter(tables["procedures"]["patient"].to_pylist())
        few = pa.array([person for person, number in numbers.items() if number <= 6])
        tables["procedures"] = tables["procedures"].filter(pc.is_in(tables["procedures"]["patient"], value_set=few))
    folders = {}
    for table, own in tables.items():
        (tmp_path / table).mkdir()
        folders[table] = str(kinds.parquet_folder(own, tmp_path / table))
    schema = linked_schema(policy)

    def weighted(engine: Engine, sources: Mapping[str, object]) -> list[Counter[tuple[int, ...]]]:
        opened = open_tables(policy, sources, engine)
        parts = [
            Table(schema.columns_of(own), rows, engine) for own, rows in zip(schema.table_names, opened, strict=True)
        ]
        method: Any = policy.method
        levels = read_levels(LinkedTables(schema, tuple(parts)), tuple(method.classes(schema).values()), SystemCoins())
        counted = []
        for work in method.works(schema):
            rows = weighted_rows(work.level, levels)
            counted.append(Counter(map(tuple, np.vstack([rows.codes, rows.times]).T.tolist())))
        return counted

    here, there = weighted(LOCAL, tables), weighted(spark_engine, folders)
    assert here == there
    assert sum(here[1].values()) > 20


@pytest.fixture
def connected(spark_connect: str) -> Iterator[Engine]:
    """The engine on the far side of Spark Connect."""
    with engine_of(Spark(remote=spark_connect)) as engine:
        yield engine


def test_a_count_and_a_release_are_the_same_over_spark_connect(connected: Engine, tmp_path: Path) -> None:
    policy = load_policy(PEOPLE)
    here = open_table(people_apart(), policy.schema)
    there = open_table(kinds.parquet_folder(people_apart(), tmp_path), policy.schema, engine=connected)
    cells = Cells.of(policy.schema, {"age": 1, "zip": 1})
    assert as_counter(there.engine.count(there.rows, cells)) == as_counter(here.engine.count(here.rows, cells))
    assert released(policy, there) == released(policy, here)


@pytest.mark.parametrize("kind", [*kinds.LOCAL, pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_the_certificate_does_not_depend_on_the_source(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    policy = load_policy(with_ledger(PEOPLE, tmp_path))
    source: object
    if kind == "postgresql":
        source = load(request.getfixturevalue("postgres"), "people", rows())
    else:
        source = kinds.LOCAL[kind](rows(), tmp_path)
    certificate = release(source, policy).certificate
    assert certificate.guarantee == policy.method.plan(policy.schema).guarantee
    assert certificate.claims == policy.method.plan(policy.schema).claims
    assert certificate.steps == policy.plan.steps
