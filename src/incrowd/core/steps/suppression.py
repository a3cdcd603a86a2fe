"""Suppression: every tuple that occurs fewer than k times is suppressed; the claims of both papers follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, Precondition, assumed, checked, proved
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    PublishedTheorem,
    RobustTheorem,
    RobustZeroKnowledge,
    Smooth,
    ZeroKnowledge,
    anonymity,
)
from incrowd.core.loss import Crowd
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.samples import COINS, DRAWN_BEFORE, ROBUST, DrawnBefore, DrawnHere, SecretSample, Survey
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, ExtraRowsRule

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

BLENDING = Theorem("gehrke-2012-example-1", "Gehrke, Hay, Lui & Pass 2012, Example 1")
TIGHT = Theorem(
    "li-2010-theorem-1-tight", "Li, Qardaji & Su 2010, Theorem 1, by the tight bound of sampled suppression"
)
REPLACED_AS_TWO = Theorem("replaced-as-two", "a replaced row is one row removed and one added")
REPLACED = Theorem("replaced-better-curve", "for replaced rows, by the smaller of the composed and the shifted bound")
SEVERAL_ROWS = Theorem("group-privacy-rows", "group privacy over a person's rows")
MEMBERS = Exposure(
    "sample-members-see-rows", "attackers who learn who is in the sample see those people's recoded rows in the crowd"
)
AGAIN = Exposure("second-release", "a second release from the same rows or the same sample: crowds do not compose")
COUNTED = proved(
    Condition("tuple-of-all-columns", "every released column belongs to the tuple that is counted"),
    Condition("rows-recoded-alone", "rows are recoded one by one, by declared rules"),
)
COIN = proved(Condition("independent-coins", "each row is sampled independently, at a rate never above the stated one"))
RARE = checked(Condition("no-rare-tuple", "no tuple of the written output occurs fewer than k times"))
_FLOOR = Exposure(
    "delta-floor", "the failure probability δ does not vanish as epsilon grows: it stays above rate to the k"
)


_PEOPLE_WITH_MORE_LEFT_OUT = Condition(
    "people-with-more-left-out", "people with more than one row are excluded with all their rows"
)
_NOBODY_HAS_MORE = Condition("nobody-has-more", "nobody has more than one row in the source")
_GEHRKE_2012_THEOREM_1_EXACT = Theorem(
    "gehrke-2012-theorem-1-exact", "Gehrke, Hay, Lui & Pass 2012, Theorem 1, by the exact worst case"
)
_LI_2010_THEOREM_1 = Theorem("li-2010-theorem-1", "Li, Qardaji & Su 2010, Theorem 1")
_LI_2010_THEOREM_6 = Theorem("li-2010-theorem-6", "Li, Qardaji & Su 2010, Theorem 6")
_GEHRKE_2012_THEOREM_2_PUBLISHED = Theorem(
    "gehrke-2012-theorem-2-published", "Gehrke, Hay, Lui & Pass 2012, Theorem 2, with its constants"
)
_INDEPENDENT_OWN_COINS = Condition(
    "independent-own-coins",
    "each row is sampled independently, at a rate that depends on that row alone and lies between low and high",
)
_NOTHING_ELSE_FROM_THESE_ROWS = Condition(
    "nothing-else-from-these-rows", "the ledger allows no other release from these rows"
)


@dataclass(frozen=True)
class Suppress(Step):
    """Tuples over all released columns that occur fewer than k times are suppressed."""

    kind: ClassVar[str] = "suppress"
    title: ClassVar[str] = "Suppress rare combinations"
    glyph: ClassVar[str | None] = "dropped"

    k: int

    @property
    def sentence(self) -> str:
        return f"Combinations over all released columns that occur fewer than {self.k} times are suppressed."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a crowd of k; on a secret sample, by the tight bound."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Crowd(self.k), (BLENDING,), assumptions(unit), (TIGHT,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what a crowd guarantees: on a sample, on a biased one, or on all rows."""
        same = self.anonymity(basis)
        if basis.guarantee.syntactic:
            return (same,)
        crowds = (blending(self.k, basis), same) if blends(basis) else (same,)
        survey, sample = basis.find(Survey), basis.find(SecretSample)
        if survey is not None:
            return (*survey_claims(self.k, survey, basis), *crowds)
        return (*(sample_claims(self.k, sample, basis) if sample is not None else ()), *crowds)

    def anonymity(self, basis: ClaimBasis) -> Anonymity:
        """Claim that nothing published is rare, which anyone can recount."""
        return anonymity(self.k, basis.need(Recode).names, basis.unit, people(self.k, basis.unit))


def people(k: int, unit: Unit) -> int | None:
    """Return how few people k rows may belong to; None where each has one row."""
    return math.ceil(k / unit.max_rows) if unit.max_rows > 1 else None


def blends(basis: ClaimBasis) -> bool:
    """Whether people of one cell are interchangeable.

    They are not if one row of several is kept of a person, nor if people have rates of their own: how often a cell is
    published then distinguishes two people of one cell.
    """
    return basis.unit.single and basis.find(DrawnHere) is None


def one_row(unit: Unit) -> tuple[Precondition, ...]:
    """Return why nobody has a second row, where the unit states a rule for people with more."""
    if unit.more is ExtraRowsRule.DROP:
        return proved(_PEOPLE_WITH_MORE_LEFT_OUT)
    return checked(_NOBODY_HAS_MORE) if unit.more is ExtraRowsRule.REFUSE else ()


def blending(k: int, basis: ClaimBasis) -> Blending:
    """Claim that everyone blends with k people or is ignored; it needs no secret coins."""
    return Blending(
        k=k,
        epsilon=Fraction(0),
        unit=basis.unit,
        theorem=(BLENDING,),
        preconditions=(*COUNTED, *one_row(basis.unit), *RARE, *assumed(assumptions(basis.unit))),
        not_protected=(GROUPS, MEMBERS, AGAIN),
    )


def sample_claims(k: int, sample: SecretSample, basis: ClaimBasis) -> tuple[Claim, ...]:
    """Claim what suppression on a secret sample guarantees, by the tight bound and by the published formulas."""
    unit, conditions = basis.unit, (*COUNTED, *COIN, *RARE, *assumed(assumptions(basis.unit) | {COINS}))
    shared: dict[str, Any] = {"k": k, "rate": sample.rate, "epsilon": basis.epsilon, "unit": unit}
    shared |= {"preconditions": conditions, "not_protected": (GROUPS,)}
    delta = basis.guarantee.delta
    private = ApproximatePrivacy(
        **shared, delta=delta, adjacency=unit.adjacency, max_rows=unit.max_rows, theorem=tight_curve(unit)
    )
    if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
        return (private,)
    knowledge = ZeroKnowledge(
        **shared,
        delta=delta,
        theorem=(_GEHRKE_2012_THEOREM_1_EXACT,),
    )
    if not publishable(basis.epsilon, sample.rate):
        return (private, knowledge)
    numbers = basis.numbers
    published = PublishedTheorem(
        **shared,
        delta=float(numbers["delta of theorem 1"]),
        theorem=(_LI_2010_THEOREM_1,),
    )
    shared["not_protected"] = (GROUPS, _FLOOR)
    smooth = Smooth(
        **shared,
        delta=float(numbers["delta of theorem 6"]),
        theorem=(_LI_2010_THEOREM_6,),
    )
    return (private, knowledge, published, smooth)


def publishable(epsilon: Any, rate: Fraction) -> bool:
    """Whether the published theorem covers this ε: at least −ln(1 − rate)."""
    return float(epsilon) >= -math.log1p(-float(rate)) * (1 + 1e-12)


def survey_claims(k: int, survey: Survey, basis: ClaimBasis) -> tuple[Claim, ...]:
    """Claim what a biased sample adds to a crowd: differential privacy, and zero-knowledge in two forms."""
    unit = basis.unit
    rates = {"low": survey.low, "high": survey.high, "irregular": survey.irregular, "max_rate": survey.max_rate}
    shared: dict[str, Any] = {"k": k, **rates, "origin": survey.origin, "unit": unit}
    shared |= {"preconditions": _survey_conditions(survey, basis), "not_protected": (GROUPS,)}
    added = unit.adjacency is Adjacency.ADD_REMOVE
    own: dict[str, Any] = {"delta": basis.guarantee.delta, "epsilon": basis.epsilon}
    theorem = (ROBUST,) if added else (ROBUST, REPLACED_AS_TWO)
    private = ApproximatePrivacy(**shared, **own, adjacency=unit.adjacency, max_rows=unit.max_rows, theorem=theorem)
    if not added:
        return (private,)
    numbers: dict[str, Any] = {name: float(basis.numbers[f"{name} of theorem 2"]) for name in ("epsilon", "delta")}
    return (
        private,
        RobustZeroKnowledge(**shared, **own, theorem=(ROBUST,)),
        RobustTheorem(
            **shared,
            **numbers,
            theorem=(_GEHRKE_2012_THEOREM_2_PUBLISHED,),
        ),
    )


def _survey_conditions(survey: Survey, basis: ClaimBasis) -> tuple[Precondition, ...]:
    here = _INDEPENDENT_OWN_COINS
    before = _NOTHING_ELSE_FROM_THESE_ROWS
    sampling = proved(here) if isinstance(survey, DrawnHere) else checked(before)
    more = {DRAWN_BEFORE} if isinstance(survey, DrawnBefore) else {COINS}
    return (*COUNTED, *sampling, *RARE, *assumed(assumptions(basis.unit) | more))


def tight_curve(unit: Unit) -> tuple[Theorem, ...]:
    """Return why suppression on a secret sample is private, as it is read for a unit."""
    several = (SEVERAL_ROWS,) if unit.max_rows > 1 else ()
    return (TIGHT, *several, *((REPLACED,) if unit.adjacency is Adjacency.REPLACE else ()))
