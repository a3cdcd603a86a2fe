"""Answer: noisy rows, with the 95 % interval of every number that has one, and the tables in which they leave."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.drawing.answer import RenderedAnswer, RenderedColumn, render_answer
from incrowd.drawing.card import answer_card
from incrowd.errors import InvalidParameter, PackageMissing, UnsupportedVersion

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from incrowd.core.unit import Unit

VERSION = 1
CONFIDENCE = "0.95"
_TYPES = {
    "integer": pa.int64(),
    "decimal": pa.float64(),
    "date": pa.date32(),
    "boolean": pa.bool_(),
    "text": pa.string(),
}

_NUMBERS = (pa.int64(), pa.float64())
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class AnswerColumn:
    """One column of an answer; `low` and `high` are the ends of its intervals, or `note` says why it has none."""

    name: str
    values: pa.Array
    low: pa.Array | None = None
    high: pa.Array | None = None
    note: str = ""


@dataclass(frozen=True)
class Answer:
    """What an analyst gets; everything in it is noisy or public, so nothing done with it costs more.

    `note` says what the numbers are of, where that is not the whole table.  `undeclared` are the places of rows whose
    groups no declaration names: those of missing values, and of `other`, which stands for all that was not declared.

    >>> column = AnswerColumn("n", pa.array([7]), pa.array([3.0]), pa.array([11.0]))
    >>> Answer((column,)).rows()
    [{'n': 7, 'n_low': 3.0, 'n_high': 11.0}]
    """

    columns: tuple[AnswerColumn, ...]
    note: str = ""
    undeclared: tuple[int, ...] = ()

    @property
    def table(self) -> pa.Table:
        """The columns as they were asked for, without intervals."""
        return _table([(column.name, column.values) for column in self.columns])

    @property
    def rendered(self) -> RenderedAnswer:
        """The answer as lines of text."""
        return render_answer([_rendered(column) for column in self.columns], self.undeclared)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known about columns, and about all numbers."""
        of_columns = (f"{column.name}: {column.note}." for column in self.columns if column.note)
        return (*of_columns, *([self.note] if self.note else []))

    def to_arrow(self) -> pa.Table:
        """Return the columns, each followed by `…_low` and `…_high` where it has intervals."""
        parts: list[tuple[str, pa.Array]] = []
        for column in self.columns:
            parts.append((column.name, column.values))
            if column.low is not None and column.high is not None:
                parts += [(f"{column.name}_low", column.low), (f"{column.name}_high", column.high)]
        return _table(parts)

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns and their intervals as a frame."""
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError:
            raise PackageMissing("pandas is not installed: install it, or use to_arrow().") from None
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the columns and their intervals as a Polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise PackageMissing("Polars is not installed: install it, or use to_arrow().") from None
        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return answer_card("answer", self.rendered, self.notes)

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping of names to values per row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the plain form; dates are written as 2020-12-31.

        >>> Answer((AnswerColumn("n", pa.array([7])),)).to_json()["columns"][0]["values"]
        [7]
        """
        return self._plain(_listed)

    def to_text(self) -> str:
        """Return the plain form as JSON; numbers that are none, or infinite, are written as `NaN` and `Infinity`.

        >>> Answer((AnswerColumn("n", pa.array([7]), pa.array([float("-inf")]), pa.array([11.5])),)).to_text()
        '{"answer":1,...,"columns":[{"name":"n","type":"integer","values":[7],"low":[-Infinity],"high":[11.5]}]}'
        """
        if not all(map(_is_finite, self.columns)):
            return _ENCODER.encode(self.to_json())
        return orjson.dumps(self._plain(_swift), option=orjson.OPT_SERIALIZE_NUMPY).decode()

    def _plain(self, listed: Callable[[pa.Array], Any]) -> dict[str, Any]:
        columns = [_written(column, listed) for column in self.columns]
        plain = {"answer": VERSION, "confidence": CONFIDENCE, "columns": columns}
        plain |= {"undeclared": list(self.undeclared)} if self.undeclared else {}
        return plain | ({"note": self.note} if self.note else {})

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Answer:
        """Read what `to_json` wrote.

        >>> answer = Answer((AnswerColumn("n", pa.array([7]), pa.array([3.0]), pa.array([11.0]), ""),))
        >>> Answer.from_json(answer.to_json()) == answer
        True
        """
        if plain.get("answer") != VERSION:
            raise UnsupportedVersion(f"answers of version {VERSION} are read here, not {plain.get('answer')!r}.")
        try:
            undeclared = tuple(map(int, plain.get("undeclared", ())))
            return cls(tuple(_read(column) for column in plain["columns"]), str(plain.get("note", "")), undeclared)
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise InvalidParameter("this answer lacks a field or holds one that cannot be read.") from error


def check_names(names: Iterable[str]) -> None:
    """Refuse columns that are called as the ends of the interval of another one are.

    >>> check_names(["n", "N_low"])
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: 'N_low' is an end of the interval of 'n': use AS.
    """
    by_name = {name.casefold(): name for name in names}
    for end in ("_low", "_high"):
        for lowered, name in by_name.items():
            if lowered + end in by_name:
                raise InvalidParameter(f"{by_name[lowered + end]!r} is an end of the interval of {name!r}: use AS.")


def _rendered(column: AnswerColumn) -> RenderedColumn:
    low, high = (None if end is None else end.to_pylist() for end in (column.low, column.high))
    return RenderedColumn(column.name, column.values.to_pylist(), low, high)


def _table(parts: list[tuple[str, pa.Array]]) -> pa.Table:
    return pa.Table.from_arrays([values for _, values in parts], names=[name for name, _ in parts])


def _written(column: AnswerColumn, listed: Callable[[pa.Array], Any]) -> dict[str, Any]:
    kind = next(name for name, stored in _TYPES.items() if stored == column.values.type)
    values = column.values.cast(pa.string()) if kind == "date" else column.values
    plain: dict[str, Any] = {"name": column.name, "type": kind, "values": listed(values)}
    if column.low is not None and column.high is not None:
        plain |= {"low": listed(column.low), "high": listed(column.high)}
    return plain | ({"note": column.note} if column.note else {})


def _is_finite(column: AnswerColumn) -> bool:
    parts = [part for part in (column.values, column.low, column.high) if part is not None]
    return all(pc.all(pc.is_finite(part)).as_py() is not False for part in parts if part.type == pa.float64())


def _listed(values: pa.Array) -> Any:
    return values.to_pylist()


def _swift(values: pa.Array) -> Any:
    """Return values as a list, or numbers as an array, which is written without one."""
    return values.to_numpy() if values.type in _NUMBERS and not values.null_count else _listed(values)


def _read(plain: Mapping[str, Any]) -> AnswerColumn:
    kind = _TYPES[plain["type"]]
    values = (
        pa.array(plain["values"], pa.string()).cast(kind)
        if plain["type"] == "date"
        else pa.array(plain["values"], kind)
    )
    low, high = (None if plain.get(end) is None else pa.array(plain[end], pa.float64()) for end in ("low", "high"))
    return AnswerColumn(str(plain["name"]), values, low, high, str(plain.get("note", "")))


_ROWS = 2**17


class _Tables(ABC):
    """The tables of one answer, or of several that were paid for as one."""

    @property
    @abstractmethod
    def parts(self) -> tuple[AnswerTable, ...]:
        """A table for each answer."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all answers, one after the other."""
        return pa.schema([field for part in self.parts for field in part.schema])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of all answers, each with its own columns."""
        for part in self.parts:
            yield from part.batches()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what noisy aggregates show of themselves."""
        return {"groups": sum(part.table.num_rows for part in self.parts)}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no rows are published, only noisy aggregates",
            "linkability": "no rows are published: there is nothing to link but names of groups",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }


@dataclass(frozen=True, eq=False)
class AnswerTable(_Tables):
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


@dataclass(frozen=True, eq=False)
class AnswerTables(_Tables):
    """Answers as they are given, with a table for each."""

    answers: tuple[Answer, ...]

    @cached_property
    def parts(self) -> tuple[AnswerTable, ...]:
        return tuple(AnswerTable(answer.to_arrow()) for answer in self.answers)


@dataclass(frozen=True, eq=False)
class AnswerFiles(_Tables):
    """Answers as they were published, read again."""

    tables: tuple[AnswerTable, ...]

    @property
    def parts(self) -> tuple[AnswerTable, ...]:
        """The tables of the files."""
        return self.tables
