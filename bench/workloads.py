"""Sets of counting questions: total squared errors beside equal shares, expected and measured, and time of planning.

    python bench/workloads.py

Rows are invented: 100,000 of them.  Equal shares are those that a batch had without sets, by whichever noise was
narrower: of epsilon, or with a delta of the rho that it is worth.  The expected total is that of the plan; the measured
one is from five answers with fresh noise.  Planning is CPU time, after the texts were understood.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Schema
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import StoredTable
from incrowd.noise.system import SystemCoins
from incrowd.queries.batch import Batch, batch
from incrowd.queries.language.tables import ready_rows
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import Catalog, QueryTerms, Relation

ROWS, TIMES = 100_000, 5
SURVEY = {"sex": 2, "age": 3, "region": 4, "work": 5, "school": 3, "home": 2}
CENSUS = {"sex": 2, "age": 8, "region": 10, "work": 6, "school": 5, "home": 4}
ADULT = {"sex": 2, "race": 5, "relation": 6, "marital": 7, "work": 9, "education": 16}
MONTHS = 1024


def categories(sizes: dict[str, int], outside: Outside) -> tuple[Column, ...]:
    """Columns of texts; a value that nobody declared is left out, or is a group of its own beside those missing."""
    missing = Missing.DROP if outside is Outside.DROP else Missing.CLASS
    return tuple(
        Column(name, hierarchy=Flat(Categories(tuple(map(str, range(size))))), missing=missing, outside=outside)
        for name, size in sizes.items()
    )


def pairs(names: Sequence[str]) -> list[str]:
    """All marginals of two columns."""
    chosen = itertools.combinations(names, 2)
    return [f"SELECT {one}, {two}, COUNT(*) AS n FROM people GROUP BY {one}, {two}" for one, two in chosen]


def ranges(number: int) -> list[str]:
    """Ranges of months, from anywhere to anywhere."""
    ends = np.sort(np.random.default_rng(11).integers(0, MONTHS, (number, 2)), axis=1)
    return [f"SELECT COUNT(*) AS n FROM people WHERE month BETWEEN {low} AND {high}" for low, high in ends]


class Silence(SystemCoins):
    """Coins whose noise is zero, for the exact answers."""

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw nothing."""
        return np.zeros(size, dtype=np.int64)

    gaussian = laplace


def invented(schema: Schema) -> pa.Table:
    """Rows with values of all declared categories, and months of which the later ones are rare."""
    rng, data = np.random.default_rng(5), {}
    for column in schema.columns:
        if isinstance(column.domain, Categories):
            codes = pa.array(rng.integers(0, len(column.domain.values), ROWS))
            data[column.name] = pa.array(column.domain.values).take(codes)
        else:
            data[column.name] = pa.array(np.minimum(rng.gamma(2.0, 200.0, ROWS), MONTHS - 1).astype(np.int64))
    return pa.table(data)


def measured(found: Batch, schema: Schema) -> float:
    """Return the total squared error of answers with fresh noise, the mean of some."""
    ready = ready_rows(Relation("people", schema, "people"))
    with warehouse({"people": StoredTable(open_source(invented(schema)), schema, ready=ready)}) as rows:
        exact, *noisy = (found.draw(rows, coins) for coins in (Silence(), *(SystemCoins() for _ in range(TIMES))))
    total = 0.0
    for answers in noisy:
        for one, other in zip(answers.answers, exact.answers, strict=True):
            gap = np.array(one.table["n"].to_pylist(), float) - np.array(other.table["n"].to_pylist(), float)
            total += float((gap**2).sum())
    return total / TIMES


def compare(title: str, columns: tuple[Column, ...], texts: list[str]) -> None:
    """Print what a set gains, without a delta and with one."""
    schema = Schema(columns)
    catalog = Catalog((Relation("people", schema, "people", ready=True),))
    questions = [understand(text, catalog) for text in texts]
    for delta in (Fraction(0), Fraction(1, 10**6)):
        terms = QueryTerms(epsilon=Fraction(1), delta=delta)
        shares = batch(questions, schema.unit, terms).squared_error
        start = time.process_time()
        found = batch(questions, schema.unit, terms, catalog)
        seconds, own = time.process_time() - start, found.squared_error
        tables = sum(len(each.parts) for each in found.workloads)
        told = f"{shares:14,.0f} {own:14,.0f} {measured(found, schema):14,.0f} {shares / own:8.2f}"
        print(f"{title:44} {float(delta):6g} {told} {tables:6} {seconds:8.2f}")


def main() -> None:
    """Compare some sets."""
    print(f"{'set':44} {'delta':>6} {'equal shares':>14} {'expected':>14} {'measured':>14} {'gain':>8} tables  seconds")
    for name, sizes in (("survey", SURVEY), ("census", CENSUS), ("adult", ADULT)):
        for outside, rest in ((Outside.DROP, ""), (Outside.OTHER, ", other and missing")):
            title = f"pairs, {name} {'x'.join(map(str, sizes.values()))}{rest}"
            compare(title, categories(sizes, outside), pairs(list(sizes)))
    month = Column("month", type=Type.INTEGER, hierarchy=Flat(Numbers(0, MONTHS - 1)))
    for number in (10, 100, 500):
        compare(f"{number} ranges over {MONTHS:,} months", (month,), ranges(number))


if __name__ == "__main__":
    main()
