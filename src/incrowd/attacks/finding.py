"""Finding: what an attack came to: its success beside a blind guess and beside people who are not in the data.

A success rate alone says nothing: whoever guesses the commonest illness is often right, and about everybody.  What a
release gives away about the people *in* it is what an attack gains over the same attack on people who are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from incrowd.errors import InvalidParameter

CONFIDENCE = 0.95
_VAGUE = 0.3


class Risk(StrEnum):
    """The three risks of Opinion 05/2014 of the Article 29 Working Party, and the question that each one asks."""

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


class AttackVerdict(StrEnum):
    """What the intervals allow to be said."""

    LEAK = "leak"
    BEATS_GUESSING = "beats guessing"
    NOT_FOUND = "no leak found"


@dataclass(frozen=True)
class Rate:
    """How often something was right in so many trials, with an exact interval (Clopper & Pearson 1934).

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
        """The share of trials that were right; 0 if nothing was tried."""
        return self.hits / self.of if self.of else 0.0

    @property
    def low(self) -> float:
        """Below this the true rate lies with half of what the confidence leaves, at most."""
        from scipy.stats import beta

        alarm = (1.0 - self.confidence) / 2.0
        return float(beta.ppf(alarm, self.hits, self.of - self.hits + 1)) if self.hits else 0.0

    @property
    def high(self) -> float:
        """Above this the true rate lies with half of what the confidence leaves, at most."""
        from scipy.stats import beta

        alarm = (1.0 - self.confidence) / 2.0
        return float(beta.isf(alarm, self.hits + 1, self.of - self.hits)) if self.hits < self.of else 1.0

    def to_json(self) -> dict[str, float]:
        """Return the plain form."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Excess:
    """What an attack has over its control, and the least and the most that the two intervals allow."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """What an attack came to; `story` tells of one victim, step by step, for the holder of the data alone."""

    attack: str
    risk: Risk
    knows: str
    success: Rate
    blind: Rate
    outsiders: Rate | None = None
    story: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def control(self) -> Rate:
        """Whom the success is held against: outsiders where there are any, else the blind guess."""
        return self.blind if self.outsiders is None else self.outsiders

    @property
    def excess(self) -> Excess:
        """What is gained over the control, as a share of what could be gained; below 0 the attack does worse.

        Source: Giomi, Boenisch, Wehmeyer & Tasnádi 2023 (anonymeter), risk = (a − c)/(1 − c).

        >>> finding = Finding("linkage", Risk.LINKABILITY, "zip", Rate(60, 500), Rate(0, 500), Rate(45, 500))
        >>> round(finding.excess.estimate, 4), finding.excess.low < 0 < finding.excess.high
        (0.033, True)
        """
        ours, theirs = self.success, self.control
        return Excess(_gain(ours.estimate, theirs.estimate), _gain(ours.low, theirs.high), _gain(ours.high, theirs.low))

    @property
    def gain(self) -> Excess:
        """How many more are hit than in the control, as a share of all: what thresholds look at."""
        ours, theirs = self.success, self.control
        return Excess(ours.estimate - theirs.estimate, ours.low - theirs.high, ours.high - theirs.low)

    @property
    def verdict(self) -> AttackVerdict:
        """What the intervals allow to be said; a leak is said wrongly with 1 − confidence at most.

        Two exact intervals that lie apart: each misses its rate on that side with half of what the confidence leaves.
        """
        if self.success.low <= self.control.high:
            return AttackVerdict.NOT_FOUND
        return AttackVerdict.BEATS_GUESSING if self.outsiders is None else AttackVerdict.LEAK

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.verdict is AttackVerdict.LEAK:
            return "People in the data are hit more often than people who are not in it: the release betrays them."
        if self.verdict is AttackVerdict.BEATS_GUESSING:
            return (
                "The attack is right more often than a blind guess. Whether that betrays the people in the data or is "
                "true of everybody, only outsiders can tell."
            )
        whom = "a blind guess" if self.outsiders is None else "it is about outsiders"
        return f"Not shown to be right more often than {whom}. That proves nothing: another attack may do better."

    def at(self, confidence: float) -> Finding:
        """Return the same finding with its intervals at another confidence."""
        outside = None if self.outsiders is None else replace(self.outsiders, confidence=confidence)
        return replace(
            self,
            success=replace(self.success, confidence=confidence),
            blind=replace(self.blind, confidence=confidence),
            outsiders=outside,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, without the story."""
        return {
            "attack": self.attack,
            "risk": str(self.risk),
            "knows": self.knows,
            "success": self.success.to_json(),
            "blind": self.blind.to_json(),
            "outsiders": None if self.outsiders is None else self.outsiders.to_json(),
            "gain": vars(self.gain),
            "excess": vars(self.excess),
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def corrected(findings: Sequence[Finding], confidence: float = CONFIDENCE) -> tuple[Finding, ...]:
    """Return the findings of one run with intervals that hold all together (Bonferroni).

    Whoever tries many attacks finds one that seems to work: of 1000 useless ones the best shows a leak at 95 % with a
    chance of 0.88.  So each of m attacks is given the confidence 1 − (1 − confidence)/m.
    """
    each = 1.0 - (1.0 - confidence) / max(1, len(findings))
    return tuple(finding.at(each) for finding in findings)


def above(findings: Sequence[Finding], threshold: float) -> tuple[Finding, ...]:
    """Return the findings that are not shown to gain at most a threshold over their control.

    An attack passes if even the upper end of its gain lies at or below the threshold: with few people nothing is
    shown, and nothing passes.
    """
    if not 0.0 <= threshold <= 1.0:
        raise InvalidParameter("a threshold is a share between 0 and 1, such as 0.1.")
    return tuple(finding for finding in findings if finding.gain.high > threshold)


def check_enough(people: int, outsiders: int | None, confidence: float) -> None:
    """Refuse numbers of people with which rates are hardly known: none hit of so few could still be three in ten.

    >>> check_enough(1000, 8, 0.95)
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: 8 outsiders are too few for a confidence of 0.95: ... Give at least 11.
    """
    for number, who in ((people, "people in the data"), (outsiders, "outsiders")):
        if number is not None and Rate(0, number, confidence).high > _VAGUE:
            least = math.ceil(math.log((1.0 - confidence) / 2.0) / math.log(1.0 - _VAGUE))
            raise InvalidParameter(
                f"{number} {who} are too few for a confidence of {confidence:.4g}: if none of them were hit, the rate "
                f"could still be {Rate(0, number, confidence).high:.2f}. Give at least {least}."
            )


def _gain(ours: float, theirs: float) -> float:
    return (ours - theirs) / (1.0 - theirs) if theirs < 1.0 else 0.0 if ours >= 1.0 else -1.0
