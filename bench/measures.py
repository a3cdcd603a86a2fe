"""Measures and verbs: loss and classes of Adult beside ARX's figures, and counting beside a plain DuckDB GROUP BY.

    python bench/measures.py                      # a million invented discharges
    python bench/measures.py --adult FOLDER       # with adult.csv and hierarchies/adult_hierarchy_*.csv

ARX 3.9.2 on Adult, 8 quasi-identifiers, k = 5 (Loss metric, arithmetic mean): the levels, suppressed records and scores
below.  The floor is the fastest way we know to ask an engine for the smallest class: one GROUP BY over all columns.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.measures.risk.classes import Sizes
from incrowd.quality.ladder import class_losses, mean_loss
from incrowd.workflows.check.check import CheckedColumns, check
from incrowd.workflows.check.criteria import CheckCriteria
from incrowd.workflows.profile.profile import profile

ADULT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
ARX = (
    ((4, 3, 2, 2, 1, 0, 0, 0), 0, 0.625),
    ((3, 2, 0, 1, 0, 0, 0, 1), 1346, 0.1783389956),
    ((3, 1, 0, 1, 0, 0, 0, 0), 2848, 0.16901981715),
)
GENERATOR = Path(__file__).resolve().parents[1] / "examples" / "hospital" / "population.py"
QUASI = ("age", "sex", "zip", "ethnicity", "discharged")


def timed(what: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<44}{wall:>8.2f} s wall {cpu:>8.2f} s CPU {peak:>8.0f} MB peak so far")
    return found


def smallest_by_duckdb(path: Path) -> int:
    import duckdb

    names = ", ".join(f'"{name}"' for name in QUASI)
    counted = f"SELECT min(n) FROM (SELECT count(*) AS n FROM '{path}' GROUP BY {names})"
    with duckdb.connect(config={"threads": 1}) as connection:
        return int(connection.sql(counted).fetchall()[0][0])


def hospital(rows: int) -> None:
    with TemporaryDirectory() as folder:
        for form in ("parquet", "csv"):
            path = Path(folder) / f"discharges.{form}"
            subprocess.run([sys.executable, str(GENERATOR), str(rows), str(path)], check=True)
            print(f"{rows:,} discharges, {form}")
            timed("DuckDB GROUP BY, one thread (the floor)", partial(smallest_by_duckdb, path))
            source, wanted = open_source(path), CheckCriteria(k=5, l=3, t=0.2)
            timed("check: k", partial(check, source, CheckCriteria(k=5), CheckedColumns(QUASI)))
            timed("check: k, l, t", partial(check, source, wanted, CheckedColumns(QUASI, ("diagnosis",))))
            timed("profile", partial(profile, source))


def adult(folder: Path) -> None:
    columns = []
    for name in ADULT:
        text = (folder / "hierarchies" / f"adult_hierarchy_{name}.csv").read_text(encoding="utf-8")
        columns.append(Column(name, Role.QUASI, hierarchy=parse_arx(text).hierarchy()))
    schema = Schema(tuple(columns))
    rows = open_source(folder / "adult.csv")
    counts = timed("Adult, counted at the finest level", lambda: LocalEngine().count(rows, Cells.of(schema, {})))
    print(f"{'levels':<28}{'suppressed':>11}{'ARX':>8}{'loss':>16}{'ARX':>16}")
    for levels, suppressed, score in ARX:
        kept = counts.rollup(dict(zip(ADULT, levels, strict=True)))
        whole = Sizes(kept.counts)
        kept = replace(kept, keys=kept.keys[kept.counts >= 5], counts=kept.counts[kept.counts >= 5])
        gone = whole.below(5)
        losses = []
        for name in ADULT:
            column = kept.marginal([name])
            inside = np.bincount(column.codes()[0], column.counts, len(column.classes[0])).astype(np.int64)
            losses.append(mean_loss(class_losses(column.classes[0]), inside, gone))
        print(f"{levels!s:<28}{gone:>11}{suppressed:>8}{np.mean(losses):>16.11f}{score:>16.11f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.adult is not None:
        adult(given.adult)
    hospital(given.rows)
