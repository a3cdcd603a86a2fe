"""Sheets: the rows of a noisy answer, worked through by operations; whatever is done there, no row of data is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from incrowd.queries.measuring.evaluation import Row, evaluate
from incrowd.queries.measuring.windows import in_order, total, window_values
from incrowd.queries.operations import Gather, Keep, Operation, Sort, Take, WindowColumn


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
    for each in operations:
        noisy = not all(_exact(tree, sheet) for tree in each.trees)
        sorted_by_noise = noisy if isinstance(each, Sort) else sorted_by_noise
        decided = (isinstance(each, Keep) and noisy) or (isinstance(each, Take) and sorted_by_noise)
        sheet = replace(_after(each, sheet), exact=_exact_names(each, sheet), chosen=sheet.chosen or decided)
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
    totals = {each.name for each in operation.totals if not sheet.chosen and _exact(each.argument, sheet)}
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
        for each in gather.totals:
            if each.argument is None:
                made[each.name] = len(members)
            else:
                made[each.name] = total(each.function, [evaluate(each.argument, row) for row in members])
        yield made
