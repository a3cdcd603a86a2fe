"""Grouping: what rows are grouped by, and which groups there can be, as far as declarations tell."""

from __future__ import annotations

import math

from sqlglot import exp

from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.extent import BoundTree
from incrowd.queries.language.joins import Joined
from incrowd.queries.language.sources import check_clauses
from incrowd.queries.language.splitting import qualified
from incrowd.queries.question import Key

MOST_GROUPS = 100_000
"""The most groups that are answered whether or not anybody is in them."""


def grouped(query: exp.Select, found: Joined) -> list[exp.Expr]:
    """Return the expressions by which rows are grouped, qualified, each once."""
    group = query.args.get("group")
    if query.args.get("distinct") is not None:
        if group is not None or query.args["distinct"].args.get("on") is not None:
            raise QuestionRefused("SELECT DISTINCT goes without GROUP BY: leave one of them out.")
        nodes = [item.unalias() for item in query.expressions]
    elif group is None:
        return []
    else:
        check_clauses(group, ("expressions",))
        nodes = [_renamed(node, query, found) for node in group.expressions]
    unique: list[exp.Expr] = []
    for node in nodes:
        if isinstance(node, exp.Tuple | exp.Rollup | exp.Cube | exp.GroupingSets):
            raise QuestionRefused(
                "ROLLUP, CUBE and GROUPING SETS are not answered: ask for each grouping, or add up the finest."
            )
        plain = qualified(node, found.scope).unnest()
        if plain not in unique:
            unique.append(plain)
    return unique


def keys_of(meanings: list[BoundTree]) -> tuple[Key, ...]:
    """Return the keys k1, k2, …, with their values where declarations tell them.

    Groups that can be listed are all answered, present or not.  If a key cannot be listed, it is private: which of its
    values occur is then decided by noise and a threshold.
    """
    keys = tuple(_key(f"k{place}", meaning) for place, meaning in enumerate(meanings, 1))
    groups = count_groups(keys)
    if groups is not None and groups > MOST_GROUPS:
        raise QuestionRefused(
            f"this makes {groups:,} groups; at most {MOST_GROUPS:,} are answered whether or not anybody is in them: "
            "group by fewer columns, or by coarser values such as FLOOR(x / 10) or DATE_TRUNC('month', d)."
        )
    return keys


def count_groups(keys: tuple[Key, ...]) -> int | None:
    """Return how many groups there can be, or None where only rows can tell.

    >>> from incrowd.core.domain import Type
    >>> count_groups((Key("k1", Type.BOOLEAN, (False, True)), Key("k2", Type.TEXT, ("a", "b", None))))
    6
    """
    known = [len(key.values) for key in keys if key.values is not None]
    return math.prod(known) if len(known) == len(keys) else None


def _key(name: str, meaning: BoundTree) -> Key:
    members = meaning.extent.members(MOST_GROUPS)
    if members is None:
        return Key(name, meaning.extent.type, None)
    return Key(name, meaning.extent.type, (*members, None) if meaning.extent.optional else members)


def _renamed(node: exp.Expr, query: exp.Select, found: Joined) -> exp.Expr:
    """Return what a name after GROUP BY stands for: a column of the rows, or else what SELECT calls so."""
    if not isinstance(node, exp.Column) or node.table:
        return node
    try:
        found.scope.find(node)
    except InvalidParameter:
        for item in query.expressions:
            if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                meant: exp.Expr = item.this
                return meant
        raise
    return node
