"""Reply: a noisy answer as it came from a server, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, overload

from incrowd.drawing.answer import RenderedColumn, expected_words, render_answer
from incrowd.drawing.card import FIRST_ROWS, answer_card, card, facts
from incrowd.errors import PackageMissing, UnsupportedVersion

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
_AGAIN = "Asked before: the same answer, at no cost to the dataset."


@dataclass(frozen=True)
class ReplyColumn:
    """One column of an answer; `low` and `high` are the ends of its 95 % intervals, where it has some."""

    name: str
    type: str
    values: tuple[Any, ...]
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None
    note: str = ""

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> ReplyColumn:
        """Read a column of a server's answer."""
        values = plain["values"]
        if plain["type"] == "date":
            values = [None if value is None else date.fromisoformat(value) for value in values]
        low, high = (None if plain.get(end) is None else tuple(plain[end]) for end in ("low", "high"))
        return cls(plain["name"], plain["type"], tuple(values), low, high, plain.get("note", ""))


@dataclass(frozen=True)
class Reply:
    """An answer with its cost, what is left, and its certificate; `note` says what the numbers are of, if not all rows.

    `undeclared` are the places of rows whose groups no declaration names: of missing values, and of `other`.

    >>> column = {"name": "n", "type": "integer", "values": [7], "low": [3.0], "high": [11.0]}
    >>> told = {"cost": {}, "left": {}, "certificate": {}, "repeated": False}
    >>> Reply.of({"answer": {"answer": 1, "columns": [column]}, **told}).rows()
    [{'n': 7, 'n_low': 3.0, 'n_high': 11.0}]
    """

    columns: tuple[ReplyColumn, ...]
    cost: Mapping[str, str]
    left: Mapping[str, Any]
    certificate: Mapping[str, Any]
    repeated: bool
    note: str = ""
    undeclared: tuple[int, ...] = ()

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Reply:
        """Read a server's reply to a query, or to EXPLAIN: then each line of the cost estimate is a row."""
        if "answer" not in plain:
            return cls((ReplyColumn("estimate", "text", tuple(_estimate(plain))),), {}, {}, {}, repeated=False)
        answer = plain["answer"]
        if answer.get("answer") != VERSION:
            raise UnsupportedVersion(f"this client reads answers of version {VERSION}: install the server's version.")
        columns = tuple(map(ReplyColumn.of, answer["columns"]))
        notes = (str(answer.get("note", "")), tuple(answer.get("undeclared", ())))
        return cls(columns, plain["cost"], plain["left"], plain["certificate"], plain["repeated"], *notes)

    def parts(self) -> list[tuple[str, str, tuple[Any, ...]]]:
        """Return name, type and values of each column, followed by `…_low` and `…_high` where it has intervals."""
        parts: list[tuple[str, str, tuple[Any, ...]]] = []
        for column in self.columns:
            parts.append((column.name, column.type, column.values))
            if column.low is not None and column.high is not None:
                parts += [
                    (f"{column.name}_low", "decimal", column.low),
                    (f"{column.name}_high", "decimal", column.high),
                ]
        return parts

    @property
    def notes(self) -> list[str]:
        """What is to be known about columns, and of which rows the numbers are."""
        columns = [f"{column.name}: {column.note}." for column in self.columns if column.note]
        return [*columns, *filter(None, [self.note])]

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping of names to values for each row."""
        names = [name for name, _, _ in self.parts()]
        columns = [values for _, _, values in self.parts()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _repr_html_(self) -> str:
        columns = [RenderedColumn(column.name, column.values, column.low, column.high) for column in self.columns]
        lines = costs(self.cost, self.left) if self.cost else []
        lines.append(("certificate", str(self.certificate.get("id", "none"))))
        again = [_AGAIN] if self.repeated else []
        texts = (*self.notes, *again)
        return answer_card("answer", render_answer(columns, self.undeclared), texts, lines)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the rows to any library that speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the columns and their intervals as an Arrow table."""
        import pyarrow as pa

        types = {"integer": pa.int64(), "decimal": pa.float64(), "date": pa.date32(), "boolean": pa.bool_()}
        parts = self.parts()
        arrays = [pa.array(values, types.get(kind, pa.string())) for _, kind, values in parts]
        return pa.Table.from_arrays(arrays, names=[name for name, _, _ in parts])

    def to_pandas(self) -> Any:
        """Return the columns and their intervals as a pandas frame."""
        try:
            import pandas as pd  # noqa: F401 (Arrow needs it)
        except ImportError:
            raise PackageMissing("a pandas frame needs the package pandas: pip install pandas.") from None
        frame = self.to_arrow().to_pandas()
        frame.attrs["notes"] = self.notes
        return frame

    def to_polars(self) -> Any:
        """Return the columns and their intervals as a Polars frame."""
        try:
            import polars as pl
        except ImportError:
            raise PackageMissing("a Polars frame needs the package polars: pip install polars.") from None
        return pl.from_arrow(self.to_arrow())


@dataclass(frozen=True)
class Replies(Sequence[Reply]):
    """The answers to several queries that were paid for as one, in their order.

    What all of them cost and what is left is told here, once; the single answers have no cost of their own.

    >>> told = {"cost": {"epsilon": "1"}, "left": {}, "certificate": {}, "repeated": False}
    >>> answer = {"answer": 1, "columns": [{"name": "n", "type": "integer", "values": [7]}]}
    >>> [reply.rows() for reply in Replies.of({"answers": [answer, answer], **told})]
    [[{'n': 7}], [{'n': 7}]]
    """

    replies: tuple[Reply, ...]
    cost: Mapping[str, str]
    left: Mapping[str, Any]
    certificate: Mapping[str, Any]
    repeated: bool

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Replies:
        """Read a server's reply to several queries."""
        certificate, repeated = plain["certificate"], plain["repeated"]
        shared = {"cost": {}, "left": {}, "certificate": certificate, "repeated": repeated}
        replies = tuple(Reply.of({"answer": answer, **shared}) for answer in plain["answers"])
        return cls(replies, plain["cost"], plain["left"], certificate, repeated)

    @overload
    def __getitem__(self, at: int) -> Reply: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Reply, ...]: ...
    def __getitem__(self, at: int | slice) -> Reply | tuple[Reply, ...]:
        """Return the answer to the query at a place, counted from 0."""
        return self.replies[at]

    def __len__(self) -> int:
        """Return how many queries were asked."""
        return len(self.replies)

    def _repr_html_(self) -> str:
        cards = "".join(reply._repr_html_() for reply in self.replies[:FIRST_ROWS])
        more = [f"The first {FIRST_ROWS} of {len(self):,} answers."] if len(self) > FIRST_ROWS else []
        note = " ".join([*more, *([_AGAIN] if self.repeated else [])])
        return cards + card("cost of all", facts(costs(self.cost, self.left)), note=note)


def _estimate(price: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a query would cost, what would remain and how exact it would be, line by line.

    >>> price = {"cost": {"epsilon": "1"}, "expected": [{"output": "n", "half_width": 3.0}], "notes": ["Of all rows."]}
    >>> list(_estimate(price))
    ['costs epsilon 1', 'expected n: ± 3', 'Of all rows.']
    """
    yield f"costs {amount(price['cost'])}"
    yield from (f"left of {name}: {amount(rest)}" for name, rest in price.get("left", {}).items())
    yield from map(expected_words, price.get("expected", ()))
    yield from price.get("notes", ())


def costs(cost: Mapping[str, str], left: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what something cost and what is left, in words."""
    return [("costs", amount(cost)), *((f"left of {name}", amount(rest)) for name, rest in left.items())]


def amount(numbers: Mapping[str, Any] | None) -> str:
    """Return an ε and a δ, or a ρ of an account, in words."""
    return "not enough" if numbers is None else ", ".join(f"{name} {value}" for name, value in numbers.items())
