"""Outputs: expressions over the names of a noisy answer, in the few kinds of nodes that are computed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.expressions.casts import check_pattern
from incrowd.queries.language.expressions.dates import written
from incrowd.queries.language.expressions.function import COMPARED, AnswerTypes, title
from incrowd.queries.language.expressions.table import ANSWER_NAMES, BY_NODE, function_of
from incrowd.queries.language.reading import check_size
from incrowd.queries.language.trees import changed, copied
from incrowd.queries.operations import MOST_NEIGHBORS, Function, WindowColumn

_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"), Type.DECIMAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), Type.TEXT),
    "DATE": Type.DATE,
}
_UNITS = ("YEAR", "QUARTER", "MONTH")
_PLAIN = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.DataType, exp.DataTypeParam, exp.Var,
)  # fmt: skip

_ON_ANSWERS = ", ".join(("arithmetic", "comparisons", "CASE", *ANSWER_NAMES))
_COMPUTED = tuple(node for node, function in BY_NODE.items() if function.on_answers is not None)
ALLOWED: tuple[type[exp.Expr], ...] = (*_PLAIN, *_COMPUTED)
"""The kinds of nodes of which expressions over the answer are made."""


def output(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expression:
    """Return an expression over keys and aggregates in the few kinds of nodes that answers are computed with.

    Preconditions: every column in it is in `types`.

    >>> output(exp.Neg(this=exp.column("a1")), {"a1": Type.DECIMAL}).sql()
    '-a1'
    """
    plain = copied(tree)
    if isinstance(plain, exp.Column) and isinstance(plain.this, exp.Identifier):
        kind_of(plain, types)
        return plain
    plain = _with_dates(plain.transform(_plain, copy=False), types)
    check_size(plain)
    for node in plain.walk():
        if type(node) not in ALLOWED:
            raise QueryRefused(f"{title(node)} is not computed on noisy answers: use it on rows, or {_ON_ANSWERS}.")
        if isinstance(node, exp.Var) and not isinstance(node.parent, exp.TimestampTrunc | exp.DateTrunc):
            raise QueryRefused("a word stands here that is no column of the answer: leave it out.")
        if isinstance(node, exp.In) and not node.expressions:
            raise QueryRefused("IN takes a list of values such as ('a', 'b'), not another query.")
    if not isinstance(plain, exp.Expression):
        raise TypeError
    kind_of(plain, types)
    return plain


def _with_dates(tree: exp.Expr, types: Mapping[str, Type]) -> exp.Expr:
    """Let a text that is compared with a date be a date, and return the expression."""

    def change(node: exp.Expr) -> exp.Expr:
        function = function_of(node)
        sides = list(node.iter_expressions()) if function is not None and function.types == COMPARED else []
        plain = [side.unnest() for side in sides]
        dates = [side for side in plain if isinstance(side, exp.Column) and types.get(side.name) is Type.DATE]
        for side in sides if dates else ():
            if isinstance(side, exp.Literal) and side.is_string:
                side.replace(exp.cast(exp.Literal.string(written(str(side.this)).isoformat()), "DATE"))
        return node

    return changed(tree, change)


def truth(tree: exp.Expression, types: Mapping[str, Type]) -> exp.Expression:
    """Return the expression if it is a condition.

    >>> truth(exp.GT(this=exp.column("a1"), expression=exp.Literal.number(5)), {"a1": Type.DECIMAL}).sql()
    'a1 > 5'
    """
    if kind_of(tree, types) not in (Type.BOOLEAN, None):
        raise InvalidParameter("HAVING takes a condition such as COUNT(*) > 10.")
    return tree


def kind_of(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    """Return the type of an expression, or raise if its parts do not fit; numbers count as decimals, NULL as None.

    >>> kind_of(exp.column("k1"), {"k1": Type.INTEGER}).value
    'decimal'
    """
    if isinstance(node, exp.Column):
        if node.name not in types:
            raise QueryRefused("GROUPING(x) goes with ROLLUP, CUBE or GROUPING SETS: leave it out.")
        kind = types[node.name]
        return Type.DECIMAL if kind is Type.INTEGER else kind
    if isinstance(node, exp.Literal):
        return Type.TEXT if node.is_string else Type.DECIMAL
    if isinstance(node, exp.Boolean):
        return Type.BOOLEAN
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return kind_of(node.this, types)
    if isinstance(node, exp.Is):
        kind_of(node.this, types)
        return Type.BOOLEAN
    if isinstance(node, exp.Case | exp.If):
        return _chosen(node, types)
    function = function_of(node)
    own = AnswerTypes() if function is None else function.types
    if isinstance(node, exp.DPipe | exp.Cast) or own.takes in (Type.TEXT, Type.DATE):
        return _made(node, own, types)
    parts = {kind_of(part, types) for part in node.iter_expressions()} - {None}
    if len(parts) > 1 or (own.takes is not None and not parts <= {own.takes}):
        raise InvalidParameter(f"the parts of {title(node)} have types that do not fit: compare numbers with numbers.")
    return own.gives or next(iter(parts), None)


def _made(node: exp.Expr, own: AnswerTypes, types: Mapping[str, Type]) -> Type | None:
    """Return the type of a cast, of a text or of a part of a date, or raise if it is made of something else."""
    kind = kind_of(node.this, types)
    if isinstance(node, exp.Cast):
        target = _TYPES.get(node.args["to"].this.value)
        if target is None or (target is Type.DATE and kind not in (Type.DATE, Type.TEXT, None)):
            raise QueryRefused("numbers of an answer are cast to INTEGER, DOUBLE or TEXT: choose one of them.")
        return target
    if isinstance(node, exp.DPipe):
        kind_of(node.expression, types)
        return Type.TEXT
    if kind not in (own.takes, None):
        words = "dates" if own.takes is Type.DATE else "texts"
        raise InvalidParameter(f"{title(node)} works on {words} of the answer.")
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        if node.args["unit"].name.upper() not in _UNITS:
            raise QueryRefused("dates of an answer are truncated to year, quarter or month: or group by the others.")
        return Type.DATE
    for part in ("expression", "format"):
        if node.args.get(part) is not None and not isinstance(node.args[part], exp.Literal):
            raise QueryRefused(f"what {title(node)} takes beside a column of the answer is written out.")
    if isinstance(node, exp.TimeToStr):
        check_pattern(str(node.args["format"].this))
    return own.gives


def _chosen(node: exp.Expr, types: Mapping[str, Type]) -> Type | None:
    branches = node.args.get("ifs") or [node]
    tests = {kind_of(branch.this, types) for branch in branches} - {None}
    base = node.this if isinstance(node, exp.Case) else None
    results = [branch.args["true"] for branch in branches]
    results += [node.args[part] for part in ("default", "false") if node.args.get(part) is not None]
    kinds = {kind_of(result, types) for result in results} - {None}
    required = {Type.BOOLEAN} if base is None else {kind_of(base, types)}
    if len(kinds) > 1 or not tests <= required:
        raise InvalidParameter("CASE needs conditions after WHEN, and results of one type.")
    return next(iter(kinds), None)


def _plain(node: exp.Expr) -> exp.Expr:
    function = function_of(node)
    if function is None or not function.answered:
        return node
    function.check(node)
    return node if function.rewritten is None else function.rewritten(node)


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
_WINDOWS = ", ".join(function.value for function in dict.fromkeys(_KNOWN.values()))
_MOST_TILES = 10_000  # more parts than an answer has rows


def has_window(node: exp.Expr) -> bool:
    """Return whether a window stands somewhere in a node.

    >>> has_window(exp.Neg(this=exp.Window(this=exp.Rank())))
    True
    """
    return node.find(exp.Window) is not None


@dataclass
class WindowRegister:
    """The windows met so far while a query is read; equal ones are one."""

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

        return changed(tree, change)

    def _name(self, node: exp.Window, types: Mapping[str, Type]) -> str:
        text = node.sql("duckdb")
        name = next((column.name for key, column in self.columns.items() if key == text), None)
        if name is not None:
            return name
        bare = _window(node, f"w{self.first + len(self.columns)}", types)
        made = self.columns[text] = replace(bare, type=_type(bare, types))
        self.types[made.name] = made.type
        return made.name


def _window(node: exp.Window, name: str, types: Mapping[str, Type]) -> WindowColumn:
    function = _KNOWN.get(type(node.this))
    if function is None or node.args.get("alias") is not None or node.args.get("first") is not None:
        raise QueryRefused(f"{title(node.this)} OVER (…) is not computed on answers. There are {_WINDOWS}.")
    terms = () if node.args.get("order") is None else node.args["order"].expressions
    made = WindowColumn(
        name,
        function,
        tuple(output(part, types) for part in _arguments(node.this, function)),
        tuple(output(part, types) for part in node.args.get("partition_by") or ()),
        tuple(ordered(term, lambda node: output(node, types)) for term in terms),
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
        raise QueryRefused("DISTINCT does not go with OVER: leave it out.")
    if function in _RANKS.values():
        if function is not Function.NTILE:
            return []
        return [_number(node.this, "NTILE", 1, _MOST_TILES)]
    arguments = [node.this]
    if function in _NEIGHBORS.values() and node.args.get("offset") is not None:
        arguments.append(_number(node.args["offset"], title(node), 0, MOST_NEIGHBORS))
        arguments += [node.args["default"]] if node.args.get("default") is not None else []
    return arguments


def _number(node: Any, what: str, low: int, high: int) -> exp.Expr:
    plain = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()
    if not plain or not low <= int(str(node.this)) <= high:
        raise InvalidParameter(f"{what} takes a whole number from {low} to {high:,}.")
    literal: exp.Expr = node
    return literal


def ordered(term: exp.Expr, over: Callable[[exp.Expr], exp.Expression]) -> exp.Ordered:
    """Return a term of ORDER BY, its expression as `over` reads it."""
    if isinstance(term.this, exp.Var) or term.args.get("with_fill"):
        raise QueryRefused("ORDER BY takes columns of the answer: name them.")
    flags = {flag: bool(term.args.get(flag)) for flag in ("desc", "nulls_first")}
    return exp.Ordered(this=over(term.this), **flags)


def _frame(spec: exp.Expr | None) -> tuple[bool, int | None, int | None]:
    """Return whether rows are counted from each row, and how many before it and behind it (None: all)."""
    if spec is None:
        return False, None, None
    start, end = (_side(spec, side) for side in ("start", "end"))
    whole = spec.args.get("kind") == "RANGE" and start is None and end in (None, 0)
    if whole:
        return end is None, None, None
    if spec.args.get("kind") != "ROWS" or (start is not None and end is not None and start > end):
        raise QueryRefused("windows are counted in rows: ROWS BETWEEN n PRECEDING AND CURRENT ROW, and the like.")
    return True, None if start is None else -start, end


def _side(spec: exp.Expr, side: str) -> int | None:
    """Return where a frame begins or ends, in rows behind the row; None at the end of the part."""
    value, where = spec.args.get(side), spec.args.get(f"{side}_side")
    if value is None or value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        if (side, where) not in (("start", "PRECEDING"), ("end", "FOLLOWING")):
            raise QueryRefused("a window goes from an earlier row to a later one.")
        return None
    many = int(_number(value, "a window", 0, MOST_NEIGHBORS).name)
    return -many if where == "PRECEDING" else many


def _type(window: WindowColumn, types: Mapping[str, Type]) -> Type:
    if window.function in _WHOLE:
        return Type.INTEGER
    if window.function in (*_NUMBERS, Function.PERCENT_RANK, Function.CUME_DIST):
        return Type.DECIMAL
    return kind_of(window.arguments[0], types) or Type.DECIMAL
