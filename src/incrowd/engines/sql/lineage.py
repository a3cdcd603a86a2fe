"""Lineage: which column of a table a column of a query is, if every query on the way hands it on as it is."""

from __future__ import annotations

from sqlglot import exp


def sources_of(select: exp.Select) -> dict[str, exp.Table | exp.Subquery]:
    """Return what a query selects from, by the names that columns call it; nothing, if it is not that simple.

    >>> from sqlglot import parse_one
    >>> list(sources_of(parse_one("SELECT 1 FROM people AS p JOIN (SELECT 1) AS q ON TRUE")))
    ['p', 'q']
    """
    first, joins = select.args.get("from_"), select.args.get("joins") or ()
    if first is None or select.args.get("with_") or any(each.args.get("method") for each in joins):
        return {}
    found = [first.this, *(each.this for each in joins)]
    plain = [each for each in found if isinstance(each, exp.Table | exp.Subquery) and not each.alias_column_names]
    named = {each.alias_or_name: each for each in plain}
    return named if len(named) == len(found) else {}


def source_of(select: exp.Select, column: exp.Column) -> exp.Table | exp.Subquery | None:
    """Return what a column is selected from; one that does not say it comes from the only source there is."""
    sources = sources_of(select)
    if not column.table and len(sources) == 1:
        return next(iter(sources.values()))
    return sources.get(column.table)


def selected(select: exp.Select, name: str) -> exp.Expr | None:
    """Return what a column of a query is made of; a column that `*` hands on is itself.

    >>> from sqlglot import parse_one
    >>> selected(parse_one("SELECT *, a AS b"), "b").sql(), selected(parse_one("SELECT *, a AS b"), "c").sql()
    ('a', '"c"')
    """
    star = False
    for each in select.expressions:
        if each.is_star:
            if type(each) is not exp.Star or any(each.args.values()):
                return None
            star = True
        elif each.alias_or_name == name:
            found: exp.Expr = each.unalias()
            return found
    return exp.column(name, quoted=True) if star else None


def is_stored(query: exp.Expr, name: str) -> bool:
    """Return whether a column of a query is one of a table, with the values and in the type that it has there.

    >>> from sqlglot import parse_one
    >>> query = parse_one("SELECT q.x AS y, q.z FROM (SELECT *, x + 1 AS z FROM people) AS q")
    >>> is_stored(query, "y"), is_stored(query, "z")
    (True, False)
    """
    column = selected(query, name) if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or not isinstance(column, exp.Column):
        return False
    source = source_of(query, column)
    return isinstance(source, exp.Table) or (source is not None and is_stored(source.this, column.name))
