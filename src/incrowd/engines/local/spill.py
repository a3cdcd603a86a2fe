"""Spill: sorted runs of keys and counts, on disk where memory would not do, merged a little at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Keys, Layout, grouped, translated

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
class Held:
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
class Spilled:
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

    def write(self, run: Held) -> Spilled:
        """Write a run to its end."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="incrowd-")  # noqa: SIM115 (closed by `__exit__`)
        offset = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(run.keys).tobytes())
        self._file.write(np.ascontiguousarray(run.counts).tobytes())
        return Spilled(run.layout, len(run), self._file, offset)


def merged(runs: Sequence[Run], layout: Layout, size: int) -> Iterator[Part]:
    """Merge runs into one, given in parts; each run contributes at most `size` keys at a time.

    A layout with more room for each column keeps the order of the tuples, so runs laid out more tightly can be
    translated on the way.  All keys up to the least of the last keys at hand are at hand: no part read later holds one.

    >>> one, two = (Held(Layout((9,)), np.array(keys), np.array([1, 1])) for keys in ([2, 5], [5, 7]))
    >>> [(keys.tolist(), counts.tolist()) for keys, counts in merged([one, two], Layout((9,)), 9)]
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
