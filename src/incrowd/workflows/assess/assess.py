"""Assess: what a release lost and what risk is left, beside the data it came from; internal, since both are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.measures.sizes import DEFINITIONS, Risk, Sizes, risk
from incrowd.quality.ladder import class_losses, mean_loss
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.policy.policy import Policy

THRESHOLD = 0.2
"""A row is at risk if an attacker is right about it more often than this: the usual line for data given to few."""


@dataclass(frozen=True)
class ColumnLoss:
    """What became of one column: the mean loss of the rows that were kept, and of all rows."""

    name: str
    level: int
    kept: float
    all: float


@dataclass(frozen=True)
class Example:
    """One record in the smallest class, worked through: what is known, how many look like it, in words."""

    values: Mapping[str, str | None]
    released: int
    original: int
    words: str


@dataclass(frozen=True)
class Assessment:
    """Rows kept, loss per column, and the risk before and after for three attackers."""

    rows: int
    kept: int
    columns: tuple[ColumnLoss, ...]
    classes_before: Sizes
    classes_after: Sizes
    risks: Mapping[str, tuple[Risk, Risk]]
    example: Example | None

    @property
    def loss_kept(self) -> float:
        """The mean over columns of what kept rows lost."""
        return float(np.mean([column.kept for column in self.columns]))

    @property
    def loss(self) -> float:
        """The mean over columns of what all rows lost; a row that was not kept lost everything."""
        return float(np.mean([column.all for column in self.columns]))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with the definition of every attacker."""
        attackers = {
            name: {"means": DEFINITIONS[name], "before": asdict(before), "after": asdict(after)}
            for name, (before, after) in self.risks.items()
        }
        return {
            "internal": "made from the original rows: keep it apart from what is published",
            "rows": {"original": self.rows, "released": self.kept},
            "loss": {"kept": self.loss_kept, "all": self.loss, "columns": [asdict(each) for each in self.columns]},
            "classes": {
                "before": _classes_json(self.classes_before, 0),
                "after": _classes_json(self.classes_after, self.rows - self.kept),
            },
            "threshold": THRESHOLD,
            "attackers": attackers,
            "example": None if self.example is None else asdict(self.example),
        }


def assess(released: Rows, original: Rows, policy: Policy, engine: Engine = LOCAL) -> Assessment:
    """Compare a release, which is read here, with the data and the policy it was made from; `engine` has the data.

    Before, the quasi-identifiers are taken as they are in the data; after, as they were released.  The prosecutor's
    crowd after is the class in the release; the journalist's and the marketer's is the class in the original data,
    which stands for the population: a sample hides behind everyone it was drawn from.
    """
    schema, levels = policy.schema, getattr(policy.method, "levels", {})
    names = tuple(column.name for column in schema.released)
    quasi = tuple(column.name for column in schema.released if column.role is Role.QUASI) or names
    require(original.names, names)
    require(released.names, names)
    recoded = engine.count(original, Cells.of(schema, levels, names))
    out = _in_codes_of(recoded, LOCAL.count(released, _as_released(recoded)))
    before = Sizes.of(engine.count(original, as_is(original, quasi, engine)), quasi)
    rows, kept = before.rows, out.total
    if kept > rows:
        raise InvalidParameter("the release has more rows than the data: it was made from something else.")
    columns = tuple(_column_loss(engine, original, out.marginal([name]), rows - kept) for name in names)
    population, sample = recoded.marginal(quasi), out.marginal(quasi)
    crowd = population.counts[np.searchsorted(population.keys, sample.keys)]
    after = Sizes(sample.counts)
    return Assessment(rows, kept, columns, before, after, _risks(before, after, crowd), _example(sample, crowd))


def _as_released(recoded: Counts) -> Cells:
    """Return the cells of a release: what is text there is read as text, what kept its type as that."""
    columns = []
    for classes in recoded.classes:
        column = classes.recoding.column
        typed = not pa.types.is_string(classes.values().type)
        columns.append(Column(column.name, column.role, column.type) if typed else Column(column.name, column.role))
    return Cells(tuple(Recoding(column, 0) for column in columns))


def _in_codes_of(recoded: Counts, released: Counts) -> Counts:
    """Return the released counts over the classes of the recoded data, and refuse what is not among them."""
    codes = []
    for ours, theirs, code in zip(recoded.classes, released.classes, released.codes(), strict=True):
        labels = ours.labels()
        places = pc.index_in(theirs.labels(), value_set=labels).fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(places[code])
    if any((code < 0).any() for code in codes):
        raise _not_from_here()
    keys = recoded.layout.pack(codes)
    order = np.argsort(keys)
    found = Counts(recoded.classes, keys[order], released.counts[order])
    where = np.searchsorted(recoded.keys, found.keys)
    known = where < len(recoded.keys)
    if not known.all() or (recoded.keys[where] != found.keys).any() or (recoded.counts[where] < found.counts).any():
        raise _not_from_here()
    return found


def _not_from_here() -> InvalidParameter:
    return InvalidParameter(
        "the release holds rows that this data, recoded by this policy, does not: it was made from other data or under "
        "another policy. Name the ones it was made from."
    )


def _column_loss(engine: Engine, original: Rows, counts: Counts, left_out: int) -> ColumnLoss:
    classes = counts.classes[0]
    recoding = classes.recoding
    values = None
    if recoding.classes is None and recoding.level:
        # An open level does not say how many values its classes hold: those of the data are counted.
        bottom = engine.count(original, as_is(original, [recoding.column.name], engine))
        values = bottom.classes[0].marks
    losses = class_losses(classes, values)
    rows: NDArray[np.int64] = np.bincount(counts.codes()[0], counts.counts, len(classes)).astype(np.int64)
    return ColumnLoss(recoding.column.name, recoding.level, mean_loss(losses, rows), mean_loss(losses, rows, left_out))


def _risks(before: Sizes, after: Sizes, crowd: NDArray[np.int64]) -> dict[str, tuple[Risk, Risk]]:
    at_first = risk(before.each, before.each, THRESHOLD)
    hidden = risk(after.each, crowd, THRESHOLD)
    return {
        "prosecutor": (at_first, risk(after.each, after.each, THRESHOLD)),
        "journalist": (at_first, hidden),
        "marketer": (at_first, hidden),
    }


def _example(sample: Counts, crowd: NDArray[np.int64]) -> Example | None:
    """Work through a record of the smallest class of the release."""
    if not len(sample):
        return None
    place = int(np.argmin(sample.counts))
    labels = [
        classes.labels()[int(codes[place])].as_py()
        for classes, codes in zip(sample.classes, sample.codes(), strict=True)
    ]
    here, there = int(sample.counts[place]), int(crowd[place])
    values = dict(zip(sample.names, labels, strict=True))
    known = ", ".join(f"{name} {'missing' if value is None else value}" for name, value in values.items())
    words = (
        f"Somebody with {known}: {here} released rows look like that, so one who knows that this person is among them "
        f"is right with 1/{here}; {there} rows of the data do, so one who does not know is right with 1/{there}."
    )
    return Example(values, here, there, words)


def _classes_json(sizes: Sizes, suppressed: int) -> dict[str, Any]:
    return {
        "number": sizes.classes,
        "smallest": sizes.smallest,
        "average": sizes.average,
        "unique_rows": sizes.unique,
        "discernibility": sizes.discernibility(suppressed),
    }
