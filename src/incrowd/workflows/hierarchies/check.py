"""Check: the faults of a hierarchy file, or of a policy's hierarchies, alone and with the data."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.domain import Categories, Dates, Numbers, Text, listed
from incrowd.core.hierarchy.tree import ArxTable, TreeHierarchy, parse_arx
from incrowd.core.reading import as_dictionary, canonical, read
from incrowd.core.schema import Column, Role
from incrowd.core.sets import items_of
from incrowd.core.table import Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy

Line = Sequence[str]
MOST_NAMED = 10_000
"""At most this many different values are named; further ones are counted."""
_SUGGESTED = 200


def faults(lines: Sequence[Line]) -> tuple[Fault, ...]:
    """Return every ragged row, value listed twice, label with two parents and empty label, in this order.

    >>> found = faults([("Paris", "France"), ("Lyon", "France"), ("Paris", "Texas"), ("Rome",)])
    >>> [(problem.what, problem.value) for problem in found]
    [('ragged', 'Rome'), ('listed twice', 'Paris')]
    """
    width = max((len(line) for line in lines), default=0)
    whole = [line for line in lines if len(line) == width]
    return (*_ragged(lines, width), *_repeated(lines), *_two_parents(whole, width), *_empty(lines))


def _ragged(lines: Sequence[Line], width: int) -> Iterator[Fault]:
    for number, line in enumerate(lines, start=1):
        if len(line) < width:
            above = line[-1] if line else ""
            fix = f"row {number} has {len(line)} levels, the longest has {width}: give it a label on every level."
            yield Fault("ragged", line[0] if line else "", fix=fix, paste=_pasted(line, width, above))


def _repeated(lines: Sequence[Line]) -> Iterator[Fault]:
    where: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines, start=1):
        where[line[0]].append(number)
    for value, numbers in where.items():
        if len(numbers) > 1:
            same = len({tuple(lines[number - 1]) for number in numbers}) == 1
            advice = "they are the same: delete all but one" if same else "they differ: delete the wrong ones"
            yield Fault("listed twice", value, fix=f"rows {', '.join(map(str, numbers))}; {advice}.")


def _two_parents(lines: Sequence[Line], width: int) -> Iterator[Fault]:
    for level in range(1, width - 1):
        above: dict[str, set[str]] = defaultdict(set)
        for line in lines:
            above[line[level]].add(line[level + 1])
        for label, parents in above.items():
            if len(parents) > 1:
                fix = f"on level {level} it lies in {listed(sorted(parents))}: give it one place, or two names."
                yield Fault("in two places", label, fix=fix)


def _empty(lines: Sequence[Line]) -> Iterator[Fault]:
    for number, line in enumerate(lines, start=1):
        if any(not label for label in line[1:]):
            yield Fault("no label", line[0], fix=f"row {number} has an empty label: name the class, or write *.")


def _pasted(line: Line, width: int, label: str) -> tuple[str, ...]:
    return (*line, *[label] * (width - len(line)))


@dataclass(frozen=True)
class Fault:
    """A fault of a value, how many rows of the data it affects (None: none were read), and a fix.

    `fix` is a sentence; `paste` is a row that can be put into the hierarchy as it is.
    """

    what: str
    value: str
    rows: int | None = None
    column: str | None = None
    fix: str = ""
    paste: tuple[str, ...] | None = None


def outside(rows: Rows, columns: Sequence[Column]) -> tuple[Fault, ...]:
    """Return every value outside its declared domain, the most frequent first; the columns are read once.

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
                for value, times in _outside(batch.column(column.name), column):
                    if value in met[column.name] or len(met[column.name]) < MOST_NAMED:
                        met[column.name][value] += times
                    else:
                        unnamed[column.name] += times
    return tuple(problem for column in closed for problem in _problems(column, met[column.name], unnamed[column.name]))


def _outside(array: pa.Array, column: Column) -> list[tuple[str, int]]:
    """Return the present values of a batch outside the domain, with their rows; of sets the items."""
    array = array if column.separator is None else items_of(array, column)
    values, indices = as_dictionary(array)
    stored = read(values, column.type)
    written = stored.values if isinstance(column.domain, Numbers | Dates) else canonical(stored.values)
    inside = column.domain.contains(written)
    outside = ~inside & (stored.values.is_valid().to_numpy(zero_copy_only=False) | stored.unreadable)
    if not outside.any():
        return []
    times = np.ones(len(values), np.int64) if indices is None else np.bincount(indices, minlength=len(values) + 1)
    places = np.flatnonzero(outside)
    texts = canonical(values.take(pa.array(places))).to_pylist()
    return [(text, int(times[place])) for text, place in zip(texts, places, strict=True) if times[place]]


def _problems(column: Column, met: Counter[str], unnamed: int) -> list[Fault]:
    listed_values = column.domain.values if isinstance(column.domain, Categories) else ()
    folded = {_fold(value): value for value in listed_values}
    problems = []
    for number, (value, rows) in enumerate(met.most_common()):
        near = _nearest(value, listed_values, folded) if number < _SUGGESTED else None
        problems.append(Fault("missing", value, rows, column.name, _fix(column, near), _line(column, value, near)))
    if unnamed:
        problems.append(Fault("missing", "…", unnamed, column.name, f"more than {MOST_NAMED} values are missing."))
    return problems


def _nearest(value: str, listed_values: Sequence[str], folded: dict[str, str]) -> str | None:
    same = folded.get(_fold(value))
    return same or next(iter(difflib.get_close_matches(value, listed_values, 1, 0.7)), None)


def _fix(column: Column, near: str | None) -> str:
    if near is not None:
        return f"did you mean {near!r}?"
    match column.domain:
        case Numbers() | Dates():
            return "widen the bounds, or rely on the column's rule for values outside."
    return "add it, or rely on the column's rule for values outside."


def _line(column: Column, value: str, near: str | None) -> tuple[str, ...] | None:
    """Return the row that would put the value next to the most similar one, else right below the top."""
    if not isinstance(column.hierarchy, TreeHierarchy):
        return None
    rows = column.hierarchy.rows
    labels = next((row[1:] for row in rows if row[0] == near), ("*",) * (len(rows[0]) - 1))
    return (value, *labels)


def _fold(text: str) -> str:
    return " ".join(text.casefold().replace("_", " ").replace("-", " ").split())


@dataclass(frozen=True)
class Report:
    """Every fault; `checked` names what was checked."""

    checked: tuple[str, ...]
    problems: tuple[Fault, ...]

    @property
    def passed(self) -> bool:
        """Whether there is none."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        problems = [asdict(problem) for problem in self.problems]
        return {"passed": self.passed, "checked": list(self.checked), "problems": problems}


def check_file(path: Path, delimiter: str, rows: Rows | None, column: str | None) -> Report:
    """Return the faults of a hierarchy file, and the values of the data that it lacks."""
    lines = parse_arx(_read(path), delimiter).rows
    problems = faults(lines)
    if rows is None:
        return Report((path.name,), problems)
    name = column or path.stem
    require(rows.names, [name])
    if problems:
        return Report((path.name,), problems)
    return Report((path.name, name), outside(rows, [Column(name, hierarchy=ArxTable(lines).hierarchy())]))


def check_policy(policy: Policy, rows: Rows | None) -> Report:
    """Return the values of the data outside the declared domains; the policy's files were read with it."""
    columns = [column for column in policy.schema.columns if not Role.IDENTIFIER.covers(column.role)]
    names = tuple(column.name for column in columns)
    if rows is None:
        return Report(names, ())
    require(rows.names, names)
    return Report(names, outside(rows, columns))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read: {error.strerror or 'no reason given'}.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} is not UTF-8 text: save it as UTF-8.") from None
