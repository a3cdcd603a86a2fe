"""Labels: what labels of one level become at a coarser one, by the hierarchy alone."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from incrowd.core.domain import Dates, Numbers
from incrowd.core.hierarchy.hierarchy import end_value
from incrowd.core.reading import read
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.workflows.coarsen.check import text_of

Risen = dict[str | None, str | None]
"""For each released label (None: missing) the coarser one."""


def raise_labels(column: Column, low: int, high: int, met: Iterable[str | None]) -> Risen:
    """Return what the labels that were met at level `low` become at level `high`.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> from incrowd.core.domain import Type
    >>> age = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 39), (10, 20)))
    >>> raise_labels(age, 1, 2, ["< 10", "[10, 20)", None])
    {'< 10': '< 20', '[10, 20)': '< 20', None: None}
    """
    if high < low:
        raise InvalidParameter(
            f"{column.name!r} was released at level {low}: what is coarser stays so, and level {high} would need rows."
        )
    labels = list(met)
    classes = Recoding(column, low).classes or _open_classes(column, low, labels)
    target, codes = classes.rise(high)
    here, there = text_of(classes.values()).to_pylist(), target.labels().to_pylist()
    coarser = {label: there[code] for label, code in zip(here, codes.tolist(), strict=True)}
    if not all(label in coarser for label in labels):
        raise InvalidParameter(
            f"a label of {column.name!r} in the release is not one of its classes at level {low} in this policy. Give "
            "the policy of the release, with the files that it names as they were."
        )
    return {label: coarser[label] for label in labels}


def _open_classes(column: Column, level: int, labels: list[str | None]) -> Classes:
    """Return the classes of an open level, of which only those that were released are known."""
    texts = sorted(label for label in labels if label is not None)
    recoding, numbered = Recoding(column, level), isinstance(column.domain, Numbers | Dates)
    plain = pa.array([end_value(text) if column.open_days else text for text in texts], pa.string())
    marks = read(plain, column.type).values if numbered else plain
    readable = not numbered or (level == 0 and marks.null_count == 0)
    if not readable or column.hierarchy.names(marks, level).to_pylist() != texts:
        raise InvalidParameter(
            f"the labels of {column.name!r} at level {level} do not say which values they hold, so they cannot rise to "
            f"another level. Leave the column as it is, or omit it with --columns."
        )
    return Classes(recoding, marks, has_other=False, has_missing=None in labels)
