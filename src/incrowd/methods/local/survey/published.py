"""Published: a survey read again from what its collector publishes; a client trusts nothing that it cannot derive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.rounding import short
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import randomizer_of
from incrowd.methods.local.mechanisms.randomizer import Family, Randomness
from incrowd.methods.local.mechanisms.trees import LevelTree
from incrowd.methods.local.survey.definition import Batches, LocalSurvey
from incrowd.methods.local.survey.questions import (
    Asks,
    ChoiceQuestion,
    NumberQuestion,
    OrderedQuestion,
    SurveyQuestion,
    WordQuestion,
)

_LONGEST = 64
"""No word has more letters: already those of one letter would be too many."""
_WEIGHTS = ("size", "own", "other", "width", "share")


def survey_from(public: Mapping[str, Any]) -> LocalSurvey:
    """Return the survey that was published, if all of it is what such a survey publishes; refuse it otherwise.

    Its weights are compared with its ε, so that a client randomizes by no others; `published.js` does the same.
    """
    try:
        survey = _survey(public)
        same = _text(survey.public) == _text(public) and survey.plan is not None
    except (LookupError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError):
        same = False
    if not same:
        raise InvalidParameter("this is not a survey as a collector publishes it: nothing is randomized or sent.")
    return survey


def _text(public: Mapping[str, Any]) -> str:
    return json.dumps(public, sort_keys=True)


def _survey(public: Mapping[str, Any]) -> LocalSurvey:
    shuffled, spent, purpose = public["shuffled"], public["per_person"], public.get("purpose")
    batches = None
    if shuffled is not None:
        batches = Batches(int(shuffled["batch"]), int(shuffled["honest"]), Fraction(short(shuffled["delta"])))
    return LocalSurvey(
        str(public["name"]),
        str(public["title"]),
        Fraction(short(public["epsilon"])),
        tuple(_question(each) for each in public["questions"]),
        batches,
        None if spent is None else Fraction(short(spent)),
        {str(name): str(mark) for name, mark in public["scripts"].items()},
        None if purpose is None else str(purpose),
    )


def _question(plain: Mapping[str, Any]) -> SurveyQuestion:
    name, text = str(plain["name"]), str(plain["text"])
    made = [_randomizer(each) for each in plain["randomizers"]]
    match Asks(plain["asks"]):
        case Asks.CHOICE:
            return ChoiceQuestion(name, text, made[0], tuple(map(str, plain["labels"])))
        case Asks.NUMBER:
            return NumberQuestion(name, text, made[0], Fraction(short(plain["low"])), Fraction(short(plain["high"])))
        case Asks.ORDERED:
            first, last = int(plain["first"]), int(plain["last"])
            return OrderedQuestion(name, text, _tree(plain, last - first + 1, made), first)
        case Asks.WORD:
            alphabet, length = str(plain["alphabet"]), min(int(plain["length"]), _LONGEST)
            return WordQuestion(name, text, _tree(plain, (len(alphabet) + 1) ** length, made), alphabet, length)


def _tree(plain: Mapping[str, Any], size: int, levels: list[Any]) -> LevelTree:
    return LevelTree(size, tuple(int(step) for step in plain["steps"]), tuple(levels))


def _randomizer(plain: Mapping[str, str]) -> Any:
    weights = {name: int(plain[name]) for name in _WEIGHTS if name in plain}
    return randomizer_of(Randomness(Family(plain["family"]), **weights))
