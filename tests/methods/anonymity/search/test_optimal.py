from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.counts import Counts
from incrowd.criteria import compiled
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.distances import (
    equal,
    hierarchical,
    lacking,
    largest_close,
    largest_close_of_all,
    levels_of,
)
from incrowd.criteria.groups import Histograms
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search import optimal as search
from incrowd.methods.anonymity.search import rollup
from incrowd.methods.anonymity.search.lattice import Lattice, LevelLimits, Point, Task
from incrowd.methods.anonymity.search.optimal import Progress, SearchLimits, minimal, optimal
from incrowd.quality.additive import Loss
from tests.criteria.slow_criteria import CRITERIA, SENSITIVE
from tests.methods.anonymity.search import universe
from tests.methods.anonymity.search.universe import QUALITIES, QUASI, Row, counted, feasible

limits = st.sampled_from(("0", "0.1", "0.3", "1"))
SMALL: list[Row] = [
    ("Paris", "F", "1", "flu"), ("Paris", "F", "2", "cough"), ("Rome", "M", "3", "flu"), ("Kyoto", "M", "4", "attack"),
    ("Kyoto", None, "5", "flu"), ("Oslo", "M", "4", "murmur"),
]  # fmt: skip


def lattice(table: list[Row]) -> Lattice:
    return Lattice.of(counted(table), QUASI, (SENSITIVE,))


@pytest.mark.parametrize("quality", QUALITIES)
@settings(deadline=None, max_examples=12)
@given(table=universe.rows, limit=limits, name=st.sampled_from(sorted(CRITERIA)))
def test_the_optimum_is_that_of_judging_every_node(quality: str, table: list[Row], limit: str, name: str) -> None:
    model, score = QUALITIES[quality]
    slow = CRITERIA[name]
    found = optimal(lattice(table), Task(slow.criterion, model, limit))
    meeting = feasible(table, slow.holds, limit)
    assert found.complete
    if not meeting:
        assert found.best is None
        return
    scores = {node: score(release) for node, release in meeting.items()}
    expected = universe.best_node(scores)
    assert found.best is not None
    assert found.best.levels == expected
    assert found.best.score == pytest.approx(scores[expected], abs=1e-9)
    assert found.best.suppressed == meeting[expected].suppressed
    assert found.bound == pytest.approx(found.best.score)


@pytest.mark.parametrize("quality", ["loss", "precision, suppression favored", "discernibility"])
@settings(deadline=None, max_examples=25)
@given(table=universe.rows, limit=limits, name=st.sampled_from(sorted(CRITERIA)))
def test_a_queue_that_grows_finds_what_a_board_with_all_nodes_finds(
    quality: str, table: list[Row], limit: str, name: str
) -> None:
    task = Task(CRITERIA[name].criterion, QUALITIES[quality][0], limit)
    board = optimal(lattice(table), task)
    with patch.object(search, "_SMALL", 0):
        queue = optimal(lattice(table), task)
    assert (queue.best, queue.complete) == (board.best, board.complete)


@pytest.mark.parametrize("limit", ["0.1", "0.3"])
@settings(deadline=None, max_examples=40)
@given(table=universe.rows, name=st.sampled_from(["close", "close, hierarchical", "close, ordered", "k and close"]))
def test_what_closeness_rules_out_is_no_optimum(limit: str, table: list[Row], name: str) -> None:
    model, score = QUALITIES["loss"]
    found = optimal(lattice(table), Task(CRITERIA[name].criterion, model, limit)).best
    meeting = feasible(table, CRITERIA[name].holds, limit)
    expected = universe.best_node({node: score(each) for node, each in meeting.items()}) if meeting else None
    assert (None if found is None else found.levels) == expected


@pytest.mark.parametrize("name", sorted(CRITERIA))
@settings(deadline=None, max_examples=12)
@given(table=universe.rows, limit=limits)
def test_all_minimal_nodes_are_found_for_every_criterion(name: str, table: list[Row], limit: str) -> None:
    slow = CRITERIA[name]
    task = Task(slow.criterion, limit=limit)
    found = minimal(lattice(table), task)
    assert [point.levels for point in found] == universe.minimal_nodes(list(feasible(table, slow.holds, limit)))
    below = minimal(lattice(table), task, [point.node for point in found[1:]])
    assert [point.node for point in below] == [point.node for point in found[1:]]


@pytest.mark.parametrize("quality", QUALITIES)
@settings(deadline=None, max_examples=8)
@given(table=universe.rows, name=st.sampled_from(sorted(CRITERIA)))
def test_every_point_that_was_judged_has_its_true_score(quality: str, table: list[Row], name: str) -> None:
    model, score = QUALITIES[quality]
    slow = CRITERIA[name]
    for point in optimal(lattice(table), Task(slow.criterion, model, 1)).points:
        release = universe.released(table, point.levels, slow.holds)
        kept = [values.total() for cell, values in release.classes.items() if release.kept[cell]]
        assert point.score == pytest.approx(score(release), abs=1e-9)
        assert (point.suppressed, point.classes) == (release.suppressed, len(kept))
        assert point.smallest == (min(kept) if kept else None)


@settings(deadline=None, max_examples=30)
@given(table=universe.rows, node=st.sampled_from(universe.NODES))
def test_compiled_kernels_group_as_numpy_does(table: list[Row], node: tuple[int, ...]) -> None:
    pytest.importorskip("numba")
    made = lattice(table)
    tables = [column[rung] for column, rung in zip(made.tables, node, strict=True)]
    sizes = [column[rung] for column, rung in zip(made.sizes, node, strict=True)]
    groupings = []
    for group in (rollup.grouped_by_numpy, rollup.grouped_by_numba):
        ids, first = group(made.base.codes, tables, sizes)
        assert ids[first].tolist() == list(range(len(first)))
        groupings.append({tuple(ids == number) for number in range(len(first))})
    assert groupings[0] == groupings[1]


def test_numba_is_loaded_only_when_much_was_grouped_already() -> None:
    with patch.dict(sys.modules):
        sys.modules.pop("numba", None)
        assert rollup.grouper(10**6) is rollup.grouped_by_numpy
        if importlib.util.find_spec("numba") is not None:
            assert rollup.grouper(10**8) is rollup.grouped_by_numba


def test_levels_stay_within_their_limits() -> None:
    limited = Lattice.of(counted(SMALL), QUASI, limits=LevelLimits({"place": 1}, {"sex": 0}))
    found = optimal(limited, Task(KAnonymity(2), limit=1))
    assert found.best is not None
    assert found.levels is not None
    assert found.levels["place"] >= 1
    assert found.levels["sex"] == 0


def test_limits_that_leave_no_level_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="none lies between"):
        Lattice.of(counted(SMALL), QUASI, limits=LevelLimits({"place": 2}, {"place": 1}))


def test_nothing_is_found_where_no_node_meets_the_task() -> None:
    found = optimal(lattice(SMALL), Task(KAnonymity(7)))
    assert found.best is None
    assert found.complete


def test_a_search_that_is_told_to_stop_keeps_a_bound() -> None:
    seen: list[Progress] = []

    def told(progress: Progress) -> bool:
        seen.append(progress)
        return True

    found = optimal(lattice(SMALL), Task(KAnonymity(2)), SearchLimits(report=told))
    assert not found.complete
    assert seen[0].judged == 0
    whole = optimal(lattice(SMALL), Task(KAnonymity(2)))
    assert whole.best is not None
    assert found.bound <= whole.best.score
    assert found.gap >= 0


def test_a_limit_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="suppression limit"):
        Task(KAnonymity(2), limit="1.1")


def test_a_column_is_not_both_generalized_and_sensitive() -> None:
    with pytest.raises(InvalidParameter, match="both"):
        Lattice.of(counted(SMALL), QUASI, ("sex",))


@pytest.mark.parametrize("grouped", [rollup.grouped_by_numpy, rollup.grouped_by_numba])
@pytest.mark.parametrize("limit", ["0.3", "1"])
@settings(deadline=None, max_examples=25)
@given(table=universe.rows)
def test_with_an_average_risk_every_point_is_what_a_release_makes_of_it(
    grouped: rollup.Grouper, limit: str, table: list[Row]
) -> None:
    pytest.importorskip("numba")
    criterion, counts = KAnonymity(2) & AverageRisk("1/3"), counted(table)
    with patch.object(rollup, "grouper", lambda _: grouped):
        found = optimal(Lattice.of(counts, QUASI), Task(criterion, limit=limit))
    scores = _scores_of_releases(counts, criterion, Task(criterion, limit=limit).allowed(len(table)))
    assert (None if found.best is None else found.best.levels) == (universe.best_node(scores) if scores else None)
    for point in found.points:
        assert point.score == pytest.approx(scores[point.node], abs=1e-9)


def _scores_of_releases(counts: Counts, criterion: Criterion, allowed: int) -> dict[tuple[int, ...], float]:
    """Return the loss of every node that may be released, with the classes that a release keeps."""
    lattice, scores = Lattice.of(counts, QUASI), {}
    base, measure = lattice.base, Loss().over(lattice.ladders, lattice.base)
    for node in universe.NODES:
        classes = counts.rollup(dict(zip(QUASI, node, strict=True))).marginal(QUASI)
        names = list(zip(*(codes.tolist() for codes in classes.codes()), strict=True))
        kept = dict(zip(names, criterion.met(Partition(classes.counts)).tolist(), strict=True))
        columns = zip(lattice.ladders, node, base.codes, strict=True)
        labels = zip(*(ladder.rises[rung][codes].tolist() for ladder, rung, codes in columns), strict=True)
        released = np.array([kept[label] for label in labels])
        if base.sizes[~released].sum() <= allowed:
            scores[node] = measure.score(node, base, released)
    return scores


@settings(deadline=None, max_examples=40)
@given(table=universe.rows, node=st.sampled_from(universe.NODES))
def test_written_down_histograms_are_as_far_as_groups(table: list[Row], node: tuple[int, ...]) -> None:
    partition = rollup.RollupCache(lattice(table))(node).partition()
    histograms, groups = partition.histograms[SENSITIVE], partition.groups(SENSITIVE)
    assert histograms.sizes.tolist() == groups.sizes.tolist()
    for distance in (equal, hierarchical):
        assert distance(histograms) == pytest.approx(distance(groups))
    for levels in (lambda each: [each], levels_of):
        for share in (0.5, 0.9, 1.0):
            x = share / groups.sizes
            written, summed = lacking(levels(histograms))(x), lacking(levels(groups))(x)
            assert written[0] == pytest.approx(summed[0])


histograms = st.integers(2, 6).flatmap(
    lambda values: st.builds(
        lambda rows, table, lifts: Histograms(
            np.array(rows, np.float64),
            np.array(table) + np.array(rows).sum(axis=0),
            tuple(_ranked(lift) for lift in lifts),
        ),
        st.lists(st.lists(st.integers(0, 9), min_size=values, max_size=values).filter(any), min_size=1, max_size=5),
        st.lists(st.integers(0, 9), min_size=values, max_size=values),
        st.lists(st.lists(st.integers(0, 2), min_size=values, max_size=values), max_size=2),
    )
)


def _ranked(lift: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.unique(lift, return_inverse=True)[1].astype(np.int32)


@settings(deadline=None, max_examples=30)
@given(groups=histograms, t=st.sampled_from((0.0, 0.1, 0.2, 0.5)))
def test_the_kernel_of_closeness_computes_what_numpy_does(groups: Histograms, t: float) -> None:
    if importlib.util.find_spec("numba") is not None:
        importlib.import_module("numba")  # so that the first distances are compiled
    distances = equal(groups), hierarchical(groups)
    with patch.object(compiled, "kernel", lambda: None):
        plain = equal(groups), hierarchical(groups)
        largest = [largest_close(groups.sizes, lacking(levels), t).tolist() for levels in ([groups], levels_of(groups))]
    with patch.object(compiled, "kernel", lambda: compiled.shortfalls):
        kernel = equal(groups), hierarchical(groups)
        found = [largest_close_of_all(groups, lifts, t) for lifts in ((), groups.lifts)]
    assert [None if each is None else each.tolist() for each in found] == largest
    for place in range(2):
        assert kernel[place] == pytest.approx(plain[place], abs=1e-14)
        assert distances[place] == pytest.approx(plain[place], abs=1e-14)


@pytest.mark.parametrize("name", ["close", "close, hierarchical", "k and close"])
@settings(deadline=None, max_examples=10)
@given(table=universe.rows, limit=limits)
def test_a_long_search_with_kernels_finds_what_a_plain_one_does(name: str, table: list[Row], limit: str) -> None:
    task = Task(CRITERIA[name].criterion, limit=limit)
    with (
        patch.object(compiled, "kernel", lambda: None),
        patch.object(rollup, "grouper", lambda _: rollup.grouped_by_numpy),
    ):
        plain = optimal(lattice(table), task)
    with (
        patch.object(compiled, "kernel", lambda: compiled.shortfalls),
        patch.object(rollup, "_FEW", 0),
        patch.object(rollup, "_WASTE", 0),
        patch.object(rollup, "_LONG", 0),
    ):
        found = optimal(lattice(table), task)
    assert [_rounded(point) for point in found.points] == [_rounded(point) for point in plain.points]
    assert (found.best and _rounded(found.best)) == (plain.best and _rounded(plain.best))
    assert found.judged == plain.judged


def _rounded(point: Point) -> Point:
    return replace(point, score=round(point.score, 9))


def test_in_a_long_search_classes_to_start_from_are_prepared_for_the_second_node_that_needs_them() -> None:
    made = lattice([(place, sex, age, "flu") for place in ("Paris", "Rome", "Oslo") for sex in "FM" for age in "12345"])
    roller = rollup.RollupCache(made)
    with patch.object(rollup, "_WASTE", 8), patch.object(rollup, "_LONG", 0):
        sources = [len(roller(node).source) for node in (made.top, (2, 1, 2), (2, 0, 2), (1, 1, 1))]
    assert sources == [30, 30, 8, 8]
