"""Model: a distribution over all columns with the given tables, and rows drawn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.synthesis.marginals.junction import Columns, Floats, JunctionTree, spread, summed
from incrowd.methods.synthesis.marginals.steps import DeclaredZero

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes


Codes = NDArray[np.int64]

_GROWTH, _TRIES = 2.0, 25  # of the line search: a step doubles after success and halves after failure; post-processing
_SMALLEST, _NEVER = 1e-300, -1e4  # no division by zero; and e^(−10⁴) = 0 for cells that are impossible
_STEEPEST = 500.0  # e^500 is a float, and so are products of two


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A table of counts with Gaussian noise of a scale, over some columns."""

    columns: Columns
    counts: NDArray[np.int64]
    scale: float


@dataclass(frozen=True)
class Zero:
    """Combinations of classes of some columns that are declared never to occur: for each column, which classes.

    >>> Zero((0, 1), ((1,), (0, 2))).table((2, 3)).tolist()
    [[False, False, False], [True, False, True]]
    """

    columns: Columns
    classes: tuple[tuple[int, ...], ...]

    def table(self, sizes: Sequence[int]) -> NDArray[np.bool_]:
        """Return which cells of the table over its columns never occur."""
        never = np.zeros([sizes[column] for column in self.columns], np.bool_)
        never[np.ix_(*self.classes)] = True
        return never


@dataclass(frozen=True, eq=False)
class ZeroTable:
    """The table over some columns, with the cells that are declared never to occur."""

    columns: Columns
    never: NDArray[np.bool_]

    def table(self, sizes: Sequence[int]) -> NDArray[np.bool_]:
        """Return which cells never occur."""
        return self.never.reshape([sizes[column] for column in self.columns])


@dataclass(frozen=True, eq=False)
class PriorTable:
    """A clique of an earlier model, with the logarithm of its chances given what it shares with the one before."""

    columns: Columns
    weights: Floats


def merged_zeros(zeros: Sequence[Zero | ZeroTable], sizes: Sequence[int]) -> tuple[ZeroTable, ...]:
    """Return zeros as one table for each set of columns.

    >>> zeros = merged_zeros([Zero((0, 1), ((0,), (0,))), Zero((0, 1), ((1,), (1,)))], (2, 2))
    >>> [(zero.columns, zero.never.tolist()) for zero in zeros]
    [((0, 1), [[True, False], [False, True]])]
    """
    tables: dict[Columns, NDArray[np.bool_]] = {}
    for zero in zeros:
        own = zero.table(sizes)
        tables[zero.columns] = tables[zero.columns] | own if zero.columns in tables else own
    return tuple(ZeroTable(columns, never) for columns, never in tables.items())


@dataclass(frozen=True, eq=False)
class TableModel:
    """The tables of the cliques of a junction tree, each of which sums to 1, and about how many rows there are."""

    tree: JunctionTree
    tables: tuple[Floats, ...]
    total: float

    def table(self, columns: Columns) -> Floats | None:
        """Return the probabilities over some columns, or None if no clique holds them together."""
        place = self.tree.home(columns)
        return None if place < 0 else summed(self.tables[place], self.tree.cliques[place], columns)

    def draw(self, rows: int, chance: np.random.Generator) -> Codes:
        """Return so many rows, a column each: as many of each cell as expected, rounded up or down by chance.

        Columns are drawn clique by clique, each given what it shares with the one before.  Within rows that share that,
        cells get systematic places, which is unbiased and varies less than independent draws.
        """
        sample = np.zeros((len(self.tree.sizes), rows), np.int64)
        for table, clique, shared in zip(self.tables, self.tree.cliques, self.tree.separators, strict=True):
            fresh = tuple(column for column in clique if column not in shared)
            widths = [self.tree.sizes[column] for column in shared]
            groups = _packed([sample[column] for column in shared], widths, rows)
            cells = _systematic(_conditional(table, clique, shared), groups, chance)
            for column in reversed(fresh):
                sample[column] = cells % self.tree.sizes[column]
                cells //= self.tree.sizes[column]
        return sample


def _packed(codes: Sequence[Codes], widths: Sequence[int], rows: int) -> Codes:
    packed = np.zeros(rows, np.int64)
    for code, width in zip(codes, widths, strict=True):
        packed = packed * width + code
    return packed


def _conditional(table: Floats, clique: Columns, shared: Columns) -> Floats:
    """Return for each combination of the shared columns, a row each, the probabilities of the others."""
    axes = [clique.index(column) for column in shared]
    rest = [place for place in range(len(clique)) if place not in axes]
    lines = table.transpose([*axes, *rest]).reshape(math.prod(table.shape[place] for place in axes), -1)
    sums = lines.sum(axis=1, keepdims=True)
    even: Floats = np.where(sums > _SMALLEST, lines / np.maximum(sums, _SMALLEST), 1.0 / lines.shape[1])
    return even


def _systematic(conditional: Floats, groups: Codes, chance: np.random.Generator) -> Codes:
    """Return for each row a cell, given the group that it is in."""
    order = chance.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups, minlength=len(conditional))
    starts = np.cumsum(sizes) - sizes
    ordered = groups[order]
    place = np.arange(len(groups)) - starts[ordered]
    last = conditional.shape[1] - 1 - np.argmax(conditional[:, ::-1] > 0, axis=1)
    target = ordered + (place + chance.random(len(conditional))[ordered]) / np.maximum(1, sizes[ordered])
    ends = np.cumsum(conditional, axis=1)
    ends = (ends / ends[:, -1:] + np.arange(len(conditional))[:, None]).ravel()
    places = np.minimum(np.searchsorted(ends, target, side="right"), len(ends) - 1)
    cells = np.empty(len(groups), np.int64)
    cells[order] = np.clip(places - ordered * conditional.shape[1], 0, last[ordered])
    return cells


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with what it was fitted from: the tables, a weight for each of their cells, and the last step."""

    model: TableModel
    measured: tuple[NoisyTable, ...]
    weights: tuple[Floats, ...]
    step: float

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        measured: Sequence[NoisyTable],
        total: float,
        steps: int,
        start: Sequence[Zero | ZeroTable | PriorTable] = (),
    ) -> Fit:
        """Fit a first model, from even weights but those of tables that nobody measured: what never occurs, a prior."""
        first = [
            table.weights if isinstance(table, PriorTable) else np.where(table.table(sizes), _NEVER, 0.0)
            for table in start
        ]
        tables = (*measured, *map(_unmeasured, start, first))
        weights = (*(np.zeros(noisy.counts.shape) for noisy in measured), *first)
        tree = JunctionTree.of(sizes, [table.columns for table in tables])
        return _descended(tree, tables, weights, total, (2.0 / max(1.0, total) ** 2, steps))

    def further(self, measured: Sequence[NoisyTable], steps: int) -> Fit:
        """Fit a model of more tables, from the weights found so far."""
        total = self.model.total
        every = (*self.measured, *measured)
        weights = (*self.weights, *(np.zeros(table.counts.shape) for table in measured))
        before = self.model.tree
        tree = JunctionTree.of(before.sizes, [table.columns for table in every], before.widths)
        return _descended(tree, every, weights, total, (self.step, steps))


def _unmeasured(table: Zero | ZeroTable | PriorTable, weights: Floats) -> NoisyTable:
    return NoisyTable(table.columns, np.zeros(weights.shape, np.int64), math.inf)


def _descended(
    tree: JunctionTree,
    measured: tuple[NoisyTable, ...],
    weights: tuple[Floats, ...],
    total: float,
    pace: tuple[float, int],
) -> Fit:
    """Go down by mirror descent: towards the distribution of largest entropy among those nearest to the tables.

    Source: McKenna, Sheldon & Miklau 2019, private-PGM.
    """
    step, steps = pace
    homes = [tree.home(table.columns) for table in measured]
    model = TableModel(tree, tuple(tree.marginals(_potentials(tree, measured, homes, weights))), total)
    loss, slopes = _misfit(model, measured, homes)
    for _ in range(steps):
        step *= _GROWTH
        for _ in range(_TRIES):
            tried = tuple(_stepped(weight, step * slope) for weight, slope in zip(weights, slopes, strict=True))
            following = TableModel(tree, tuple(tree.marginals(_potentials(tree, measured, homes, tried))), total)
            lower, steeper = _misfit(following, measured, homes)
            if loss - lower >= 0.5 * _progress(model, following, measured, homes, slopes):
                break
            step /= _GROWTH
        else:
            break
        model, loss, slopes, weights = following, lower, steeper, tried
    return Fit(model, measured, weights, step)


def _stepped(weight: Floats, step: Floats) -> Floats:
    """Return weights after a step, held where sums of them stay exact: e^−500 is no chance at all."""
    held: Floats = np.where(weight == _NEVER, weight, np.clip(weight - step, -_STEEPEST, _STEEPEST))
    return held


def _potentials(
    tree: JunctionTree, measured: Sequence[NoisyTable], homes: Sequence[int], weights: Sequence[Floats]
) -> list[Floats]:
    potentials = [np.zeros(tuple(tree.sizes[column] for column in clique)) for clique in tree.cliques]
    for table, home, weight in zip(measured, homes, weights, strict=True):
        potentials[home] = potentials[home] + spread(weight, table.columns, tree.cliques[home])
    return potentials


def _misfit(model: TableModel, measured: Sequence[NoisyTable], homes: Sequence[int]) -> tuple[float, list[Floats]]:
    """Return the sum of squared differences in units of the noise, and for each table its slope."""
    loss, slopes = 0.0, []
    for table, home in zip(measured, homes, strict=True):
        away = model.total * summed(model.tables[home], model.tree.cliques[home], table.columns) - table.counts
        loss += float((away**2).sum()) / (2.0 * table.scale**2)
        slopes.append(away / table.scale**2)
    return loss, slopes


def _progress(
    model: TableModel,
    following: TableModel,
    measured: Sequence[NoisyTable],
    homes: Sequence[int],
    slopes: Sequence[Floats],
) -> float:
    total = 0.0
    for table, home, slope in zip(measured, homes, slopes, strict=True):
        moved = model.tables[home] - following.tables[home]
        total += float((slope * summed(moved, model.tree.cliques[home], table.columns)).sum())
    return total * model.total


_MISSING = "missing"


def declared_zeros(
    zeros: Sequence[Mapping[str, str | tuple[str, ...]] | None], classes: Sequence[Classes]
) -> tuple[DeclaredZero, ...]:
    """Return what is declared never to occur by labels, the columns in order; `missing` stands for missing values."""
    labels = {item.recoding.column.name: text_of(item.values()).to_pylist() for item in classes}
    declared = []
    for zero in zeros:
        if not zero or len(zero) < 2:
            raise InvalidParameter("a zero names labels of two columns or more that never occur together.")
        unknown = [name for name in zero if name not in labels]
        if unknown:
            raise InvalidParameter(f"a zero names {unknown[0]!r}, which is not released.")
        names = tuple(name for name in labels if name in zero)
        declared.append(DeclaredZero(names, tuple(_labels(name, zero[name], labels[name]) for name in names)))
    return tuple(declared)


def _labels(name: str, stated: str | tuple[str, ...], declared: Sequence[str | None]) -> tuple[str | None, ...]:
    texts = [stated] if isinstance(stated, str) else list(stated)
    labels = [None if text == _MISSING and text not in declared else text for text in texts]
    unknown = [label for label in labels if label not in declared]
    if unknown or not labels:
        raise InvalidParameter(
            f"a zero names {_MISSING if unknown and unknown[0] is None else (unknown or [''])[0]!r} of {name!r}, which "
            "it does not show at its level: name its labels there."
        )
    return tuple(dict.fromkeys(labels))


def codes_of(zeros: Sequence[DeclaredZero], classes: Sequence[Classes]) -> tuple[Zero, ...]:
    """Return zeros by the numbers of columns and classes."""
    labels = [text_of(item.values()).to_pylist() for item in classes]
    return zeros_of(zeros, [item.recoding.column.name for item in classes], labels)


def zeros_of(
    zeros: Sequence[DeclaredZero], names: Sequence[str], labels: Sequence[Sequence[str | None]]
) -> tuple[Zero, ...]:
    """Return zeros by numbers, given the labels of every column in order.

    >>> zero = DeclaredZero(("sex", "pregnant"), (("M",), ("yes",)))
    >>> zeros_of([zero], ["sex", "pregnant"], [["F", "M"], ["no", "yes"]])
    (Zero(columns=(0, 1), classes=((1,), (1,))),)
    """
    numbered = []
    for zero in zeros:
        columns = tuple(names.index(name) for name in zero.columns)
        places = (
            tuple(labels[column].index(label) for label in own)
            for column, own in zip(columns, zero.labels, strict=True)
        )
        numbered.append(Zero(columns, tuple(places)))
    return tuple(numbered)


def require_possible(sizes: Sequence[int], zeros: Sequence[Zero | ZeroTable]) -> None:
    """Refuse zeros that leave nothing that can occur."""
    if not zeros:
        return
    model = Fit.of(sizes, (), 1.0, 0, zeros).model
    for zero in zeros:
        table = model.table(zero.columns)
        if table is not None and np.any(table[zero.table(sizes)] > 0):
            raise InvalidParameter("by the declared zeros nothing at all can occur: take some of them out.")
