"""Synthetic model: a model with what its columns show, from which rows are drawn, and its file.

The file is plain JSON: the columns with what each of their classes shows, the cliques, and a table of probabilities for
each.  It is made from noisy tables alone, so whoever has it may draw from it, now and later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.drawing.card import card, facts, plain
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.shared.model_file import ModelFile
from incrowd.methods.synthesis.marginals.constraints import (
    ConstraintKind,
    NumberConstraint,
    closed_orders,
    require_compatible,
)
from incrowd.methods.synthesis.marginals.detail import FinerPieces, drawn_number, range_of
from incrowd.methods.synthesis.marginals.joint_numbers import JointNumbers
from incrowd.methods.synthesis.marginals.junction import Floats, JunctionTree
from incrowd.methods.synthesis.marginals.model import Codes, TableModel
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.patterns import Distance, NoisyPattern, manners

__all__ = ["Leaves", "ModelColumn", "NumberRange", "SyntheticModel", "drawn_number"]

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes

_VERSION = 1
_LISTED = 12  # columns and tables that a shell shows
_MOST_ROWS = 10**9  # some gigabytes of rows
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException)


@dataclass(frozen=True, eq=False)
class Leaves:
    """The values of the classes of a column, the class of each, and its chance among those of that class.

    >>> leaves = Leaves(pa.array(["Bonn", "Ulm", None]), (0, 1, 2), (1.0, 1.0, 1.0))
    >>> leaves.draw(np.array([1, 0, 2]), np.random.default_rng(1)).to_pylist()
    ['Ulm', 'Bonn', None]
    """

    values: pa.Array
    classes: tuple[int, ...]
    chances: tuple[float, ...]

    def __post_init__(self) -> None:
        proper = all(0 <= chance <= 1 for chance in self.chances) and set(self.classes) == {
            *range(max(self.classes) + 1)
        }
        if not len(self.values) == len(self.classes) == len(self.chances) or not proper:
            raise ValueError("leaves")

    @property
    def labels(self) -> list[str | None]:
        """The values as text, None for missing ones."""
        labels: list[str | None] = text_of(self.values).to_pylist()
        return labels

    def draw(self, codes: Codes, chance: np.random.Generator) -> pa.Array:
        """Return a value of the class of each row."""
        owners = np.array(self.classes)
        order = np.argsort(owners, kind="stable")
        sums = np.bincount(owners, self.chances)[owners]
        number = np.bincount(owners)[owners]
        weights = np.where(sums > 0, np.array(self.chances) / np.maximum(sums, 1e-300), 1.0 / number)[order]
        first = np.searchsorted(owners[order], codes, side="left")
        last = np.searchsorted(owners[order], codes, side="right") - 1
        ends = np.cumsum(weights)
        aim = ends[first] - weights[first] + chance.random(len(codes)) * (1 - 1e-12)
        places = np.clip(np.searchsorted(ends, aim, side="right"), first, last)
        return _encoded(self.values, order[places])

    def to_json(self) -> dict[str, Any]:
        """Return the values as plain JSON."""
        return {
            "values": self.labels,
            "pieces": list(self.classes),
            "chances": [float(f"{chance:.6g}") for chance in self.chances],
        }


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """A column of a model: what each class shows, or in which range its numbers, or which of its values, are drawn."""

    name: str
    values: pa.Array
    numbers: NumberRange | None = None
    leaves: Leaves | None = None

    @classmethod
    def of(cls, classes: Classes) -> ModelColumn:
        """Return the column of declared classes."""
        numbers = range_of(classes) if drawn_number(classes) else None
        return cls(classes.recoding.column.name, classes.values(), numbers)

    @classmethod
    def measured(
        cls, pieces: FinerPieces, noisy: NDArray[np.int64], scale: float, patterns: Sequence[NoisyPattern] = ()
    ) -> ModelColumn:
        """Return the column of classes whose pieces were counted with noise."""
        name, classes = pieces.classes.recoding.column.name, pieces.classes
        if pieces.starts is not None:
            return cls(name, classes.values(), pieces.range(noisy, scale, *manners(patterns, name)))
        chances = pieces.chances(noisy, scale)
        return cls(name, classes.values(), None, Leaves(pieces.fine.values(), tuple(pieces.owners.tolist()), chances))

    @property
    def labels(self) -> list[str | None]:
        """The classes as text, None for missing values."""
        labels: list[str | None] = text_of(self.values).to_pylist()
        return labels

    def draw(self, codes: Codes, chance: np.random.Generator) -> pa.Array:
        """Return what rows of some classes show: their labels, or values drawn inside of them."""
        if self.numbers is not None:
            return self.numbers.draw(codes, chance)
        return _encoded(self.values, codes) if self.leaves is None else self.leaves.draw(codes, chance)

    def to_json(self) -> dict[str, Any]:
        """Return the column as plain JSON."""
        plain: dict[str, Any] = {"name": self.name, "type": str(self.values.type), "classes": self.labels}
        if self.numbers is not None:
            plain["numbers"] = self.numbers.to_json()
        if self.leaves is not None:
            plain["leaves"] = self.leaves.to_json()
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> ModelColumn:
        """Read what `to_json` wrote."""
        values = pa.array(plain["classes"], pa.string()).cast(pa.type_for_alias(plain["type"]))
        numbers = None if plain.get("numbers") is None else NumberRange.from_json(plain["numbers"])
        stated, leaves = plain.get("leaves"), None
        if stated is not None:
            own = pa.array(stated["values"], pa.string()).cast(values.type)
            leaves = Leaves(own, tuple(map(int, stated["pieces"])), tuple(map(float, stated["chances"])))
        if leaves is not None and max(leaves.classes) != len(values) - 1:
            raise ValueError("leaves")
        return cls(str(plain["name"]), values, numbers, leaves)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticModel(ModelFile):
    """A model with what its columns show: rows can be drawn from it again and again, at no cost."""

    model: TableModel
    columns: tuple[ModelColumn, ...]
    constraints: tuple[NumberConstraint, ...] = ()
    distances: tuple[Distance, ...] = ()

    def sample(self, rows: int, seed: int | None = None) -> pa.Table:
        """Draw so many new rows; nothing private is in how they are drawn, so a seed is no secret."""
        if not 0 <= rows <= self.most_rows:
            raise InvalidParameter(f"from 0 to {self.most_rows:,} rows are drawn.")
        chance = np.random.default_rng(seed)
        return self.labeled(self.model.draw(rows, chance), chance)

    def labeled(self, codes: Codes, chance: np.random.Generator) -> pa.Table:
        """Return rows of codes as labels and numbers, in a random order: tables are drawn clique by clique."""
        shuffled = codes[:, chance.permutation(codes.shape[1])]
        arrays = drawn_values(self.columns, (self.constraints, self.distances), shuffled, chance)
        return pa.table(arrays, names=[column.name for column in self.columns])

    def __repr__(self) -> str:
        return plain("synthetic model", self.facts)

    def _repr_html_(self) -> str:
        return card("synthetic model", facts(self.facts))

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What it is, for people."""
        names = [column.name for column in self.columns]
        tables = [" × ".join(names[place] for place in clique) for clique in self.model.tree.cliques]
        return [
            ("rows", f"about {round(self.model.total):,} in the data; sample(rows) draws any number"),
            ("columns", ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if names[_LISTED:] else "")),
            (
                "tables",
                ", ".join(tables[:_LISTED]) + (f" and {len(tables) - _LISTED} more" if tables[_LISTED:] else ""),
            ),
            *[("every row", str(constraint)) for constraint in self.constraints],
        ]

    @property
    def most_rows(self) -> int:
        """How many rows can be drawn at most: as many as a column has values in which no two rows are alike."""
        unique = [item.columns[0] for item in self.constraints if item.kind is ConstraintKind.UNIQUE]
        rooms = [
            int(column.numbers.values.sum()) for column in self.columns if column.name in unique and column.numbers
        ]
        return min([_MOST_ROWS, *rooms])

    def to_json(self) -> dict[str, Any]:
        names = [column.name for column in self.columns]
        return {
            "incrowd model": _VERSION,
            "rows": round(self.model.total),
            "columns": [column.to_json() for column in self.columns],
            **(
                {"constraints": [[str(item.kind), *item.columns] for item in self.constraints]}
                if self.constraints
                else {}
            ),
            **(
                {"distances": [{"columns": list(own.columns), **own.law.to_json()} for own in self.distances]}
                if self.distances
                else {}
            ),
            "cliques": [[names[place] for place in clique] for clique in self.model.tree.cliques],
            "tables": [[float(f"{value:.9g}") for value in table.ravel()] for table in self.model.tables],
        }

    @classmethod
    def from_json(cls, plain: object) -> Self:
        if not isinstance(plain, Mapping) or plain.get("incrowd model") != _VERSION:
            raise InvalidParameter("this is no model that this version of incrowd can read.")
        try:
            columns = tuple(map(ModelColumn.from_json, plain["columns"]))
            constraints = [
                NumberConstraint(ConstraintKind(kind), tuple(map(str, names)))
                for kind, *names in plain.get("constraints", ())
            ]
            require_compatible(constraints, {column.name: column.numbers for column in columns if column.numbers})
            distances = tuple(map(_distance, plain.get("distances", ())))
            ordered = {item.columns for item in constraints if item.kind is ConstraintKind.ORDER}
            if not {item.columns for item in distances} <= ordered:
                raise ValueError("distances")
            return cls(_table_model(plain, columns), columns, tuple(constraints), distances)
        except _UNREADABLE:
            raise InvalidParameter(
                "this is no model that incrowd wrote: its columns, cliques or tables differ."
            ) from None


def drawn_values(
    columns: Sequence[ModelColumn],
    rules: tuple[Sequence[NumberConstraint], Sequence[Distance]],
    codes: Codes,
    chance: np.random.Generator,
    groups: Mapping[str, Codes] = MappingProxyType({}),
) -> list[pa.Array]:
    """Return what rows of some classes show; numbers fulfil constraints, and rise in each group where one is given.

    `rules` are constraints, and the laws of distances between days.
    """
    constraints, distances = rules
    named = {name for constraint in constraints for name in constraint.columns} | groups.keys()
    own = [(column, code) for column, code in zip(columns, codes, strict=True) if column.name in named]
    ranges = {column.name: column.numbers for column, _ in own if column.numbers is not None}
    joint = JointNumbers(
        ranges,
        {column.name: code for column, code in own if column.name in ranges},
        closed_orders(constraints),
        groups,
        {item.columns: item.law for item in distances},
    ).steps(chance)
    return [
        column.numbers.released(joint[column.name], code)
        if column.numbers is not None and column.name in joint
        else column.draw(code, chance)
        for column, code in zip(columns, codes, strict=True)
    ]


def _distance(plain: Mapping[str, Any]) -> Distance:
    first, second = map(str, plain["columns"])
    law = NumberRange.from_json(plain)
    if set(law.classes) != {0} or len(law.chances) != len(law.starts):
        raise ValueError("distances")
    return Distance((first, second), law)


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
