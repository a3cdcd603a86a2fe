"""The samples of two tables are drawn apart: what one shows says nothing about the other."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.anonymity.slicing.method import Slicing
from incrowd.noise.system import SystemCoins
from tests.statistics.alarm import FALSE_ALARM, p_value
from tests.tables import Batches

DRAWS, ROWS, K = 800, 4, 2
SCHEMA = Schema(tuple(Column(name, hierarchy=Flat(Categories(("x",)))) for name in "ab"))


def test_the_lengths_of_two_tables_have_the_law_of_two_samples() -> None:
    method = Slicing((("a",), ("b",)), delta=Fraction(9, 10), rate=Fraction(1, 2), k=K)
    rows = pa.table({name: pa.array(["x"] * ROWS, pa.string()) for name in "ab"})
    table = Table(SCHEMA, Batches(rows), LocalEngine())
    draws = []
    for _ in range(DRAWS):
        first, second = map(len, method.release(table, SystemCoins()).tables)
        draws.append(first * (ROWS + 1) + second)
    single = [math.comb(ROWS, n) / 2**ROWS for n in range(ROWS + 1)]
    shown = {0: sum(single[:K]), **{n: single[n] for n in range(K, ROWS + 1)}}
    masses = {one * (ROWS + 1) + other: shown[one] * shown[other] for one in shown for other in shown}
    assert p_value(np.array(draws), masses) > FALSE_ALARM
