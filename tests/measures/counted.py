"""Small tables counted as they are, and the slow way to group them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.engines.local.engine import LocalEngine
from tests.tables import Batches

Row = tuple[str | None, ...]
NAMES = ("first", "second", "sensitive")

cells = st.sampled_from(("a", "b", "c", None))
rows = st.lists(st.tuples(cells, cells, st.sampled_from(("1", "2", "3", "5", "8", None))), min_size=1, max_size=40)


def counted(table: Sequence[Row]) -> Counts:
    columns = {name: pa.array([row[place] for row in table], pa.string()) for place, name in enumerate(NAMES)}
    recodings = tuple(Recoding(Column(name), 0) for name in NAMES)
    return LocalEngine().count(Batches(pa.table(columns), 7), Cells(recodings))


def grouped(table: Sequence[Row]) -> dict[Row, Counter[str | None]]:
    """The sensitive values of the rows that agree on the first two columns."""
    found: dict[Row, Counter[str | None]] = defaultdict(Counter)
    for first, second, sensitive in table:
        found[first, second][sensitive] += 1
    return found
