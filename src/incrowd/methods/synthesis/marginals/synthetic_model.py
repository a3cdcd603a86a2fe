"""Synthetic model: a model with what its columns show, from which rows are drawn, and its file.

The file is plain JSON: the columns with what each of their classes shows, the cliques, and a table of probabilities for
each.  It is made from noisy tables alone, so whoever has it may draw from it, now and later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Dates, Numbers, Type
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.shared.model_file import ModelFile
from incrowd.methods.synthesis.marginals.junction import Floats, JunctionTree
from incrowd.methods.synthesis.marginals.model import Codes, TableModel

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes

_FINE = 2**20  # a place within a bin is drawn in steps of 2⁻²⁰
_VERSION = 1
_MOST_ROWS = 10**9  # some gigabytes of rows
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException)


@dataclass(frozen=True, eq=False)
class NumberRange:
    """Where the numbers of a column lie: where each class starts, and where the last one ends.

    Days are whole numbers, counted from 1970-01-01.

    >>> chance = np.random.default_rng(1)
    >>> NumberRange((0.0, 31.0), 59.0, whole=True, days=True).draw(np.array([0, 1, 2]), chance).to_pylist()
    [datetime.date(1970, 1, 15), datetime.date(1970, 2, 15), None]
    """

    starts: tuple[float, ...]
    end: float
    whole: bool
    days: bool = False

    def draw(self, codes: Codes, chance: np.random.Generator) -> pa.Array:
        """Return a number anywhere in the class of each row; classes after the last hold what is missing."""
        starts = np.array(self.starts)
        ends = np.append(starts[1:], self.end)
        missing = codes >= len(starts)
        place = np.where(missing, 0, codes)
        if self.whole:
            low, high = starts.astype(np.int64), np.maximum(ends, starts + 1).astype(np.int64)
            numbers = pa.array(chance.integers(low[place], high[place]), pa.int64(), mask=missing)
            return numbers.cast(pa.int32()).cast(pa.date32()) if self.days else numbers
        steps = chance.integers(0, _FINE, len(codes)) / _FINE
        return pa.array(starts[place] + steps * (ends - starts)[place], pa.float64(), mask=missing)


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A column of a model: what each class shows, or in which range its numbers are drawn."""

    name: str
    values: pa.Array
    numbers: NumberRange | None = None

    @classmethod
    def of(cls, classes: Classes) -> ModelColumn:
        """Return the column of declared classes."""
        numbers = _range_of(classes) if drawn_number(classes) else None
        return cls(classes.recoding.column.name, classes.values(), numbers)

    @property
    def labels(self) -> list[str | None]:
        """The classes as text, None for missing values."""
        labels: list[str | None] = text_of(self.values).to_pylist()
        return labels

    def displayed(self, codes: Codes, chance: np.random.Generator) -> pa.Array:
        """Return what rows of some classes show: their labels, or numbers drawn inside of them."""
        return _encoded(self.values, codes) if self.numbers is None else self.numbers.draw(codes, chance)

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain JSON."""
        plain: dict[str, Any] = {"name": self.name, "type": str(self.values.type), "classes": self.labels}
        if self.numbers is not None:
            plain["numbers"] = {
                "starts": list(self.numbers.starts),
                "end": self.numbers.end,
                "whole": self.numbers.whole,
                **({"days": True} if self.numbers.days else {}),
            }
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> ModelColumn:
        """Read what `to_json` wrote."""
        values = pa.array(plain["classes"], pa.string()).cast(pa.type_for_alias(plain["type"]))
        stated = plain.get("numbers")
        numbers = None
        if stated is not None:
            starts, days = tuple(map(float, stated["starts"])), bool(stated.get("days", False))
            numbers = NumberRange(starts, float(stated["end"]), bool(stated["whole"]), days)
        return cls(str(plain["name"]), values, numbers)


@dataclass(frozen=True, eq=False)
class SyntheticModel(ModelFile):
    """A model with what its columns show: rows can be drawn from it again and again, at no cost."""

    model: TableModel
    columns: tuple[ModelColumn, ...]

    def sample(self, rows: int, seed: int | None = None) -> pa.Table:
        """Draw so many new rows; nothing private is in how they are drawn, so a seed is no secret."""
        if not 0 <= rows <= _MOST_ROWS:
            raise InvalidParameter(f"from 0 to {_MOST_ROWS:,} rows are drawn.")
        chance = np.random.default_rng(seed)
        return self.labeled(self.model.draw(rows, chance), chance)

    def labeled(self, codes: Codes, chance: np.random.Generator) -> pa.Table:
        """Return rows of codes as labels and numbers, in a random order: tables are drawn clique by clique."""
        shuffled = codes[:, chance.permutation(codes.shape[1])]
        arrays = [column.displayed(code, chance) for column, code in zip(self.columns, shuffled, strict=True)]
        return pa.table(arrays, names=[column.name for column in self.columns])

    def to_json(self) -> dict[str, Any]:
        names = [column.name for column in self.columns]
        return {
            "incrowd model": _VERSION,
            "rows": round(self.model.total),
            "columns": [column.to_json() for column in self.columns],
            "cliques": [[names[place] for place in clique] for clique in self.model.tree.cliques],
            "tables": [[float(f"{value:.9g}") for value in table.ravel()] for table in self.model.tables],
        }

    @classmethod
    def from_json(cls, plain: object) -> Self:
        if not isinstance(plain, Mapping) or plain.get("incrowd model") != _VERSION:
            raise InvalidParameter("this is no model that this version of incrowd can read.")
        try:
            columns = tuple(map(ModelColumn.from_json, plain["columns"]))
            return cls(_table_model(plain, columns), columns)
        except _UNREADABLE:
            raise InvalidParameter(
                "this is no model that incrowd wrote: its columns, cliques or tables differ."
            ) from None


def _table_model(plain: Mapping[str, Any], columns: Sequence[ModelColumn]) -> TableModel:
    """Return the tables on the junction tree of the cliques."""
    place = {column.name: number for number, column in enumerate(columns)}
    sizes = tuple(len(column.values) for column in columns)
    cliques = tuple(tuple(place[name] for name in clique) for clique in plain["cliques"])
    tree = JunctionTree.hung(sizes, cliques)
    if {number for clique in cliques for number in clique} != set(range(len(columns))) or 0 in sizes:
        raise ValueError("cliques")
    tables = tuple(_table(values, tree, number) for number, values in enumerate(plain["tables"]))
    if len(tables) != len(cliques):
        raise ValueError("tables")
    return TableModel(tree, tables, float(plain["rows"]))


def _table(values: Sequence[float], tree: JunctionTree, number: int) -> Floats:
    table = np.array(values, np.float64).reshape([tree.sizes[column] for column in tree.cliques[number]])
    if not np.isfinite(table).all() or (table < 0).any() or abs(table.sum() - 1) > 1e-6:
        raise ValueError("a table of probabilities")
    return table


def drawn_number(classes: Classes) -> bool:
    """Whether a column's numbers are drawn inside its classes: where those are intervals between declared bounds."""
    column = classes.recoding.column
    domain = column.domain
    closed = isinstance(domain, Numbers | Dates) and None not in domain.bounds
    return closed and not classes.has_other and 0 < classes.recoding.level < column.hierarchy.height


def _range_of(classes: Classes) -> NumberRange:
    column, marks = classes.recoding.column, classes.marks
    days = column.type is Type.DATE
    ends = pa.array(column.stored_bounds, marks.type)
    low, high, *starts = _on_a_line(pa.concat_arrays([ends, marks])).tolist()
    whole = days or column.type is Type.INTEGER
    return NumberRange(tuple(min(max(start, low), high) for start in starts), high + whole, whole, days)


def _on_a_line(values: pa.Array) -> NDArray[np.float64]:
    """Return numbers as they are, and days as their number since 1970-01-01."""
    plain = values.cast(pa.int32()) if pa.types.is_date32(values.type) else values
    places: NDArray[np.float64] = plain.to_numpy(zero_copy_only=False).astype(np.float64)
    return places


def _encoded(values: pa.Array, codes: Codes) -> pa.Array:
    """Return what rows of some classes show; text as a dictionary of what is there, in the order of its appearance.

    >>> _encoded(pa.array(["a", "b", None]), np.array([1, 1, 2])).to_pylist()
    ['b', 'b', None]
    """
    if not pa.types.is_string(values.type):
        return values.take(pa.array(codes))
    own = values.dictionary_encode()
    codes_shown = own.indices.fill_null(-1).to_numpy(zero_copy_only=False)[codes]
    distinct, first = np.unique(codes_shown, return_index=True)
    used = distinct[np.argsort(first)]
    used = used[used >= 0]
    place = np.zeros(len(own.dictionary) + 1, np.int32)
    place[used] = np.arange(len(used))
    indices = pa.array(place[codes_shown], pa.int32(), mask=codes_shown < 0)
    return pa.DictionaryArray.from_arrays(indices, own.dictionary.take(pa.array(used)))
