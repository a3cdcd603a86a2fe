"""Microaggregation: rows stand in groups of at least k, and every row shows the means of its group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.frame import Numbers, Places, RowFrame, need_numbers, weight_of, weights_of
from incrowd.methods.perturbation.masks import GroupedMask
from incrowd.methods.perturbation.microaggregation.groups import BLOCK, blocks, mdav, optimal, squared
from incrowd.methods.perturbation.microaggregation.steps import AggregateRows, GroupingRule

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.methods.perturbation.steps import Masking

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Microaggregation(GroupedMask):
    """Groups of at least k rows that differ little: numbers become the mean of their group, categories its mode.

    `mdav` groups all columns together, standardized; `univariate` each column by itself, optimally; `gower` numbers and
    categories together.  More than 1,024 rows are first cut into blocks at medians, so that the work grows with the
    rows and not with their square.  With `weighted`, means of groups are those by the survey weights.

    Guarantee: none to people; where all quasi-identifiers are grouped together, k-anonymity of the output's form.
    Means of numbers are kept.

    Assumes: people can be looked up by the quasi-identifiers and by no other column, where k-anonymity is claimed.

    Source: Domingo-Ferrer & Torra 2005 (MDAV); Hansen & Mukherjee 2003 (univariate); Gower 1971.

    >>> Microaggregation(("income", "rent"), k=5).settings()
    {'microaggregation': 'income, rent', 'k': 5, 'grouping': 'mdav'}
    """

    name: ClassVar[str] = "microaggregation"
    groups_itself: ClassVar[bool] = True

    columns: tuple[str, ...]
    k: int = 3
    grouping: Literal["mdav", "univariate", "gower"] = "mdav"
    weighted: bool = False

    def step(self, schema: Schema) -> AggregateRows:
        """Return what happens, from the schema alone."""
        categories = self._categories(schema)
        need_numbers(schema, [name for name in self.columns if name not in categories] or self.columns, whole=True)
        if categories and self.grouping != "gower":
            raise InvalidParameter(f"{categories[0]!r} is no number, and has no mean: let grouping be gower.")
        weight = weight_of(schema) if self.weighted else None
        scope = self.scope(schema, self.columns, () if weight is None else (weight,))
        together = bool(schema.quasi) and set(schema.quasi) <= {*self.columns, *scope["within"]}
        return AggregateRows(
            columns=self.columns,
            categories=categories,
            grouping=GroupingRule(self.grouping),
            k=self.k,
            quasi=schema.quasi if together and self.grouping != "univariate" else None,
            weight=weight,
            **scope,
        )

    def examine(self, frame: RowFrame, schema: Schema) -> None:
        """Refuse groups of rows, within which others are made, that have fewer than k; and weights that are none."""
        within = self.groups(schema)
        smallest = int(np.bincount(frame.groups(within)).min()) if len(frame) else 0
        if self.weighted:
            weights_of(frame, weight_of(schema))
        if smallest < self.k:
            where = "the table" if not within else f"some group of rows alike in {', '.join(within)}"
            raise Infeasible(f"{where} has fewer rows than k = {self.k}: let k be smaller, or make larger groups.")

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - nothing here is random
        """Return the frame in which every row shows what its group has in common."""
        categories = self._categories(schema)
        outer = frame.groups(self.groups(schema))
        weights = weights_of(frame, weight_of(schema)) if self.weighted else np.ones(len(frame))
        if self.grouping == "univariate":
            numbers = {name: frame.numbers(name) for name in self.columns}
            return frame.replaced(
                **{name: _means(each, self._each(outer, each[:, None]), weights) for name, each in numbers.items()}
            )
        rows = np.column_stack([_scaled(frame, name, categories, self.grouping) for name in self.columns])
        number = self._each(outer, rows, tuple(name in categories for name in self.columns))
        columns: dict[str, Numbers | pa.Array] = {
            name: _modes(frame.values(name), number)
            if name in categories
            else _means(frame.numbers(name), number, weights)
            for name in self.columns
        }
        return frame.replaced(**columns)

    def _each(self, outer: Places, rows: Numbers, categories: tuple[bool, ...] = ()) -> Places:
        """Return for each row the number of its group, made within the outer groups."""
        number, groups = np.empty(len(rows), np.int64), 0
        order = np.argsort(outer, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(outer[order])) + 1):
            for block in blocks(rows[members], max(BLOCK, 4 * self.k)):
                here = members[block]
                for group in self._grouped(rows[here], categories):
                    number[here[group]] = groups
                    groups += 1
        return number

    def _grouped(self, rows: Numbers, categories: tuple[bool, ...]) -> list[Places]:
        if self.grouping == "univariate":
            return optimal(rows[:, 0], self.k)
        if self.grouping == "mdav":
            return mdav(rows, self.k, squared)
        return mdav(rows, self.k, _gower(np.array(categories)))

    def numbers(self, step: Masking) -> tuple[str, ...]:
        """Return the columns whose means are taken."""
        categories = step.categories if isinstance(step, AggregateRows) else ()
        return tuple(name for name in step.changes if name not in categories)

    def _categories(self, schema: Schema) -> tuple[str, ...]:
        return tuple(
            name for name in self.columns if name in self.levels or schema[name].type not in ("integer", "decimal")
        )

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:
        """Return that the mean of a column of numbers differs by more than rounding, or None."""
        weights = weights_of(before, weight_of(schema)) if self.weighted else None
        for name in self.columns:
            if pa.types.is_floating(after.values(name).type) and len(before):
                old, new = before.numbers(name), after.numbers(name)
                apart = np.average(old, weights=weights) - np.average(new, weights=weights)
                if abs(apart) > _ROUNDING * (1.0 + np.abs(old).max()):
                    return "the mean of a column"
        return None

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"microaggregation": ", ".join(self.columns), "k": self.k, "grouping": self.grouping}


def _scaled(frame: RowFrame, name: str, categories: tuple[str, ...], grouping: str) -> Numbers:
    """Return a column in units of its spread: its range for Gower's distance, else its standard deviation."""
    if name in categories:
        codes: Numbers = frame.groups([name]).astype(np.float64)
        return codes
    values = frame.numbers(name)
    spread = float(np.ptp(values) if grouping == "gower" else values.std())
    scaled: Numbers = (values - values.mean()) / (spread or 1.0)
    return scaled


def _gower(categories: np.ndarray) -> Any:
    """Return Gower's distance: for numbers how far apart they are, for categories whether they differ."""

    def distance(rows: Numbers, center: Numbers) -> Numbers:
        away = np.abs(rows - center)
        distances: Numbers = np.where(categories, away > 0, away).sum(axis=1)
        return distances

    return distance


def _means(values: Numbers, number: Places, weights: Numbers) -> Numbers:
    means: Numbers = (np.bincount(number, values * weights) / np.bincount(number, weights))[number]
    return means


def _modes(values: pa.Array, number: Places) -> pa.Array:
    """Return for each row the most common value of its group, of equally common ones the first in order."""
    encoded = values.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy().astype(np.int64)
    width = len(encoded.dictionary)
    pairs, times = np.unique(number * width + codes, return_counts=True)
    order = np.lexsort((pairs % width, -times, pairs // width))
    first = np.flatnonzero(np.diff(pairs[order] // width, prepend=-1))
    modes = (pairs[order] % width)[first]
    return encoded.dictionary.take(pa.array(modes[number]))
