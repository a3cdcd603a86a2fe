"""Tallies: what estimates need of reports: how many there are, and by how many of them each value is supported.

Tallies of two sets of reports add up to that of both, so new reports are counted without reading the old ones again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.local.mechanisms.hashed import LocalHashing
from incrowd.methods.local.mechanisms.randomizer import Categorical
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.questions import NumberQuestion, SurveyQuestion, TreeQuestion

Counts = NDArray[np.int64]
_COUNTED = 2**16
"""Up to so many values have a count each; of larger domains the reports are kept, a number each."""


@dataclass(frozen=True)
class LevelTally:
    """The reports at one level: how many, and the support of each value; or the reports, where there are too many."""

    people: int
    support: Counts | None
    reports: Any = None

    @classmethod
    def of(cls, level: Categorical, reports: Any) -> LevelTally:
        """Count the reports of a level."""
        if isinstance(level, LocalHashing) and level.size > _COUNTED:
            return cls(len(reports), None, reports)
        return cls(len(reports), level.support(reports))

    def __add__(self, other: LevelTally) -> LevelTally:
        people = self.people + other.people
        if self.support is None or other.support is None:
            return LevelTally(people, None, np.concatenate([self.reports, other.reports]))
        return LevelTally(people, self.support + other.support)

    def supporting(self, level: Categorical, values: Counts) -> Counts:
        """Return by how many reports each of some values is supported."""
        if self.support is None and isinstance(level, LocalHashing):
            return level.support_of(self.reports, values)
        return np.asarray(self.support, np.int64)[values]


@dataclass(frozen=True)
class QuestionTally:
    """The reports about one question: how many, their levels, and for a number the sum of its estimates."""

    people: int
    levels: tuple[LevelTally, ...] = ()
    total: float = 0.0

    @classmethod
    def of(cls, question: SurveyQuestion, people: int, part: Any) -> QuestionTally:
        """Count the reports about a question, as the survey has read them."""
        if isinstance(question, NumberQuestion):
            return cls(people, total=float(np.sum(question.randomizer.estimates(part))))
        parts = part[1] if isinstance(question, TreeQuestion) else (part,)
        made = question.randomizers if isinstance(question, TreeQuestion) else (question.randomizer,)
        levels = zip(made, parts, strict=True)
        return cls(people, tuple(LevelTally.of(level, reports) for level, reports in levels))

    def __add__(self, other: QuestionTally) -> QuestionTally:
        levels = tuple(one + more for one, more in zip(self.levels, other.levels, strict=True))
        return QuestionTally(self.people + other.people, levels, self.total + other.total)


Tallies = Mapping[str, QuestionTally]


def tallies_of(survey: LocalSurvey, reports: Sequence[Any]) -> Tallies:
    """Read reports, refuse what is none of this survey, and count them."""
    parts = survey.read(reports)
    return {name: QuestionTally.of(survey.question(name), len(rows), part) for name, (rows, part) in parts.items()}


def joined(one: Tallies, other: Tallies) -> Tallies:
    """Return the tallies of all reports, from those of two parts."""
    return {name: tally + other[name] for name, tally in one.items()}


RoundTallies = Mapping[int | None, Tallies]
"""The tallies of each round; those of a survey without rounds under None."""


def tallies_by_round(survey: LocalSurvey, reports: Sequence[Any]) -> RoundTallies:
    """Read reports, and count those of each round by themselves."""
    if survey.rounds is None:
        return {None: tallies_of(survey, reports)}
    survey.read(reports)
    turns = sorted({report["round"] for report in reports})
    return {turn: tallies_of(survey, [report for report in reports if report["round"] == turn]) for turn in turns}


def joined_rounds(one: RoundTallies, other: RoundTallies) -> RoundTallies:
    """Return the tallies of all reports by round, from those of two parts."""
    both = {turn: joined(tallies, other[turn]) for turn, tallies in one.items() if turn in other}
    return dict(sorted({**one, **other, **both}.items(), key=lambda part: part[0] or 0))
