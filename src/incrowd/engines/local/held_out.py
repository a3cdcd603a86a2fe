"""Held out: rows without the people whom an own coin leaves out, and those people's rows alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.reading import canonical
from incrowd.core.schema import Column
from incrowd.core.table import Rows
from incrowd.engines.local.contributions import ids_of
from incrowd.noise.positioned import PositionedSample


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Whom an own coin holds out: people by the value of their column, rows by their position where there is none.

    The coins are a function of a secret key, so that key and share are the list: whoever has them and the rows can tell
    who was held out, and nobody else can.  A row without a person is held out by nobody; it takes part nowhere.

    >>> rows = HeldOut(Fraction(1, 2), bytes(32), Column("patient"))
    >>> told = rows.of(pa.record_batch({"patient": ["a", "b", "a", None]}), 0)
    >>> bool(told[0] == told[2]), bool(told[3])
    (True, False)
    """

    share: Fraction
    key: bytes = field(repr=False)
    person: Column | None = None

    def of(self, batch: pa.RecordBatch, start: int) -> NDArray[np.bool_]:
        """Return which rows of a batch are held out; `start` is the position of its first row."""
        if self.person is None:
            return self._sample.at(start, start + batch.num_rows)
        names = canonical(ids_of(batch.column(self.person.name), self.person)).dictionary_encode()
        hashes = [
            hashlib.blake2b(name.encode(), key=self._keys[2], digest_size=16) for name in names.dictionary.to_pylist()
        ]
        words = np.frombuffer(b"".join(each.digest() for each in hashes), "<u8").reshape(-1, 2).astype(np.uint64)
        codes = names.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        held: NDArray[np.bool_] = np.append(self._sample.of(words), np.False_)[codes]
        return held

    @cached_property
    def _keys(self) -> tuple[bytes, ...]:
        return tuple(
            hashlib.blake2b(what, key=self.key, digest_size=32).digest() for what in (b"row", b"id", b"person")
        )

    @cached_property
    def _sample(self) -> PositionedSample:
        return PositionedSample(self.share, *self._keys[:2])


@dataclass(frozen=True, eq=False)
class DividedRows:
    """Rows without those held out, or the held-out ones alone.

    >>> from incrowd.engines.readers.sources import open_source
    >>> source, held = open_source(pa.table({"zip": ["02139"] * 64})), HeldOut(Fraction(1, 2), bytes(32))
    >>> sum(len(batch) for alone in (True, False) for batch in DividedRows(source, held, alone).batches(["zip"]))
    64
    """

    source: Rows
    held: HeldOut
    alone: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.source.names

    @property
    def rows(self) -> int | None:
        """Not known before they are read."""
        return None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns of the rows that belong to this part."""
        person = self.held.person
        more = [] if person is None or person.name in columns else [person.name]
        start = 0
        for batch in self.source.batches([*columns, *more]):
            belongs = self.held.of(batch, start) == self.alone
            start += batch.num_rows
            yield batch.filter(pa.array(belongs)).select(list(columns))
