"""Item sets: counting combinations and cutting the hierarchy, beside a plain Counter in the same run; growth with m.

    python bench/itemsets.py [ROWS …]        # 500,000 by default; up to 10 items a row, from 1,000

Items are drawn with frequencies as in shops, the n-th item about 1/n as often as the first; ten items make a group, and
ten groups a department.  The Counter lists the combinations of a tenth of the rows with itertools, as
one would at first, and its time is scaled to all rows.  Goal: half a million rows with m = 2 in less than ten seconds.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.sets import Sets, read_sets
from incrowd.core.table import Table
from incrowd.criteria.itemsets import smallest_support
from incrowd.engines.local.engine import LOCAL
from incrowd.methods.anonymity.itemsets.cuts import ItemTree
from incrowd.methods.anonymity.itemsets.method import Itemsets
from incrowd.noise.system import SystemCoins

T = TypeVar("T")
ITEMS, MOST, K = 1000, 10, 10


def column() -> Column:
    """Return a column of sets over a hierarchy of three levels."""
    tree = TreeHierarchy(tuple((f"i{n}", f"group {n // 10}", f"department {n // 100}") for n in range(ITEMS)))
    return Column("bought", Role.QUASI, hierarchy=tree, separator=";")


def baskets(rows: int) -> pa.Array:
    """Return text with one to ten items a row."""
    chance = np.random.default_rng(3)
    often = 1 / np.arange(1.0, ITEMS + 1)
    lengths = chance.integers(1, MOST + 1, rows)
    names = pa.array([f"i{n}" for n in chance.permutation(ITEMS)])
    drawn = pa.array(chance.choice(ITEMS, int(lengths.sum()), p=often / often.sum()).astype(np.int32))
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(starts, pa.int32()), names.take(drawn)), ";")


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU time of one run, and what it came to."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def plainly(sets: Sets, m: int) -> int:
    """Return the smallest support by listing every combination of every row."""
    times: Counter[tuple[int, ...]] = Counter()
    for place in range(len(sets)):
        row = sets.row(place).tolist()
        for size in range(1, m + 1):
            times.update(combinations(row, size))
    return min(times.values())


def counting(sets: Sets) -> None:
    """Print how long it takes to count, and how much longer one by one."""
    tenth = sets.take(np.arange(len(sets) // 10))
    for m in (1, 2, 3):
        took, found = timed(partial(smallest_support, sets, m))
        slow, same = timed(partial(plainly, tenth, m))
        if smallest_support(tenth, m) != same:
            raise SystemExit("the two ways to count differ")
        slow *= 10
        print(f"  count, m = {m}: {took:.2f} s, one by one {slow:.1f} s, {slow / took:.1f}x; the smallest is {found}")


def cutting(text: pa.Array) -> None:
    """Print how long a release takes, and what it loses; for m = 3 with a tenth of the rows."""
    for m, part in ((1, text), (2, text), (3, text.slice(0, len(text) // 10))):
        sets, _ = read_sets(part, column())
        table = Table(Schema((column(),)), LOCAL.open(pa.table({"bought": part})), LOCAL)
        for share in (Fraction(0), Fraction(1, 20)):
            method = Itemsets(K, m, suppression=share)
            took, _ = timed(partial(method.release, table, SystemCoins()))
            cut = method.cut(sets, np.zeros(len(sets), np.intp), ItemTree.of(column()))
            labels = len(np.unique(cut.nodes[cut.nodes >= 0]))
            told = f"release, m = {m}, {len(part):,} rows, up to {float(share):.0%} left out"
            print(f"  {told}: {took:.2f} s, loss {cut.loss:.4f}, {labels} labels")


def main() -> None:
    """Measure each size in turn."""
    for rows in [int(each) for each in sys.argv[1:]] or [500_000]:
        text = baskets(rows)
        took, (sets, _) = timed(partial(read_sets, text, column()))
        print(f"{rows:,} rows, {len(sets.items):,} items, k = {K}\n  read text: {took:.2f} s")
        counting(sets)
        cutting(text)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  peak memory of the process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
