"""Counting: how often each key occurs, in memory that does not grow with the rows: sorted runs go to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Codes, Keys, Layout, grouped, translated

Part = tuple[Keys, NDArray[np.int64]]
"""Keys in order, each once, and the count of each."""


class Run(Protocol):
    """A long part, read from its beginning in short ones."""

    @property
    def layout(self) -> Layout:
        """How its keys are laid out."""

    def __len__(self) -> int: ...

    def parts(self, size: int) -> Iterator[Part]:
        """Return it in parts of at most this size."""


@dataclass(frozen=True)
class MemoryRun:
    """A run in memory."""

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
    """A run on disk."""

    layout: Layout
    length: int
    file: BinaryIO
    offset: int

    def __len__(self) -> int:
        return self.length

    def parts(self, size: int) -> Iterator[Part]:
        """Return it in parts of at most this size."""
        width = self.layout.dtype.itemsize
        for start in range(0, self.length, size):
            some = min(size, self.length - start)
            self.file.seek(self.offset + start * width)
            keys = np.frombuffer(self.file.read(some * width), self.layout.dtype)
            self.file.seek(self.offset + self.length * width + start * 8)
            yield keys, np.frombuffer(self.file.read(some * 8), np.int64)


class Disk:
    """A file without a name, made when it is needed: nobody else can open it, and it ends with the process."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, run: MemoryRun) -> DiskRun:
        """Write a run to its end."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="incrowd-")  # noqa: SIM115 (closed by `__exit__`)
        offset = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(run.keys).tobytes())
        self._file.write(np.ascontiguousarray(run.counts).tobytes())
        return DiskRun(run.layout, len(run), self._file, offset)


def merge_runs(runs: Sequence[Run], layout: Layout, size: int) -> Iterator[Part]:
    """Merge runs into one, given in parts; each run contributes at most `size` keys at a time.

    A layout with more room for each column keeps the order of the tuples, so runs laid out more tightly can be
    translated on the way.  All keys up to the least of the last keys at hand are at hand: no part read later holds one.

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

    Up to `dense` cells there is a counter for each cell (4 bytes).  Beyond, `buffered` keys (8 bytes and more) are
    gathered before they are sorted and counted, and up to `held` different ones (16 bytes and more) are kept in memory
    before they go to disk.
    """

    dense: int = 2**26
    buffered: int = 2**20
    held: int = 2**21


_FULL = 2**32 - 1


class CountTally:
    """Counts of tuples of codes, added batch by batch; the numbers of codes may grow meanwhile.

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
        """Count tuples, given column by column; no code reaches the size of its column, and sizes only grow."""
        self.add_keys(Layout(sizes).pack(codes), sizes)

    def add_keys(self, keys: Keys, sizes: tuple[int, ...]) -> None:
        """Count tuples, given as keys in the layout of these sizes."""
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
        """Return the keys that occur at least so often, in order, with their counts; and how they are laid out."""
        if self._counters is not None and not self._held and not self._spilled:
            found = np.flatnonzero(self._counters >= at_least)
            return self._layout, (found, self._counters[found].astype(np.int64))
        self._flush()
        runs = [*self._spilled, *self._held]
        keys, counts = [np.zeros(0, self._layout.dtype)], [np.zeros(0, np.int64)]
        for some, times in merge_runs(runs, self._layout, max(1, self._limits.held // max(1, len(runs)))):
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
        self._held.append(MemoryRun(self._layout, keys, counts))
        if sum(map(len, self._held)) <= self._limits.held:
            return
        parts = list(merge_runs(self._held, self._layout, self._limits.held))
        whole = MemoryRun(self._layout, np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]))
        self._held = [whole]
        if len(whole) > self._limits.held // 2:
            self._spilled.append(self._disk.write(whole))
            self._held = []
