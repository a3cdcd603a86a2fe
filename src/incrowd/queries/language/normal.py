"""Normal form: one text for all ways to write a query, so that a repeated query is known as one.

White space, comments, the case of names and keywords, brackets that change nothing, the names given to tables and
subqueries, the order of conditions joined by AND or OR and of values after IN are all arbitrary.  What is understood
later is read from the normal text alone: two queries with the same text cannot differ in meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, UnsupportedError

from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.entropy import open_entropy
from incrowd.queries.language.expressions.table import function_of
from incrowd.queries.language.joins import open_exists
from incrowd.queries.language.reading import SAMPLED, branches, check_size, read_query
from incrowd.queries.language.trees import changed, place_of, sources

_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike)
_UNKNOWN = 0
_RANKS: tuple[tuple[int, tuple[type[exp.Expr], ...]], ...] = (
    (1, (exp.Or,)),
    (2, (exp.And,)),
    (3, (exp.Not,)),
    (4, _COMPARISONS),
    (5, (exp.Add, exp.Sub)),
    (6, (exp.Mul, exp.Div, exp.IntDiv, exp.Mod)),
    (7, (exp.Neg,)),
)


def normal_text(sql: str) -> str:
    """Return the normal form of a query.

    Preconditions: any text; what is not one query of bounded size is refused.

    >>> normal_text("select  Count(*) /* all */ from Births b where (b.age>1) and b.age<5")
    'SELECT COUNT(*) FROM births WHERE age < 5 AND age > 1'
    """
    tree: exp.Expr = read_query(sql)
    kinds = set()
    for node in tree.walk():
        node.pop_comments()
        kinds.add(type(node))
        function = function_of(node)
        if function is not None:  # DuckDB's dialect would drop the 1 of CEIL(x, 1) without a word
            function.check(node)
    _fold_names(tree)
    if exp.With in kinds:
        tree = _inlined(tree, {})
        check_size(tree)
    if exp.Exists in kinds:
        tree = open_exists(tree)
    for select in branches(tree):
        _open_histograms(select)
        _open_quantiles(select)
    for select in list(tree.find_all(exp.Select)):
        open_entropy(select)
    for select in list(tree.find_all(exp.Select)):
        _name_sources(select)
        _resolve_positions(select)
    if kinds & {exp.ToChar, exp.WithinGroup}:
        tree = _within_group(_written_dates(tree))
    return _written(_arranged(tree))


def _written(tree: exp.Expr) -> str:
    """Return the text of a tree, or refuse one that would lose a part on the way: its text would ask something else.

    The tree is used up.
    """
    try:
        return tree.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.RAISE, copy=False)
    except UnsupportedError:
        if tree.find(exp.TableSample) is not None:
            raise QueryRefused(SAMPLED) from None
        raise QueryRefused("DuckDB's dialect lacks a part of this query: write dates by STRFTIME.") from None


def _fold_names(tree: exp.Expr) -> None:
    """Write every name in small letters; only the name of a column of the answer keeps the case that quotes gave it."""
    outermost = branches(tree)[0].expressions
    cased = {id(item.args["alias"]) for item in outermost if isinstance(item, exp.Alias)}
    for name in tree.find_all(exp.Identifier):
        if not (id(name) in cased and name.args.get("quoted")):
            name.set("this", str(name.this).lower())
        plain = _SIMPLE.fullmatch(str(name.this)) is not None and str(name.this).upper() not in _words()
        name.set("quoted", not plain)


@cache
def _words() -> frozenset[str]:
    return frozenset(word for words in DuckDB.Tokenizer.KEYWORDS for word in words.upper().split())


def _inlined(node: exp.Expr, named_queries: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return the tree with every named query put where its name stands."""
    with_ = node.args.get("with_")
    if with_ is not None:
        if with_.args.get("recursive"):
            raise QueryRefused("WITH RECURSIVE is not answered: it may never end. Use plain WITH.")
        for named in with_.expressions:
            if named.args["alias"].args.get("columns"):
                raise QueryRefused("name the columns of WITH inside of it, by AS.")
            named_queries = {**named_queries, named.alias: _inlined(named.this, named_queries)}
            check_size(named_queries[named.alias])
        node.set("with_", None)
    if isinstance(node, exp.Table) and not node.args.get("db") and node.name in named_queries:
        if any(value for part, value in node.args.items() if part not in ("this", "alias")):
            raise QueryRefused("a query named by WITH stands alone in FROM: leave out what follows its name.")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name))
        return exp.Subquery(this=named_queries[node.name].copy(), alias=alias.copy())
    for part in list(node.args):
        _replace(node, part, lambda child: _inlined(child, named_queries))
    return node


def _name_sources(select: exp.Select) -> None:
    """Call the sources of a query t1, t2, …; a single one needs no name, and JOIN means INNER JOIN."""
    for join in select.args.get("joins") or ():
        join.set("kind", None if join.args.get("kind") in ("INNER", "OUTER") else join.args.get("kind"))
    named = sources(select)
    names = [source.alias_or_name for source in named]
    if len(set(names)) < len(names):
        raise InvalidParameter("two sources after FROM have the same name: give them different ones by AS.")
    renamed = {name: f"t{place}" for place, name in enumerate(names, 1)}
    for source, name in zip(named, names, strict=True):
        if source.args.get("alias") is not None and source.args["alias"].args.get("columns"):
            raise QueryRefused("columns are renamed inside a subquery, by AS, not after its name.")
        alone = len(named) == 1
        source.set("alias", None if alone else exp.TableAlias(this=exp.to_identifier(renamed[name])))
    for column in _own_columns(select):
        if column.args.get("db") is not None:
            raise InvalidParameter("write a column as column or table.column, without a schema before it.")
        if column.table and column.table not in renamed:
            raise InvalidParameter(f"there is no table {column.table!r} after FROM; a subquery sees its own only.")
        if column.table:
            column.set("table", None if len(named) == 1 else exp.to_identifier(renamed[column.table]))


def _own_columns(select: exp.Select) -> Iterator[exp.Column]:
    stack: list[exp.Expr] = [select]
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column):
            yield node
        if node is select or not isinstance(node, exp.Query):
            stack.extend(node.iter_expressions())


def _resolve_positions(select: exp.Select) -> None:
    """Replace numbers after GROUP BY and ORDER BY by what they point at, and GROUP BY ALL by what ALL means."""
    items = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    group = select.args.get("group")
    if group is not None and group.args.get("all"):
        plain = [item.copy() for item in items if item.find(exp.AggFunc) is None and item.find(exp.Column) is not None]
        select.set("group", exp.Group(expressions=plain) if plain else None)
    elif group is not None:
        group.set("expressions", [_pointed_inside(node, items) for node in group.expressions])
    order = select.args.get("order")
    if select.is_star:  # what * stands for is known where the answer is that it is about
        return
    for ordered in order.expressions if order is not None else ():
        ordered.set("this", _pointed(ordered.this, items))


def _pointed_inside(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        made: exp.Expr = node.copy()
        made.set("expressions", [_pointed_inside(part, items) for part in node.expressions])
        return made
    return _pointed(node.unnest() if isinstance(node, exp.Paren) else node, items)


def _pointed(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    return node if (place := place_of(node, len(items))) is None else items[place].copy()


def _open_histograms(select: exp.Expr) -> None:
    """Replace HISTOGRAM(x, width) by the lower end of each bin and the count in it, grouped by bins."""
    items: list[exp.Expr] = []
    bins: list[exp.Expr] = []
    for item in select.args["expressions"]:
        node = item.unalias()
        if not (isinstance(node, exp.Anonymous) and str(node.this).upper() == "HISTOGRAM"):
            items.append(item)
            continue
        if len(node.expressions) not in (1, 2):
            raise InvalidParameter("write HISTOGRAM(x), or HISTOGRAM(x, width).")
        value, *width = (exp.Paren(this=part.copy()) for part in node.expressions)
        steps = exp.Floor(this=exp.Div(this=value, expression=width[0])) if width else None
        bins.append(exp.Mul(this=steps, expression=width[0].copy()) if steps is not None else value)
        items.append(exp.alias_(bins[-1].copy(), item.alias or "bin"))
        items.append(exp.alias_(exp.Count(this=exp.Star()), "count"))
    if bins:
        select.set("expressions", items)
        group = select.args.get("group") or exp.Group()
        group.set("expressions", [*group.expressions, *bins])
        select.set("group", group)


_QUANTILES = (exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile)
_MOST_QUANTILES = 20  # each is a pick of its own and shares ε


def _open_quantiles(select: exp.Expr) -> None:
    """Replace QUANTILE(x, [0.25, 0.5]) by one column for each, called x_25 and x_50 after the name of both."""
    items: list[exp.Expr] = []
    for item in select.args["expressions"]:
        node = item.unalias()
        part = "quantile" if node.args.get("quantile") is not None else "expression"
        quantiles = node.args.get(part) if isinstance(node, _QUANTILES) else None
        if not isinstance(quantiles, exp.Array):
            items.append(item)
            continue
        numeric = all(quantile.is_number for quantile in quantiles.expressions)
        if not numeric or not 1 <= len(quantiles.expressions) <= _MOST_QUANTILES:
            raise InvalidParameter(f"a list of quantiles holds 1 to {_MOST_QUANTILES} numbers, such as [0.25, 0.5].")
        for place in quantiles.expressions:
            one = node.copy()
            one.set(part, place.copy())
            items.append(exp.alias_(one, f"{item.alias or 'quantile'}_{100 * float(place.name):g}", quoted=True))
    select.set("expressions", items)


_PATTERN = re.compile(r"YYYY|MM|DD|[-/._ ]|(?P<other>.)", re.DOTALL)
_SIGNS = {"YYYY": "%Y", "MM": "%m", "DD": "%d"}


def _written_dates(tree: exp.Expr) -> exp.Expr:
    """Return the tree with TO_CHAR(d, 'YYYY-MM') written as STRFTIME(d, '%Y-%m')."""

    def change(node: exp.Expr) -> exp.Expr:
        pattern = node.args.get("format") if isinstance(node, exp.ToChar) else None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return node
        parts = list(_PATTERN.finditer(pattern.name))
        signs = [part[0] for part in parts if part[0] in _SIGNS]
        if any(part["other"] for part in parts) or len(set(signs)) < len(signs):
            raise QueryRefused("TO_CHAR(d, pattern) takes YYYY, MM and DD, each once: such as 'YYYY-MM'.")
        written = "".join(_SIGNS.get(part[0], part[0]) for part in parts)
        return exp.TimeToStr(this=node.this.copy(), format=exp.Literal.string(written))

    return changed(tree, change)


def _within_group(tree: exp.Expr) -> exp.Expr:
    """Return the tree with PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) as QUANTILE_CONT(x, q), MODE() as MODE(x)."""

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.WithinGroup):
            return node
        inner, order = node.this, node.expression
        if isinstance(inner, exp.Mode) and inner.this is None and len(order.expressions) == 1:
            return exp.Mode(this=order.expressions[0].this.copy())
        plain = isinstance(inner, exp.PercentileCont | exp.PercentileDisc) and len(order.expressions) == 1
        if not plain or order.expressions[0].args.get("desc"):
            raise QueryRefused("WITHIN GROUP goes with PERCENTILE_CONT(q) and ORDER BY x: or write QUANTILE(x, q).")
        return exp.PercentileCont(this=order.expressions[0].this.copy(), expression=inner.this.copy())

    return changed(tree, change)


def _arranged(node: exp.Expr) -> exp.Expr:
    """Return the tree with brackets only where they are needed, and what may stand in any order sorted by its text."""
    for part in list(node.args):
        _replace(node, part, _arranged)
    if isinstance(node, exp.Paren):
        inner: exp.Expr = node.this
        return inner
    if isinstance(node, exp.And | exp.Or):
        kind = type(node)
        operands = {side.sql("duckdb"): side for side in _sides(node, kind)}
        first, *others = (_bracketed(operands[text], node) for text in sorted(operands))
        for other in others:
            first = kind(this=first, expression=other)
        return first
    if isinstance(node, exp.In) and node.expressions:
        values = {value.sql("duckdb"): value for value in node.expressions}
        node.set("expressions", [values[text] for text in sorted(values)])
    if _rank(node) is not None:
        for part in ("this", "expression", "low", "high"):
            if part in node.args and isinstance(node.args[part], exp.Expr):
                node.set(part, _bracketed(node.args[part], node))
    return node


def _sides(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    for side in (node.this, node.expression):
        inner = side.unnest()
        yield from _sides(inner, kind) if isinstance(inner, kind) else (inner,)


def _bracketed(node: exp.Expr, parent: exp.Expr) -> exp.Expr:
    """Return an operand in brackets where it binds no closer than its operator, or where that has no known rank."""
    own, above = _rank(node), _rank(parent)
    needs = own is not None and above is not None and (own <= above or above == _UNKNOWN)
    return exp.Paren(this=node) if needs else node


def _rank(node: exp.Expr) -> int | None:
    for rank, kinds in _RANKS:
        if isinstance(node, kinds):
            return rank
    return _UNKNOWN if isinstance(node, exp.Binary) and not isinstance(node, exp.Escape | exp.Dot) else None


def _replace(node: exp.Expr, part: str, change: Callable[[exp.Expr], exp.Expr]) -> None:
    value = node.args[part]
    if isinstance(value, exp.Expr):
        node.set(part, change(value))
    elif isinstance(value, list):
        node.set(part, [change(child) if isinstance(child, exp.Expr) else child for child in value])
