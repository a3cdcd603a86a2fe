from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.core.keys import Layout, grouped
from incrowd.engines.local import counting
from incrowd.engines.local.counting import CountingLimits, CountTally, Disk, MemoryRun, merge_runs

TINY = (
    CountingLimits(),
    CountingLimits(dense=0, buffered=5, held=1000),
    CountingLimits(dense=0, buffered=3, held=4),
    CountingLimits(12, 3, 4),
)


@st.composite
def growing(draw: st.DrawFn) -> list[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Batches of triples whose columns get more classes from batch to batch, beyond one word."""
    batches: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = []
    room, last = draw(st.sampled_from((2, 2**30))), 5
    for _ in range(draw(st.integers(1, 8))):
        room *= draw(st.sampled_from((1, 1, 4)))
        last = max(last, draw(st.sampled_from((5, 5, 2**31)))) if room > 2**29 else last
        triples = st.tuples(st.integers(0, 2), st.integers(0, min(room, 50) - 1), st.integers(0, 4))
        batches.append(((3, room, last), list(draw(st.lists(triples, max_size=12)))))
    return batches


def columns(rows: list[tuple[int, ...]], width: int) -> list[NDArray[np.int32]]:
    return [np.array([row[place] for row in rows], np.int32) for place in range(width)]


@pytest.mark.parametrize("limits", TINY)
@settings(deadline=None)
@given(batches=growing(), at_least=st.integers(1, 3))
def test_a_tally_counts_as_a_counter_does(
    limits: CountingLimits, batches: list[tuple[tuple[int, ...], list[tuple[int, ...]]]], at_least: int
) -> None:
    with Disk() as disk:
        tally = CountTally(limits, (3, 1, 1), disk)
        for sizes, rows in batches:
            tally.add(columns(rows, 3), sizes)
        layout, (keys, counts) = tally.result(at_least)
    expected = Counter(row for _, rows in batches for row in rows)
    outcome = list(zip(*(column.tolist() for column in layout.unpack(keys)), strict=True))
    assert outcome == sorted(row for row, times in expected.items() if times >= at_least)
    assert counts.tolist() == [expected[row] for row in outcome]


def test_a_counter_that_is_full_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_FULL", 10)
    tally = CountTally(CountingLimits(), (2,), Disk())
    for _ in range(7):
        tally.add([np.array([0, 1, 1], np.int32)], (2,))
    assert tally.result()[1][1].tolist() == [7, 14]


def test_what_is_too_much_for_memory_goes_to_disk() -> None:
    with Disk() as disk:
        tally = CountTally(CountingLimits(dense=0, buffered=10, held=20), (1000,), disk)
        for start in range(0, 200, 10):
            tally.add([np.arange(start, start + 10, dtype=np.int32)], (1000,))
        assert tally._spilled
        assert sum(map(len, tally._held)) <= 20
        _, (keys, counts) = tally.result()
    assert keys.tolist() == list(range(200))
    assert set(counts.tolist()) == {1}


@pytest.mark.skipif(os.name != "posix", reason="elsewhere the file has a name until it is closed")
def test_the_file_on_disk_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Disk() as disk:
        run = disk.write(MemoryRun(Layout((5,)), np.array([3]), np.array([7])))
        assert list(tmp_path.iterdir()) == []
        assert [(keys.tolist(), counts.tolist()) for keys, counts in run.parts(9)] == [([3], [7])]
    assert run.file.closed


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1), max_size=6), st.integers(1, 7), st.booleans())
def test_runs_merge_wherever_they_are(runs: list[list[int]], size: int, wide: bool) -> None:
    tight, roomy = (Layout((2**32, 2**40)), Layout((2**50, 2**40))) if wide else (Layout((100,)), Layout((400,)))
    held = []
    for place, run in enumerate(runs):
        layout = tight if place % 2 else roomy
        keys = layout.pack([np.array(run, np.int32)] * len(layout.sizes))
        held.append(MemoryRun(layout, *grouped(keys)))
    with Disk() as disk:
        mixed = [disk.write(run) if place % 3 else run for place, run in enumerate(held)]
        parts = list(merge_runs(mixed, roomy, size))
    expected = Counter(number for run in runs for number in run)
    outcome = [number for keys, _ in parts for number in roomy.unpack(keys)[0].tolist()]
    assert outcome == sorted(expected)
    assert [times for _, counts in parts for times in counts.tolist()] == [expected[number] for number in outcome]
    assert all(len(keys) <= size * len(mixed) for keys, _ in parts)
