"""Selection: cells that stay open, or are emptied first, by the names of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame
from incrowd.methods.tabulation.protected.joint import Joint

TOTALS = "totals"
_LEVEL = re.compile(r"(?P<column>[^=]+?)\s+at level\s+(?P<level>\d+)(?=\s*(,|$))")


def first_totals(frame: TableFrame) -> Flags:
    """Return the totals of each line right under the total of an axis, over everything else, and that of everything.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex, area = TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)), TableAxis("area", ("*", "N", "S"), (-1, 0, 0))
    >>> first_totals(TableFrame((sex, area))).reshape(3, 3).astype(int).tolist()
    [[1, 1, 1], [1, 0, 0], [1, 0, 0]]
    """
    flags = np.zeros(frame.shape, np.bool_)
    for number, axis in enumerate(frame.axes):
        top = [0, *axis.children[0]]
        flags[tuple(top if place == number else 0 for place in range(len(frame.axes)))] = True
    finest = np.zeros(frame.size, np.bool_)
    finest[frame.leaves] = True
    return np.asarray(flags.ravel() & ~finest)


def named_cells(frames: Sequence[TableFrame], joint: Joint, texts: Iterable[str]) -> Flags:
    """Return the cells of several tables that some texts name; a text speaks of the tables that have its columns."""
    flags = np.zeros(joint.frame.size, np.bool_)
    for text in texts:
        parts = [selected(frame, text) for frame in frames]
        for part, own in zip(parts, joint.parts, strict=True):
            if part is not None:
                flags[own[part]] = True
        if all(part is None for part in parts):
            axis = frames[0].axes[0]
            raise InvalidParameter(
                f"{text!r} names no cells of the table: write totals, or columns with a label or level, such as "
                f"'{axis.column} = {axis.labels[-1]}' or '{axis.column} at level 1'."
            )
    return flags


def spelled(schema: Schema, texts: Iterable[str]) -> Iterator[str]:
    """Yield texts with each level of a column, such as “area at level 1”, written as its lines, one text each."""
    for text in texts:
        match = _LEVEL.search(text)
        name = "" if match is None else match["column"].rpartition(",")[2].strip()
        if match is None or name not in {column.name for column in schema.columns}:
            yield text
            continue
        level, column = int(match["level"]), schema[name]
        classes = Recoding(column, level).classes if level <= column.hierarchy.height else None
        if classes is None:
            raise InvalidParameter(f"{text!r}: {name!r} has no lines at that level.")
        before, after = text[: match.start("column") + match["column"].rfind(name)], text[match.end() :]
        yield from spelled(schema, (f"{before}{name} = {label}{after}" for label in classes.labels().to_pylist()))


def selected(frame: TableFrame, text: str) -> Flags | None:
    """Return the cells that a text names: totals, or lines such as “area = N” or “area = N, sex = *”.

    A column that is not named stands for all of its lines; None where the table lacks a named line.

    >>> from incrowd.methods.tabulation.protected.frame import TableAxis
    >>> sex = TableFrame((TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)),))
    >>> selected(sex, "sex = F").tolist()
    [False, True, False]
    """
    if text.strip() == TOTALS:
        return first_totals(frame)
    flags = np.ones(frame.shape, np.bool_)
    columns = "|".join(re.escape(axis.column) for axis in frame.axes)
    for part in re.split(rf",\s*(?=(?:{columns})\s*=)", text):  # a label may have a comma
        name, _, label = (piece.strip() for piece in part.partition("="))
        number = next((place for place, axis in enumerate(frame.axes) if axis.column == name), None)
        if number is None or label not in frame.axes[number].labels:
            return None
        lines = np.arange(frame.shape[number]) == frame.axes[number].place(label)
        flags &= lines.reshape([-1 if place == number else 1 for place in range(len(frame.axes))])
    return flags.ravel()
