"""Outside: the values of the data that a column's declaration does not know, each by name."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Categories, Dates, Numbers, Text
from incrowd.core.hierarchy.tree import Tree
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import Column
from incrowd.core.sets import items_of
from incrowd.core.table import Rows
from incrowd.workflows.hierarchies.problem import Fault

MOST_NAMED = 10_000
"""So many different values are named; what goes beyond is only counted."""

_SUGGESTED = 200


def outside(rows: Rows, columns: Sequence[Column]) -> tuple[Fault, ...]:
    """Read the columns once and name every value that is outside its declared domain, the most frequent first.

    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.core.hierarchy.tree import tree
    >>> city = Column("city", hierarchy=tree({"Europe": ["Paris", "Rome"], "Asia": ["Kyoto"]}))
    >>> found = outside(open_source(pa.table({"city": ["Paris", "paris", "Lima"]})), [city])
    >>> [(problem.value, problem.paste) for problem in found]
    [('paris', ('paris', 'Europe')), ('Lima', ('Lima', '*'))]
    """
    closed = [column for column in columns if not isinstance(column.domain, Text)]
    met: dict[str, Counter[str]] = {column.name: Counter() for column in closed}
    unnamed = dict.fromkeys(met, 0)
    if closed:
        for batch in rows.batches([column.name for column in closed]):
            for column in closed:
                for value, times in _strangers(batch.column(column.name), column):
                    if value in met[column.name] or len(met[column.name]) < MOST_NAMED:
                        met[column.name][value] += times
                    else:
                        unnamed[column.name] += times
    return tuple(problem for column in closed for problem in _problems(column, met[column.name], unnamed[column.name]))


def _strangers(array: pa.Array, column: Column) -> list[tuple[str, int]]:
    """Return the values of a batch that are there and outside, with their rows; of sets the items."""
    array = array if column.separator is None else items_of(array, column)
    values, indices = as_dictionary(array)
    stored = read(values, column.type)
    written = stored.values if isinstance(column.domain, Numbers | Dates) else canonical(stored.values)
    inside = column.domain.contains(written)
    strange = ~inside & (stored.values.is_valid().to_numpy(zero_copy_only=False) | stored.unreadable)
    if not strange.any():
        return []
    times = np.ones(len(values), np.int64) if indices is None else np.bincount(indices, minlength=len(values) + 1)
    places = np.flatnonzero(strange)
    texts = canonical(values.take(pa.array(places))).to_pylist()
    return [(text, int(times[place])) for text, place in zip(texts, places, strict=True) if times[place]]


def _problems(column: Column, met: Counter[str], unnamed: int) -> list[Fault]:
    known = column.domain.values if isinstance(column.domain, Categories) else ()
    folded = {_fold(value): value for value in known}
    found = []
    for number, (value, rows) in enumerate(met.most_common()):
        near = _nearest(value, known, folded) if number < _SUGGESTED else None
        found.append(Fault("missing", value, rows, column.name, _fix(column, near), _line(column, value, near)))
    if unnamed:
        found.append(Fault("missing", "…", unnamed, column.name, f"more than {MOST_NAMED} values are missing."))
    return found


def _nearest(value: str, known: Sequence[str], folded: dict[str, str]) -> str | None:
    same = folded.get(_fold(value))
    return same or next(iter(difflib.get_close_matches(value, known, 1, 0.7)), None)


def _fix(column: Column, near: str | None) -> str:
    if near is not None:
        return f"did you mean {near!r}?"
    match column.domain:
        case Numbers() | Dates():
            return "widen the bounds, or leave it to the column's rule for values outside."
    return "add it, or leave it to the column's rule for values outside."


def _line(column: Column, value: str, near: str | None) -> tuple[str, ...] | None:
    """Return the row that would put the value beside the one it resembles, else right below the top."""
    if not isinstance(column.hierarchy, Tree):
        return None
    rows = column.hierarchy.rows
    labels = next((row[1:] for row in rows if row[0] == near), ("*",) * (len(rows[0]) - 1))
    return (value, *labels)


def _fold(text: str) -> str:
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())
