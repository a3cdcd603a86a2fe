"""Windows: functions over the rows of a noisy answer, taken out of its expressions and named w1, w2, …."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.expressions.binder import title
from incrowd.queries.language.outputs import kind_of, output
from incrowd.queries.language.trees import copied
from incrowd.queries.operations import MOST_NEIGHBORS, Function, WindowColumn

_RANKS: dict[type[exp.Expr], Function] = {
    exp.RowNumber: Function.ROW_NUMBER,
    exp.Rank: Function.RANK,
    exp.DenseRank: Function.DENSE_RANK,
    exp.PercentRank: Function.PERCENT_RANK,
    exp.CumeDist: Function.CUME_DIST,
    exp.Ntile: Function.NTILE,
}
_NEIGHBORS: dict[type[exp.Expr], Function] = {exp.Lag: Function.LAG, exp.Lead: Function.LEAD}
_ENDS: dict[type[exp.Expr], Function] = {exp.FirstValue: Function.FIRST_VALUE, exp.LastValue: Function.LAST_VALUE}
_TOTALS: dict[type[exp.Expr], Function] = {
    exp.Count: Function.COUNT,
    exp.Sum: Function.SUM,
    exp.Avg: Function.AVG,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
}
_WHOLE = (Function.ROW_NUMBER, Function.RANK, Function.DENSE_RANK, Function.NTILE, Function.COUNT)
_NUMBERS = (Function.SUM, Function.AVG)
_KNOWN = {**_RANKS, **_NEIGHBORS, **_ENDS, **_TOTALS}
_MOST_TILES = 10_000


def has_window(node: exp.Expr) -> bool:
    """Return whether a window stands somewhere in a node.

    >>> has_window(exp.Neg(this=exp.Window(this=exp.Rank())))
    True
    """
    return node.find(exp.Window) is not None


@dataclass
class WindowRegister:
    """The windows met so far while a question is read; equal ones are one."""

    columns: dict[str, WindowColumn] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    first: int = 1

    def plain(self, tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expr:
        """Return an expression in which every window is a column of its own; without any, the same.

        Preconditions: the columns of the tree are those of the answer, by the names that `types` knows.
        """
        if not has_window(tree):
            return tree

        def change(node: exp.Expr) -> exp.Expr:
            return exp.column(self._name(node, types)) if isinstance(node, exp.Window) else node

        changed: exp.Expr = copied(tree).transform(change, copy=False)
        return changed

    def _name(self, node: exp.Window, types: Mapping[str, Type]) -> str:
        text = node.sql("duckdb")
        known = next((each.name for key, each in self.columns.items() if key == text), None)
        if known is not None:
            return known
        bare = _window(node, f"w{self.first + len(self.columns)}", types)
        made = self.columns[text] = replace(bare, type=_type(bare, types))
        self.types[made.name] = made.type
        return made.name


def _window(node: exp.Window, name: str, types: Mapping[str, Type]) -> WindowColumn:
    function = _KNOWN.get(type(node.this))
    if function is None or node.args.get("alias") is not None or node.args.get("first") is not None:
        raise QuestionRefused(
            f"{title(node.this)} OVER (…) is not computed on answers. There are ROW_NUMBER, RANK, DENSE_RANK, "
            "PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, COUNT, SUM, AVG, MIN and MAX, with "
            "PARTITION BY and ORDER BY inside of OVER."
        )
    ordered = node.args.get("order")
    made = WindowColumn(
        name,
        function,
        tuple(output(part, types) for part in _arguments(node.this, function)),
        tuple(output(part, types) for part in node.args.get("partition_by") or ()),
        tuple(_ordered(term, types) for term in (ordered.expressions if ordered is not None else ())),
        *_frame(node.args.get("spec")),
    )
    if function in _NUMBERS and kind_of(made.arguments[0], types) not in (Type.DECIMAL, None):
        raise InvalidParameter(f"{function} OVER (…) works on numbers of the answer.")
    if function in _NEIGHBORS.values() and len(made.arguments) > 2:
        kinds = {kind_of(made.arguments[place], types) for place in (0, 2)} - {None}
        if len(kinds) > 1:
            raise InvalidParameter(f"what {function} gives where there is no row is of the type of the rest.")
    return made


def _arguments(node: exp.Expr, function: Function) -> list[exp.Expr]:
    """Return what a function is of; what tells how far or how many is written out."""
    if function is Function.COUNT and (node.this is None or isinstance(node.this, exp.Star)):
        return []
    if isinstance(node.this, exp.Distinct):
        raise QuestionRefused("DISTINCT does not go with OVER: leave it out.")
    if function in _RANKS.values():
        if function is not Function.NTILE:
            return []
        return [_number(node.this, "NTILE", 1, _MOST_TILES)]
    found = [node.this]
    if function in _NEIGHBORS.values() and node.args.get("offset") is not None:
        found.append(_number(node.args["offset"], title(node), 0, MOST_NEIGHBORS))
        found += [node.args["default"]] if node.args.get("default") is not None else []
    return found


def _number(node: Any, what: str, low: int, high: int) -> exp.Expr:
    plain = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    if not plain or not low <= int(str(node.this)) <= high:
        raise InvalidParameter(f"{what} takes a whole number from {low} to {high:,}.")
    literal: exp.Expr = node
    return literal


def _ordered(term: exp.Expr, types: Mapping[str, Type]) -> exp.Ordered:
    flags = {flag: bool(term.args.get(flag)) for flag in ("desc", "nulls_first")}
    return exp.Ordered(this=output(term.this, types), **flags)


def _frame(spec: exp.Expr | None) -> tuple[bool, int | None, int | None]:
    """Return whether rows are counted from each row, and how many before it and behind it (None: all)."""
    if spec is None:
        return False, None, None
    start, end = (_side(spec, side) for side in ("start", "end"))
    whole = spec.args.get("kind") == "RANGE" and start is None and end in (None, 0)
    if whole:
        return end is None, None, None
    if spec.args.get("kind") != "ROWS" or (start is not None and end is not None and start > end):
        raise QuestionRefused("windows are counted in rows: ROWS BETWEEN n PRECEDING AND CURRENT ROW, and the like.")
    return True, None if start is None else -start, end


def _side(spec: exp.Expr, side: str) -> int | None:
    """Return where a frame begins or ends, in rows behind the row; None at the end of the part."""
    value, where = spec.args.get(side), spec.args.get(f"{side}_side")
    if value is None or value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        if (side, where) not in (("start", "PRECEDING"), ("end", "FOLLOWING")):
            raise QuestionRefused("a window goes from an earlier row to a later one.")
        return None
    many = int(_number(value, "a window", 0, MOST_NEIGHBORS).name)
    return -many if where == "PRECEDING" else many


def _type(window: WindowColumn, types: Mapping[str, Type]) -> Type:
    if window.function in _WHOLE:
        return Type.INTEGER
    if window.function in (*_NUMBERS, Function.PERCENT_RANK, Function.CUME_DIST):
        return Type.DECIMAL
    return kind_of(window.arguments[0], types) or Type.DECIMAL
