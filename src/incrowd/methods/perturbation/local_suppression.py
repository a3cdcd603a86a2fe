"""Local suppression: rows at risk lose the values of the least important columns, until no row is at risk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim, assumed
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.keys import Layout
from incrowd.core.schema import Role, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, StepGuarantee
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Unit
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, MINIMALITY, Form, form_assumptions
from incrowd.criteria.individual_risk import individual_risk
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.shared.frame import Numbers, Places, RowFrame, weight_of, weights_of
from incrowd.methods.perturbation.shared.masks import Mask, MaskInput, need_agreement
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskedRows, MaskPicture
from incrowd.methods.perturbation.shared.steps import (
    ColumnMasking,
    Exactness,
    KeptStatistic,
    Masking,
    anonymity,
    column_list,
    unchanged_after,
)
from incrowd.verifier.check import CheckOutcome, Problem

Flags = NDArray[np.bool_]
_EMPTY = 0
_ROUNDING = 1e-9  # a risk that equals the threshold is not above it because of its last digit
_SURVEY = Assumption(
    "weights-as-sampled",
    "the weight of a row is how many people of the population it stands for, as the sample was drawn",
)
_FRANCONI = Theorem(
    "negative-binomial-risk",
    "Benedetti & Franconi 1998: people of a class in the population as negative binomial, "
    "given the rows of the class and their weights",
)


class RiskModel(StrEnum):
    """How the risk of a row is estimated: by the number of rows of its class, or by their survey weights."""

    FREQUENCY = "frequency"
    SURVEY = "survey"


@dataclass(frozen=True, kw_only=True)
class IndividualRisk(Claim):
    """No published row is linked correctly with a large probability, as a model estimates it."""

    kind = "individual risk"
    sentence = (
        "As the model estimates it from the published weights, no published row is linked rightly with a chance above "
        "the threshold by its values in the named columns."
    )
    rank: ClassVar[int] = 43

    threshold: Fraction
    weight: str
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SuppressAtRisk(ColumnMasking):
    """Cells of `columns`, in this order, are suppressed until no risk is above the threshold; then rows are.

    Equivalence classes are over all quasi-identifiers `quasi`; an empty cell is a value of its own.
    """

    kind: ClassVar[str] = "suppress at risk"
    title: ClassVar[str] = "Leave out what is at risk"
    suppresses_rows: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "cells-left-empty", "cells are left empty and rows are left out; no other value is changed"
    )
    statistics = ((KeptStatistic.SHOWN, Exactness.EXACT),)
    households = False

    quasi: tuple[str, ...]
    model: RiskModel
    threshold: Fraction
    weight: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold < 1:
            raise InvalidParameter("the threshold of a risk is above 0 and below 1.")
        if not set(self.columns) <= set(self.quasi) or (self.model is RiskModel.SURVEY) != (self.weight is not None):
            raise InvalidParameter("cells of quasi-identifiers are left out, by weights where the model has them.")

    @property
    def k(self) -> int:
        """The minimum size of an equivalence class that is not at risk by frequency."""
        return math.ceil(1 / self.threshold)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name in (*self.quasi, self.weight) if name is not None and name not in self.columns)

    @property
    def emptied(self) -> tuple[str, ...]:
        return self.columns

    @property
    def sentence(self) -> str:
        weights = () if self.weight is None else (self.weight,)
        basis = f"by the weights in {column_list(weights)}" if weights else "by the sizes of equivalence classes"
        whole = "" if self.household is None else ", with all rows of their household"
        return (
            f"Rows with a risk above {float(self.threshold):g}, estimated {basis}, lose cells of "
            f"{column_list(self.columns)}, one after the other in this order, until no row is above it; rows that "
            f"still are above it are suppressed{whole}. The risk depends on all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        around = super().around(inner, unit)
        model = frozenset() if self.weight is None else frozenset({_SURVEY})
        return replace(around, assumes=around.assumes | form_assumptions(unit) | model)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim also k-anonymity or a bound on the risk, where nothing that they depend on is changed afterwards."""
        preserved = super().claims(basis)
        if not unchanged_after(self, basis.steps, (*self.quasi, *self.reads)):
            return preserved
        if self.weight is None:
            return (anonymity(self.k, self.quasi, basis), *preserved)
        form = Form(self.quasi, basis.unit, (MINIMALITY,)).basis(COUNTED, (HOMOGENEITY,))
        form["preconditions"] = (*COUNTED, *assumed({*form_assumptions(basis.unit), _SURVEY}))
        risk = IndividualRisk(threshold=self.threshold, weight=self.weight, theorem=(_FRANCONI,), **form)
        return (risk, *preserved)


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
    handles_households: ClassVar[bool] = True

    threshold: Fraction
    risk: Literal["frequency", "survey"] = "frequency"
    importance: Mapping[str, Fraction] = field(default_factory=dict)
    keep: tuple[str, ...] = ()

    def step(self, schema: Schema) -> SuppressAtRisk:
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

    def examine(self, rows: MaskInput) -> None:
        """Refuse invalid weights, and households whose rows differ in what they share."""
        schema = rows.schema
        if self.risk == "survey":
            weights_of(rows.frame, weight_of(schema))
        if schema.household is not None:
            shared = [name for name in self.step(schema).columns if schema[name].shared]
            need_agreement(rows.frame, schema.household, shared, self.name)

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with cells and rows suppressed, until no row is at risk."""
        frame, step = rows.frame, self.step(rows.schema)
        homes = np.arange(len(frame)) if step.household is None else frame.households(step.household)[1]
        weights = None if step.weight is None else weights_of(frame, step.weight)
        codes = {name: _codes(frame, name) for name in step.quasi}
        suppressed = np.zeros(len(frame), np.bool_)
        while (risky := _at_risk(codes, suppressed, step, weights)).any():
            for name in step.columns:
                cells = risky & (codes[name] != _EMPTY)
                codes[name][_with_household(cells, homes) if rows.schema[name].shared else cells] = _EMPTY
                risky &= ~cells
            suppressed |= _with_household(risky, homes)
        columns = {name: pc.if_else(pa.array(codes[name] == _EMPTY), None, frame.values(name)) for name in step.columns}
        return frame.replaced(**columns).without(suppressed)

    def settings(self) -> dict[str, Any]:
        return {"local-suppression": self.risk, "threshold": self.threshold}


def _codes(frame: RowFrame, name: str) -> Places:
    """Return a column as whole numbers, a missing value as that of an empty cell."""
    missing = frame.values(name).is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, _EMPTY, frame.groups([name]) + 1)


def _with_household(rows: Flags, homes: Places) -> Flags:
    """Return the rows of all households that have one of these rows."""
    chosen = np.zeros(int(homes.max(initial=-1)) + 1, np.bool_)
    chosen[homes[rows]] = True
    return chosen[homes]


def _at_risk(codes: Mapping[str, Places], suppressed: Flags, step: SuppressAtRisk, weights: Numbers | None) -> Flags:
    """Return which of the remaining rows have a risk above the threshold."""
    remaining = np.flatnonzero(~suppressed)
    risky = np.zeros(len(suppressed), np.bool_)
    if len(remaining):
        columns = [column[remaining].astype(np.int32) for column in codes.values()]
        keys = Layout(tuple(int(column.max()) + 1 for column in columns)).pack(columns)
        _, group, rows = np.unique(keys, return_inverse=True, return_counts=True)
        above = rows < step.k
        if weights is not None:
            sums = np.bincount(group, weights[remaining]).astype(np.float64)
            above = individual_risk(rows, sums) > float(step.threshold)
        risky[remaining] = above[group]
    return risky


class RiskCheck(MaskCheck):
    """Masked tables with a bound on the estimated risk of each row, which the published weights show."""

    def step_contradiction(self, step: Masking, statement: Statement) -> Problem | None:
        if isinstance(step, SuppressAtRisk) and step.quasi != statement.of_role(Role.QUASI):
            return Problem("the columns of the equivalence classes are not the quasi-identifiers")
        return None

    def claim_outcomes(self, claim: Claim, rows: MaskedRows) -> Iterator[CheckOutcome]:
        yield from super().claim_outcomes(claim, rows)
        if isinstance(claim, IndividualRisk):
            highest = _highest_risk(rows, claim)
            text = f"the highest risk is {highest:.6g}, the threshold is {float(claim.threshold):g}"
            above = highest > float(claim.threshold) * (1 + _ROUNDING)
            yield CheckOutcome(f"{claim.kind} in the file", Problem(text) if above else None, text)


def _highest_risk(rows: MaskedRows, claim: IndividualRisk) -> float:
    """Return the largest probability with which the model links a published row, from the published weights."""
    frame = RowFrame(rows.table)
    group = frame.groups(claim.columns)
    weights = np.bincount(group, frame.numbers(claim.weight)).astype(np.float64)
    return float(individual_risk(np.bincount(group), weights).max())


CHECK = RiskCheck(SuppressAtRisk, claims=(Anonymity, IndividualRisk))
PICTURE = MaskPicture()
METHOD = LocalSuppression
