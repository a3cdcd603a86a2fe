from __future__ import annotations

import time

import pytest

from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import Lattice, Task
from incrowd.methods.anonymity.search.optimal import Progress, SearchLimits, optimal
from incrowd.quality.quality import Discernibility
from tests.methods.anonymity.search.huge import huge
from tests.methods.anonymity.search.universe import QUASI, Row, counted, cut, label

PEOPLE: list[Row] = [
    (place, sex, age, "flu")
    for place in ("Paris", "Rome", "Oslo", "Kyoto")
    for sex in ("F", "M")
    for age in ("1", "2", "4")
]


@pytest.mark.parametrize("limit", ["0", "0.05", "1"])
def test_a_search_through_2_to_the_40_nodes_returns_in_time_with_a_point_and_a_bound(limit: str) -> None:
    start = time.process_time()
    found = optimal(huge(), Task(KAnonymity(5), limit=limit), SearchLimits(seconds=1))
    assert time.process_time() - start < 30  # of this process: what others do does not count
    assert not found.complete
    assert found.best is not None
    assert found.best.suppressed <= float(limit) * 2000
    assert found.best.smallest is None or found.best.smallest >= 5
    assert 0 <= found.bound < found.best.score
    assert found.gap == pytest.approx(found.best.score - found.bound)


def test_more_nodes_may_not_wait_than_was_said() -> None:
    found = optimal(huge(), Task(KAnonymity(5), Discernibility()), SearchLimits(waiting=100))
    assert not found.complete
    assert found.best is not None


def test_progress_tells_a_bound_that_never_falls_and_a_best_that_never_worsens() -> None:
    seen: list[Progress] = []

    def told(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 20

    optimal(huge(), Task(KAnonymity(5), limit="0.05"), SearchLimits(report=told))
    bounds = [progress.bound for progress in seen]
    scores = [progress.best.score for progress in seen if progress.best is not None]
    assert bounds == sorted(bounds)
    assert scores == sorted(scores, reverse=True)
    assert len(seen) == 20


def test_the_population_hides_the_rows_of_a_sample() -> None:
    sample = PEOPLE[::5]
    lattice = Lattice.of(counted(sample), QUASI).with_population(counted(PEOPLE))
    found = optimal(lattice, Task(KMap(4)))
    assert found.best is not None
    people = cut(PEOPLE, found.best.levels)
    for row in sample:
        name = tuple(label(place, value, found.best.levels[place]) for place, value in enumerate(row[:-1]))
        assert people[name].total() >= 4
    alone = optimal(Lattice.of(counted(sample), QUASI), Task(KAnonymity(4)))
    assert alone.best is not None
    assert found.best.score < alone.best.score


def test_presence_is_judged_at_every_node_with_those_who_are_absent() -> None:
    sample = PEOPLE[:6]  # all of Paris, nobody else
    lattice = Lattice.of(counted(sample), QUASI).with_population(counted(PEOPLE))
    found = optimal(lattice, Task(DeltaPresence("0.1", "0.5")))
    assert found.best is not None
    # Europe holds 6 of 18, but Asia none of 6: only where all places are one is nobody known to be absent.
    assert found.best.levels == (2, 0, 0)
    upper = optimal(lattice, Task(DeltaPresence(0, "0.5")))
    assert upper.best is not None
    assert upper.best.levels == (1, 0, 0)


def test_a_population_must_be_declared_alike() -> None:
    lattice = Lattice.of(counted(PEOPLE), QUASI)
    with pytest.raises(InvalidParameter, match="need the same declared classes"):
        lattice.with_population(counted(PEOPLE).rollup({"place": 1}))
