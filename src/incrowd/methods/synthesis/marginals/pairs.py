"""Pairs: what a model expects of every two columns, exactly, also where no clique holds both.

Between cliques of a junction tree goes what each side knows of the columns that they share.  Such a message holds, for
every class of every column on its side, how often it occurs with the classes that are shared; one clique further it is
multiplied by the chances given those.  So all pairs take two messages for each branch, and no row is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from incrowd.methods.synthesis.marginals.junction import Columns, Floats, JunctionTree, summed

_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False)
class _Message:
    """The classes of some columns, one after the other, each with the classes of the columns that are shared."""

    columns: Columns
    table: Floats


def pair_tables(tree: JunctionTree, tables: tuple[Floats, ...]) -> dict[Columns, Floats]:
    """Return the probabilities of every pair of columns.

    >>> tree = JunctionTree.of((2, 2, 2), [(0, 1), (1, 2)])
    >>> half = np.array([[0.5, 0.0], [0.0, 0.5]])
    >>> pair_tables(tree, (half, half))[0, 2].tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    singles = {
        column: summed(table, clique, (column,))
        for table, clique in zip(tables, tree.cliques, strict=True)
        for column in clique
    }
    pairs: dict[Columns, Floats] = {
        (one, other): np.outer(singles[one], singles[other]) for other in range(len(tree.sizes)) for one in range(other)
    }
    for table, clique in zip(tables, tree.cliques, strict=True):
        pairs |= {(a, b): summed(table, clique, (a, b)) for place, b in enumerate(clique) for a in clique[:place]}
    for (_, to), message in _messages(tree, tables).items():
        pairs |= dict(_crossing(tree, message, tables[to], tree.cliques[to]))
    return pairs


def _crossing(
    tree: JunctionTree, message: tuple[_Message, Columns], table: Floats, clique: Columns
) -> Iterator[tuple[Columns, Floats]]:
    """Return the pairs of a column behind a message and one that its receiver has and does not share."""
    sent, shared = message
    for other in clique:
        if other in shared or not sent.columns:
            continue
        lines = _passed(sent.table, shared, (table, clique), (other,))
        start = 0
        for column in sent.columns:
            own = lines[start : start + tree.sizes[column]]
            start += tree.sizes[column]
            if column < other:
                yield (column, other), own


def _messages(tree: JunctionTree, tables: tuple[Floats, ...]) -> dict[tuple[int, int], tuple[_Message, Columns]]:
    """Return what each clique sends to each neighbor, and over which columns: first upward, then downward."""
    near: list[dict[int, Columns]] = [{} for _ in tree.cliques]
    for place, (parent, shared) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        if parent >= 0:
            near[place][parent] = near[parent][place] = shared
    upward = [(place, tree.parents[place]) for place in range(len(tree.cliques) - 1, -1, -1)]
    downward = [(parent, place) for place, parent in enumerate(tree.parents)]
    sent: dict[tuple[int, int], tuple[_Message, Columns]] = {}
    for place, to in (*upward, *downward):
        if place < 0 or to < 0:
            continue
        shared = near[place][to]
        received = [sent[other, place] for other in near[place] if other != to]
        sent[place, to] = _message(tree, (tables[place], tree.cliques[place]), received, shared), shared
    return sent


def _message(
    tree: JunctionTree, clique: tuple[Floats, Columns], received: list[tuple[_Message, Columns]], onto: Columns
) -> _Message:
    table, members = clique
    own = tuple(column for column in members if column not in onto)
    parts = [_lines(table, members, column, onto) for column in own]
    parts += [_passed(message.table, shared, clique, onto) for message, shared in received]
    columns = (*own, *(column for message, _ in received for column in message.columns))
    shape = (0, *(tree.sizes[column] for column in onto))
    return _Message(columns, np.concatenate([np.zeros(shape), *parts]))


def _lines(table: Floats, members: Columns, column: int, onto: Columns) -> Floats:
    """Return a column's classes, a line each, with the classes of other columns."""
    both = tuple(sorted((column, *onto)))
    return np.moveaxis(summed(table, members, both), both.index(column), 0)


def _passed(message: Floats, shared: Columns, clique: tuple[Floats, Columns], onto: Columns) -> Floats:
    """Return a message over shared columns as one over others of a clique: times the chances given what is shared."""
    table, members = clique
    both = tuple(sorted({*shared, *onto}))
    joint = summed(table, members, both)
    chances = summed(joint, both, shared)
    ratio = np.divide(message, chances, out=np.zeros_like(message), where=chances > _SMALLEST)
    label = {column: number for number, column in enumerate(both)}
    lines = len(both)
    taken: Floats = np.einsum(
        ratio, [lines, *(label[c] for c in shared)], joint, [label[c] for c in both], [lines, *(label[c] for c in onto)]
    )
    return taken
