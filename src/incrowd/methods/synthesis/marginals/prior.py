"""Prior: what a fit starts from at no cost: the published model of an earlier period, or laws of distances.

A released model is public.  The new model is the distribution nearest to it, in relative entropy, among those nearest
to the new noisy tables: what was not measured this time stays as it was.  The law of a distance, which was measured
already, says which classes of two ordered columns of days occur together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.methods.synthesis.marginals.detail import range_of
from incrowd.methods.synthesis.marginals.junction import summed
from incrowd.methods.synthesis.marginals.model import PriorTable
from incrowd.methods.synthesis.marginals.number_range import NumberRange
from incrowd.methods.synthesis.marginals.patterns import Distance

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes
    from incrowd.core.table import Table
    from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel

_EVEN = 0.01  # of even chances in each table, so that nothing is ruled out by an earlier period
_RARE = 1e-9  # the chance of what no distance reaches, before tables of classes are measured
_ROOM = 2  # the prior takes at most half of the cells of a model; the rest is for what is measured now


@dataclass(frozen=True, eq=False)
class PriorRows:
    """The rows of a period, and the model that was published of an earlier one."""

    table: Table
    model: SyntheticModel

    @classmethod
    def parts(cls, rows: Any) -> tuple[Table, SyntheticModel | None]:
        """Return rows and the model that they come with, if they do."""
        return (rows.table, rows.model) if isinstance(rows, cls) else (rows, None)


def prior_cliques(model: SyntheticModel, cells: int) -> tuple[tuple[str, ...], ...]:
    """Return the columns of the cliques that a new model of so many cells starts from: the first that leave room."""
    names, used, chosen = [column.name for column in model.columns], 0, []
    for clique, table in zip(model.model.tree.cliques, model.model.tables, strict=True):
        used += table.size
        if _ROOM * used > cells:
            break
        chosen.append(tuple(names[place] for place in clique))
    return tuple(chosen)


def prior_tables(model: SyntheticModel | None, classes: Sequence[Classes], cells: int) -> tuple[PriorTable, ...]:
    """Return what a new model starts from; nothing of a model over other columns or classes."""
    if model is None or not fits(model, classes):
        return ()
    tree, tables = model.model.tree, []
    for place in range(len(prior_cliques(model, cells))):
        clique, shared = tree.cliques[place], tree.separators[place]
        even = model.model.tables[place]
        table = (1 - _EVEN) * even + _EVEN / even.size
        margin = summed(table, clique, shared)
        axes = [table.shape[clique.index(column)] if column in shared else 1 for column in clique]
        tables.append(PriorTable(clique, np.log(table) - np.log(margin.reshape(axes))))
    return tuple(tables)


def fits(model: SyntheticModel, classes: Sequence[Classes]) -> bool:
    """Whether a model has these columns, each with these classes."""
    from incrowd.methods.shared.columns import text_of

    own = [(column.name, column.labels) for column in model.columns]
    return own == [(item.recoding.column.name, text_of(item.values()).to_pylist()) for item in classes]


def distance_priors(distances: Sequence[Distance], classes: Sequence[Classes]) -> tuple[PriorTable, ...]:
    """Return tables of classes to start a fit from, one for each distance; columns are those of the classes."""
    names, priors = [item.recoding.column.name for item in classes], []
    for distance in distances:
        places = names.index(distance.columns[0]), names.index(distance.columns[1])
        ranges = range_of(classes[places[0]]), range_of(classes[places[1]])
        priors.append(prior_of(distance.law, ranges, places, (len(classes[places[0]]), len(classes[places[1]]))))
    return tuple(priors)


def prior_of(
    distance: NumberRange, ranges: tuple[NumberRange, NumberRange], columns: tuple[int, int], sizes: tuple[int, int]
) -> PriorTable:
    """Return a table of classes to start a fit from: a first number anywhere in its class, the second so far above."""
    chances = np.full(sizes, 1.0 / sizes[1])
    lows, highs = ranges[1].ends(np.arange(ranges[1].size))
    for code in range(ranges[0].size):
        low, high = (int(end[0]) for end in ranges[0].ends(np.array([code])))
        first = np.arange(low, max(low, high) + 1)[:, None]
        above = np.maximum(lows, highs + 1)  # a class without a declared day ends before it starts
        own = (distance.below(above[None, :] - first) - distance.below(lows[None, :] - first)).mean(axis=0)
        chances[code, : len(lows)] *= len(lows) * own / max(float(own.sum()), _RARE)
    weights = np.log(np.maximum(chances, _RARE))
    ascending = columns[0] < columns[1]
    return PriorTable(columns if ascending else columns[::-1], weights if ascending else weights.T)
