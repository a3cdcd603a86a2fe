"""Worth: what a candidate recoding would keep of the table, as a whole number that one row moves a little.

The worth of a recoding is the sum over its cells of (what a row in that cell keeps of its details) · (how many of its
rows sampled suppression is expected to keep).  The first factor is public: one minus the loss of the cell's labels,
which the declared hierarchies fix.  The second is a table of whole steps (`Kept`).

A row lies in one cell of each recoding.  Adding it raises that cell's count by one, hence the worth by at most
DETAIL · most, and never lowers it: scores are monotone, with sensitivity DETAIL · most for each row of a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.recoding import Classes
from incrowd.mechanisms.integers import WIDEST
from incrowd.methods.anonymity.scheme.kept import Kept
from incrowd.quality.shares import class_losses

DETAIL = 2**12
"""How finely a cell's details are measured."""
_LOW = 32
Details = dict[tuple[str, int, int], NDArray[np.int64]]


def worths(counts: Counts, choices: Mapping[str, Sequence[int]], kept: Kept) -> NDArray[np.int64]:
    """Return the worth of every combination of levels, the last column's changing fastest.

    `counts` are those of all rows at levels no higher than any choice; a column that is not in `choices` stays.
    """
    details: Details = {}
    found = [min(worth(rolled, kept, details), WIDEST) for rolled in _rolled(counts, list(choices), choices)]
    return np.array(found, np.int64)


def _rolled(counts: Counts, names: list[str], choices: Mapping[str, Sequence[int]]) -> Iterator[Counts]:
    """Return the counts at every combination, each rolled up from a finer one."""
    if not names:
        yield counts
        return
    first, *others = names
    for level in choices[first]:
        counts = counts.rollup({first: level}) if counts.levels[first] != level else counts
        yield from _rolled(counts, others, choices)


def worth(counts: Counts, kept: Kept, details: Details | None = None) -> int:
    """Return the worth of one recoding, exactly; `details` remembers those of a column's levels from call to call.

    >>> from fractions import Fraction
    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> from incrowd.methods.anonymity.scheme.kept import kept_of
    >>> sexes = Recoding(Column("sex", hierarchy=Flat(Categories(("F", "M")))), 0).classes
    >>> counts = Counts((sexes,), np.array([0, 1]), np.array([50, 2]))
    >>> fine, coarse = (worth(each, kept_of(5, Fraction(1, 2))) for each in (counts, counts.rollup({"sex": 1})))
    >>> fine > 0, coarse                              # `*` keeps every row and no detail
    (True, 0)
    """
    known: Details = {} if details is None else details
    detail = np.zeros(len(counts), np.int64)
    for classes, codes in zip(counts.classes, counts.codes(), strict=True):
        place = (classes.recoding.column.name, classes.recoding.level, len(classes))
        if place not in known:
            known[place] = _details(classes) // len(counts.classes)
        detail += known[place][codes]
    products = detail * kept.of(counts.counts)
    high, low = int((products >> _LOW).sum()), int((products & (2**_LOW - 1)).sum())  # no sum wraps
    return (high << _LOW) + low


def _details(classes: Classes) -> NDArray[np.int64]:
    """Return what a row keeps of its details in each class, from the declaration alone."""
    recoding = classes.recoding
    hierarchy = recoding.column.hierarchy
    if recoding.level and not recoding.top and (recoding.classes is None or hierarchy.leaves(recoding.level) is None):
        losses = np.full(
            len(classes), recoding.level / hierarchy.height
        )  # nothing declared says how much it stands for
    else:
        losses = class_losses(classes)
    return np.floor(DETAIL * (1.0 - losses)).astype(np.int64)
