"""Counting: how often each key occurs, in memory that does not grow with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.engines.local.spill import Disk, Held, Part, Run, merged


@dataclass(frozen=True)
class Limits:
    """When to count how: numbers of cells or keys.

    Up to `dense` cells there is a counter for each cell (4 bytes).  Beyond, `buffered` keys (8 bytes and more) are
    gathered before they are sorted and counted, and up to `held` different ones (16 bytes and more) are kept in memory
    before they go to disk.
    """

    dense: int = 2**26
    buffered: int = 2**20
    held: int = 2**21


_FULL = 2**32 - 1


class Tally:
    """Counts of tuples of codes, added batch by batch; the numbers of codes may grow meanwhile.

    >>> with Disk() as disk:
    ...     tally = Tally(Limits(), (2, 3), disk)
    ...     tally.add([np.array([1, 0, 1], np.int32), np.array([2, 0, 2], np.int32)], (2, 3))
    ...     layout, (keys, counts) = tally.result()
    >>> [codes.tolist() for codes in layout.unpack(keys)], counts.tolist()
    ([[0, 1], [0, 2]], [1, 2])
    """

    def __init__(self, limits: Limits, sizes: tuple[int, ...], disk: Disk) -> None:
        self._limits = limits
        self._disk = disk
        self._buffer: list[Keys] = []
        self._held: list[Held] = []
        self._spilled: list[Run] = []
        self._added = 0
        self._lay_out(sizes)

    def add(self, codes: Sequence[Codes], sizes: tuple[int, ...]) -> None:
        """Count tuples, given column by column; no code reaches the size of its column, and sizes only grow."""
        if not len(codes[0]):
            return
        if sizes != self._layout.sizes:
            self._flush()
            self._lay_out(sizes)
        keys = self._layout.pack(codes)
        if self._added + len(keys) > (_FULL if self._counters is not None else self._limits.buffered):
            self._flush()
        self._added += len(keys)
        if self._counters is not None:
            np.add.at(self._counters, keys, np.uint32(1))
        else:
            self._buffer.append(keys)

    def result(self, at_least: int = 1) -> tuple[Layout, Part]:
        """Return the keys that occur at least so often, in order, with their counts; and how they are laid out."""
        if self._counters is not None and not self._held and not self._spilled:
            found = np.flatnonzero(self._counters >= at_least)
            return self._layout, (found, self._counters[found].astype(np.int64))
        self._flush()
        runs = [*self._spilled, *self._held]
        keys, counts = [np.zeros(0, self._layout.dtype)], [np.zeros(0, np.int64)]
        for some, times in merged(runs, self._layout, max(1, self._limits.held // max(1, len(runs)))):
            large = times >= at_least
            keys.append(some[large])
            counts.append(times[large])
        return self._layout, (np.concatenate(keys), np.concatenate(counts))

    def _lay_out(self, sizes: tuple[int, ...]) -> None:
        self._layout = Layout(sizes)
        dense = self._layout.size <= self._limits.dense
        self._counters: NDArray[np.uint32] | None = np.zeros(self._layout.size, np.uint32) if dense else None

    def _flush(self) -> None:
        """Turn what was gathered into a run, and what is held into one on disk if it has become too much."""
        if not self._added:
            return
        if self._counters is not None:
            found = np.flatnonzero(self._counters)
            counts = self._counters[found].astype(np.int64)
            self._counters[found] = 0
            self._hold(found, counts)
        else:
            self._hold(*grouped(np.concatenate(self._buffer)))
        self._buffer, self._added = [], 0

    def _hold(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        self._held.append(Held(self._layout, keys, counts))
        if sum(map(len, self._held)) <= self._limits.held:
            return
        parts = list(merged(self._held, self._layout, self._limits.held))
        whole = Held(self._layout, np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))
        self._held = [whole]
        if len(whole) > self._limits.held // 2:
            self._spilled.append(self._disk.write(whole))
            self._held = []
