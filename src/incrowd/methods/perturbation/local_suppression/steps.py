"""Steps: cells of rows at risk are left empty, those of the least important column first."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Claim, assumed
from incrowd.core.claims.crowds import Anonymity
from incrowd.core.terms import Assumption, Theorem
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, MINIMALITY, Form, form_assumptions
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, check_columns, some, stays

if TYPE_CHECKING:
    from incrowd.core.steps.step import ClaimBasis, StepGuarantee
    from incrowd.core.unit import Unit

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
    """How the risk of a row is told: by the rows of its class, or by their survey weights."""

    FREQUENCY = "frequency"
    SURVEY = "survey"


@dataclass(frozen=True, kw_only=True)
class IndividualRisk(Claim):
    """Nobody is linked rightly with a large chance, as a model estimates it."""

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
class SuppressAtRisk(Masking):
    """Rows whose risk is above a threshold lose cells of `columns`, in this order, until none is; or are left out.

    Classes are over all quasi-identifiers `quasi`, an empty cell being a value of its own.
    """

    kind: ClassVar[str] = "suppress at risk"
    title: ClassVar[str] = "Leave out what is at risk"
    leaves_out: ClassVar[bool] = True
    source: ClassVar[Theorem] = Theorem(
        "cells-left-empty", "cells are left empty and rows are left out; no other value is changed"
    )

    columns: tuple[str, ...]
    quasi: tuple[str, ...]
    model: RiskModel
    threshold: Fraction
    weight: str | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if not 0 < self.threshold < 1:
            raise InvalidParameter("a risk is above 0 and below 1, and so is the threshold that it is held against.")
        if not set(self.columns) <= set(self.quasi) or (self.model is RiskModel.SURVEY) != (self.weight is not None):
            raise InvalidParameter("cells of quasi-identifiers are left out, by weights where the model has them.")

    @property
    def k(self) -> int:
        """How many rows a class has whose rows are not at risk by their number."""
        return math.ceil(1 / self.threshold)

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return tuple(name for name in (*self.quasi, self.weight) if name is not None and name not in self.columns)

    @property
    def emptied(self) -> tuple[str, ...]:
        """The columns of which cells may be left empty."""
        return self.columns

    @property
    def households(self) -> bool:
        """Whether what is kept is kept of households, not of rows."""
        return False

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: what is still shown."""
        return ((KeptStatistic.SHOWN, Exactness.EXACT),)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        by = "by the rows that look alike" if self.weight is None else f"by the weights in {some((self.weight,))}"
        whole = "" if self.household is None else ", with all rows of their household"
        return (
            f"Rows with a risk above {float(self.threshold):g}, told {by}, lose cells of {some(self.columns)}, one "
            f"after the other in this order, until no row is above it; rows that still are have been left out{whole}. "
            "The risk looks at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a masked table, and its form."""
        around = super().around(inner, unit)
        model = frozenset() if self.weight is None else frozenset({_SURVEY})
        return replace(around, assumes=around.assumes | form_assumptions(unit) | model)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what is kept, and k-anonymity or a bound on the risk where nothing that they rest on is changed."""
        kept = super().claims(basis)
        if not stays(self, basis.steps, (*self.quasi, *self.reads)):
            return kept
        form = Form(self.quasi, basis.unit, (MINIMALITY,)).basis(COUNTED, (HOMOGENEITY,))
        if self.weight is None:
            rows = basis.unit.max_rows
            people = math.ceil(self.k / rows) if rows > 1 else None
            return (Anonymity(k=self.k, people=people, theorem=(KAnonymity.theorem,), **form), *kept)
        form["preconditions"] = (*COUNTED, *assumed({*form_assumptions(basis.unit), _SURVEY}))
        risk = IndividualRisk(threshold=self.threshold, weight=self.weight, theorem=(_FRANCONI,), **form)
        return (risk, *kept)
