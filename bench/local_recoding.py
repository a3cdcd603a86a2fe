"""Local recoding of UCI Adult beside the best generalization of whole columns: loss, rounds and time.

    python bench/local_recoding.py [FOLDER] [--rows 1000000]     # with adult.csv and hierarchies/ in ARX's format

The folder may also be named by INCROWD_ADULT.  k = 5 and eight quasi-identifiers throughout.  The loss is that of ARX
(arithmetic mean, factor 0.5), with nothing, 5 % or everything that may be left out under whole columns; local recoding
leaves out nothing.  A share of 5 % that waits after the first round is shown too: by itself it gains little.  Larger
tables are Adult drawn with replacement, each cell redrawn from its column with probability 0.2.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.diversity import DistinctDiversity
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.search.lattice import Lattice, Task
from incrowd.methods.anonymity.search.optimal import optimal
from incrowd.methods.anonymity.search.rounds import Ground, Schedule, recode_in_rounds
from incrowd.quality.additive import Loss

EIGHT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
SENSITIVE = "occupation"
K = KAnonymity(5)
DIVERSE = (K, DistinctDiversity(SENSITIVE, 3))
LEFT = (Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10))
MOST = 100


def adult(folder: Path) -> tuple[Schema, pa.Table]:
    names = (*EIGHT, SENSITIVE)
    files = {name: folder / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in names}
    trees = {name: parse_arx(file.read_text()).hierarchy() for name, file in files.items()}
    rows = csv.read_csv(folder / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    texts = pa.table({name: rows[name].cast(pa.string()) for name in names})
    return Schema(tuple(Column(name, Role.QUASI, hierarchy=tree) for name, tree in trees.items())), texts


def larger(table: pa.Table, rows: int) -> pa.Table:
    chance = np.random.default_rng(20261116)
    drawn, columns = chance.integers(0, len(table), rows), {}
    for name in table.column_names:
        redrawn = np.where(chance.random(rows) < 0.2, chance.integers(0, len(table), rows), drawn)
        columns[name] = table[name].take(pa.array(redrawn))
    return pa.table(columns)


def line(what: str, loss: float, spent: float, rounds: int, left_out: int) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:<44}{loss:>10.5f}{rounds:>8}{left_out:>10,}{spent:>9.2f} s{memory:>8.0f} MB", flush=True)


def whole_columns(counts: Counts, limit: str) -> float:
    start = time.process_time()
    best = optimal(Lattice.of(counts, EIGHT), Task(K, Loss(), limit)).best
    if best is None:
        sys.exit("nothing was found")
    line(f"whole columns, up to {limit} left out", best.score, time.process_time() - start, 1, best.suppressed)
    return best.score


def rounds(what: str, counts: Counts, criteria: tuple[Criterion, ...], left: Fraction) -> float:
    start = time.process_time()
    ground = Ground.of(counts, EIGHT, criteria)
    found = recode_in_rounds(ground, Schedule(MOST, left))
    loss, released = ground.loss(found), sum(int(ground.rows[each.chosen].sum()) for each in found)
    line(f"{what}, left {left}", loss, time.process_time() - start, len(found), counts.total - released)
    return loss


def main(folder: Path, sizes: list[int]) -> bool:
    """Measure all of it; return whether local recoding loses less than whole columns with everything left out."""
    schema, table = adult(folder)
    print(f"{'Adult, k = 5':<44}{'loss':>10}{'rounds':>8}{'left out':>10}{'CPU':>11}{'memory':>11}")
    counts = LOCAL.count(LOCAL.open(table), Cells.of(schema, {}))
    least = min(whole_columns(counts, limit) for limit in ("0", "0.05", "1"))
    found = [rounds("local recoding", counts, (K,), left) for left in LEFT]
    rounds("local recoding, 3-diverse", counts, DIVERSE, Fraction(4, 5))
    for size in sizes:
        print(f"{size:,} rows")
        more = LOCAL.count(LOCAL.open(larger(table, size)), Cells.of(schema, {})).marginal(EIGHT)
        whole_columns(more, "0.05")
        rounds("local recoding", more, (K,), Fraction(1, 2))
    return min(found) < least


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    named = os.environ.get("INCROWD_ADULT", str(Path(__file__).parents[2] / "shared" / "data" / "adult"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path(named))
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"{given.folder} is not there: name the folder of Adult.")
    sys.exit(0 if main(given.folder, given.rows) else 1)
