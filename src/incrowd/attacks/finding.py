"""Finding: the result of an attack, with its success rate, a baseline and a control group.

A success rate alone says nothing: a guess of the commonest illness is often right, and about everybody.  A release
discloses about the people *in* it what an attack gains over the same attack on people who are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter

CONFIDENCE = 0.95  # 95 %, as everywhere
_VAGUE = 0.3
"""A confidence interval that reaches this rate when nobody was hit shows too little to report."""


class Risk(StrEnum):
    """The three risks of Opinion 05/2014 of the Article 29 Working Party."""

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


class AttackVerdict(StrEnum):
    """What the confidence intervals show."""

    LEAK = "leak"
    BEATS_GUESSING = "beats guessing"
    NOT_FOUND = "no leak found"


@dataclass(frozen=True)
class Rate:
    """The share of trials that succeeded, with an exact confidence interval (Clopper & Pearson 1934).

    >>> rate = Rate(0, 100)
    >>> rate.estimate, rate.low, round(rate.high, 4)
    (0.0, 0.0, 0.0362)
    """

    hits: int
    of: int
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not 0 <= self.hits <= self.of:
            raise InvalidParameter(f"there cannot be {self.hits} successes in {self.of} trials.")
        if not 0.0 < self.confidence < 1.0:
            raise InvalidParameter("a confidence lies between 0 and 1, such as 0.95.")

    @property
    def estimate(self) -> float:
        """The share of trials that succeeded; 0 without trials."""
        return self.hits / self.of if self.of else 0.0

    @property
    def low(self) -> float:
        """The lower end: the true rate lies below it with probability at most (1 − confidence)/2."""
        from scipy.stats import beta

        alarm = (1.0 - self.confidence) / 2.0
        return float(beta.ppf(alarm, self.hits, self.of - self.hits + 1)) if self.hits else 0.0

    @property
    def high(self) -> float:
        """The upper end: the true rate lies above it with probability at most (1 − confidence)/2."""
        from scipy.stats import beta

        alarm = (1.0 - self.confidence) / 2.0
        return float(beta.isf(alarm, self.hits + 1, self.of - self.hits)) if self.hits < self.of else 1.0

    def to_json(self) -> dict[str, float]:
        """Return the values for JSON."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Excess:
    """What an attack gains over its reference, and the least and the most that the two intervals allow."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """The result of an attack; `story` describes one victim step by step, for the data holder alone."""

    attack: str
    risk: Risk
    knows: str
    success: Rate
    baseline: Rate
    control: Rate | None = None
    story: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def reference(self) -> Rate:
        """The rate that the success is compared with: the control group's, or the baseline without one."""
        return self.baseline if self.control is None else self.control

    @property
    def excess(self) -> Excess:
        """The gain over the reference as a share of what could be gained; below 0 the attack does worse.

        Source: Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter), risk = (a − c)/(1 − c).

        >>> finding = Finding("linkage", Risk.LINKABILITY, "zip", Rate(60, 500), Rate(0, 500), Rate(45, 500))
        >>> round(finding.excess.estimate, 4), finding.excess.low < 0 < finding.excess.high
        (0.033, True)
        """
        ours, theirs = self.success, self.reference
        return Excess(_gain(ours.estimate, theirs.estimate), _gain(ours.low, theirs.high), _gain(ours.high, theirs.low))

    @property
    def gain(self) -> Excess:
        """The difference of the success rate and the reference: thresholds are compared with it."""
        ours, theirs = self.success, self.reference
        return Excess(ours.estimate - theirs.estimate, ours.low - theirs.high, ours.high - theirs.low)

    @property
    def verdict(self) -> AttackVerdict:
        """What the confidence intervals show; a false "leak" has probability at most 1 − confidence.

        The two exact intervals must be disjoint, and each misses its rate on that side with half of 1 − confidence.
        """
        if self.success.low <= self.reference.high:
            return AttackVerdict.NOT_FOUND
        return AttackVerdict.BEATS_GUESSING if self.control is None else AttackVerdict.LEAK

    @property
    def sentence(self) -> str:
        """The verdict as a sentence."""
        if self.verdict is AttackVerdict.LEAK:
            return "The attack succeeds more often on people in the data than on the control group: the release leaks."
        if self.verdict is AttackVerdict.BEATS_GUESSING:
            return (
                "The attack is right more often than the baseline. Only a control group can show whether the release "
                "leaks or the same holds for people who are not in the data."
            )
        other = "the baseline" if self.control is None else "on the control group"
        return f"Not shown to succeed more often than {other}. That proves nothing: another attack may do better."

    def at(self, confidence: float) -> Finding:
        """Return the same finding with confidence intervals at another level."""
        success, baseline = (replace(rate, confidence=confidence) for rate in (self.success, self.baseline))
        control = self.control and replace(self.control, confidence=confidence)
        return replace(self, success=success, baseline=baseline, control=control)

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON, without the story."""
        return {
            "attack": self.attack,
            "risk": str(self.risk),
            "knows": self.knows,
            "success": self.success.to_json(),
            "baseline": self.baseline.to_json(),
            "control": None if self.control is None else self.control.to_json(),
            "gain": vars(self.gain),
            "excess": vars(self.excess),
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def corrected(findings: Sequence[Finding], confidence: float = CONFIDENCE) -> tuple[Finding, ...]:
    """Return the findings of one run with simultaneous confidence intervals (Bonferroni).

    Of many attacks one seems to work by luck: the best of 1000 useless ones shows a leak at 95 % with probability
    0.88.  So each of m attacks gets the confidence 1 − (1 − confidence)/m.
    """
    level = 1.0 - (1.0 - confidence) / max(1, len(findings))
    return tuple(finding.at(level) for finding in findings)


def above(findings: Sequence[Finding], threshold: float) -> tuple[Finding, ...]:
    """Return the findings that are not shown to gain at most a threshold over their reference.

    An attack passes if even the upper end of its gain is at most the threshold: with few people no attack passes.
    """
    if not 0.0 <= threshold <= 1.0:
        raise InvalidParameter("a threshold is a share between 0 and 1, such as 0.1.")
    return tuple(finding for finding in findings if finding.gain.high > threshold)


def check_enough(people: int, control: int | None, confidence: float) -> None:
    """Refuse too few people: even if none is hit, the upper end of the interval would exceed three in ten.

    >>> check_enough(1000, 8, 0.95)
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: 8 people in the control group are too few ... Give at least 11.
    """
    for number, who in ((people, "people in the data"), (control, "people in the control group")):
        if number is not None and Rate(0, number, confidence).high > _VAGUE:
            least = math.ceil(math.log((1.0 - confidence) / 2.0) / math.log(1.0 - _VAGUE))
            raise InvalidParameter(
                f"{number} {who} are too few for a confidence of {confidence:.4g}: if none of them is hit, the rate "
                f"could still be {Rate(0, number, confidence).high:.2f}. Give at least {least}."
            )


def _gain(ours: float, theirs: float) -> float:
    return (ours - theirs) / (1.0 - theirs) if theirs < 1.0 else 0.0 if ours >= 1.0 else -1.0
