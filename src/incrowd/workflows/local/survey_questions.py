"""Questions of a survey file: each by the keys that it has, with the randomizer of its odds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.methods.local.choice import categorical, numeric, options, tree
from incrowd.methods.local.mechanisms.options import MOST_OPTIONS
from incrowd.methods.local.mechanisms.randomizer import MOST, Family
from incrowd.methods.local.mechanisms.ratio import Weights, check_epsilon, logarithm_of
from incrowd.methods.local.survey.questions import (
    ChoiceQuestion,
    MonthQuestion,
    NumberQuestion,
    OrderedQuestion,
    SeveralQuestion,
    SurveyQuestion,
    WordQuestion,
    month_number,
)

_MOST_LABELS = 65_536  # answers of a question: two bytes


@dataclass(frozen=True)
class SurveyOdds:
    """What the randomizers of a survey are made from: ε, and weights whose ratios are below e^ε and e^(ε/2)."""

    epsilon: Fraction
    whole: Weights
    half: Weights

    @classmethod
    def of(cls, epsilon: Fraction) -> SurveyOdds:
        """Return the weights of an ε."""
        return cls(epsilon, Weights.below(epsilon), Weights.below(epsilon / 2))

    @classmethod
    def exactly(cls, odds: Fraction) -> SurveyOdds:
        """Return given odds with the ε that they cost, rounded up in its eighteenth decimal."""
        whole = Weights.of(odds)
        epsilon = logarithm_of(odds)
        check_epsilon(epsilon)
        return cls(epsilon, whole, Weights.below(epsilon / 2))


def question_of(name: str, part: Any, odds: SurveyOdds) -> SurveyQuestion:
    """Return the question of a section: exactly one of its keys says which kind it is."""
    section = mapping(part, f"question {name!r}", None)
    text = str(section.get("text") or name)
    makers = {
        "categories": _choice,
        "ranges": _ranges,
        "options": _several,
        "low": _number,
        "first": _ordered,
        "from": _months,
        "alphabet": _word,
    }
    fitting = [make for key, make in makers.items() if key in section]
    if len(fitting) != 1 or not name.isidentifier():
        raise InvalidParameter(
            f"question {name!r} has a name of letters, digits and _, and one of: categories; ranges; options; low and "
            "high; first and last; from and to; alphabet and length."
        )
    plain = {key: value for key, value in section.items() if key not in ("unit", "skip")}
    question = fitting[0](name, text, plain, odds)
    return question if section.get("skip") is None else replace(question, skip=str(section["skip"]))


def _choice(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "categories", "mechanism"})
    labels = section["categories"]
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise InvalidParameter(f"the categories of {name!r} are a list of texts.")
    if len(set(labels)) < len(labels) or not 2 <= len(labels) <= _MOST_LABELS:
        raise InvalidParameter(f"{name!r} has two or more categories, each once, and at most 65,536 of them.")
    return ChoiceQuestion(name, text, categorical(_family(section), len(labels), odds.whole, odds.half), tuple(labels))


def _ranges(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    """Return a choice among ranges of whole numbers, of which the first numbers are listed; the last has no end."""
    _only(section, name, {"text", "ranges", "mechanism"})
    starts = (
        [whole_number(start, "ranges") for start in section["ranges"]] if isinstance(section["ranges"], list) else []
    )
    if len(starts) < 2 or any(one >= other for one, other in pairwise(starts)):
        raise InvalidParameter(f"the ranges of {name!r} are a list of their first numbers, two or more, rising.")
    labels = [str(one) if other == one + 1 else f"{one} to {other - 1}" for one, other in pairwise(starts)]
    plain = {key: value for key, value in section.items() if key != "ranges"}
    return _choice(name, text, plain | {"categories": [*labels, f"{starts[-1]} or more"]}, odds)


def _several(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "options", "at_most"})
    labels = section["options"]
    if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
        raise InvalidParameter(f"the options of {name!r} are a list of texts.")
    if len(set(labels)) < len(labels) or not 2 <= len(labels) <= MOST_OPTIONS:
        raise InvalidParameter(f"{name!r} has 2 to {MOST_OPTIONS} options, each once.")
    most = whole_number(section.get("at_most") or str(len(labels)), "at_most")
    if not 1 <= most <= len(labels):
        raise InvalidParameter(f"at_most of {name!r} is from 1 to the number of its options.")
    return SeveralQuestion(name, text, options(len(labels), most, odds.epsilon), tuple(labels), most)


def _number(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "low", "high", "cells", "mechanism"})
    low, high = (exact(section.get(key) or "", key) for key in ("low", "high"))
    cells = whole_number(section.get("cells") or "1000", "cells")
    if low >= high or cells % 2:
        raise InvalidParameter(f"{name!r} lies between low and a larger high, on a grid with an even number of cells.")
    return NumberQuestion(name, text, numeric(_family(section), cells // 2, odds.whole), low, high)


def _ordered(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "first", "last", "fanout"})
    first, last = (whole_number(section.get(key) or "", key) for key in ("first", "last"))
    fanout = whole_number(section.get("fanout") or "4", "fanout")
    if not first < last or last - first >= 2**24 or fanout < 2:
        raise InvalidParameter(f"{name!r} goes from first to a larger last, at most 2^24 values, with a fanout from 2.")
    made = tree(last - first + 1, _steps(last - first + 1, fanout), odds.whole, odds.half)
    return OrderedQuestion(name, text, made, first)


def _months(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    """Return a question for a month; twelve of them, years if the first is a January, are a range of the next level."""
    _only(section, name, {"text", "from", "to"})
    first, last = (month_number(str(section.get(key))) for key in ("from", "to"))
    if first is None or last is None or first >= last:
        raise InvalidParameter(f"the months of {name!r} go from one to a later one, written as 2024-01.")
    made = tree(last - first + 1, _steps(last - first + 1, 12), odds.whole, odds.half)
    return MonthQuestion(name, text, made, first)


def _steps(size: int, fanout: int) -> tuple[int, ...]:
    steps = [1]
    while steps[0] * fanout < size:
        steps.insert(0, steps[0] * fanout)
    return tuple(steps)


def _word(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "alphabet", "length", "step"})
    alphabet, length = str(section["alphabet"]), whole_number(section.get("length") or "", "length")
    step = whole_number(section.get("step") or "1", "step")
    base = len(alphabet) + 1
    if len(set(alphabet)) < len(alphabet) or any(ord(letter) > 0xFFFF for letter in alphabet) or not alphabet:
        raise InvalidParameter(f"the alphabet of {name!r} has each of its letters once.")
    if length < 1 or not 1 <= step <= length or base**length > MOST:
        raise InvalidParameter(f"the words of {name!r} are too long: there can be 2^48 different ones at most.")
    lengths = sorted({length, *range(step, length, step)})
    steps = tuple(base ** (length - prefix) for prefix in lengths)
    return WordQuestion(name, text, tree(base**length, steps, odds.whole, odds.half), alphabet, length)


def _family(section: Mapping[str, Any]) -> Family | None:
    if section.get("mechanism") is None:
        return None
    try:
        return Family(section["mechanism"])
    except ValueError:
        names = ", ".join(Family)
        raise InvalidParameter(f"a mechanism is one of {names}; leave it out for the best.") from None


def mapping(content: Any, what: str, keys: frozenset[str] | None) -> Mapping[str, Any]:
    """Return a part of a survey file that consists of keys, all of them among the known ones if those are named."""
    if not isinstance(content, Mapping):
        raise InvalidParameter(f"{what} is written as keys with values.")
    unknown_keys = sorted(set(content) - keys) if keys is not None else []
    if unknown_keys:
        allowed = ", ".join(sorted(keys or ()))
        raise InvalidParameter(f"the key {unknown_keys[0]!r} is not known in {what}; there are {allowed}.")
    return content


def _only(section: Mapping[str, Any], name: str, keys: set[str]) -> None:
    mapping(section, f"question {name!r}", frozenset(keys))


def whole_number(value: Any, name: str) -> int:
    """Return a value as a whole number of at most 2^48."""
    number = exact(value, name)
    if number.denominator != 1 or abs(number) > 2**48:
        raise InvalidParameter(f"{name} is a whole number.")
    return int(number)
