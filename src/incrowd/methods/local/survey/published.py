"""Published survey: the survey that a collector serves, read again before a client randomizes by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from incrowd.core.rounding import short
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import randomizer_of
from incrowd.methods.local.mechanisms.memoized import Memoized
from incrowd.methods.local.mechanisms.randomizer import Family, LevelTree, Randomness
from incrowd.methods.local.survey.definition import Batches, LocalSurvey
from incrowd.methods.local.survey.questions import (
    Asks,
    ChoiceQuestion,
    MonthQuestion,
    NumberQuestion,
    OrderedQuestion,
    SeveralQuestion,
    SurveyQuestion,
    WordQuestion,
    month_number,
)
from incrowd.methods.local.survey.steps import MEMOIZABLE, RoundForm, SurveyRounds, WhichAnswers

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
    rounds = _rounds(public.get("rounds"))
    shuffled, spent, purpose = public["shuffled"], public["per_person"], public.get("purpose")
    batches = None
    if shuffled is not None:
        batches = Batches(int(shuffled["batch"]), int(shuffled["honest"]), Fraction(short(shuffled["delta"])))
    return LocalSurvey(
        str(public["name"]),
        str(public["title"]),
        Fraction(short(public["epsilon"])),
        tuple(_question(question, rounds) for question in public["questions"]),
        batches,
        None if spent is None else Fraction(short(spent)),
        {str(name): str(mark) for name, mark in public["scripts"].items()},
        None if purpose is None else str(purpose),
        {
            str(language): {str(place): str(text) for place, text in part.items()}
            for language, part in public.get("texts", {}).items()
        },
        WhichAnswers(public.get("answers", WhichAnswers.ONE)),
        rounds,
        None if public.get("people") is None else str(public["people"]),
    )


def _rounds(plain: Mapping[str, Any] | None) -> SurveyRounds | None:
    if plain is None:
        return None
    distinct = plain.get("distinct")
    return SurveyRounds(int(plain["count"]), RoundForm(plain["form"]), None if distinct is None else int(distinct))


def _question(plain: Mapping[str, Any], rounds: SurveyRounds | None) -> SurveyQuestion:
    part = plain.get("epsilon")
    question = _bare_question(plain, str(plain["name"]), str(plain["text"]))
    if rounds is not None and rounds.memoized:
        question = replace(question, randomizer=_memoized(plain, rounds))
    return replace(question, skip=plain.get("skip"), epsilon=None if part is None else Fraction(short(part)))


def _bare_question(plain: Mapping[str, Any], name: str, text: str) -> SurveyQuestion:
    made = [_randomizer(weights) for weights in plain["randomizers"]]
    match Asks(plain["asks"]):
        case Asks.CHOICE:
            return ChoiceQuestion(name, text, made[0], tuple(map(str, plain["labels"])))
        case Asks.SEVERAL:
            return SeveralQuestion(name, text, made[0], tuple(map(str, plain["labels"])), int(plain["most"]))
        case Asks.NUMBER:
            low, high = (Fraction(short(plain[end])) for end in ("low", "high"))
            return NumberQuestion(name, text, made[0], low, high)
        case Asks.ORDERED:
            first, last = int(plain["first"]), int(plain["last"])
            return OrderedQuestion(name, text, _tree(plain, last - first + 1, made), first)
        case Asks.MONTH:
            first, last = (month_number(plain[end]) or 0 for end in ("first", "last"))
            return MonthQuestion(name, text, _tree(plain, last - first + 1, made), first)
        case Asks.WORD:
            alphabet, length = str(plain["alphabet"]), min(int(plain["length"]), _LONGEST)
            return WordQuestion(name, text, _tree(plain, (len(alphabet) + 1) ** length, made), alphabet, length)


def _memoized(plain: Mapping[str, Any], rounds: SurveyRounds) -> Memoized:
    """Return the randomizer of a memoized question, from the weights of its two."""
    permanent, again = (_randomizer(weights) for weights in plain["randomizers"])
    if type(permanent) is not type(again) or permanent.family not in MEMOIZABLE or permanent.size != again.size:
        raise InvalidParameter("a memoized question has a permanent and an instantaneous randomizer of one kind.")
    distinct = min(rounds.distinct or 0, permanent.size)
    unary = permanent.family is Family.SYMMETRIC
    return Memoized(permanent.size, permanent.weights, again.weights, distinct, rounds.count, unary)


def _tree(plain: Mapping[str, Any], size: int, levels: list[Any]) -> LevelTree:
    return LevelTree(size, tuple(int(step) for step in plain["steps"]), tuple(levels))


def _randomizer(plain: Mapping[str, str]) -> Any:
    weights = {name: int(plain[name]) for name in _WEIGHTS if name in plain}
    return randomizer_of(Randomness(Family(plain["family"]), **weights))
