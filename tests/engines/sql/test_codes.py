"""Values that are held by codes are the same values: in every expression, every group and every count."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sqlglot import exp, parse_one

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.codes import group_by_codes
from incrowd.engines.sql.duckdb import Warehouse, warehouse
from incrowd.engines.sql.engine import SampledTable, StoredTable, tables_read
from incrowd.errors import SourceUnreadable
from incrowd.noise.system import SystemCoins
from incrowd.queries.language.tables import ready_rows
from incrowd.queries.query import Relation

LISTED = ("medium", "low", "high", "", "Z", "it's", "é", "e\u0301", "LOW", "7", "a%b_c", "\\")
"""In no order that texts have."""
LITERALS = (*LISTED, "other", "none of these", "lowe", "ä")
WORDS: list[str | None] = [*LISTED, "other", "none of these", None, " low", "low"]


def column(name: str, listed: tuple[str, ...], **rules: Any) -> Column:
    return Column(name, hierarchy=Flat(Categories(listed)), **rules)


PEOPLE = Relation(
    "people",
    Schema(
        (
            Column("id", Role.IDENTIFIER, Type.INTEGER),
            column("level", LISTED),
            column("grade", tuple(reversed(LISTED[:7]))),
            column("mood", LISTED[:3], missing="low", outside=Outside.DROP),
            Column("free"),
            Column(
                "day", type=Type.INTEGER, hierarchy=Flat(Numbers(1, 31)), missing=Missing.DROP, outside=Outside.DROP
            ),
            Column("year", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 128)), outside=Outside.OTHER),
            Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(-3, 127)), missing="1"),
        ),
        Unit(Kind.PERSON, column="id", max_rows=100),
    ),
    dataset="people",
    ready=True,
)
LEVELS = Relation("levels", Schema((column("level", LISTED[2:], outside=Outside.DROP), Column("free"))), ready=True)
PAIRS = list(itertools.product(WORDS, WORDS))
ROWS = {
    "people": pa.table(
        {
            "id": range(len(PAIRS)),
            "level": [one for one, _ in PAIRS],
            "grade": [other for _, other in PAIRS],
            "mood": ["odd" if b == "Z" else "high" if a == b else "low" if a else None for a, b in PAIRS],
            "free": [one for one, _ in PAIRS],
            "day": [place % 35 or None for place in range(len(PAIRS))],
            "year": [place % 131 - 1 or None for place in range(len(PAIRS))],
            "age": [(place * 7) % 140 - 6 or None for place in range(len(PAIRS))],
        }
    ),
    "levels": pa.table({"level": WORDS, "free": WORDS}),
}
"""Values within what is declared and outside of it, missing ones, and every pair of texts."""


@contextmanager
def opened(*relations: Relation, rows: dict[str, Any] | None = None) -> Iterator[Warehouse]:
    inputs = ROWS if rows is None else rows
    stored = {
        item.name: StoredTable(open_source(inputs[item.name]), item.schema, ready=ready_rows(item))
        for item in relations
    }
    with warehouse(stored) as result:
        yield result


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Warehouse, Warehouse]]:
    """Return the same tables held by codes, and with their values as they are."""
    with opened(PEOPLE, LEVELS) as coded, opened(PEOPLE, LEVELS) as plain:
        yield coded, replace(plain, coded={})


def tree(text: str) -> exp.Query:
    result = parse_one(text, dialect="duckdb")
    assert isinstance(result, exp.Query)
    return result


def rows(result: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in result.to_pylist())


def same(pair: tuple[Warehouse, Warehouse], text: str) -> bool:
    """Whether a query has the same rows, in the same types."""
    coded, plain = (item.collect(tree(text)) for item in pair)
    assert coded.schema == plain.schema, text
    return rows(coded) == rows(plain)


def written(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def test_values_are_held_by_codes_and_read_as_they_were(pair: tuple[Warehouse, Warehouse]) -> None:
    coded, plain = pair
    assert set(coded.coded["people, ready"]) == {"level", "grade", "mood", "day", "year", "age"}
    coded.load([tree('SELECT 1 FROM "people, ready"')])
    kinds = dict(row[:2] for row in coded.base.sql('DESCRIBE "people, ready, held"').fetchall())
    assert all(kinds[name].startswith("ENUM") for name in ("level", "grade", "mood"))
    assert (kinds["age"], kinds["year"]) == ("TINYINT", "SMALLINT")
    assert same(pair, 'SELECT "_person", "level", "grade", "mood", "free", "year", "age" FROM "people, ready"')
    assert plain.collect(tree('SELECT "level" FROM "people, ready"')).schema.types == [pa.string()]
    result = {row["level"] for row in coded.collect(tree('SELECT DISTINCT "level" FROM "people, ready"')).to_pylist()}
    assert result == {*LISTED, "other", None}


CONDITIONS = [
    f"level {operator} {written(word)}" for operator in ("=", "<>", "<", ">", "<=", ">=") for word in LITERALS
] + [
    "level BETWEEN 'high' AND 'low'",
    "NOT level BETWEEN 'a' AND 'lowe'",
    "level IN ('low', 'nowhere', 'other')",
    "level IN ('nowhere', 'else')",
    "NOT level IN ('low', 'nowhere')",
    "NOT level IN ('low', NULL)",
    "level IN ('high', 'low', 'medium', '', 'Z', 'é', 'other')",
    *(f"age {operator} {number}" for operator in ("=", "<>", "<", ">=") for number in (-4, 0, 127, 128, 300, -(2**40))),
    *(f"age {operator} CAST({number} AS BIGINT)" for operator in ("=", ">") for number in (-129, 5, 128, 2**40)),
    "age IN (1, 2, 500)",
    "NOT age IN (1, NULL)",
    "COALESCE(age = 500, TRUE)",
    "age + 100 > 150",
    "age * age * age * age * age * age * age > 0",
    "-age - 100 < -200",
    "age = year",
    "COALESCE(age <> year, TRUE)",
    "age + year > 200",
    "age / 7 = 3.5",
    "CAST(age AS VARCHAR) = '12'",
    "age BETWEEN -300 AND 300",
    "CASE WHEN age > 5 THEN 1000 ELSE age END = 1000",
    "COALESCE(year, 100000) > 99999",
    "level IS NULL",
    "(level = 'nowhere') IS NULL",
    "COALESCE(level = 'nowhere', TRUE)",
    "COALESCE(level = grade, TRUE)",
    "COALESCE(level = mood, TRUE)",
    "COALESCE(level <> grade, TRUE)",
    "level = grade",
    "level <> grade",
    "level < grade",
    "level >= grade",
    "NOT (level = grade)",
    "level = free",
    "level < free",
    "level IS DISTINCT FROM grade",
    "level LIKE 'l%'",
    "level LIKE '%é'",
    "NOT level LIKE '%o%'",
    "level ILIKE 'LOW'",
    "level SIMILAR TO '[a-m].*'",
    "UPPER(level) = 'LOW'",
    "LENGTH(level) > 3",
    "level || grade = 'lowhigh'",
    "CASE WHEN level = 'low' THEN grade ELSE level END = 'high'",
    "COALESCE(level, 'nowhere') = 'nowhere'",
    "NULLIF(level, 'low') = 'high'",
    "TRY_CAST(level AS BIGINT) = 7",
    "CONTAINS(level, 'i')",
    "LEFT(level, 1) = 'l' OR level > grade",
    "GREATEST(level, 'lowe') = 'lowe'",
    'level IN (SELECT w.level FROM "levels, ready" AS w)',
    'NOT level IN (SELECT w.level FROM "levels, ready" AS w WHERE NOT w.level IS NULL)',
    'EXISTS (SELECT 1 FROM "levels, ready" AS w WHERE w.level < people.level)',
]


def test_every_condition_holds_for_the_same_rows(pair: tuple[Warehouse, Warehouse]) -> None:
    """As a filter, within a group and as a value: a database computes each of them in another way."""
    differing = [
        condition
        for condition in CONDITIONS
        if not same(pair, f'SELECT people._person FROM "people, ready" AS people WHERE {condition}')
    ]
    assert differing == []
    values = [item for item in CONDITIONS if "SELECT" not in item]
    listed = ", ".join(f"({item}) AS c{place}" for place, item in enumerate(values))
    assert same(pair, f'SELECT _person, {listed} FROM "people, ready" AS people')
    sums = ", ".join(f"COUNT(CASE WHEN {item} THEN 1 END) AS c{place}" for place, item in enumerate(values))
    assert same(pair, f'SELECT level, {sums} FROM "people, ready" AS people GROUP BY level')


BY_CODES = (
    "SELECT year, {k}, COUNT(*), SUM(age) AS a, SUM(age * age * age) AS b FROM {t} GROUP BY year, {k}",
    "SELECT k1, COUNT(DISTINCT k2) AS n, SUM(k2 + 127) FROM (SELECT age AS k1, year AS k2 FROM {t}) AS r GROUP BY k1",
    "SELECT p.year, COUNT(*) FROM {t} AS p JOIN {t} AS q ON p.year = q.age AND p.{k} = q.{k} GROUP BY p.year",
    "SELECT {k}, COUNT(*) FROM {t} GROUP BY {k}",
    "SELECT p.{k} AS k1, COUNT(p.{k}) AS n, COUNT(DISTINCT p.grade) AS m FROM {t} AS p GROUP BY p.{k}",
    "SELECT COUNT(DISTINCT {k}) AS n, COUNT({k}) AS m, COUNT(*) AS l, MIN({k}) AS a, MAX({k}) AS z FROM {t}",
    "SELECT {k}, grade, age, COUNT(*), MIN(mood) AS low, MAX(free) AS z FROM {t} GROUP BY {k}, grade, age",
    "SELECT k1, COUNT(*) FROM (SELECT q.{k} AS k1 FROM (SELECT * FROM {t}) AS q) AS r GROUP BY k1",
    "SELECT k1, k2, COUNT(*) FROM (SELECT {k} AS k1, {k} AS k2, grade FROM {t}) AS r GROUP BY k1, k2",
    "SELECT k1, COUNT(*) FROM (SELECT *, {k} AS k1, LENGTH({k}) AS z FROM {t}) AS r GROUP BY k1",
    "SELECT k1, COUNT(*) FROM (SELECT {k} AS k1, MAX(age) AS a FROM {t} GROUP BY {k}, age) AS r GROUP BY k1",
    "SELECT p.{k}, w.level AS k2, COUNT(*) FROM {t} AS p JOIN {u} AS w ON p.{k} = w.level GROUP BY p.{k}, w.level",
    "SELECT p.grade, COUNT(w.level) AS n FROM {t} AS p LEFT JOIN {u} AS w ON p.{k} < w.level GROUP BY p.grade",
    "SELECT w.level, COUNT(*) FROM {t} AS p JOIN (SELECT level FROM {u}) AS w USING (level) GROUP BY w.level",
    "SELECT p.{k}, COUNT(*) FROM {t} AS p, {u} AS w WHERE p.grade > w.level GROUP BY p.{k}",
    "SELECT k1, COUNT(*) FROM (SELECT {k} AS k1, RANK() OVER (ORDER BY {k}) AS z FROM {t}) WHERE z < 99 GROUP BY k1",
)
AS_THEY_ARE = (
    "SELECT year + 1 AS y, COUNT(*) FROM {t} GROUP BY year + 1",
    "SELECT year, SUM(year * 300) AS s, MIN(age) AS a, MEDIAN(age) AS m FROM {t} GROUP BY year",
    "SELECT SUM(age) AS a, SUM(year) AS b, MIN(year) AS c, MAX(age) AS d FROM {t}",
    "SELECT year, age FROM {t} ORDER BY year, age, _person LIMIT 30",
    "SELECT {k}, COUNT(*) FROM {t} AS p GROUP BY p.{k}",
    "SELECT p.{k}, COUNT(*), p.{k} || {k} AS l FROM {t} AS p GROUP BY {k}",
    "SELECT p.{k}, COUNT(*), {k} || 'x' AS l FROM {t} AS p GROUP BY p.{k}",
    "SELECT {k}, COUNT(DISTINCT grade) AS n FROM {t} GROUP BY ALL",
    "SELECT {k}, MIN({k}) AS low, MAX({k} || grade) AS z FROM {t} GROUP BY {k}",
    "SELECT {k}, {k} AS again, UPPER({k}) AS u FROM {t} GROUP BY {k}",
    "SELECT UPPER({k}) AS k1, COUNT(*) FROM {t} GROUP BY UPPER({k})",
    "SELECT {k} AS k1, COUNT(*) FROM {t} WHERE {k} < 'low' GROUP BY {k} HAVING MIN({k}) > 'LOW'",
    "SELECT {k} AS k1, COUNT(*) FROM {t} GROUP BY {k} ORDER BY {k} LIMIT 3",
    "SELECT {k} AS k1, COUNT(*) FROM {t} GROUP BY ROLLUP ({k}, grade)",
    "SELECT k1, COUNT(*) FROM (SELECT DISTINCT {k} AS k1, age FROM {t}) AS r GROUP BY k1",
    "SELECT k1, COUNT(*) FROM (SELECT {k} AS k1 FROM {t} ORDER BY {k}, _person LIMIT 9) AS r GROUP BY k1",
    "SELECT k1, COUNT(*) FROM (SELECT {k} AS k1 FROM {t} UNION ALL SELECT level FROM {u}) AS r GROUP BY 1",
    'SELECT k1, COUNT(*) FROM (SELECT {k} AS k1, free AS "k1, code" FROM {t}) AS r GROUP BY k1',
    'SELECT k1, COUNT(*) FROM (SELECT *, free AS "{k}, code" FROM {t}) AS r(k1) GROUP BY k1',
    "SELECT p.{k} AS k1, w.level AS k2, COUNT(*) FROM {t} AS p JOIN {u} AS w ON p.{k} = w.level GROUP BY ALL",
    "SELECT w.level, COUNT(*) FROM (SELECT level, grade FROM {t}) AS p NATURAL JOIN {u} AS w GROUP BY w.level",
    "SELECT {k}, (SELECT COUNT(r.level) FROM {u} AS r) AS n FROM {t} AS r GROUP BY {k}",
    "WITH r AS (SELECT {k} AS k1 FROM {t}) SELECT k1, COUNT(*) FROM r GROUP BY k1",
    "SELECT k1 FROM (SELECT {k} AS k1, ROW_NUMBER() OVER (ORDER BY {k}, _person) AS n FROM {t}) AS r WHERE n < 30",
    "SELECT {k} AS k1, COUNT(*) OVER (PARTITION BY {k}) AS n FROM {t}",
)
"""What is no bare column, or is handed on by more than a selection, stays as it is."""


@pytest.mark.parametrize("key", ["level", "mood"])
def test_every_query_has_the_same_rows(key: str, pair: tuple[Warehouse, Warehouse]) -> None:
    named = {"k": key, "t": '"people, ready"', "u": '"levels, ready"'}
    texts = [item.format(**named) for item in (*BY_CODES, *AS_THEY_ARE)]
    assert [text for text in texts if not same(pair, text)] == []
    by_codes = [group_by_codes(tree(text), pair[0].coded) != tree(text) for text in texts]
    assert by_codes == [True] * len(BY_CODES) + [False] * len(AS_THEY_ARE)


def test_the_tree_of_a_question_stays_as_it_is(pair: tuple[Warehouse, Warehouse]) -> None:
    query = tree('SELECT level, COUNT(*) AS n FROM "people, ready" GROUP BY level')
    before = query.sql("duckdb")
    pair[0].collect(query)
    assert query.sql("duckdb") == before
    changed = group_by_codes(query.copy(), pair[0].coded)
    assert changed.sql("duckdb") != before
    assert tables_read(changed, pair[0].names) == ["people, ready"]


@dataclass
class Even:
    """Every other person takes part."""

    person: Column

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        return np.asarray(ids.to_numpy() % 2 == 0)

    def among(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if int(name) % 2 == 0)


def test_samples_and_admitted_people_are_grouped_by_codes_too(pair: tuple[Warehouse, Warehouse]) -> None:
    query = tree('SELECT level, grade, COUNT(*) AS n FROM "people, ready" GROUP BY level, grade')
    half = SystemCoins().sample(Fraction(1, 2))
    result = [
        (
            rows(item.collect(query, SampledTable("people", half))),
            rows(item.admitting({"people": Even(PEOPLE.schema["id"])}).collect(query)),
        )
        for item in pair
    ]
    assert result[0] == result[1]
    assert all(0 < sum(row[-1] * times for row, times in item.items()) < len(PAIRS) for item in result[0])


def test_a_text_that_is_not_listed_is_never_held() -> None:
    """The tree that makes rows ready leaves none; should it do so, nothing is answered."""
    stored = StoredTable(open_source(ROWS["people"]), PEOPLE.schema, ready=tree('SELECT level FROM "people"'))
    query = tree('SELECT level, COUNT(*) AS n FROM "people, ready" GROUP BY level')
    with warehouse({"people": stored}) as tables, pytest.raises(SourceUnreadable):
        tables.load([query])


def test_a_column_whose_codes_have_no_name_stays_as_it_is() -> None:
    taken = replace(PEOPLE, schema=Schema((*PEOPLE.schema.columns, Column("Level, Code")), PEOPLE.schema.unit))
    inputs = {"people": ROWS["people"].append_column("Level, Code", ROWS["people"]["free"])}
    with opened(taken, rows=inputs) as tables:
        assert set(tables.coded["people, ready"]) == {"grade", "mood", "day", "year", "age"}
        assert tables.collect(tree('SELECT level, COUNT(*) AS n FROM "people, ready" GROUP BY level')).num_rows == 14
