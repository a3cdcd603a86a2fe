from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.tree import tree
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.quality.additive import Height, Loss, Precision
from incrowd.quality.information import Divergence, NonUniformEntropy
from incrowd.quality.ladder import Ladder
from incrowd.quality.quality import AverageSize, Discernibility, Factors, Quality
from incrowd.quality.tuples import Spread, Tuples, merged_spread

PLACE = Column("place", hierarchy=tree({"Europe": ["Paris", "Rome"], "Asia": ["Kyoto", "Osaka"]}))
SEX = Column("sex", hierarchy=Flat(Categories(("F", "M"))))
MODELS: tuple[Quality, ...] = (
    Loss(), Loss("0.1"), Loss("0.9"), Loss(0), Loss(1), Precision(), Precision("0.1"), Precision(1), Height(),
    Discernibility(), AverageSize(), NonUniformEntropy(), Divergence(),
)  # fmt: skip


def ladders() -> tuple[Ladder, ...]:
    found = [Recoding(column, 0).classes for column in (PLACE, SEX)]
    return tuple(Ladder.of(classes) for classes in found if classes is not None)


def base(sizes: list[int]) -> Tuples:
    """Every place with every sex, so many rows each."""
    codes = np.array([[place, sex] for place in range(4) for sex in range(2)], np.int32).T
    return Tuples(np.ascontiguousarray(codes), np.array(sizes, np.int64))


def rolled(tuples: Tuples, rungs: tuple[int, ...]) -> tuple[Tuples, np.ndarray]:
    labels = np.stack([ladder.rises[r][c] for ladder, r, c in zip(ladders(), rungs, tuples.codes, strict=True)])
    _, first, ids = np.unique(labels, axis=1, return_index=True, return_inverse=True)
    return tuples.merged(ids.astype(np.int32), first.astype(np.int32)), ids


NODES = [(place, sex) for place in range(3) for sex in range(2)]
tables = st.lists(st.integers(1, 9), min_size=8, max_size=8)


@pytest.mark.parametrize("model", MODELS, ids=str)
@settings(deadline=None, max_examples=60)
@given(sizes=tables, low=st.sampled_from(NODES), high=st.sampled_from(NODES), seed=st.integers(0, 255))
def test_bounds_are_never_above_scores(
    model: Quality, sizes: list[int], low: tuple[int, ...], high: tuple[int, ...], seed: int
) -> None:
    table = base(sizes)
    measure = model.over(ladders(), table)
    tuples, _ = rolled(table, high)
    kept = np.array([bool(seed >> place & 1) for place in range(len(tuples))])
    score = measure.score(high, tuples, kept)
    slack = 1e-9 * max(1.0, abs(score))
    assert sum(float(steps[rung]) for steps, rung in zip(measure.steps, high, strict=True)) <= score + slack
    assert measure.least(high, tuples) <= score + slack
    if all(a <= b for a, b in zip(low, high, strict=True)):
        finer, _ = rolled(table, low)
        assert measure.least(low, finer) <= measure.least(high, tuples) + slack
        assert measure.least(low, finer) <= score + slack


@pytest.mark.parametrize("model", MODELS, ids=str)
@settings(deadline=None, max_examples=60)
@given(sizes=tables, high=st.sampled_from(NODES), seed=st.integers(0, 255), more=st.integers(0, 255))
def test_what_suppression_adds_above_bounds_what_it_adds_below(
    model: Quality, sizes: list[int], high: tuple[int, ...], seed: int, more: int
) -> None:
    table = base(sizes)
    measure = model.over(ladders(), table)
    tuples, ids = rolled(table, high)
    kept = np.array([bool(seed >> place & 1) for place in range(len(tuples))])
    finer = kept[ids] & np.array([bool(more >> place & 1) for place in range(8)])
    lost = np.bincount(ids, np.where(finer, 0, table.sizes), len(tuples)).astype(np.int64)
    surcharges = measure.surcharges(high, tuples, lost)
    score = measure.score((0, 0), table, finer)
    extra = sum(float(steps[0]) + float(column[0]) for steps, column in zip(measure.steps, surcharges, strict=True))
    assert score >= extra - 1e-9 * max(1.0, abs(score))
    for column, rung in zip(surcharges, high, strict=True):
        assert len(column) == rung + 1
        assert (column >= 0).all()
        assert (np.diff(column) <= 1e-12).all()


def test_a_label_for_half_the_values_loses_a_third_of_four() -> None:
    table = base([1] * 8)
    tuples, _ = rolled(table, (1, 0))
    measure = Loss().over(ladders(), table)
    assert measure.score((1, 0), tuples, np.ones(len(tuples), np.bool_)) == pytest.approx(1 / 6)
    assert measure.score((1, 0), tuples, np.zeros(len(tuples), np.bool_)) == pytest.approx(1)


def test_a_weight_lowers_the_part_of_one_column() -> None:
    table = base([1] * 8)
    tuples, _ = rolled(table, (2, 0))
    kept = np.ones(len(tuples), np.bool_)
    assert Loss().over(ladders(), table).score((2, 0), tuples, kept) == pytest.approx(0.5)
    assert Loss(weights={"place": "0.5"}).over(ladders(), table).score((2, 0), tuples, kept) == pytest.approx(1 / 3)


@pytest.mark.parametrize("weights", [{}, {"place": "0.5"}, {"place": 7, "sex": "1/3"}, {"sex": 0}])
@pytest.mark.parametrize("model", [Loss, Precision])
def test_what_loses_everything_loses_one_whatever_the_weights(
    model: type[Loss | Precision], weights: dict[str, str]
) -> None:
    table = base([1] * 8)
    top, _ = rolled(table, (2, 1))
    measure = model(weights=weights).over(ladders(), table)
    assert measure.score((2, 1), top, np.ones(1, np.bool_)) == pytest.approx(1)
    assert measure.score((0, 0), table, np.zeros(8, np.bool_)) == pytest.approx(1)


def test_a_factor_of_zero_makes_suppression_free_and_of_one_generalization() -> None:
    table = base([1] * 8)
    nothing = np.zeros(8, np.bool_)
    assert Loss(0).over(ladders(), table).score((0, 0), table, nothing) == pytest.approx(0)
    top, _ = rolled(table, (2, 1))
    assert Loss(1).over(ladders(), table).score((2, 1), top, np.ones(1, np.bool_)) == pytest.approx(0)


def test_factors_outside_zero_and_one_are_refused() -> None:
    for model in (Loss, Precision, NonUniformEntropy):
        with pytest.raises(InvalidParameter, match="factor"):
            model("1.5")
    assert Factors.of("0.5") == Factors(1.0, 1.0)


@pytest.mark.parametrize("weights", [{"town": 1}, {"place": -1}, {"place": 0, "sex": 0}])
def test_weights_that_mean_nothing_are_refused(weights: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        Loss(weights=weights).over(ladders(), base([1] * 8))


def test_lengths_have_infinitely_many_values() -> None:
    paid = Column("paid", type=Type.DECIMAL, hierarchy=Intervals(Numbers(0, 10, Type.DECIMAL), (5,)))
    classes = Recoding(paid, 1).classes
    assert classes is not None
    assert Ladder.of(classes).domain == float("inf")


@given(
    cells=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=20),
    values=st.sampled_from((4, 1000, 2**30)),
)
def test_cells_are_added_up_by_class_and_value(cells: list[tuple[int, int, int]], values: int) -> None:
    owners, found, counts = (np.array(column) for column in zip(*cells, strict=True))
    ids = np.array([0, 0, 1, 1, 2, 2], np.int32)
    spread = merged_spread(Spread(owners.astype(np.int32), found.astype(np.int32), counts), ids, 3, values)
    expected: dict[tuple[int, int], int] = {}
    for owner, value, count in cells:
        expected[int(ids[owner]), value] = expected.get((int(ids[owner]), value), 0) + count
    assert list(zip(spread.owners.tolist(), spread.values.tolist(), strict=True)) == sorted(expected)
    assert spread.counts.tolist() == [expected[key] for key in sorted(expected)]
