"""Local suppression: rows at risk lose the values of the least important columns, until no row is at risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.keys import Layout
from incrowd.core.schema import Role
from incrowd.criteria.individual_risk import individual_risk
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.frame import Numbers, Places, RowFrame, weight_of, weights_of
from incrowd.methods.perturbation.local_suppression.steps import RiskModel, SuppressAtRisk
from incrowd.methods.perturbation.masks import Mask
from incrowd.methods.perturbation.scope import need_agreement

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema

Flags = NDArray[np.bool_]
_EMPTY = 0


@dataclass(frozen=True)
class LocalSuppression(Mask):
    """Values of rows whose risk is above a threshold are left empty, the least important column first.

    The risk of a row is one over the rows that look alike in all quasi-identifiers (`frequency`), or the chance that
    the model of Benedetti and Franconi gives it from the survey weights (`survey`).  An empty cell is a value of its
    own.  A row that is still at risk when all its cells are empty is left out, with its household where there is one.

    Guarantee: none to people.  By frequency, k-anonymity of the output's form, with k at least one over the threshold;
    by weights, that no published row's estimated risk is above it.  What is shown is true.

    Assumes: people can be looked up by the quasi-identifiers and by no other column.

    Source: Benedetti & Franconi 1998; Hundepool et al. 2012, §3.3.5 and §3.4.3; Templ, Kowarik & Meindl 2015.

    >>> LocalSuppression(Fraction(1, 5)).settings()
    {'local-suppression': 'frequency', 'threshold': Fraction(1, 5)}
    """

    name: ClassVar[str] = "local-suppression"
    whole: ClassVar[bool] = True

    threshold: Fraction
    risk: Literal["frequency", "survey"] = "frequency"
    importance: Mapping[str, Fraction] = field(default_factory=dict)
    keep: tuple[str, ...] = ()

    def step(self, schema: Schema) -> SuppressAtRisk:
        """Return what happens, from the schema alone."""
        strata = schema.of_role(Role.STRATA)
        columns = [name for name in schema.quasi if name not in (*self.keep, *strata)]
        for name in (*self.importance, *self.keep):
            if name not in schema.quasi:
                schema[name]
                raise InvalidParameter(f"{name!r} is no quasi-identifier: none of its cells is left out.")
        if not columns:
            raise InvalidParameter("there is no quasi-identifier whose cells may be left out: keep fewer.")
        columns.sort(key=lambda name: self.importance.get(name, Fraction(1)))
        return SuppressAtRisk(
            columns=tuple(columns),
            quasi=schema.quasi,
            model=RiskModel(self.risk),
            threshold=self.threshold,
            weight=weight_of(schema) if self.risk == "survey" else None,
            household=schema.household,
        )

    def examine(self, frame: RowFrame, schema: Schema) -> None:
        """Refuse weights that are none, and households whose rows differ in what they share."""
        if self.risk == "survey":
            weights_of(frame, weight_of(schema))
        if schema.household is not None:
            shared = [name for name in self.step(schema).columns if schema[name].shared]
            need_agreement(frame, schema.household, shared, self.name)

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:  # noqa: ARG002 - nothing here is random
        """Return the frame with cells left empty and rows left out, until no row is at risk."""
        step = self.step(schema)
        homes = np.arange(len(frame)) if step.household is None else frame.households(step.household)[1]
        weights = None if step.weight is None else weights_of(frame, step.weight)
        codes = {name: _codes(frame, name) for name in step.quasi}
        gone = np.zeros(len(frame), np.bool_)
        while (risky := _at_risk(codes, gone, step, weights)).any():
            for name in step.columns:
                now = risky & (codes[name] != _EMPTY)
                codes[name][_together(now, homes) if schema[name].shared else now] = _EMPTY
                risky &= ~now
            gone |= _together(risky, homes)
        columns = {name: pc.if_else(pa.array(codes[name] == _EMPTY), None, frame.values(name)) for name in step.columns}
        return frame.replaced(**columns).without(gone)

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {"local-suppression": self.risk, "threshold": self.threshold}


def _codes(frame: RowFrame, name: str) -> Places:
    """Return a column as whole numbers, a missing value as that of an empty cell."""
    missing = frame.values(name).is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, _EMPTY, frame.groups([name]) + 1)


def _together(rows: Flags, homes: Places) -> Flags:
    """Return the rows of all households of which some row is among these."""
    some = np.zeros(int(homes.max(initial=-1)) + 1, np.bool_)
    some[homes[rows]] = True
    return some[homes]


def _at_risk(codes: Mapping[str, Places], gone: Flags, step: SuppressAtRisk, weights: Numbers | None) -> Flags:
    """Return which of the rows that are left have a risk above the threshold."""
    left = np.flatnonzero(~gone)
    risky = np.zeros(len(gone), np.bool_)
    if len(left):
        columns = [column[left].astype(np.int32) for column in codes.values()]
        keys = Layout(tuple(int(column.max()) + 1 for column in columns)).pack(columns)
        _, group, rows = np.unique(keys, return_inverse=True, return_counts=True)
        above = rows < step.k
        if weights is not None:
            above = individual_risk(rows, np.bincount(group, weights[left]).astype(np.float64)) > float(step.threshold)
        risky[left] = above[group]
    return risky
