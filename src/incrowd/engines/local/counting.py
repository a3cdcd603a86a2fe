"""Counting: how often each key occurs, in bounded memory: sorted runs go to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys, Layout, grouped, translated

Part = tuple[Keys, NDArray[np.int64]]
"""Keys in order without repetition, and their counts."""


@dataclass(frozen=True)
class MemoryRun:
    """A long part in memory, read in short ones."""

    layout: Layout
    keys: Keys
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.keys)

    def parts(self, size: int) -> Iterator[Part]:
        """Return it in parts of at most this size."""
        for start in range(0, len(self), size):
            yield self.keys[start : start + size], self.counts[start : start + size]


@dataclass(frozen=True)
class DiskRun:
    """A long part on disk, read in short ones."""

    layout: Layout
    length: int
    file: BinaryIO
    offset: int

    def __len__(self) -> int:
        return self.length

    def parts(self, size: int) -> Iterator[Part]:
        width = self.layout.dtype.itemsize
        for start in range(0, self.length, size):
            length = min(size, self.length - start)
            self.file.seek(self.offset + start * width)
            keys = np.frombuffer(self.file.read(length * width), self.layout.dtype)
            self.file.seek(self.offset + self.length * width + start * 8)
            yield keys, np.frombuffer(self.file.read(length * 8), np.int64)


Run = MemoryRun | DiskRun


class Disk:
    """A file without a name, created on first use: no other process can open it, and it ends with this one."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, run: MemoryRun) -> DiskRun:
        """Append a run."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="incrowd-")  # noqa: SIM115 (closed by `__exit__`)
        offset = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(run.keys).tobytes())
        self._file.write(np.ascontiguousarray(run.counts).tobytes())
        return DiskRun(run.layout, len(run), self._file, offset)


def merge_runs(runs: Sequence[Run], layout: Layout, size: int) -> Iterator[Part]:
    """Merge runs into one, returned in parts; each run contributes at most `size` keys at a time.

    A layout with more room for each column keeps the order of the tuples, so runs in a tighter layout are translated on
    the way.  Every key up to the least of the last keys that were read has been read: no later part holds one.

    >>> one, two = (MemoryRun(Layout((9,)), np.array(keys), np.array([1, 1])) for keys in ([2, 5], [5, 7]))
    >>> [(keys.tolist(), counts.tolist()) for keys, counts in merge_runs([one, two], Layout((9,)), 9)]
    [([2, 5], [1, 2]), ([7], [1])]
    """
    sources = [_translated(run, layout, size) for run in runs]
    waiting = [(part, source) for source in sources if (part := next(source, None)) is not None]
    while waiting:
        bound = min(keys[-1] for (keys, _), _ in waiting)
        ready, later = [], []
        for (keys, counts), source in waiting:
            upto = int(np.searchsorted(keys, bound, side="right"))
            ready.append((keys[:upto], counts[:upto]))
            rest: Part | None = (keys[upto:], counts[upto:]) if upto < len(keys) else next(source, None)
            if rest is not None:
                later.append((rest, source))
        yield grouped(np.concatenate([keys for keys, _ in ready]), np.concatenate([counts for _, counts in ready]))
        waiting = later


def _translated(run: Run, layout: Layout, size: int) -> Iterator[Part]:
    same = [(place, None) for place in range(len(layout.sizes))]
    for keys, counts in run.parts(size):
        yield (keys if run.layout == layout else translated(keys, run.layout, layout, same)), counts


@dataclass(frozen=True)
class CountingLimits:
    """When to count how: numbers of cells or keys.

    Up to `dense` cells, each cell has a counter of 4 bytes.  Beyond, `buffered` keys (8 bytes or more) are gathered
    before they are sorted and counted, and up to `held` different ones (16 bytes or more) stay in memory before they go
    to disk.
    """

    dense: int = 2**26
    buffered: int = 2**20
    held: int = 2**21


_FULL = 2**32 - 1  # the largest count that a counter of 4 bytes holds


class CountTally:
    """Counts of tuples of codes, added batch by batch; the numbers of codes may grow from batch to batch.

    >>> with Disk() as disk:
    ...     tally = CountTally(CountingLimits(), (2, 3), disk)
    ...     tally.add([np.array([1, 0, 1], np.int32), np.array([2, 0, 2], np.int32)], (2, 3))
    ...     layout, (keys, counts) = tally.result()
    >>> [codes.tolist() for codes in layout.unpack(keys)], counts.tolist()
    ([[0, 1], [0, 2]], [1, 2])
    """

    def __init__(self, limits: CountingLimits, sizes: tuple[int, ...], disk: Disk) -> None:
        self._limits = limits
        self._disk = disk
        self._buffer: list[Keys] = []
        self._held: list[MemoryRun] = []
        self._spilled: list[Run] = []
        self._added = 0
        self._lay_out(sizes)

    def add(self, codes: Sequence[Codes], sizes: tuple[int, ...]) -> None:
        """Count tuples, passed column by column; every code is below the size of its column, and sizes only grow."""
        self.add_keys(Layout(sizes).pack(codes), sizes)

    def add_keys(self, keys: Keys, sizes: tuple[int, ...]) -> None:
        """Count tuples, passed as keys in the layout of these sizes."""
        if not len(keys):
            return
        if sizes != self._layout.sizes:
            self._flush()
            self._lay_out(sizes)
        if self._added + len(keys) > (_FULL if self._counters is not None else self._limits.buffered):
            self._flush()
        self._added += len(keys)
        if self._counters is not None:
            np.add.at(self._counters, keys, np.uint32(1))
        else:
            self._buffer.append(keys)

    def result(self, at_least: int = 1) -> tuple[Layout, Part]:
        """Return the keys that occur at least `at_least` times, in order, with their counts; and their layout."""
        if self._counters is not None and not self._held and not self._spilled:
            cells = np.flatnonzero(self._counters >= at_least)
            return self._layout, (cells, self._counters[cells].astype(np.int64))
        self._flush()
        runs = [*self._spilled, *self._held]
        keys, counts = [np.zeros(0, self._layout.dtype)], [np.zeros(0, np.int64)]
        for merged, times in merge_runs(runs, self._layout, max(1, self._limits.held // max(1, len(runs)))):
            large = times >= at_least
            keys.append(merged[large])
            counts.append(times[large])
        return self._layout, (np.concatenate(keys), np.concatenate(counts))

    def _lay_out(self, sizes: tuple[int, ...]) -> None:
        self._layout = Layout(sizes)
        dense = self._layout.size <= self._limits.dense
        self._counters: NDArray[np.uint32] | None = np.zeros(self._layout.size, np.uint32) if dense else None

    def _flush(self) -> None:
        """Turn what was gathered into a run, and the runs in memory into one on disk if they have grown too large."""
        if not self._added:
            return
        if self._counters is not None:
            cells = np.flatnonzero(self._counters)
            counts = self._counters[cells].astype(np.int64)
            self._counters[cells] = 0
            self._hold(cells, counts)
        else:
            self._hold(*grouped(np.concatenate(self._buffer)))
        self._buffer, self._added = [], 0

    def _hold(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        self._held.append(MemoryRun(self._layout, keys, counts))
        if sum(map(len, self._held)) <= self._limits.held:
            return
        parts = list(merge_runs(self._held, self._layout, self._limits.held))
        whole = MemoryRun(self._layout, np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))
        self._held = [whole]
        if len(whole) > self._limits.held // 2:
            self._spilled.append(self._disk.write(whole))
            self._held = []
