"""Output: the noisy answers to questions as tables, a row for each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.queries.answer import Answer

_ROWS = 2**17


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """The columns that were asked for; beside each noisy number the ends of its 95 % interval, `_low` and `_high`."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        return self.table.schema

    @property
    def parts(self) -> tuple[AnswerTable, ...]:
        """The one table."""
        return (self,)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows, so many at a time."""
        yield from self.table.to_batches(max_chunksize=_ROWS)

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what noisy aggregates show of themselves."""
        return _evidence(self.table.num_rows)


@dataclass(frozen=True, eq=False)
class AnswerTables:
    """The answers to one question, or to several that were paid for as one."""

    answers: tuple[Answer, ...]

    @cached_property
    def parts(self) -> tuple[AnswerTable, ...]:
        """A table for each answer."""
        return tuple(AnswerTable(answer.to_arrow()) for answer in self.answers)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all answers, one after the other."""
        return pa.schema([field for part in self.parts for field in part.schema])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of all answers, each with its own columns."""
        for part in self.parts:
            yield from part.batches()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:  # noqa: ARG002 - a promise always bounds it
        """Return what noisy aggregates show of themselves."""
        return _evidence(sum(part.table.num_rows for part in self.parts))


def _evidence(groups: int) -> dict[str, Any]:
    return {
        "groups": groups,
        "singling out": "no rows are published, only noisy aggregates",
        "linkability": "no rows are published: there is nothing to link but names of groups",
        "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
    }
