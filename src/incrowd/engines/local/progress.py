"""Progress: rows that tell how many of them have been read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.table import Progress, Rows


@dataclass(frozen=True)
class ProgressRows:
    """Rows that tell after each batch how many have been read.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> told = []
    >>> source = open_source(pa.table({"zip": ["02139", "94305"]}))
    >>> rows = ProgressRows(source, lambda done, total: told.append((done, total)))
    >>> [len(batch) for batch in rows.batches(["zip"])], told
    ([2], [(2, 2)])
    """

    source: Rows
    progress: Progress

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.source.names

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""
        return self.source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns, and tell after each batch."""
        done = 0
        for batch in self.source.batches(columns):
            yield batch
            done += len(batch)
            self.progress(done, self.rows)
