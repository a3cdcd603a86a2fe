"""Findings: what a check looked at, what it found, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Problem:
    """Why something does not hold, or why it could not be decided."""

    text: str
    undecided: bool = False


@dataclass(frozen=True)
class Look:
    """One look at a release: what was looked at, what is wrong (None: nothing), and what holds otherwise."""

    about: str
    problem: Problem | None
    otherwise: str


class Verdict(StrEnum):
    """What a check found."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot be known here"


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, what was found, and why."""

    about: str
    verdict: Verdict
    why: str


def finding(look: Look) -> Finding:
    """Return what a look found: its problem, or what holds otherwise."""
    if look.problem is None:
        return Finding(look.about, Verdict.PASSED, look.otherwise)
    verdict = Verdict.UNKNOWN if look.problem.undecided else Verdict.FAILED
    return Finding(look.about, verdict, look.problem.text)
