"""A lattice of 2⁴⁰ nodes over invented rows."""

from __future__ import annotations

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.core.keys import Layout, grouped
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.methods.anonymity.search.lattice import Lattice

_COLUMNS = 20
_SHARES = (0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.01, 0.01)


def huge(rows: int = 2000) -> Lattice:
    """Return twenty columns of four levels each."""
    hierarchy = TreeHierarchy(tuple((f"{value}", f"{value // 2}", f"{value // 4}") for value in range(8)))
    classes: list[Classes] = []
    for number in range(_COLUMNS):
        listed = Recoding(Column(f"c{number}", hierarchy=hierarchy), 0).classes
        assert listed is not None
        classes.append(listed)
    chance = np.random.default_rng(7)
    codes = [chance.choice(8, rows, p=_SHARES).astype(np.int32) for _ in classes]
    keys, counts = grouped(Layout(tuple(len(each) for each in classes)).pack(codes))
    return Lattice.of(Counts(tuple(classes), keys, counts), [f"c{number}" for number in range(_COLUMNS)])
