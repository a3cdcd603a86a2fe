"""AnswerGroups: which keys are answered, and the statistics of each, whatever order the engine returned them in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.queries.query import Key, Query

Names = tuple[object, ...]
"""The values of a group's keys."""

ARROW = {
    Type.INTEGER: pa.int64(),
    Type.DECIMAL: pa.float64(),
    Type.DATE: pa.date32(),
    Type.BOOLEAN: pa.bool_(),
    Type.TEXT: pa.string(),
}
"""The Arrow types of an answer."""


@dataclass(frozen=True)
class AnswerGroups:
    """The groups of an answer in their order, and their exact statistics, one row each."""

    names: tuple[Names, ...]
    vectors: NDArray[np.int64]

    def names_at(self, places: Iterable[int]) -> tuple[Names, ...]:
        """Return the names of some groups."""
        return tuple(self.names[place] for place in places)


def public_groups(query: Query) -> tuple[Names, ...]:
    """Return all groups of public keys, in the order of the declaration; without keys there is one group.

    >>> from sqlglot import parse_one
    >>> from incrowd.queries.query import Contribution
    >>> key = Key("sex", Type.TEXT, ("F", "M"))
    >>> public_groups(Query("", parse_one("SELECT 1"), (key,), (), (), Contribution(1, 1), (), ()))
    (('F',), ('M',))
    """
    return tuple(itertools.product(*(key.values or () for key in query.keys)))


def collect_groups(query: Query, collected: pa.Table, columns: tuple[str, ...]) -> AnswerGroups:
    """Return the groups with their statistics: all public ones, or those that occur, sorted by their values.

    What the engine returned for a group that is not among the public ones is left out.
    """
    vectors = np.stack([_whole(collected.column(name)) for name in columns], axis=1)
    if not query.public_keys:
        occurring = names_in(query, collected)
        order = sorted(range(len(occurring)), key=lambda row: _sortable(occurring[row]))
        return AnswerGroups(tuple(occurring[row] for row in order), vectors[order])
    names, places = public_groups(query), _public_places(query, collected)
    result = np.zeros((len(names), len(columns)), dtype=np.int64)
    np.add.at(result, places[places >= 0], vectors[places >= 0])
    return AnswerGroups(names, result)


def _public_places(query: Query, collected: pa.Table) -> NDArray[np.int64]:
    """Return for every row the engine returned the position of its group among all public ones, or −1.

    Values are looked up once for each key, not for each row.
    """
    places, inside = np.zeros(collected.num_rows, dtype=np.int64), np.ones(collected.num_rows, dtype=np.bool_)
    for key in query.keys:
        of = {value: place for place, value in enumerate(key.values or ())}
        values = _coded(collected.column(key.name))
        value_places = np.array(
            [of.get(_plain(key, value), -1) for value in values.dictionary.to_pylist()], dtype=np.int64
        )
        own = value_places[values.indices.to_numpy()] if value_places.size else places
        places, inside = places * len(key.values or ()) + own, inside & (own >= 0)
    return np.where(inside, places, -1)


def names_in(query: Query, collected: pa.Table) -> list[Names]:
    """Return the values of the keys of every row the engine returned."""
    columns = [[_plain(key, value) for value in collected.column(key.name).to_pylist()] for key in query.keys]
    return list(zip(*columns, strict=True)) if columns else [()] * collected.num_rows


def group_places(query: Query, collected: pa.Table, names: tuple[Names, ...]) -> NDArray[np.int64]:
    """Return for every row the engine returned the position of its group among `names`, or −1.

    Values are looked up once for each group, not for each row.
    """
    code = np.zeros(collected.num_rows, dtype=np.int64)
    for key in query.keys:
        values = _coded(collected.column(key.name))
        code = code * max(1, len(values.dictionary)) + np.asarray(values.indices.to_numpy(), dtype=np.int64)
        code = np.unique(code, return_inverse=True)[1].reshape(-1)
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    places = {name: place for place, name in enumerate(names)}
    group_names = names_in(query, collected.take(pa.array(first, pa.int64())))
    position = np.array([places.get(name, -1) for name in group_names], dtype=np.int64)
    return np.asarray(position[group.reshape(-1)] if position.size else np.empty(0), dtype=np.int64)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return each value once, missing ones too, and which of them every row has."""
    bare = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return bare.combine_chunks().dictionary_encode(null_encoding="encode")


def _plain(key: Key, value: Any) -> object:
    """Return a value as Python writes it for its type; what is not a number is missing.

    Of two zeros that an engine counts as one key it shows whichever it met first, so that one row could decide the
    sign: a zero has none here.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    match key.type:
        case Type.INTEGER:
            return int(value)
        case Type.DECIMAL:
            return float(value) + 0.0
        case Type.BOOLEAN:
            return bool(value)
    return value


def _sortable(names: Names) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is not None, value) for value in names)


def _whole(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


@dataclass(frozen=True)
class GroupTotals:
    """Rows of an answer: the values of their keys, their noisy statistics, and how many groups each is made of.

    A key is None where the row is of all its values; `over` tells so, since a key can be None in a group, too.
    """

    names: tuple[Names, ...]
    vectors: NDArray[np.int64]
    groups: NDArray[np.int64]
    over: NDArray[np.bool_]

    @property
    def several(self) -> NDArray[np.bool_]:
        """Which rows are sums of several groups, of whose noise no interval is known."""
        return np.asarray(self.groups > 1)


def total_groups(
    names: tuple[Names, ...], vectors: NDArray[np.int64], sets: tuple[tuple[int, ...], ...], keys: int
) -> GroupTotals:
    """Return for each set of keys the groups that are equal in them, added up.

    >>> total_groups((("a",), ("b",)), np.array([[1], [2]]), ((0,), ()), 1).vectors.tolist()
    [[1], [2], [3]]
    """
    total_names: list[Names] = []
    sums: list[NDArray[np.int64]] = []
    many: list[NDArray[np.int64]] = []
    over: list[list[bool]] = []
    for grouped in sets:
        places: dict[Names, int] = {}
        at = np.array([places.setdefault(tuple(name[key] for key in grouped), len(places)) for name in names], np.int64)
        added = np.zeros((len(places), vectors.shape[1]), dtype=np.int64)
        np.add.at(added, at, vectors)
        sums.append(added)
        many.append(np.bincount(at, minlength=len(places)).astype(np.int64))
        for group in places:
            values = dict(zip(grouped, group, strict=True))
            total_names.append(tuple(values.get(key) for key in range(keys)))
            over.append([key not in grouped for key in range(keys)])
    return GroupTotals(tuple(total_names), np.concatenate(sums), np.concatenate(many), np.array(over, dtype=np.bool_))
