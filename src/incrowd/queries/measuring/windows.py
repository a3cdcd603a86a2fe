"""Windows: ranks, neighbors and running totals over the rows of a noisy answer; total, and quick for many rows."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from incrowd.queries.language.expressions.answers import safely
from incrowd.queries.language.expressions.table import Row, evaluate
from incrowd.queries.operations import Function, Gather, Keep, Operation, Sort, Take, WindowColumn


def in_order(terms: Sequence[exp.Ordered], rows: Sequence[Row], places: list[int]) -> list[int]:
    """Return places of rows in an order; rows that are equal in it stay as they were.

    >>> from sqlglot import parse_one
    >>> in_order([exp.Ordered(this=parse_one("n"), desc=True)], [{"n": 1}, {"n": None}, {"n": 2}], [0, 1, 2])
    [2, 0, 1]
    """
    for term in reversed(terms):
        values = {at: evaluate(term.this, rows[at]) for at in places}
        missing = [at for at in places if values[at] is None]
        present = [at for at in places if values[at] is not None]
        present.sort(key=lambda at: values[at], reverse=bool(term.args.get("desc")))
        places = missing + present if term.args.get("nulls_first") else present + missing
    return places


def window_values(window: WindowColumn, rows: Sequence[Row]) -> list[Any]:
    """Return the value of a window for each row."""
    parts: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        parts.setdefault(tuple(evaluate(tree, row) for tree in window.part), []).append(at)
    values: list[Any] = [None] * len(rows)
    for places in parts.values():
        ordered = in_order(window.order, rows, places)
        keys = [tuple(evaluate(term.this, rows[at]) for term in window.order) for at in ordered]
        for at, value in zip(ordered, _values(window, [rows[at] for at in ordered], keys), strict=True):
            values[at] = value
    return values


def _values(window: WindowColumn, rows: list[Row], keys: list[tuple[Any, ...]]) -> list[Any]:
    """Return the values of one part, whose rows are in order; rows with equal keys are peers."""
    match window.function:
        case Function.ROW_NUMBER:
            return list(range(1, len(rows) + 1))
        case Function.RANK | Function.DENSE_RANK | Function.PERCENT_RANK | Function.CUME_DIST:
            return _ranks(window.function, keys)
        case Function.NTILE:
            return _tiles(len(rows), int(evaluate(window.arguments[0], {})))
        case Function.LAG | Function.LEAD:
            return _neighbors(window, rows)
    taken: list[Any] = [evaluate(window.arguments[0], row) for row in rows] if window.arguments else [1] * len(rows)
    if window.framed:
        return _framed(window, taken)
    if not window.order:
        return [total(window.function, taken)] * len(taken)
    last = {key: place for place, key in enumerate(keys)}
    running = _running(window.function, taken)
    return [running[last[key]] for key in keys]


def _ranks(function: Function, keys: list[tuple[Any, ...]]) -> list[Any]:
    first: dict[tuple[Any, ...], int] = {}
    for place, key in enumerate(keys):
        first.setdefault(key, place)
    match function:
        case Function.RANK:
            return [first[key] + 1 for key in keys]
        case Function.DENSE_RANK:
            dense = {key: place for place, key in enumerate(first, 1)}
            return [dense[key] for key in keys]
        case Function.PERCENT_RANK:
            return [first[key] / max(1, len(keys) - 1) for key in keys]
    last = {key: place for place, key in enumerate(keys)}
    return [(last[key] + 1) / len(keys) for key in keys]


def _tiles(many: int, tiles: int) -> list[int]:
    """Return the number of the tile of each row; the first tiles have one row more where they do not come out even."""
    size, more = divmod(many, tiles)
    lengths = [size + (tile < more) for tile in range(tiles)]
    return [tile for tile, length in enumerate(lengths, 1) for _ in range(length)]


def _neighbors(window: WindowColumn, rows: list[Row]) -> list[Any]:
    value, *rest = window.arguments
    far = int(evaluate(rest[0], {})) if rest else 1
    far = far if window.function is Function.LEAD else -far
    values = []
    for at, row in enumerate(rows):
        inside = 0 <= at + far < len(rows)
        default = evaluate(rest[1], row) if len(rest) > 1 else None
        values.append(evaluate(value, rows[at + far]) if inside else default)
    return values


def _framed(window: WindowColumn, taken: list[Any]) -> list[Any]:
    """Return totals over rows counted from each row: some before it and some behind, or all on a side."""
    if window.before is None and window.behind is None:
        return [total(window.function, taken)] * len(taken)
    if window.before is None:
        running, reach = _running(window.function, taken), window.behind or 0
        ends = [at + reach for at in range(len(taken))]
        return [running[min(end, len(taken) - 1)] if end >= 0 else _empty(window.function) for end in ends]
    if window.behind is None:
        function = _MIRRORED.get(window.function, window.function)
        return _framed(_mirrored(window, function), taken[::-1])[::-1]
    spans = [(max(0, at - window.before), max(0, at + window.behind + 1)) for at in range(len(taken))]
    return [total(window.function, taken[start:stop]) for start, stop in spans]


_MIRRORED = {Function.FIRST_VALUE: Function.LAST_VALUE, Function.LAST_VALUE: Function.FIRST_VALUE}


def _mirrored(window: WindowColumn, function: Function) -> WindowColumn:
    return WindowColumn(window.name, function, window.arguments, (), (), True, None, window.before)


def _running(function: Function, taken: list[Any]) -> list[Any]:
    """Return the total of all values up to each place."""
    there = [value is not None for value in taken]
    counts = list(itertools.accumulate(there))
    match function:
        case Function.COUNT:
            return counts
        case Function.FIRST_VALUE:
            return taken[:1] * len(taken)
        case Function.LAST_VALUE:
            return taken
        case Function.SUM | Function.AVG:
            sums = itertools.accumulate(0 if value is None else value for value in taken)
            divided = function is Function.AVG
            pairs = zip(sums, counts, strict=True)
            return [(_share(sum_, many) if divided else sum_) if many else None for sum_, many in pairs]
    choose: Callable[..., Any] = min if function is Function.MIN else max
    return list(itertools.accumulate(taken, lambda one, other: _chosen(choose, one, other)))


def _share(whole: Any, many: int) -> Any:
    return safely(lambda: whole / many)


def _chosen(choose: Callable[..., Any], one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else choose(one, other)


def _empty(function: Function) -> Any:
    return 0 if function is Function.COUNT else None


def total(function: Function, values: Sequence[Any]) -> Any:
    """Return a number of all values that are there.

    >>> total(Function.AVG, [1, None, 2]), total(Function.COUNT, [None])
    (1.5, 0)
    """
    if function in (Function.FIRST_VALUE, Function.LAST_VALUE):
        return values[0 if function is Function.FIRST_VALUE else -1] if values else None
    there = [value for value in values if value is not None]
    if function is Function.COUNT:
        return len(there)
    if function is Function.COUNT_DISTINCT:
        return len(set(there))
    if not there:
        return None
    match function:
        case Function.MIN | Function.MAX:
            return (min if function is Function.MIN else max)(there)
        case Function.MEDIAN:
            return safely(lambda: statistics.median(there))
    whole = all(isinstance(value, int) for value in there)
    added = safely(lambda: sum(there) if whole else math.fsum(there))
    return added if added is None or function is Function.SUM else safely(lambda: added / len(there))


@dataclass(frozen=True)
class Worksheet:
    """Rows of an answer: their values by name, and the groups that they are, None where several became one.

    `exact` are the names of what holds no noise, `chosen` tells whether noisy numbers decided which rows are left.
    """

    rows: tuple[Row, ...]
    places: tuple[int, ...] | None
    exact: frozenset[str]
    chosen: bool = False


def work_through(operations: Iterable[Operation], rows: Sequence[Row], exact: frozenset[str]) -> Worksheet:
    """Return what operations leave of the rows of an answer; names that are not `exact` hold noise.

    >>> from sqlglot import parse_one
    >>> work_through([Keep(parse_one("n > 1"))], [{"n": 1}, {"n": 5}], frozenset()).places
    (1,)
    """
    sheet, sorted_by_noise = Worksheet(tuple(rows), tuple(range(len(rows))), exact), False
    for operation in operations:
        noisy = not all(_exact(tree, sheet) for tree in operation.trees)
        sorted_by_noise = noisy if isinstance(operation, Sort) else sorted_by_noise
        decided = (isinstance(operation, Keep) and noisy) or (isinstance(operation, Take) and sorted_by_noise)
        sheet = replace(_after(operation, sheet), exact=_exact_names(operation, sheet), chosen=sheet.chosen or decided)
    return sheet


def _exact(tree: exp.Expr | None, sheet: Worksheet) -> bool:
    return tree is None or all(column.name in sheet.exact for column in tree.find_all(exp.Column))


def _exact_names(operation: Operation, sheet: Worksheet) -> frozenset[str]:
    """Return what holds no noise after an operation; where noise chose rows, nothing computed from several of them."""
    if isinstance(operation, WindowColumn):
        sure = not sheet.chosen and all(_exact(tree, sheet) for tree in operation.trees)
        return sheet.exact | ({operation.name} if sure else frozenset())
    if not isinstance(operation, Gather):
        return sheet.exact
    keys = {key.name for key in operation.keys if _exact(key.expression, sheet)}
    totals = {total.name for total in operation.totals if not sheet.chosen and _exact(total.argument, sheet)}
    return frozenset(keys | totals if len(keys) == len(operation.keys) else keys)


def _after(operation: Operation, sheet: Worksheet) -> Worksheet:
    at = list(range(len(sheet.rows)))
    match operation:
        case Keep(condition):
            return _taken(sheet, [place for place in at if evaluate(condition, sheet.rows[place]) is True])
        case Sort(terms):
            return _taken(sheet, in_order(terms, sheet.rows, at))
        case Take(limit, offset):
            return _taken(sheet, at[offset:] if limit is None else at[offset : offset + limit])
        case WindowColumn(name=name):
            values = window_values(operation, sheet.rows)
            rows = ({**row, name: value} for row, value in zip(sheet.rows, values, strict=True))
            return replace(sheet, rows=tuple(rows))
    return replace(sheet, rows=tuple(_gathered(operation, sheet.rows)), places=None)


def _taken(sheet: Worksheet, at: list[int]) -> Worksheet:
    places = None if sheet.places is None else tuple(sheet.places[place] for place in at)
    return replace(sheet, rows=tuple(sheet.rows[place] for place in at), places=places)


def _gathered(gather: Gather, rows: Sequence[Row]) -> Iterable[Row]:
    """Yield one row for each group of rows, in the order in which they appear; without keys there is one group."""
    groups: dict[tuple[Any, ...], list[Row]] = {} if gather.keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(evaluate(key.expression, row) for key in gather.keys), []).append(row)
    for names, members in groups.items():
        made: dict[str, object] = {key.name: value for key, value in zip(gather.keys, names, strict=True)}
        for total_ in gather.totals:
            if total_.argument is None:
                made[total_.name] = len(members)
            else:
                made[total_.name] = total(total_.function, [evaluate(total_.argument, row) for row in members])
        yield made
