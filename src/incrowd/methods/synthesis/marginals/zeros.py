"""Zeros: combinations that a policy declares never to occur; public, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.synthesis.marginals.model import Fit, Zero
from incrowd.methods.synthesis.marginals.steps import DeclaredZero

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes

_MISSING = "missing"


def declared_zeros(
    zeros: Sequence[Mapping[str, str | tuple[str, ...]] | None], classes: Sequence[Classes]
) -> tuple[DeclaredZero, ...]:
    """Return what is declared never to occur by labels, the columns in order; `missing` stands for missing values."""
    known = {each.recoding.column.name: text_of(each.values()).to_pylist() for each in classes}
    declared = []
    for zero in zeros:
        if not zero or len(zero) < 2:
            raise InvalidParameter("a zero names labels of two columns or more that never occur together.")
        strange = [name for name in zero if name not in known]
        if strange:
            raise InvalidParameter(f"a zero names {strange[0]!r}, which is not released.")
        names = tuple(name for name in known if name in zero)
        declared.append(DeclaredZero(names, tuple(_labels(name, zero[name], known[name]) for name in names)))
    return tuple(declared)


def _labels(name: str, told: str | tuple[str, ...], known: Sequence[str | None]) -> tuple[str | None, ...]:
    asked = [told] if isinstance(told, str) else list(told)
    labels = [None if each == _MISSING and each not in known else each for each in asked]
    strange = [label for label in labels if label not in known]
    if strange or not labels:
        raise InvalidParameter(
            f"a zero names {_MISSING if strange and strange[0] is None else (strange or [''])[0]!r} of {name!r}, which "
            "it does not show at its level: name its labels there."
        )
    return tuple(dict.fromkeys(labels))


def codes_of(zeros: Sequence[DeclaredZero], classes: Sequence[Classes]) -> tuple[Zero, ...]:
    """Return zeros by the numbers of columns and classes."""
    known = [text_of(each.values()).to_pylist() for each in classes]
    return zeros_of(zeros, [each.recoding.column.name for each in classes], known)


def zeros_of(
    zeros: Sequence[DeclaredZero], names: Sequence[str], labels: Sequence[Sequence[str | None]]
) -> tuple[Zero, ...]:
    """Return zeros by numbers, given the labels of every column in order.

    >>> zero = DeclaredZero(("sex", "pregnant"), (("M",), ("yes",)))
    >>> zeros_of([zero], ["sex", "pregnant"], [["F", "M"], ["no", "yes"]])
    (Zero(columns=(0, 1), classes=((1,), (1,))),)
    """
    found = []
    for zero in zeros:
        columns = tuple(names.index(name) for name in zero.columns)
        places = (
            tuple(labels[column].index(label) for label in own)
            for column, own in zip(columns, zero.labels, strict=True)
        )
        found.append(Zero(columns, tuple(places)))
    return tuple(found)


def require_possible(sizes: Sequence[int], zeros: Sequence[Zero]) -> None:
    """Refuse zeros that leave nothing that can occur."""
    if not zeros:
        return
    model = Fit.of(sizes, (), 1.0, 0, zeros).model
    for zero in zeros:
        table = model.table(zero.columns)
        if table is not None and np.any(table[zero.table(sizes)] > 0):
            raise InvalidParameter("by the declared zeros nothing at all can occur: take some of them out.")
