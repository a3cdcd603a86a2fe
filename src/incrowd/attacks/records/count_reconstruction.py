"""Reconstruction from published counts: a table of whole people that agrees with all of them, by an integer program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.candidates import Codes, match
from incrowd.attacks.cover import numbers, texts
from incrowd.attacks.finding import Finding, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.trial import Trial
from incrowd.errors import InvalidParameter

_CELLS, _ENTRIES = 20_000, 20_000_000
_SECONDS = 60.0
Numbers = NDArray[np.float64]


def count_reconstruction(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Find a table of people whose counts are the published ones, and take its records as those of people.

    Knows: all published tables of counts (the release and those of `--also`), and which values a column can have.  The
    integer program looks for whole numbers of people in each combination of values, at the least total deviation from
    all counts: none where counts are exact.  A suppressed count is not used.  Success: the record of a person, in all
    columns that some table has, is among the reconstructed ones.  Baseline: as many records with each column drawn by
    its own published frequencies.

    Meaningless where nearly all combinations of values have people: then every record is among them, also those of the
    control group.  Beyond 20,000 combinations, or a minute, it is not run, or the best solution so far is used.

    Source: Dinur & Nissim 2003; Garfinkel, Abowd & Martindale 2019 (the census of 2010); Dick et al. 2023.
    """
    tables = (published, *published.earlier)
    if any(table.count is None for table in tables):
        raise InvalidParameter("count-reconstruction needs tables of counts: name their column with --count.")
    trial = Trial.of(published, knowledge, control)
    space = _Space.of(tables, trial.everyone)
    people = _solved(*space.equations(tables))
    records = space.cells_of_people()
    hits = people[records] > 0
    baseline = np.isin(records, _by_columns(people.reshape(space.shape), knowledge.chance))

    def steps(_: int) -> list[str]:
        agreeing = f"The whole numbers that agree best with all counts have {int(people.sum()):,} people"
        return [
            f"{len(tables)} published tables count {math.prod(space.shape):,} combinations of values.",
            f"{agreeing}; this person's record is among them.",
        ]

    story = trial.story(hits, steps, space.names)
    return trial.finding("count-reconstruction", Risk.INFERENCE, hits, baseline, story)


def _by_columns(people: Codes, chance: np.random.Generator) -> Codes:
    """Return as many records with each column drawn by itself, from its frequencies in the reconstructed table."""
    total = int(people.sum())
    if not total:
        return np.zeros(0, np.int64)
    axes = range(people.ndim)
    shares = [people.sum(axis=tuple(other for other in axes if other != axis)) / total for axis in axes]
    columns = tuple(chance.choice(len(share), total, p=share) for share in shares)
    return np.asarray(np.ravel_multi_index(columns, people.shape), np.int64)


@dataclass(frozen=True, eq=False)
class _Space:
    """All combinations of values: values that every table covers by the same labels are one atom of their column."""

    names: tuple[str, ...]
    atom_of: tuple[Codes, ...]
    """The atom of each person's value, by column."""
    inside: tuple[tuple[NDArray[np.bool_] | None, ...], ...]
    """By column and table: which label covers which atom; None where the table does not have the column."""

    @classmethod
    def of(cls, tables: Sequence[PublishedTable], everyone: pa.Table) -> _Space:
        names = tuple(
            dict.fromkeys(name for table in tables for name in table.columns if name in everyone.column_names)
        )
        atoms, covers = zip(*(_atoms(tables, everyone, name) for name in names), strict=True) if names else ((), ())
        space = cls(names, atoms, covers)
        if not names or math.prod(space.shape) > _CELLS:
            raise InvalidParameter(
                f"count-reconstruction needs tables with at most {_CELLS:,} combinations of values in all, and at "
                "least one column: name fewer tables."
            )
        return space

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of atoms of each column."""
        return tuple(int(codes.max(initial=0)) + 1 for codes in self.atom_of)

    def cells_of_people(self) -> Codes:
        """Return the combination of each person."""
        return np.asarray(np.ravel_multi_index(self.atom_of, self.shape), np.int64)

    def equations(self, tables: Sequence[PublishedTable]) -> tuple[NDArray[np.bool_], Numbers]:
        """Return for each published count the combinations that it counts, and the count."""
        rows, counts = [], []
        if sum(table.table.num_rows for table in tables) * math.prod(self.shape) > _ENTRIES:
            raise InvalidParameter("count-reconstruction needs fewer counts: name fewer tables.")
        for place, table in enumerate(tables):
            values = numbers(texts(table.table.column(str(table.count))))
            masks = [covers[place] for covers in self.inside]
            for row in np.flatnonzero(np.isfinite(values)):
                cells = np.ones(self.shape, bool)
                for axis, mask in enumerate(masks):
                    if mask is not None:
                        side = [1] * len(self.shape)
                        side[axis] = self.shape[axis]
                        cells &= mask[row].reshape(side)
                rows.append(cells.ravel())
                counts.append(values[row])
        return np.array(rows), np.array(counts)


def _atoms(
    tables: Sequence[PublishedTable], everyone: pa.Table, name: str
) -> tuple[Codes, tuple[NDArray[np.bool_] | None, ...]]:
    """Return the atom of each person's value, and for each table which of its rows covers which atom."""
    columns = [match(table, everyone, name) if name in table.columns else None for table in tables]
    values = next(column.values for column in columns if column is not None)
    covered = []
    for column in columns:
        if column is not None:
            holds = np.zeros((len(values.texts), len(column.labels.texts)), bool)
            holds[np.repeat(np.arange(len(holds)), np.diff(column.cover.starts)), column.cover.labels] = True
            covered.append(holds)
    whole = np.hstack(covered)
    _, first, atom_of = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    parts = iter(holds[first] for holds in covered)
    inside = tuple(None if column is None else next(parts).T[column.labels.codes] for column in columns)
    return np.asarray(atom_of.ravel()[values.codes], np.int64), inside


def _solved(cells: NDArray[np.bool_], counts: Numbers) -> Codes:
    """Return whole numbers of people by combination, at the least total deviation from all counts."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_matrix, eye, hstack

    equations, unknowns = cells.shape
    one = eye(equations, format="csr")
    matrix = hstack([csr_matrix(cells.astype(float)), one, -one], format="csr")
    solution = milp(
        np.concatenate([np.zeros(unknowns), np.ones(2 * equations)]),
        integrality=np.concatenate([np.ones(unknowns), np.zeros(2 * equations)]),
        bounds=Bounds(0.0, np.inf),
        constraints=LinearConstraint(matrix, counts, counts),
        options={"time_limit": _SECONDS},
    )
    if solution.x is None:
        raise InvalidParameter("count-reconstruction found no solution in a minute: name fewer tables.")
    return np.asarray(np.rint(solution.x[:unknowns]), np.int64)
