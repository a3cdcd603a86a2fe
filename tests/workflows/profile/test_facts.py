"""A profile learned in parts, wherever rows are, is the profile learned in one go."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.table import Learned, Rows
from incrowd.engines.local.engine import LocalEngine
from incrowd.workflows.profile.profile import profile
from tests.tables import Batches


@dataclass(frozen=True)
class Scattered(LocalEngine):
    """The local engine as a cluster would be: every batch has a summary of its own, merged in any order."""

    seed: int = 0

    def learn(self, rows: Rows, columns: Sequence[str], empty: Callable[[], Learned]) -> Learned:
        """Learn each batch apart, and merge as they come."""
        summaries = [empty()]
        for batch in rows.batches(list(columns)):
            summary = pickle.loads(pickle.dumps(empty))()
            summary.add(batch)
            summaries.append(pickle.loads(pickle.dumps(summary)))
        Random(self.seed).shuffle(summaries)
        first, *others = summaries
        for other in others:
            first.merge(other)
        return first


written = st.none() | st.sampled_from(
    ["1", "22", "-3", "1.5", "1e3", "007", "+49", "", " ", "yes", "no", "F", "NA", "2020-02-29", "2021-01-31", "A12.3"]
)
stored = st.sampled_from(
    [
        st.none() | st.integers(-5, 5),
        st.none() | st.floats(-2, 2, width=16) | st.just(float("nan")),
        st.none() | st.booleans(),
        st.none() | st.dates(date(2020, 1, 1), date(2020, 1, 9)),
    ]
)


@settings(deadline=None)
@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_parts_come_to_the_same_as_the_whole(data: Any, rows: int, size: int, seed: int) -> None:
    kind = data.draw(stored)
    columns = {
        "text": pa.array(data.draw(st.lists(written, min_size=rows, max_size=rows)), pa.string()),
        "more": pa.array(data.draw(st.lists(written, min_size=rows, max_size=rows)), pa.string()),
        "kind": pa.array(data.draw(st.lists(kind, min_size=rows, max_size=rows))),
    }
    table = pa.table(columns)
    whole, parts = profile(Batches(table)), profile(Batches(table, size), Scattered(seed=seed))
    assert parts == whole


@pytest.mark.parametrize("different", [900, 1001, 4000])
def test_long_columns_come_to_the_same_as_well(different: int) -> None:
    table = pa.table({"zip": [f"{n % different:05}" for n in range(5000)], "sex": ["F", "M"] * 2500})
    whole, parts = profile(Batches(table, 5000)), profile(Batches(table, 300), Scattered(seed=3))
    assert parts == whole
    assert (whole.columns[0].facts.values is None) == (different > 1000)
