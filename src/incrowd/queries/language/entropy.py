"""Entropy: how many bits the values of a column have on average, computed from their released counts."""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp

from incrowd.errors import QueryRefused
from incrowd.queries.language.trees import changed, place_of

_ALONE = "ENTROPY(x) of one x stands beside keys: ask for other aggregates in a query of their own."
_COUNTED, _MANY = "entropy_of", "entropy_rows"


def open_entropy(select: exp.Select) -> None:
    """Replace ENTROPY(x), in bits, by LOG2(n) − Σ nᵢ·LOG2(nᵢ) / n of the released counts nᵢ of the values of x.

    Missing values do not count, and neither do values whose released count is 0.

    >>> tree = sqlglot.parse_one("SELECT ENTROPY(ward) AS e FROM visits", dialect="duckdb")
    >>> open_entropy(tree)
    >>> tree.args["from_"].this.this.sql("duckdb")
    'SELECT ward AS entropy_of, COUNT(*) AS entropy_rows FROM visits WHERE NOT (ward) IS NULL GROUP BY ward'
    """
    calls = [call for call in select.find_all(exp.Anonymous) if _is_entropy(call) and call.parent_select is select]
    if not calls:
        return
    _check(select, calls)
    items, keys = list(select.expressions), _keys(select)
    source = _counts(select, keys, calls[0].expressions[0])

    def change(node: exp.Expr) -> exp.Expr:
        name = next((name for name, key in keys.items() if key == node), None)
        return _entropy().copy() if _is_entropy(node) else node if name is None else exp.column(name, quoted=True)

    made = [exp.alias_(changed(item.unalias(), change), _name(item), quoted=True) for item in items]
    select.set("expressions", made)
    select.set("from_", exp.From(this=source))
    for part in ("joins", "where"):
        select.set(part, None)
    group = exp.Group(expressions=[exp.column(name, quoted=True) for name in keys])
    select.set("group", group if keys else None)
    if select.args.get("order") is not None:
        select.set("order", changed(select.args["order"], change))


def _check(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    others = select.find_all(exp.AggFunc, exp.Window, exp.WithinGroup)
    if (
        any(part.parent_select is select for part in others)
        or any(select.args.get(part) for part in ("having", "qualify", "distinct"))
        or len({call.sql("duckdb") for call in calls}) > 1
        or len(calls[0].expressions) != 1
    ):
        raise QueryRefused(_ALONE)


def _keys(select: exp.Select) -> dict[str, exp.Expr]:
    """Return the keys by the names that they have in the answer; those that are not shown get one."""
    items, group = select.expressions, select.args.get("group")
    keys = {_name(item): item.unalias() for item in items if not any(map(_is_entropy, item.walk()))}
    for node in [] if group is None else group.expressions:
        if place_of(node, len(items)) is None and node not in keys.values() and node.name not in keys:
            keys[f"entropy_key_{len(keys)}"] = node
    return keys


def _counts(select: exp.Select, keys: dict[str, exp.Expr], counted: exp.Expr) -> exp.Subquery:
    """Return the query of the counts of each value, by the keys."""
    inner = exp.Select(
        expressions=[
            *(exp.alias_(node.copy(), name, quoted=True) for name, node in keys.items()),
            exp.alias_(counted.copy(), _COUNTED),
            exp.alias_(exp.Count(this=exp.Star()), _MANY),
        ],
        **{part: select.args[part].copy() for part in ("from_", "where") if select.args.get(part)},
        joins=[join.copy() for join in select.args.get("joins") or ()],
        group=exp.Group(expressions=[node.copy() for node in (*keys.values(), counted)]),
    )
    present = exp.Not(this=exp.Is(this=exp.Paren(this=counted.copy()), expression=exp.Null()))
    return exp.Subquery(this=inner.where(present, copy=False), alias=exp.TableAlias(this=exp.to_identifier("counts")))


def _name(item: exp.Expr) -> str:
    return item.alias_or_name or item.sql("duckdb").lower()


def _is_entropy(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "ENTROPY"


@cache
def _entropy() -> exp.Expr:
    total = f"(LN(SUM({_MANY})) - SUM({_MANY} * LN({_MANY})) / SUM({_MANY})) / LN(2)"
    return sqlglot.parse_one(f"GREATEST(0, {total})", dialect="duckdb")
