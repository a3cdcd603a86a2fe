"""Intervals of ratios: the hull of what a test accepts, looked for in the few segments where it can end."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.queries.measuring.intervals import Floats, Interval, _accepted


def slow_accepted(nodes: Floats, reach: Floats, total: Floats, count: Floats) -> Interval:
    """Return the same from all segments, whether or not something of them is accepted."""
    rest = total[:, None] - count[:, None] * nodes[None, :]
    start, stop = np.zeros_like(rest[:, 1:]), np.ones_like(rest[:, 1:])
    for values in (rest - reach, -rest - reach):
        left, right = values[:, :-1], values[:, 1:]
        root = left / np.where(left == right, 1.0, left - right)
        start = np.maximum(start, np.where(left <= 0, 0.0, np.where(right <= 0, root, np.inf)))
        stop = np.minimum(stop, np.where(right <= 0, 1.0, np.where(left <= 0, root, -np.inf)))
    open_, width = start <= stop, np.diff(nodes)
    low = np.min(np.where(open_, nodes[:-1] + np.where(open_, start, 0.0) * width, np.inf), axis=1)
    high = np.max(np.where(open_, nodes[:-1] + np.where(open_, stop, 1.0) * width, -np.inf), axis=1)
    nearest = np.where((total > 0) == (count > 0), nodes[-1], nodes[0])
    return Interval(np.where(low > high, nearest, low), np.where(low > high, nearest, high))


@pytest.mark.parametrize("few", [0.0, 0.01, 1.0, 100.0])
@pytest.mark.parametrize("wide", [0.0, 1.0, 1000.0])
def test_few_segments_tell_what_all_would(few: float, wide: float) -> None:
    random = np.random.default_rng(3)
    nodes = np.linspace(-50_000.0, 50_000.0, 25)
    reach = wide * np.sqrt(1e6 + nodes**2)
    count = few * random.integers(-100, 400, 500).astype(np.float64)
    total = 50_000.0 * np.concatenate((random.integers(-300, 300, 250).astype(np.float64), random.uniform(-3, 3, 250)))
    found, expected = _accepted(nodes, reach, total, count), slow_accepted(nodes, reach, total, count)
    assert np.array_equal(found.low, expected.low)
    assert np.array_equal(found.high, expected.high)


def test_no_groups_have_no_intervals() -> None:
    nothing = np.zeros(0)
    assert _accepted(np.array([-1.0, 0.0, 1.0]), np.ones(3), nothing, nothing).low.size == 0
