"""The engine of this process: Arrow batches and NumPy, one pass, nothing kept but counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.keys import Layout, grouped, translated
from incrowd.core.mechanism import Coins
from incrowd.core.schema import Column
from incrowd.core.table import Kept, Rows
from incrowd.engines.contributions import Limited, limit
from incrowd.engines.counting import Limits, Tally
from incrowd.engines.encoding import Encoder
from incrowd.engines.sources import open_source
from incrowd.engines.spill import Disk
from incrowd.errors import SourceChanged


@dataclass(frozen=True)
class LocalEngine:
    """Rows in this process, read in batches."""

    limits: Limits = field(default_factory=Limits)

    def open(self, source: object) -> Rows:
        """Open a file, a table in one, or a frame, without reading a row."""
        return open_source(source)

    def count(self, rows: Rows, cells: Cells, *kept: Kept, at_least: int = 1) -> Counts:
        """Count in one pass, in each cell, the rows that every one of `kept` keeps.

        Cells with fewer than `at_least` rows are left out.  Memory is a few batches, and either 4 bytes per cell (up
        to 2^26 cells) or about 300 MB; on top of it come some 60 bytes for each cell that is returned, and the labels
        of open levels.

        >>> import pyarrow as pa
        >>> from incrowd.core.schema import Schema
        >>> rows = LocalEngine().open(pa.table({"zip": ["02139", "94305", "02139"]}))
        >>> LocalEngine().count(rows, Cells.of(Schema((Column("zip"),)), {}), at_least=2).to_table().to_pylist()
        [{'zip': '02139', 'count': 2}]
        """
        encoder, start = Encoder(cells), 0
        with Disk() as disk:
            tally = Tally(self.limits, encoder.sizes, disk)
            for batch in rows.batches(cells.reads or rows.names[:1]):
                chosen = _chosen(kept, start, start + len(batch))
                start += len(batch)
                if chosen is None or len(chosen):
                    codes = encoder.codes(batch, chosen)
                    tally.add(codes, encoder.sizes)
            return _counts(encoder, tally, at_least)

    def limit(self, rows: Rows, column: Column, at_most: int, coins: Coins) -> Limited:
        """Keep at most that many rows of each person, a random choice among the person's own."""
        return limit(rows, column, at_most, coins)


def _chosen(kept: Sequence[Kept], start: int, stop: int) -> NDArray[np.intp] | None:
    """Return which rows of a batch take part, or None if all do."""
    if not kept:
        return None
    masks = [each.at(start, stop) for each in kept]
    if any(len(mask) != stop - start for mask in masks):
        raise SourceChanged(
            "there are more rows than when they were first read. Start again when nobody writes to them."
        )
    chosen = np.flatnonzero(np.logical_and.reduce(masks))
    return None if len(chosen) == stop - start else chosen


def _counts(encoder: Encoder, tally: Tally, at_least: int) -> Counts:
    layout, (keys, counts) = tally.result(at_least)
    classes = encoder.classes()
    if any(table is not None for _, table in classes):
        target = Layout(tuple(len(column) for column, _ in classes))
        keys = translated(keys, layout, target, [(place, table) for place, (_, table) in enumerate(classes)])
        keys, counts = grouped(keys, counts)
    return Counts(tuple(column for column, _ in classes), keys, counts).pruned()
