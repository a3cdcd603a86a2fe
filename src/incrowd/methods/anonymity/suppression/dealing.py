"""Dealing: counts as what rows show, and what they show afterwards as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.methods.anonymity.mondrian.labels import kept_values
from incrowd.methods.anonymity.suppression.fewest import Pieces
from incrowd.methods.anonymity.suppression.output import Blanked
from incrowd.methods.anonymity.suppression.shown import MISSING, Shown, overlaps

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.recoding import Classes


def codes_of(classes: tuple[Classes, ...], codes: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return codes from 1 on, and MISSING for what is missing."""
    found = []
    for column, code in zip(classes, codes, strict=True):
        there = column.values().is_valid().to_numpy(zero_copy_only=False)
        found.append(np.where(there[code], code + 1, MISSING))
    return np.stack(found).astype(np.int32)


def dealt(pieces: Pieces, cells: tuple[NDArray[np.intp], NDArray[np.int64]], coins: Coins) -> Pieces:
    """Deal the rows of each tuple's cells, which differ in other columns, out to its pieces at random.

    `cells` are the tuple and the rows of each; the pieces that come back name cells as their origins.
    """
    owners, rows = cells
    pieces_of = np.bincount(pieces.origins, minlength=int(owners.max(initial=-1)) + 1)
    mixed = (pieces_of > 1)[owners] & (np.bincount(owners)[owners] > 1)
    single = np.repeat(np.flatnonzero(mixed), rows[mixed])
    drawn = coins.below(2**62, len(single)) if len(single) else np.zeros(0, np.int64)
    cards = np.concatenate([np.flatnonzero(~mixed), single[np.lexsort((drawn, owners[single]))]])
    times = np.concatenate([rows[~mixed], np.ones(len(single), np.int64)])
    order = np.argsort(owners[cards], kind="stable")
    cards, times = cards[order], times[order]
    sequence = np.argsort(pieces.origins, kind="stable")
    card, piece, shared = overlaps(times, pieces.shown.rows[sequence])
    return Pieces(cards[card], Shown(pieces.shown.codes[:, sequence[piece]], shared))


def table_of(places: Counts, pieces: Pieces, quasi: tuple[str, ...], released: tuple[str, ...]) -> Blanked:
    """Return a table of pieces that name cells as their origins: quasi-identifiers as they show, others as kept."""
    codes = places.codes()
    columns: dict[str, tuple[pa.Array, NDArray[np.intp]]] = {}
    for place, (name, classes) in enumerate(zip(places.names, places.classes, strict=True)):
        values = classes.values()
        if name in quasi:
            shown = pieces.shown.codes[place]
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
            columns[name] = kept_values(values, np.where(shown == MISSING, len(values) - 1, shown - 1))
        else:
            columns[name] = kept_values(values, codes[place][pieces.origins])
    columns = {name: columns[name] for name in released}
    return Blanked.of(
        {name: values for name, (values, _) in columns.items()},
        [code for _, code in columns.values()],
        pieces.shown.rows,
        quasi,
    )
