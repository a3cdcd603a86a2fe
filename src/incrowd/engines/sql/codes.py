"""Codes: smaller values that DuckDB stores and groups by instead of listed texts and small whole numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.schema import OTHER, Column
from incrowd.engines.columns import quote
from incrowd.engines.sql.engine import SQL_TYPES, StoredTable, selected, source_of, sources_of

_GROUPED = {"kind", "expressions", "from_", "joins", "where", "group"}
"""The parts that a query with groups may have if codes are to replace values in it."""

_PASSED = {"kind", "expressions", "from_", "joins", "where", "qualify"}
"""The parts that a query may have if it passes rows on with the codes of their values."""

_SMALL = (("TINYINT", 2**7), ("SMALLINT", 2**15))


@dataclass(frozen=True)
class Code:
    """The types in which a column is stored and read; each value has one code, a missing value has none."""

    held: str
    read: str


Coded = Mapping[str, Mapping[str, Code]]
"""The columns that are stored by codes, by table."""


def code_name(column: str) -> str:
    """Return the name of the column that holds the codes of another.

    >>> code_name("ward")
    'ward, code'
    """
    return f"{column}, code"


def codes_of(stored: StoredTable) -> dict[str, Code]:
    """Return the columns of ready rows that can be stored by codes; that depends on the declaration alone."""
    if stored.ready is None:
        return {}
    held, names = set(stored.ready.named_selects), {name.casefold() for name in stored.schema.names}
    codes = {column.name: _code_of(column) for column in stored.schema.columns if column.name in held}
    return {name: code for name, code in codes.items() if code and code_name(name).casefold() not in names}


def _code_of(column: Column) -> Code | None:
    """Return a code for every value of a column after its rules.

    Then a text outside its list is the text other, a number outside its bounds is one of them or missing, and the
    replacement of a missing value is declared.
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
    """Return the select list that stores rows by codes; a value without a code is an error.

    >>> held_by_codes({"age": Code("TINYINT", "BIGINT")})
    '* REPLACE (CAST("age" AS TINYINT) AS "age")'
    """
    return f"* REPLACE ({', '.join(f'CAST({quote(n)} AS {code.held}) AS {quote(n)}' for n, code in codes.items())})"


def read_by_codes(codes: Mapping[str, Code]) -> str:
    """Return the select list that reads rows stored by codes: the values, and the codes beside them.

    Texts are texts again, since codes sort in the order of the list.  Numbers are long again, since sums of short ones
    could overflow.

    >>> read_by_codes({"age": Code("TINYINT", "BIGINT")})
    '* REPLACE (CAST("age" AS BIGINT) AS "age"), "age" AS "age, code"'
    """
    plain = ", ".join(f"CAST({quote(name)} AS {code.read}) AS {quote(name)}" for name, code in codes.items())
    return f"* REPLACE ({plain}), {', '.join(f'{quote(name)} AS {quote(code_name(name))}' for name in codes)}"


def group_by_codes(query: exp.Query, coded: Coded) -> exp.Query:
    """Group and count by codes where a key is a `coded` column itself; the tree is changed in place.

    Groups and counts are the same.  Codes become values before anything else uses them.

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
    """Yield a query that selects, and the subqueries that it selects from."""
    if isinstance(query, exp.Select):
        yield query
        for source in sources_of(query).values():
            if isinstance(source, exp.Subquery):
                yield from _selects(source.this)


def _made_of(select: exp.Select, parts: Collection[str]) -> bool:
    return all(name in parts for name, part in select.args.items() if part)


def _group(select: exp.Select, coded: Coded) -> None:
    """Replace keys and counted columns of a query by their codes, where the query uses them for nothing else."""
    keys, aliased = _keys(select), [item.this for item in select.expressions if isinstance(item, exp.Alias)]
    counts = [node for node in aliased if isinstance(node, exp.Count)]
    if not (keys or counts) or not _made_of(select, _GROUPED):
        return
    bare = [item for item in select.expressions if isinstance(item.unalias(), exp.Column)]
    more = [item for item in select.expressions if not isinstance(item.unalias(), exp.Column)]
    if any(item.unalias() not in keys for item in bare) or any(item.find(exp.Query) for item in more):
        return
    used = {node.name.casefold() for item in more for node in item.find_all(exp.Column)}
    for key in keys:
        code = None if key.name.casefold() in used else _code(select, key, coded)
        if code is not None:
            for item in [item for item in bare if item.unalias() == key]:
                value = exp.Cast(this=_beside(key), to=exp.DataType(this=exp.DataType.Type[code.read]))
                item.replace(exp.Alias(this=value, alias=_named(item.alias_or_name)))
            key.replace(_beside(key))
    for count in counts:
        counted = count.this.expressions if isinstance(count.this, exp.Distinct) else [count.this]
        if len(counted) == 1 and isinstance(counted[0], exp.Column) and _code(select, counted[0], coded):
            counted[0].replace(_beside(counted[0]))


def _beside(column: exp.Column) -> exp.Column:
    """Return the column that holds the codes of another."""
    table = column.args.get("table")
    return exp.Column(this=_named(code_name(column.name)), table=None if table is None else table.copy())


def _named(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)


def _keys(select: exp.Select) -> list[exp.Column]:
    """Return the columns by which a query groups; none if it also groups by anything else."""
    group = select.args.get("group")
    if group is None or any(part for name, part in group.args.items() if name != "expressions"):
        return []
    columns = [key for key in group.expressions if isinstance(key, exp.Column)]
    return columns if len(columns) == len(group.expressions) else []


def _code(select: exp.Select, column: exp.Column, coded: Coded) -> Code | None:
    """Return the code of a column that a query reads; subqueries on the way pass the codes on."""
    source = source_of(select, column)
    if isinstance(source, exp.Table):
        return None if source.args.get("db") else coded.get(source.name, {}).get(column.name)
    return None if source is None else _passed_on(source.this, column.name, coded)


def _passed_on(select: exp.Expr, name: str, coded: Coded) -> Code | None:
    """Let a subquery pass on the codes of a column, and return the code if it can."""
    if not isinstance(select, exp.Select) or not _made_of(select, _PASSED):
        return None
    column = selected(select, name)
    code = _code(select, column, coded) if isinstance(column, exp.Column) else None
    if code is None or not isinstance(column, exp.Column):
        return None
    alias, items = code_name(name), {item.alias_or_name: item.unalias() for item in select.expressions}
    taken = next((tree for item, tree in items.items() if item.casefold() == alias.casefold()), None)
    if name in items and taken is None:
        select.append("expressions", exp.Alias(this=_beside(column), alias=_named(alias)))
        return code
    return code if taken == (_beside(column) if name in items else None) else None
