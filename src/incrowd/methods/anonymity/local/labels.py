"""Labels: rows at the levels of the round that released them, as labels of several levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.methods.anonymity.local.rounds import Ground, Round
from incrowd.methods.anonymity.mondrian.labels import kept_values
from incrowd.methods.outcomes.anonymized import LocallyGeneralized

if TYPE_CHECKING:
    from incrowd.quality.ladder import Ladder


@dataclass(frozen=True, eq=False)
class RoundLabels:
    """What each tuple of quasi-identifiers shows: for each column the labels that occur, and each tuple's place."""

    rounds: tuple[Round, ...]
    labels: dict[str, pa.Array]
    places: NDArray[np.int32]
    outside: NDArray[np.bool_]

    @property
    def classes(self) -> NDArray[np.int32]:
        """The number of each tuple's class; what is outside is a class of its own."""
        codes = np.where(self.outside, -1, self.places)
        return np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int32)

    def table(self, ground: Ground) -> LocallyGeneralized:
        """Unfold the tuples into the cells that were counted, with the columns that stay as they are."""
        names = ground.lattice.names
        shown = np.flatnonzero(~self.outside[ground.owners])
        codes = dict(zip(ground.cells.names, ground.cells.codes(), strict=True))
        columns: dict[str, tuple[pa.Array, NDArray[np.integer]]] = {
            name: (values, place[ground.owners[shown]]) for (name, values), place in self._columns()
        }
        for name, classes in zip(ground.cells.names, ground.cells.classes, strict=True):
            if name not in names:
                columns[name] = kept_values(classes.values(), codes[name][shown])
        columns = {name: columns[name] for name in ground.released}
        made = LocallyGeneralized.of(
            {name: values for name, (values, _) in columns.items()},
            [code for _, code in columns.values()],
            ground.cells.counts[shown],
            names,
        )
        levels = tuple(ground.lattice.levels(each.node) for each in self.rounds)
        return LocallyGeneralized(made.names, made.values, made.keys, made.counts, made.quasi, levels)

    def _columns(self) -> zip[tuple[tuple[str, pa.Array], NDArray[np.int32]]]:
        return zip(self.labels.items(), self.places, strict=True)


def label(ground: Ground, rounds: tuple[Round, ...]) -> RoundLabels:
    """Return what each tuple shows after rounds; what is in none of them is outside."""
    outside = np.ones(len(ground.rows), np.bool_)
    for each in rounds:
        outside &= ~each.chosen
    labels, places = {}, np.zeros((len(ground.lattice.ladders), len(outside)), np.int32)
    for column, (ladder, codes) in enumerate(zip(ground.lattice.ladders, ground.lattice.base.codes, strict=True)):
        labels[ladder.name], places[column] = _labeled(ladder, codes, [(r.node[column], r.chosen) for r in rounds])
    return RoundLabels(rounds, labels, places, outside)


def _labeled(
    ladder: Ladder, codes: NDArray[np.int32], rungs: list[tuple[int, NDArray[np.bool_]]]
) -> tuple[pa.Array, NDArray[np.int32]]:
    """Return the labels that a column shows, by level and then in their order, each once, and each tuple's place."""
    used = sorted({rung for rung, _ in rungs})
    named = {rung: ladder.classes[rung].labels() for rung in used}
    met = []
    for rung in used:
        there = np.unique(np.concatenate([ladder.rises[rung][codes[chosen]] for at, chosen in rungs if at == rung]))
        met.append(named[rung].take(pa.array(there)))
    values = pc.unique(pa.concat_arrays([pa.array([], pa.string()), *met])).drop_null()
    places = np.zeros(len(codes), np.int32)
    for rung, chosen in rungs:
        found = pc.index_in(named[rung], value_set=values).fill_null(len(values)).to_numpy(zero_copy_only=False)
        places[chosen] = found[ladder.rises[rung][codes[chosen]]]
    return values, places
