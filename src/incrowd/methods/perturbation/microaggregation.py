"""Microaggregation: rows are put into groups of at least k, and every row gets the means of its group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.schema import Role, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, StepGuarantee
from incrowd.core.terms import Theorem
from incrowd.core.unit import Unit
from incrowd.criteria.demand import form_assumptions
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, Places, RowFrame, weight_of, weights_of
from incrowd.methods.perturbation.shared.grouping import Grouping, blocks, gower, mdav, mdav_of, optimal
from incrowd.methods.perturbation.shared.masks import GroupedMask, MaskInput, need_numbers
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskPicture
from incrowd.methods.perturbation.shared.steps import (
    ColumnMasking,
    Exactness,
    KeptStatistic,
    Masking,
    Statistics,
    anonymity,
    column_list,
    unchanged_after,
)
from incrowd.verifier.check import Problem

_ROUNDING = 1e-9  # means are compared up to this, relative to the largest value
_BLOCK = 1024
"""Rows that are grouped at once: the work grows with the square of the rows of a block."""


class GroupingRule(StrEnum):
    """How rows are put into groups."""

    MDAV = "mdav"
    UNIVARIATE = "univariate"
    GOWER = "gower"


_WORDS = {
    GroupingRule.MDAV: "all named columns together, around the rows that lie farthest out",
    GroupingRule.UNIVARIATE: "each column by itself, with the least squared differences",
    GroupingRule.GOWER: "numbers and categories together, by Gower's distance, around the rows that lie farthest out",
}


@dataclass(frozen=True, kw_only=True)
class AggregateRows(ColumnMasking):
    """Rows are put into groups of at least k; numbers become the mean of their group, categories the most common one.

    `quasi`: all quasi-identifiers, if they are grouped together or within groups of rows that agree in them.  Only then
    every combination of them occurs at least k times.
    """

    kind: ClassVar[str] = "aggregate"
    title: ClassVar[str] = "Means of groups"
    source: ClassVar[Theorem] = Theorem(
        "mean-of-group-means", "the mean of group means, weighted by the sizes of groups, is the mean of all"
    )

    categories: tuple[str, ...]
    grouping: GroupingRule
    k: int
    quasi: tuple[str, ...] | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 2:
            raise InvalidParameter("groups have at least two rows: let k be 2 or more.")
        if not set(self.categories) <= set(self.columns) or set(self.within) & set(self.columns):
            raise InvalidParameter("categories are among the columns, and groups are made within other ones.")
        if self.quasi is not None:
            covered = set(self.quasi) <= {*self.columns, *self.within}
            if not covered or self.grouping is GroupingRule.UNIVARIATE:
                raise InvalidParameter("not all quasi-identifiers are grouped together.")

    @property
    def statistics(self) -> Statistics:
        means = KeptStatistic.MEANS if self.weight is None else KeptStatistic.WEIGHTED_MEANS
        return () if self.categories else ((means, Exactness.ROUNDED),)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.within if self.weight is None else (*self.within, self.weight)

    @property
    def numbers(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.categories)

    def depends_on(self, statistic: KeptStatistic) -> frozenset[str] | None:
        return frozenset((*self.changes, *self.reads))

    def stays_among(self, name: str, labels: frozenset[str | None]) -> bool:
        return name in self.categories

    @property
    def sentence(self) -> str:
        inside = f" within rows that agree in {column_list(self.within)}" if self.within else ""
        common = ", categories the most common one" if self.categories else ""
        weighted = "" if self.weight is None else f" by the weights in {column_list((self.weight,))}"
        return (
            f"In {column_list(self.columns)}, groups of at least {self.k} rows{inside} are made "
            f"({_WORDS[self.grouping]}); every number becomes the mean of its group{weighted}{common}. The groups "
            "depend on all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        around = super().around(inner, unit)
        if self.quasi is None or not around.syntactic:
            return around
        return replace(around, assumes=around.assumes | form_assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim also k-anonymity, where all quasi-identifiers are grouped and no later step changes them."""
        preserved = super().claims(basis)
        if self.quasi is None or not unchanged_after(self, basis.steps, self.quasi):
            return preserved
        return (anonymity(self.k, self.quasi, basis), *preserved)


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
    handles_groups: ClassVar[bool] = True

    columns: tuple[str, ...]
    k: int = 3
    grouping: Literal["mdav", "univariate", "gower"] = "mdav"
    weighted: bool = False

    def step(self, schema: Schema) -> AggregateRows:
        categories = self._categories(schema)
        need_numbers(schema, [name for name in self.columns if name not in categories] or self.columns, whole=True)
        if categories and self.grouping != "gower":
            raise InvalidParameter(f"{categories[0]!r} is not a number, and has no mean: let grouping be gower.")
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

    def examine(self, rows: MaskInput) -> None:
        """Refuse groups to work within that have fewer than k rows, and invalid weights."""
        within, frame = self.groups(rows.schema), rows.frame
        smallest = int(np.bincount(frame.groups(within)).min()) if len(frame) else 0
        if self.weighted:
            weights_of(frame, weight_of(rows.schema))
        if smallest < self.k:
            where = "the table" if not within else f"some group of rows alike in {', '.join(within)}"
            raise Infeasible(f"{where} has fewer rows than k = {self.k}: let k be smaller, or make larger groups.")

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with the means and modes of their groups."""
        frame, categories = rows.frame, self._categories(rows.schema)
        outer = frame.groups(self.groups(rows.schema))
        weights = weights_of(frame, weight_of(rows.schema)) if self.weighted else np.ones(len(frame))
        columns: dict[str, Numbers | pa.Array] = {}
        if self.grouping == "univariate":
            for name in self.columns:
                values = frame.numbers(name)
                columns[name] = _means(values, self._numbered(outer, values[:, None]), weights)
            return frame.replaced(**columns)
        scaled = np.column_stack([_scaled(frame, name, categories, self.grouping) for name in self.columns])
        group = self._numbered(outer, scaled, tuple(name in categories for name in self.columns))
        for name in self.columns:
            is_category = name in categories
            columns[name] = (
                _modes(frame.values(name), group) if is_category else _means(frame.numbers(name), group, weights)
            )
        return frame.replaced(**columns)

    def _numbered(self, outer: Places, rows: Numbers, categories: tuple[bool, ...] = ()) -> Places:
        """Return for each row the number of its group, made within the outer groups."""
        number, groups = np.empty(len(rows), np.int64), 0
        grouped = self._grouping(len(rows), categories)
        order = np.argsort(outer, kind="stable")
        for members in np.split(order, np.flatnonzero(np.diff(outer[order])) + 1):
            for block in blocks(rows[members], max(_BLOCK, 4 * self.k)):
                places = members[block]
                for group in grouped(rows[places], self.k):
                    number[places[group]] = groups
                    groups += 1
        return number

    def _grouping(self, rows: int, categories: tuple[bool, ...]) -> Grouping:
        if self.grouping == "univariate":
            return lambda values, k: optimal(values[:, 0], k)
        return mdav_of(rows) if self.grouping == "mdav" else partial(mdav, distance=gower(np.array(categories)))

    def _categories(self, schema: Schema) -> tuple[str, ...]:
        return tuple(
            name for name in self.columns if name in self.levels or schema[name].type not in ("integer", "decimal")
        )

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        frame = rows.frame
        weights = weights_of(frame, weight_of(rows.schema)) if self.weighted else None
        for name in self.columns:
            if pa.types.is_floating(after.values(name).type) and len(frame):
                old, new = frame.numbers(name), after.numbers(name)
                difference = np.average(old, weights=weights) - np.average(new, weights=weights)
                if abs(difference) > _ROUNDING * (1.0 + np.abs(old).max()):
                    return "the mean of a column"
        return None

    def settings(self) -> dict[str, Any]:
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


def _means(values: Numbers, group: Places, weights: Numbers) -> Numbers:
    means: Numbers = (np.bincount(group, values * weights) / np.bincount(group, weights))[group]
    return means


def _modes(values: pa.Array, group: Places) -> pa.Array:
    """Return for each row the most common value of its group, of equally common ones the first in order."""
    encoded = values.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy().astype(np.int64)
    width = len(encoded.dictionary)
    pairs, times = np.unique(group * width + codes, return_counts=True)
    order = np.lexsort((pairs % width, -times, pairs // width))
    first = np.flatnonzero(np.diff(pairs[order] // width, prepend=-1))
    modes = (pairs[order] % width)[first]
    return encoded.dictionary.take(pa.array(modes[group]))


class AggregateCheck(MaskCheck):
    """Masked tables whose groups may cover the quasi-identifiers."""

    def step_contradiction(self, step: Masking, statement: Statement) -> Problem | None:
        if isinstance(step, AggregateRows) and step.quasi not in (None, statement.of_role(Role.QUASI)):
            return Problem("the columns that are grouped together are not the quasi-identifiers")
        return None


CHECK = AggregateCheck(AggregateRows, claims=(Anonymity,))
PICTURE = MaskPicture()
METHOD = Microaggregation
