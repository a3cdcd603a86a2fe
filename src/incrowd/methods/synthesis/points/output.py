"""Output: points with what is known about their accuracy, and how a report draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.keys import Codes, Keys
from incrowd.core.words import counted
from incrowd.drawing.markup import EMPTY, Description, figure, joined, table, tag
from incrowd.drawing.picture import Picture
from incrowd.methods.shared.outcome import Outcome
from incrowd.methods.synthesis.points.accuracy import Accuracy
from incrowd.methods.synthesis.points.grid import GridAxis, PointGrid
from incrowd.methods.synthesis.points.steps import Placement

if TYPE_CHECKING:
    from incrowd.core.schema import Schema
    from incrowd.core.statement import Statement
    from incrowd.core.unit import Unit


MEAN_ERROR = "error of a mean, 19 times in 20 at most"
_BATCH = 2**17


@dataclass(frozen=True, eq=False)
class Points(Outcome):
    """Points in cells, held as counts: every point of a cell lies at its center, or where its offsets say.

    `offsets` has for each axis and each point, in order, its place inside its cell (`Axis.inside`).
    """

    form: ClassVar[str] = "points"

    grid: PointGrid
    keys: Keys
    counts: NDArray[np.int64]
    accuracy: Accuracy
    offsets: tuple[NDArray[Any], ...] | None = None

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def place(self) -> Placement:
        """Where in their cells the points lie."""
        return Placement.CENTERS if self.offsets is None else Placement.UNIFORM

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(axis.column.name, axis.storage(self.place)) for axis in self.grid.axes])

    def codes(self) -> list[Codes]:
        """Return for each axis the piece of each cell that has points."""
        return self.grid.cells.layout.unpack(self.keys)

    def batches(self) -> Iterator[pa.RecordBatch]:
        ends, total = np.cumsum(self.counts), len(self)
        for start in range(0, total, _BATCH):
            stop = min(start + _BATCH, total)
            first, last = np.searchsorted(ends, (start, stop - 1), side="right")
            times = np.diff(np.concatenate(([start], np.minimum(ends[first : last + 1], stop))))
            cells = self.grid.cells.layout.unpack(self.keys[first : last + 1])
            columns = [self._column(n, np.repeat(codes, times), slice(start, stop)) for n, codes in enumerate(cells)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, number: int, codes: Codes, rows: slice) -> pa.Array:
        axis = self.grid.axes[number]
        values = axis.centers[codes] if self.offsets is None else axis.inside(codes, self.offsets[number][rows])
        kind = axis.storage(self.place)
        return pa.array(values.astype(np.int32)).cast(kind) if pa.types.is_date(kind) else pa.array(values, kind)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        error = self.accuracy.mean_error(len(self))
        stated = {} if error is None else {MEAN_ERROR: str(error)}
        return {
            "rows": len(self),
            "cells with points": len(self.keys),
            **stated,
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "a point is no one's record: it stands at a place that the grid and chance decide",
            "linkability": "points carry no identifiers, and are in the order of their cells",
            "inference": (
                "bounded by the claims above, for every attribute, whatever the attacker knows"
                if private
                else "not bounded: this release has no epsilon"
            ),
        }


_FINEST = 64
_ROWS = 16
_SIZE = 320


@dataclass(frozen=True, eq=False)
class Shades:
    """Counts over the first two coordinates, at most 64 by 64 of them; one coordinate makes a single line."""

    axes: tuple[GridAxis, ...]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, axes: tuple[GridAxis, ...], codes: list[Codes], counts: NDArray[np.int64]) -> Shades:
        """Return the counts of cells, added up over all other coordinates and over neighbors where there are many."""
        first = axes[:2]
        sides = [min(axis.slices.pieces, _FINEST) for axis in first]
        places = [
            code.astype(np.int64) * side // axis.slices.pieces
            for axis, code, side in zip(first, codes, sides, strict=False)
        ]
        wide, tall = (*sides, 1)[:2]
        sums = np.zeros((tall, wide), np.int64)
        np.add.at(sums, (places[1] if len(places) > 1 else np.zeros(len(counts), np.int64), places[0]), counts)
        return cls(first, sums)

    def drawing(self, title: str) -> Markup:
        """Return the picture: darker where more points lie, relative to its own darkest place."""
        tall, wide = self.counts.shape
        darkest = max(1, int(self.counts.max(initial=0)))
        squares = [
            tag(
                "rect",
                x=int(x),
                y=int(tall - 1 - y),
                width=1,
                height=1,
                class_="bar",
                fill_opacity=f"{max(0.08, (self.counts[y, x] / darkest) ** 0.5):.2f}",
            )
            for y, x in zip(*np.nonzero(self.counts), strict=True)
        ]
        height = _SIZE if tall > 1 else 40
        field = tag(
            "svg",
            tag(
                "rect", width=wide, height=tall, fill="none", stroke="currentColor", vector_effect="non-scaling-stroke"
            ),
            *squares,
            x=0,
            y=20,
            width="100%",
            height=height,
            viewBox=f"0 0 {wide} {tall}",
            preserveAspectRatio="none",
        )
        words = [tag("text", _span(self.axes[0], "→"), x="100%", y=height + 38, class_="end strong")]
        if tall > 1:
            words.append(tag("text", _span(self.axes[1], "↑"), x=0, y=13, class_="strong"))
        look = {"class_": "chart", "role": "img", "aria_label": title, "style": f"max-width:{_SIZE + 60}px"}
        return tag("svg", field, *words, height=height + 46, **look)

    def numbers(self, what: str) -> Markup:
        """Return how much lies along the first coordinate, in at most 16 stretches."""
        along = self.counts.sum(axis=0)
        parts = np.array_split(np.arange(len(along)), min(_ROWS, len(along)))
        share = 100.0 / max(1, int(along.sum()))
        name, whole = self.axes[0].column.name, len(along) / 100.0
        rows = [
            [
                f"{part[0] / whole:.0f} to {(part[-1] + 1) / whole:.0f} % of the way",
                f"{along[part].sum() * share:.1f} %",
            ]
            for part in parts
        ]
        return table(f"{what} along {name}", [name, f"Share of {what}"], rows)


@dataclass(frozen=True)
class Maps:
    """Released points, and the maps before and after.

    Pairing rows and points of one cell, a share 1 − t of both is paired, t being half the sum of the differences of
    shares; so means over the points and over ALL original rows differ by at most L·moves + 2·B·t.  This counts what the
    sample changed too.  It is made from the original rows and may not leave.
    """

    points: Points

    @property
    def cells(self) -> Cells:
        """The cells in which original rows are counted."""
        return self.points.grid.cells

    def section(self, original: Counts) -> Markup:
        """Return the maps before and after, and how far apart they are for every slowly changing function."""
        points, axes = self.points, self.points.grid.axes
        before = Shades.of(axes, original.codes(), original.counts)
        after = Shades.of(axes, points.codes(), points.counts)
        maps = [
            tag("div", tag("h3", name), shades.drawing(f"Map {name.lower()}."))
            for name, shades in (("Before: original rows", before), ("After: published points", after))
        ]
        inside = tag("strong", "Nothing here may leave.")
        return joined(
            [
                tag("p", "From the original rows, put into the same cells. ", inside),
                tag("div", *maps, class_="pair"),
                table("How far the points are from the rows", ["", "Number"], self._facts(original)),
            ]
        )

    def _facts(self, original: Counts) -> list[list[str]]:
        points = self.points
        apart = distance(original.keys, original.counts, points.keys, points.counts)
        error = points.accuracy.reach + 2 * Decimal(f"{apart:.6f}")
        return [
            ["Rows in the box", f"{original.total:,}"],
            ["Points", f"{len(points):,}"],
            ["Cells with rows; with points", f"{len(original):,}; {len(points.keys):,}"],
            ["Share that is in another cell before than after (t)", f"{100 * apart:.2f} %"],
            ["Points move at most, in sides of the box", str(points.accuracy.reach)],
            ["Means of functions with L = B = 1 differ at most by", f"{error:.4f}"],
        ]


def distance(some: Keys, counts: NDArray[np.int64], others: Keys, times: NDArray[np.int64]) -> float:
    """Return half the sum over all cells of the difference between two shares; 1 where one side has nothing.

    >>> distance(np.array([1, 5]), np.array([3, 1]), np.array([1]), np.array([8]))
    0.25
    """
    if not len(some) or not len(others):
        return 0.0 if len(some) == len(others) else 1.0
    keys, where = np.unique(np.concatenate([some, others]), return_inverse=True)
    apart = np.zeros(len(keys))
    np.add.at(apart, where[: len(some)], counts / counts.sum())
    np.add.at(apart, where[len(some) :], -times / times.sum())
    return float(np.abs(apart).sum() / 2.0)


def _other(points: Points) -> str:
    further = points.grid.names[2:]
    return f"All values of {', '.join(further)} are added up. " if further else ""


def _span(axis: GridAxis, arrow: str) -> str:
    ends = [end if isinstance(end, date) else f"{float(end or 0):g}" for end in axis.slices.domain.bounds]
    return f"{axis.column.name} {arrow} {ends[0]} to {ends[1]}"


class PointsPicture(Picture):
    """Points in a report: a map of them."""

    evidence: Mapping[str, str] | None = {"rows": "Rows published"}

    def description(self, statement: Statement) -> Description:
        points = int(statement.evidence["rows"])
        if points == 0:
            return EMPTY
        full = f"The published table has {counted(points, 'point')}, made anew from the counts of cells."
        return Description("Synthetic points", f"{full} None of them is anyone's row.")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        if not len(output):
            return None
        shades = Shades.of(output.grid.axes, output.codes(), output.counts)
        size = f"{counted(len(output), 'point')} in {counted(len(output.keys), 'cell')}"
        caption = f"Where the published points lie: {size}. {_other(output)}Darker means more; white means none."
        return figure(shades.drawing(f"Map of published points: {size}."), caption, shades.numbers("points"))

    def comparison(self, statement: Statement, output: Any, schema: Schema) -> Maps:
        return Maps(output)
