"""What rows add is whole numbers: the same whatever the batches, the order, the other rows and the threads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.learning.shared.growth import GrowthGoal, leaf_sums, node_sums
from incrowd.methods.learning.shared.statistics import (
    RESIDUAL,
    Records,
    VectorSpace,
    added,
    class_tables,
    clipped,
    cluster_sums,
    crossed,
    gradient,
    grid_counts,
    moments,
    number_gradient,
    residuals,
    target_sums,
)
from incrowd.methods.learning.shared.trees import SplitCandidates
from tests.coins import SeededCoins
from tests.methods.learning.records import COLUMNS, small
from tests.tables import Batches


def rows(number: int, seed: int = 3) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "a": chance.choice(["x", "y"], number),
            "n": chance.integers(0, 3, number),
            "m": chance.integers(-4, 5, number),
            "t": chance.choice(["p", "q", "r"], number),
        }
    ).select(list(COLUMNS))


def sums(source: Batches) -> list[np.ndarray]:
    """Every statistic of some rows."""
    policy = small()
    task = policy.method.task(policy.schema)  # type: ignore[attr-defined]
    records = Records.of(Table(policy.schema, source, LocalEngine()), task.classes, SeededCoins(1))
    space = VectorSpace.of(task.inputs, 1)  # type: ignore[arg-type]
    scores = np.random.default_rng(9).integers(-900, 900, (sum(task.sizes), 3))
    centers = np.random.default_rng(8).integers(-99, 99, (3, space.width))
    forest, numbers = SplitCandidates.of(task.sizes, task.ordered).random(2, 2), np.array([-256, 7, 256])
    return [
        node_sums(records, GrowthGoal.classes(3), forest[0], task.ordered),
        node_sums(records, GrowthGoal.numbers(numbers), forest[1], task.ordered),
        leaf_sums(records, np.eye(3, dtype=np.int64), forest, task.ordered),
        target_sums(records, numbers, 181),
        number_gradient(records, numbers, np.array([7]), scores[:, :1]),
        grid_counts(records, [np.arange(size) % 2 for size in task.sizes], 2),
        class_tables(records, 3),
        gradient(records, 3, np.array([5, -7, 100]), scores),
        moments(records, space.vectors, 256 * np.eye(3, dtype=np.int64), 100),
        cluster_sums(records, space.vectors, centers, 50),
    ]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_sums_do_not_depend_on_batches_or_order(size: int) -> None:
    table = rows(257)
    mixed = table.take(np.random.default_rng(2).permutation(257))
    for one, other in zip(sums(Batches(table, size)), sums(Batches(mixed, 50)), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 15, 16, 17, 64, 255, 256])
def test_a_row_adds_the_same_whatever_rows_are_there(number: int) -> None:
    row = rows(1, seed=77)
    alone = sums(Batches(row))
    others = rows(number)
    together = sums(Batches(pa.concat_tables([others, row])))
    before = sums(Batches(others))
    for own, whole, rest in zip(alone, together, before, strict=True):
        assert np.array_equal(whole - rest, own)


def test_a_row_of_a_product_is_the_same_in_256_shapes() -> None:
    """In floating point, a row changes in its last bits with the number of others: here it cannot."""
    chance = np.random.default_rng(11)
    for number in range(1, 257):
        left, right = chance.integers(-(2**16), 2**16, (number, 12)), chance.integers(-(2**16), 2**16, (12, 3))
        whole = crossed(left.T, right)
        assert np.array_equal(whole[:1], crossed(left[:1].T, right)), "a row hangs on how many others there are"
        assert np.array_equal(whole, left @ right)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**60), 2**60)), max_size=8))
def test_sums_beyond_doubles_are_exact(pairs: list[tuple[int, int]]) -> None:
    small_ = [(place, amount // 16) for place, amount in pairs]
    places, amounts = (np.array([pair[side] for pair in small_], np.int64) for side in (0, 1))
    expected = [sum(amount for place, amount in small_ if place == each) for each in range(5)]
    assert added(places, amounts, 5).tolist() == expected


@given(
    st.lists(st.lists(st.integers(-256, 256), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(1, 200_000),
)
def test_a_clipped_vector_is_never_longer_than_allowed(vectors: list[list[int]], square: int) -> None:
    whole = np.array(vectors, np.int64)
    short = clipped(whole, square)
    lengths = (short * short).sum(axis=1)
    assert (lengths <= square).all()
    kept = (whole * whole).sum(axis=1) <= square
    assert np.array_equal(short[kept], whole[kept])
    assert np.array_equal(short[:1], clipped(whole[:1], square)), "it hangs on the other rows"


@given(st.lists(st.lists(st.integers(-60_000, 60_000), min_size=4, max_size=4), min_size=1, max_size=5), st.data())
def test_residuals_are_as_short_as_the_price_says(scores: list[list[int]], data: st.DataObject) -> None:
    whole = np.array(scores, np.int64)
    target = np.array([data.draw(st.integers(0, 3)) for _ in scores], np.int64)
    several = residuals(whole, target)
    assert ((several * several).sum(axis=1) <= 2 * RESIDUAL**2).all()
    assert (np.abs(residuals(whole[:, :1], target % 2)) <= RESIDUAL).all()
