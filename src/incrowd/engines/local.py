"""The engine of this process: Arrow batches and NumPy, one pass, nothing kept but counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
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


@dataclass(frozen=True)
class LocalEngine:
    """Rows in this process, read in batches."""

    limits: Limits = field(default_factory=Limits)

    def count(self, rows: Rows, cells: Cells, *kept: Kept, at_least: int = 1) -> Counts:
        """Count in one pass, in each cell, the rows that every one of `kept` keeps.

        Cells with fewer than `at_least` rows are left out.  Memory is a few batches, and either 4 bytes per cell (up
        to 2^26 cells) or about 250 MB and the counts returned; the labels of open levels come on top.
        """
        encoder, tally, start = Encoder(cells), Tally(self.limits), 0
        for batch in rows.batches(cells.reads or rows.names[:1]):
            chosen = _chosen(kept, start, start + len(batch))
            start += len(batch)
            if chosen is None or len(chosen):
                codes = encoder.codes(batch, chosen)
                tally.add(codes, encoder.sizes)
        return _counts(encoder, tally, at_least)
