"""Codes: listed texts that a database holds by their place in the list, so that rows are grouped by whole numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from incrowd.core.domain import Categories, Type
from incrowd.core.schema import OTHER
from incrowd.engines.columns import quote
from incrowd.engines.sql.engine import StoredTable
from incrowd.engines.sql.lineage import selected, source_of, sources_of

_GROUPED = {"kind", "expressions", "from_", "joins", "where", "group"}
"""What a query that groups rows may consist of, if codes are to take the place of texts in it."""

_PASSED = {"kind", "expressions", "from_", "joins", "where", "qualify"}
"""What a query may consist of that hands rows on, each with the codes of its texts."""


def code_name(column: str) -> str:
    """Return the name of the column that holds the codes of another.

    >>> code_name("ward")
    'ward, code'
    """
    return f"{column}, code"


def listed_texts(stored: StoredTable) -> dict[str, tuple[str, ...]]:
    """Return the columns of rows that are ready whose texts are listed, and every text that one can hold.

    What is outside of its list is the text other there, and what is missing may be another text of the list.
    """
    if stored.ready is None:
        return {}
    held, names = set(stored.ready.named_selects), {name.casefold() for name in stored.schema.names}
    return {
        column.name: tuple(dict.fromkeys((*column.domain.values, OTHER, *filter(None, (column.fill,)))))
        for column in stored.schema.columns
        if column.type is Type.TEXT
        and isinstance(column.domain, Categories)
        and column.name in held
        and code_name(column.name).casefold() not in names
    }


def held_by_codes(texts: Mapping[str, Collection[str]]) -> str:
    """Return what is selected of rows to hold their listed texts by codes; one that is not listed is an error.

    >>> print(held_by_codes({"ward": ("heart", "eye")}))
    * REPLACE (CAST("ward" AS ENUM('heart', 'eye')) AS "ward")
    """
    kinds = {name: ", ".join("'" + each.replace("'", "''") + "'" for each in listed) for name, listed in texts.items()}
    return f"* REPLACE ({', '.join(f'CAST({quote(n)} AS ENUM({kind})) AS {quote(n)}' for n, kind in kinds.items())})"


def read_by_codes(texts: Collection[str]) -> str:
    """Return what is selected of rows that are held by codes: the rows as they were, and the codes beside them.

    Texts are texts again, for an order of codes would be that of the list.

    >>> read_by_codes(["ward"])
    '* REPLACE (CAST("ward" AS VARCHAR) AS "ward"), "ward" AS "ward, code"'
    """
    plain = ", ".join(f"CAST({quote(name)} AS VARCHAR) AS {quote(name)}" for name in texts)
    return f"* REPLACE ({plain}), {', '.join(f'{quote(name)} AS {quote(code_name(name))}' for name in texts)}"


def group_by_codes(query: exp.Query, coded: Mapping[str, Collection[str]]) -> exp.Query:
    """Group and count by codes, in a tree that nobody else holds, where a text is one of those `coded` as it is.

    There is one code for each text, and none where the text is missing: groups and counts are the same.  Codes are
    texts again before anything else is done with them.

    >>> from sqlglot import parse_one
    >>> group_by_codes(parse_one("SELECT t.w, COUNT(*) AS n FROM v AS t GROUP BY t.w"), {"v": {"w"}}).sql()
    'SELECT CAST(t."w, code" AS VARCHAR) AS "w", COUNT(*) AS n FROM v AS t GROUP BY t."w, code"'
    """
    if any(coded.values()):
        for select in _selects(query):
            _group(select, coded)
    return query


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    """Yield a query that selects, and those from which it does."""
    if isinstance(query, exp.Select):
        yield query
        for source in sources_of(query).values():
            if isinstance(source, exp.Subquery):
                yield from _selects(source.this)


def _made_of(select: exp.Select, parts: Collection[str]) -> bool:
    return all(name in parts for name, part in select.args.items() if part)


def _group(select: exp.Select, coded: Mapping[str, Collection[str]]) -> None:
    """Let codes stand for the keys and for the counted columns of a query, where they are no more than that."""
    keys, named = _keys(select), [each.this for each in select.expressions if isinstance(each, exp.Alias)]
    counts = [each for each in named if isinstance(each, exp.Count)]
    if not (keys or counts) or not _made_of(select, _GROUPED):
        return
    bare = [each for each in select.expressions if isinstance(each.unalias(), exp.Column)]
    more = [each for each in select.expressions if not isinstance(each.unalias(), exp.Column)]
    if any(each.unalias() not in keys for each in bare) or any(each.find(exp.Query) for each in more):
        return
    used = {node.name.casefold() for each in more for node in each.find_all(exp.Column)}
    for key in keys:
        code = None if key.name.casefold() in used else _code(select, key, coded)
        if code is not None:
            for each in [each for each in bare if each.unalias() == key]:
                text = exp.Cast(this=code.copy(), to=exp.DataType(this=exp.DataType.Type.VARCHAR))
                each.replace(exp.alias_(text, each.alias_or_name, quoted=True))
            key.replace(code)
    for each in counts:
        counted = each.this.expressions if isinstance(each.this, exp.Distinct) else [each.this]
        if len(counted) == 1 and isinstance(counted[0], exp.Column):
            code = _code(select, counted[0], coded)
            if code is not None:
                counted[0].replace(code)


def _keys(select: exp.Select) -> list[exp.Column]:
    """Return the columns by which a query groups; none, where it groups by anything else, too."""
    group = select.args.get("group")
    if group is None or any(part for name, part in group.args.items() if name != "expressions"):
        return []
    columns = [each for each in group.expressions if isinstance(each, exp.Column)]
    return columns if len(columns) == len(group.expressions) else []


def _code(select: exp.Select, column: exp.Column, coded: Mapping[str, Collection[str]]) -> exp.Column | None:
    """Return the column with the codes of another that a query reads; on the way to it, codes are handed on."""
    source = source_of(select, column)
    if isinstance(source, exp.Table):
        there = source.args.get("db") is None and column.name in coded.get(source.name, ())
    else:
        there = source is not None and _handed_on(source.this, column.name, coded)
    code = exp.to_identifier(code_name(column.name), quoted=True)
    return exp.column(code, table=column.args.get("table")) if there else None


def _handed_on(select: exp.Expr, name: str, coded: Mapping[str, Collection[str]]) -> bool:
    """Let a query from which another selects hand on the codes of a column, and return whether it does."""
    if not isinstance(select, exp.Select) or not _made_of(select, _PASSED):
        return False
    column = selected(select, name)
    code = _code(select, column, coded) if isinstance(column, exp.Column) else None
    if code is None:
        return False
    called, names = code_name(name), {each.alias_or_name: each.unalias() for each in select.expressions}
    taken = next((tree for each, tree in names.items() if each.casefold() == called.casefold()), None)
    if name in names and taken is None:
        select.append("expressions", exp.alias_(code, called, quoted=True))
        return True
    return taken == (code if name in names else None)
