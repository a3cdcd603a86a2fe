"""Mondrian as a recursion over rows, slow and obvious: what the fast algorithm is held against."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Row = tuple[int, ...]
Path = tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """Values that are whole numbers."""

    def width(self, values: set[int]) -> float:
        return float(max(values) - min(values))


@dataclass(frozen=True)
class Branches:
    """Values with their path from the root; all paths are equally long and end in the value itself."""

    paths: tuple[Path, ...]

    def shared(self, values: set[int]) -> int:
        """Return how many steps from the root all values share."""
        steps = zip(*(self.paths[value] for value in values), strict=True)
        return next((depth for depth, step in enumerate(steps) if len(set(step)) > 1), len(self.paths[0]))

    def width(self, values: set[int]) -> float:
        depth, path = self.shared(values), self.paths[min(values)]
        return float(sum(other[:depth] == path[:depth] for other in self.paths) - 1)


Column = Line | Branches
Allowed = Callable[[list[Row]], bool]


def recursion(rows: list[Row], columns: Sequence[Column], allowed: Allowed, *, relaxed: bool) -> list[Counter[Row]]:
    """Return the classes, each as its rows; tuples of one row are equal in whatever else they carry."""
    whole = [column.width({row[c] for row in rows}) if rows else 0.0 for c, column in enumerate(columns)]

    def cut(piece: list[Row]) -> list[list[Row]]:
        widths = [column.width({row[c] for row in piece}) for c, column in enumerate(columns)]
        shares = [width / (all_ or 1.0) for width, all_ in zip(widths, whole, strict=True)]
        for c in sorted(range(len(columns)), key=lambda place: (-shares[place], place)):
            if widths[c] == 0:
                continue
            parts = _parts(piece, c, columns[c], relaxed)
            if all(map(allowed, parts)):
                return [leaf for part in parts for leaf in cut(part)]
        return [piece]

    return [Counter(leaf) for leaf in cut(rows)] if rows else []


def _parts(piece: list[Row], c: int, column: Column, relaxed: bool) -> list[list[Row]]:
    values = {row[c] for row in piece}
    if isinstance(column, Branches):
        depth = column.shared(values)
        below = sorted({column.paths[value][: depth + 1] for value in values})
        return [[row for row in piece if column.paths[row[c]][: depth + 1] == branch] for branch in below]
    if relaxed:
        ordered = sorted(piece, key=lambda row: (row[c], row))
        return [ordered[: len(piece) // 2], ordered[len(piece) // 2 :]]

    def smaller(last: int) -> int:
        left = sum(row[c] <= last for row in piece)
        return min(left, len(piece) - left)

    last = max(sorted(values)[:-1], key=lambda value: (smaller(value), value))
    return [[row for row in piece if row[c] <= last], [row for row in piece if row[c] > last]]
