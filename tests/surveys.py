"""Surveys for tests: one of every kind of question, and coins that read words from a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.noise.chance import rational
from incrowd.noise.toss import below, toss
from incrowd.workflows.local.survey_file import SurveyFile, survey_of

TRAVEL: dict[str, Any] = {
    "survey": "1",
    "name": "travel",
    "title": "How do you come to work?",
    "epsilon": "1",
    "questions": {"travel": {"text": "How did you come today?", "categories": ["walk", "bike", "bus", "car"]}},
}
SHUFFLED: dict[str, Any] = TRAVEL | {"name": "shuffled", "shuffled": {"batch": "20", "honest": "10", "delta": "1/100"}}
MANY: dict[str, Any] = {
    "survey": "1",
    "name": "many",
    "epsilon": "2",
    "questions": {
        "travel": {"categories": ["walk", "bike", "car"], "mechanism": "optimal-unary"},
        "hours": {"low": "-1/2", "high": "60", "cells": "120"},
        "age": {"first": "0", "last": "99"},
        "pet": {"alphabet": "abcdefghijklmnopqrstuvwxyz", "length": "4", "step": "2"},
    },
}
LAY: dict[str, Any] = {
    "survey": "1",
    "name": "lay",
    "title": "Sleep and smoking",
    "introduction": "We ask how well pupils sleep.",
    "organizer": "School board",
    "contact": "board@example.org",
    "aim": "To decide about a later start",
    "minutes": "2",
    "epsilon": "1",
    "questions": {
        "smoke": {"text": "Did you smoke last month?", "categories": ["yes", "no"], "skip": "no"},
        "sleep": {"text": "How long did you sleep?", "low": "0", "high": "14", "cells": "28", "unit": "hours"},
    },
    "translations": {
        "de": {
            "title": "Schlaf und Rauchen",
            "questions": {
                "smoke": {"text": "Hast du geraucht?", "categories": ["ja", "nein"]},
                "sleep": {"unit": "Stunden"},
            },
        }
    },
}
"""A survey as lay people see it: with texts, a unit, a question that can be skipped, and a translation."""
TOGETHER: dict[str, Any] = {
    "survey": "1",
    "name": "together",
    "title": "Health at work",
    "answers": "all",
    "epsilon": "4",
    "questions": {
        "ill": {"text": "Were you ill?", "categories": ["yes", "no"], "skip": "no"},
        "pain": {"text": "Where does it hurt?", "options": ["back", "head", "knee", "hands", "feet"], "at_most": "2"},
        "since": {"text": "Since when?", "from": "2015-01", "to": "2026-11", "skip": "random"},
        "age": {"text": "How old are you?", "ranges": ["16", "30", "45", "46", "60"], "unit": "years"},
        "hours": {"low": "0", "high": "60", "cells": "120"},
    },
}
"""A survey whose reports hold all answers: several options, a month, a range and a number among them."""
TOGETHER_ANSWERS = {"ill": "yes", "pain": "back;hands", "since": "2020-03", "age": "45", "hours": "37.5"}
ANSWERS = {"travel": "bike", "hours": "12.5", "age": "33", "pet": "dog"}


def survey_file(told: dict[str, Any], folder: Path = Path("nowhere")) -> SurveyFile:
    return survey_of(told, folder)


def survey(questions: dict[str, Any], epsilon: str = "1") -> LocalSurvey:
    return survey_of({"survey": "1", "name": "one", "epsilon": epsilon, "questions": questions}, Path()).survey


@dataclass
class WordCoins:
    """The real samplers on words that are written down."""

    script: Sequence[int]
    at: int = field(default=0)

    def words(self, size: int) -> NDArray[np.uint64]:
        found = np.array(self.script[self.at : self.at + size], np.uint64)
        assert len(found) == size, "the script of words is too short"
        self.at += size
        return found

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return below(self.words, bound, size)

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        return toss(self.words, rational(probability), size)


def scripts(number: int, seed: int = 3) -> list[list[int]]:
    """Return random words, and some that meet ties and rejections."""
    chance = np.random.default_rng(seed)
    found = [[int(word) for word in chance.integers(0, 2**64, size=400, dtype=np.uint64)] for _ in range(number)]
    return [[0] * 400, [2**64 - 1] * 6 + found[0], [word >> 8 << 8 for word in found[-1]], *found]


ROUNDS: dict[str, Any] = TRAVEL | {"name": "rounds", "rounds": {"count": "12"}}
"""A survey in which each person answers in one of twelve rounds."""
MEMOIZED: dict[str, Any] = TRAVEL | {
    "name": "memoized",
    "epsilon": "4",
    "rounds": {"count": "12", "form": "memoized", "distinct": "2", "instant": "2"},
}
"""A survey in which people answer every round by permanent answers."""
RAPPOR: dict[str, Any] = MEMOIZED | {
    "answers": "all",
    "epsilon": "6",
    "questions": {
        "travel": {"categories": ["walk", "bike", "bus", "car"], "mechanism": "rappor"},
        "ill": {"categories": ["yes", "no"]},
    },
}
