"""Shares: what a recoding takes away, as the share of the values that a released label could stand for.

A row whose label stands for n of the N values of its column loses (n/N − 1/N) / (1 − 1/N): nothing if the label is a
value, everything if it is `*`.  A row that is not released loses everything.  A table's loss is the mean over its rows,
then over its columns.  This is the normalized form of Iyengar's (2002) general loss metric that ARX calls Loss.

Three cases that the formula leaves open: decimal numbers are measured by length, so a value is a share of 0; a missing
value that stays missing loses nothing; `other` stands for everything that was not declared, and loses everything.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.reading import canonical, read
from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter


def class_losses(classes: Classes, values: pa.Array | None = None) -> NDArray[np.float64]:
    """Return what a row loses in each class of a column, in the order of the classes.

    Where the declaration does not say how many values a class holds (the prefixes of any text), `values` does: the
    values that are known to occur, each once.

    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.schema import Column
    >>> city = Column("city", hierarchy=tree({"Europe": ["Paris", "Lyon", "Rome"], "Asia": ["Kyoto", "Osaka"]}))
    >>> class_losses(Recoding(city, 1).classes).tolist()[:2]
    [0.5, 0.25]
    """
    recoding = classes.recoding
    extra = [1.0] * classes.has_other + [0.0] * classes.has_missing
    if recoding.top:
        return np.ones(len(classes))
    if recoding.level == 0:
        return np.append(np.zeros(len(classes.marks)), extra)
    leaves = recoding.column.hierarchy.leaves(recoding.level) if recoding.classes is not None else None
    if leaves is None:
        leaves = _met(classes, values)
    total = leaves.sum()
    least = 0.0 if recoding.column.type is Type.DECIMAL and isinstance(recoding.column.domain, Numbers) else 1.0
    span = total - least
    shares = (leaves - least) / span if span > 0 else np.zeros(len(leaves))
    return np.append(np.clip(shares, 0.0, 1.0), extra)


def _met(classes: Classes, values: pa.Array | None) -> NDArray[np.float64]:
    """Return how many of the values that occur lie in each class."""
    recoding = classes.recoding
    if values is None:
        raise InvalidParameter(
            f"how many values the classes of {recoding.column.name!r} hold is not declared: declare categories or "
            "bounds, or give the values that occur."
        )
    stored = read(values, recoding.column.type).values
    match recoding.column.domain:
        case Numbers() | Dates():
            inside = stored
        case Categories() | Text():
            inside = canonical(stored)
    inside = pc.unique(inside.filter(pa.array(recoding.column.domain.contains(inside))))
    places = pc.index_in(recoding.column.hierarchy.lift(inside, recoding.level), value_set=classes.marks)
    return np.bincount(places.drop_null().to_numpy(), minlength=len(classes.marks)).astype(np.float64)


def mean_loss(losses: NDArray[np.float64], rows: NDArray[np.int64], left_out: int = 0) -> float:
    """Return the mean over rows: so many in classes with these losses, and so many that were left out.

    >>> mean_loss(np.array([0.0, 0.5]), np.array([6, 2]), left_out=2)
    0.3
    """
    total = int(rows.sum()) + left_out
    return (float((losses * rows).sum()) + left_out) / total if total else 0.0
