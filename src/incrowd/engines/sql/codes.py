"""Codes: values that a database holds in fewer bytes, and by which it groups: listed texts by place, small numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.schema import OTHER, Column
from incrowd.engines.columns import quote
from incrowd.engines.sql.engine import SQL_TYPES, StoredTable
from incrowd.engines.sql.lineage import selected, source_of, sources_of

_GROUPED = {"kind", "expressions", "from_", "joins", "where", "group"}
"""What a query that groups rows may consist of, if codes are to take the place of values in it."""

_PASSED = {"kind", "expressions", "from_", "joins", "where", "qualify"}
"""What a query may consist of that hands rows on, each with the codes of its values."""

_SMALL = (("TINYINT", 2**7), ("SMALLINT", 2**15))


@dataclass(frozen=True)
class Code:
    """The type in which the values of a column are held, and the one in which they are read.

    There is one code for each value, and none where a value is missing.
    """

    held: str
    read: str


Coded = Mapping[str, Mapping[str, Code]]
"""The columns of tables that are held by codes, by the names of the tables."""


def code_name(column: str) -> str:
    """Return the name of the column that holds the codes of another.

    >>> code_name("ward")
    'ward, code'
    """
    return f"{column}, code"


def codes_of(stored: StoredTable) -> dict[str, Code]:
    """Return the columns of rows that are ready that can be held by codes; it hangs on what is declared alone."""
    if stored.ready is None:
        return {}
    held, names = set(stored.ready.named_selects), {name.casefold() for name in stored.schema.names}
    found = {column.name: _code_of(column) for column in stored.schema.columns if column.name in held}
    return {name: code for name, code in found.items() if code and code_name(name).casefold() not in names}


def _code_of(column: Column) -> Code | None:
    """Return a code for all that a column can be after its rules.

    A text outside of its list is the text other then, a number outside of its bounds is one of them, or missing; what
    stands for a missing value is declared.
    """
    domain = column.domain
    if column.type is Type.TEXT and isinstance(domain, Categories):
        texts = dict.fromkeys((*domain.values, OTHER, *(() if column.fill is None else (column.fill,))))
        listed = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
        return Code(f"ENUM({listed})", SQL_TYPES[column.type])
    if column.type is Type.INTEGER and isinstance(domain, Numbers):
        low, high = domain.bounds
        fitting = [kind for kind, end in _SMALL if low is not None and high is not None and -end <= low <= high < end]
        return Code(fitting[0], SQL_TYPES[column.type]) if fitting else None
    return None


def held_by_codes(codes: Mapping[str, Code]) -> str:
    """Return what is selected of rows to hold them by codes; a value that has none is an error.

    >>> held_by_codes({"age": Code("TINYINT", "BIGINT")})
    '* REPLACE (CAST("age" AS TINYINT) AS "age")'
    """
    return f"* REPLACE ({', '.join(f'CAST({quote(n)} AS {code.held}) AS {quote(n)}' for n, code in codes.items())})"


def read_by_codes(codes: Mapping[str, Code]) -> str:
    """Return what is selected of rows that are held by codes: the rows as they were, and the codes beside them.

    Texts are texts again, for an order of codes would be that of the list, and numbers as long as others, for sums of
    short ones could be too long for them.

    >>> read_by_codes({"age": Code("TINYINT", "BIGINT")})
    '* REPLACE (CAST("age" AS BIGINT) AS "age"), "age" AS "age, code"'
    """
    plain = ", ".join(f"CAST({quote(name)} AS {code.read}) AS {quote(name)}" for name, code in codes.items())
    return f"* REPLACE ({plain}), {', '.join(f'{quote(name)} AS {quote(code_name(name))}' for name in codes)}"


def group_by_codes(query: exp.Query, coded: Coded) -> exp.Query:
    """Group and count by codes, in a tree that nobody else holds, where a key is a `coded` column as it is.

    Groups and counts are the same.  Codes are values again before anything else is done with them.

    >>> from sqlglot import parse_one
    >>> coded = {"v": {"w": Code("TINYINT", "BIGINT")}}
    >>> group_by_codes(parse_one("SELECT t.w, COUNT(*) AS n FROM v AS t GROUP BY t.w"), coded).sql()
    'SELECT CAST(t."w, code" AS BIGINT) AS "w", COUNT(*) AS n FROM v AS t GROUP BY t."w, code"'
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


def _group(select: exp.Select, coded: Coded) -> None:
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
        found = None if key.name.casefold() in used else _code(select, key, coded)
        if found is not None:
            for each in [each for each in bare if each.unalias() == key]:
                value = exp.Cast(this=_beside(key), to=exp.DataType(this=exp.DataType.Type[found.read]))
                each.replace(exp.Alias(this=value, alias=_named(each.alias_or_name)))
            key.replace(_beside(key))
    for each in counts:
        counted = each.this.expressions if isinstance(each.this, exp.Distinct) else [each.this]
        if len(counted) == 1 and isinstance(counted[0], exp.Column) and _code(select, counted[0], coded):
            counted[0].replace(_beside(counted[0]))


def _beside(column: exp.Column) -> exp.Column:
    """Return the column that holds the codes of another."""
    table = column.args.get("table")
    return exp.Column(this=_named(code_name(column.name)), table=None if table is None else table.copy())


def _named(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _keys(select: exp.Select) -> list[exp.Column]:
    """Return the columns by which a query groups; none, where it groups by anything else, too."""
    group = select.args.get("group")
    if group is None or any(part for name, part in group.args.items() if name != "expressions"):
        return []
    columns = [each for each in group.expressions if isinstance(each, exp.Column)]
    return columns if len(columns) == len(group.expressions) else []


def _code(select: exp.Select, column: exp.Column, coded: Coded) -> Code | None:
    """Return the code of a column that a query reads; on the way to it, codes are handed on."""
    source = source_of(select, column)
    if isinstance(source, exp.Table):
        return None if source.args.get("db") else coded.get(source.name, {}).get(column.name)
    return None if source is None else _handed_on(source.this, column.name, coded)


def _handed_on(select: exp.Expr, name: str, coded: Coded) -> Code | None:
    """Let a query from which another selects hand on the codes of a column, and return the code if it does."""
    if not isinstance(select, exp.Select) or not _made_of(select, _PASSED):
        return None
    column = selected(select, name)
    found = _code(select, column, coded) if isinstance(column, exp.Column) else None
    if found is None or not isinstance(column, exp.Column):
        return None
    called, names = code_name(name), {each.alias_or_name: each.unalias() for each in select.expressions}
    taken = next((tree for each, tree in names.items() if each.casefold() == called.casefold()), None)
    if name in names and taken is None:
        select.append("expressions", exp.Alias(this=_beside(column), alias=_named(called)))
        return found
    return found if taken == (_beside(column) if name in names else None) else None
