"""Consenting: the rows of people whose pseudonyms are admitted, by a semi-join on the column that tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.reading import canonical
from incrowd.core.schema import Column
from incrowd.core.subjects import SubjectKey
from incrowd.core.table import PersonFilter, Rows
from incrowd.engines.local.contributions import ids_of


@dataclass(frozen=True, eq=False)
class PseudonymFilter:
    """Whose rows take part: people whose pseudonym is among some; a row without a person takes part nowhere.

    >>> key = SubjectKey(bytes(32))
    >>> ann = PseudonymFilter(Column("id"), key, frozenset({key.pseudonym("ann")}))
    >>> ann.of(pa.array(["ann", "bob", None, "ann"])).tolist()
    [True, False, False, True]
    """

    person: Column
    key: SubjectKey
    subjects: frozenset[str] = field(repr=False)

    def of(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Return for each id whether its rows take part."""
        names = canonical(ids_of(ids, self.person)).dictionary_encode()
        known = [self.key.pseudonym(name) in self.subjects for name in names.dictionary.to_pylist()]
        codes = names.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        admitted: NDArray[np.bool_] = np.array([*known, False], np.bool_)[codes]
        return admitted

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """Return who of some people takes part; each is named by the one way in which their id is written."""
        return frozenset(name for name in names if self.key.pseudonym(name) in self.subjects)


@dataclass(frozen=True, eq=False)
class Consenting:
    """Rows of admitted people, in the order of their source; positions are counted among them.

    Where rows are between people, such as edges, `whose` names their columns: all of them must be admitted.

    >>> from incrowd.engines.readers.sources import open_source
    >>> key = SubjectKey(bytes(32))
    >>> source = open_source(pa.table({"id": ["ann", "bob"], "zip": ["021", "945"]}))
    >>> rows = Consenting(source, PseudonymFilter(Column("id"), key, frozenset({key.pseudonym("bob")})))
    >>> [batch.to_pylist() for batch in rows.batches(["zip"])]
    [[{'zip': '945'}]]
    """

    source: Rows
    admitted: PersonFilter
    whose: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.source.names

    @property
    def rows(self) -> int | None:
        """Not known before they are read."""
        return None

    @property
    def address(self) -> None:
        """Where they are is told by their source."""
        return

    @property
    def settings(self) -> Mapping[str, str]:
        """How they are read is told by their source."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns of the rows of admitted people."""
        people = self.whose or (self.admitted.person.name,)
        for batch in self.source.batches(list(dict.fromkeys((*columns, *people)))):
            mask = np.logical_and.reduce([self.admitted.of(batch.column(name)) for name in people])
            yield batch.filter(pa.array(mask)).select(list(columns))
