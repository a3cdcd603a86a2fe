"""Survey file: a survey as one YAML file; every scalar is the text that was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.accounting.budget import Budget
from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import check_purpose
from incrowd.methods.local.choice import categorical, numeric, tree
from incrowd.methods.local.mechanisms.randomizer import MOST, Family
from incrowd.methods.local.mechanisms.ratio import Weights, check_epsilon, logarithm_of
from incrowd.methods.local.survey.definition import Batches, LocalSurvey
from incrowd.methods.local.survey.questions import (
    ChoiceQuestion,
    NumberQuestion,
    OrderedQuestion,
    SurveyQuestion,
    WordQuestion,
)
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.ledger_place import DEFAULT, absolute_address, ledger_of
from incrowd.workflows.policy.sections import ConsentSection

_KEYS = frozenset(
    {
        "survey",
        "name",
        "title",
        "epsilon",
        "odds",
        "questions",
        "shuffled",
        "per_person",
        "budget",
        "ledger",
        "purpose",
        "consent",
    }
)
_MOST_LABELS = 65_536


@dataclass(frozen=True)
class SurveyFile:
    """A survey with where it lies, its ledger and its budget."""

    survey: LocalSurvey
    folder: Path
    ledger: str | None
    budget: Budget | None = None
    consent: ConsentSection | None = None

    @property
    def names_ledger(self) -> bool:
        """Whether the survey itself says where its ledger is."""
        return self.ledger is not None

    @property
    def own_ledger(self) -> str:
        """The address that the survey names, or the default beside it; a relative path starts from its folder."""
        return absolute_address(self.ledger or DEFAULT, self.folder)

    @property
    def ledger_address(self) -> str:
        """Where this survey is charged: as the environment says, then the survey, then the default beside it."""
        return ledger_of(self)


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


def is_survey(file: Path) -> bool:
    """Whether a file says that it is a survey: by its ending, and by a line that starts with `survey:`.

    >>> is_survey(Path("people.csv"))
    False
    """
    if file.suffix not in (".yaml", ".yml"):
        return False
    try:
        with file.open(encoding="utf-8") as text:
            return any(line.startswith("survey:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False


def load_survey(path: Path) -> SurveyFile:
    """Read a survey file, or say what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        raise InvalidParameter(f"{path} cannot be read: name a survey file, as the guide to surveys shows.") from None
    return survey_of(read_document(text).content, path.absolute().parent)


def survey_of(content: Any, folder: Path) -> SurveyFile:
    """Return the survey of a document's content.

    >>> told = {"survey": "1", "name": "coins", "odds": "3", "questions": {"ever": {"categories": ["yes", "no"]}}}
    >>> survey_of(told, Path()).survey.questions[0].randomizer.p
    Fraction(3, 4)
    """
    told = _mapping(content, "a survey", _KEYS)
    if told.get("survey") not in ("1", 1):
        raise InvalidParameter("a survey file begins with `survey: 1`, the version of its format.")
    odds = _odds(told)
    asked = _mapping(told.get("questions"), "questions", None)
    questions = tuple(_question(str(name), part, odds) for name, part in asked.items())
    spent = told.get("per_person")
    survey = LocalSurvey(
        _text(told, "name"),
        str(told.get("title") or told["name"]),
        odds.epsilon,
        questions,
        _batches(told.get("shuffled")),
        None if spent is None else exact(spent, "per_person"),
        purpose=_purpose(told),
    )
    budget = None if told.get("budget") is None else _budget(told["budget"])
    return SurveyFile(survey, folder, _ledger(told), budget, _consent(told))


def _ledger(told: Mapping[str, Any]) -> str | None:
    return str(told["ledger"]) if told.get("ledger") else None


def _purpose(told: Mapping[str, Any]) -> str | None:
    if (told.get("purpose") is None) != (told.get("consent") is None):
        raise InvalidParameter("a purpose asks for consent, which is kept somewhere: write purpose: and consent:.")
    return None if told.get("purpose") is None else check_purpose(_text(told, "purpose"))


def _consent(told: Mapping[str, Any]) -> ConsentSection | None:
    if told.get("consent") is None:
        return None
    part = _mapping(told["consent"], "consent", frozenset({"registry", "key"}))
    return ConsentSection(registry=_text(part, "registry"), key=_text(part, "key"))


def _odds(told: Mapping[str, Any]) -> SurveyOdds:
    if (told.get("epsilon") is None) == (told.get("odds") is None):
        raise InvalidParameter("a survey has an epsilon for each report, or odds of the true answer: one of both.")
    if told.get("epsilon") is not None:
        return SurveyOdds.of(exact(told["epsilon"], "epsilon"))
    return SurveyOdds.exactly(exact(told["odds"], "odds"))


def _question(name: str, part: Any, odds: SurveyOdds) -> SurveyQuestion:
    told = _mapping(part, f"question {name!r}", None)
    text = str(told.get("text") or name)
    makers = {"categories": _choice, "low": _number, "first": _ordered, "alphabet": _word}
    found = [make for key, make in makers.items() if key in told]
    if len(found) != 1 or not name.isidentifier():
        raise InvalidParameter(
            f"question {name!r} has a name of letters, digits and _, and one of: categories; low and high; first and "
            "last; alphabet and length."
        )
    return found[0](name, text, told, odds)


def _choice(name: str, text: str, told: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(told, name, {"text", "categories", "mechanism"})
    labels = told["categories"]
    if not isinstance(labels, list) or not all(isinstance(each, str) and each for each in labels):
        raise InvalidParameter(f"the categories of {name!r} are a list of texts.")
    if len(set(labels)) < len(labels) or not 2 <= len(labels) <= _MOST_LABELS:
        raise InvalidParameter(f"{name!r} has two or more categories, each once, and at most 65,536 of them.")
    return ChoiceQuestion(name, text, categorical(_family(told), len(labels), odds.whole, odds.half), tuple(labels))


def _number(name: str, text: str, told: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(told, name, {"text", "low", "high", "cells", "mechanism"})
    low, high = (exact(told.get(key) or "", key) for key in ("low", "high"))
    cells = _whole(told.get("cells") or "1000", "cells")
    if low >= high or cells % 2:
        raise InvalidParameter(f"{name!r} lies between low and a larger high, on a grid with an even number of cells.")
    return NumberQuestion(name, text, numeric(_family(told), cells // 2, odds.whole), low, high)


def _ordered(name: str, text: str, told: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(told, name, {"text", "first", "last", "fanout"})
    first, last = (_whole(told.get(key) or "", key) for key in ("first", "last"))
    fanout = _whole(told.get("fanout") or "4", "fanout")
    if not first < last or last - first >= 2**24 or fanout < 2:
        raise InvalidParameter(f"{name!r} goes from first to a larger last, at most 2^24 values, with a fanout from 2.")
    size, steps = last - first + 1, [1]
    while steps[0] * fanout < size:
        steps.insert(0, steps[0] * fanout)
    return OrderedQuestion(name, text, tree(size, tuple(steps), odds.whole, odds.half), first)


def _word(name: str, text: str, told: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(told, name, {"text", "alphabet", "length", "step"})
    alphabet, length = str(told["alphabet"]), _whole(told.get("length") or "", "length")
    step = _whole(told.get("step") or "1", "step")
    base = len(alphabet) + 1
    if len(set(alphabet)) < len(alphabet) or any(ord(letter) > 0xFFFF for letter in alphabet) or not alphabet:
        raise InvalidParameter(f"the alphabet of {name!r} has each of its letters once.")
    if length < 1 or not 1 <= step <= length or base**length > MOST:
        raise InvalidParameter(f"the words of {name!r} are too long: there can be 2^48 different ones at most.")
    lengths = sorted({length, *range(step, length, step)})
    steps = tuple(base ** (length - each) for each in lengths)
    return WordQuestion(name, text, tree(base**length, steps, odds.whole, odds.half), alphabet, length)


def _family(told: Mapping[str, Any]) -> Family | None:
    if told.get("mechanism") is None:
        return None
    try:
        return Family(told["mechanism"])
    except ValueError:
        names = ", ".join(Family)
        raise InvalidParameter(f"a mechanism is one of {names}; leave it out for the best.") from None


def _batches(part: Any) -> Batches | None:
    if part is None:
        return None
    told = _mapping(part, "shuffled", frozenset({"batch", "honest", "delta"}))
    batch = _whole(told.get("batch") or "", "batch")
    return Batches(batch, _whole(told.get("honest") or str(batch), "honest"), exact(told.get("delta") or "", "delta"))


def _budget(part: Any) -> Budget:
    told = _mapping(part, "budget", frozenset({"epsilon", "delta"}))
    return Budget.of(told.get("epsilon") or 0, told.get("delta") or 0)


def _mapping(content: Any, what: str, keys: frozenset[str] | None) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise InvalidParameter(f"{what} is written as keys with values.")
    strange = sorted(set(content) - keys) if keys is not None else []
    if strange:
        known = ", ".join(sorted(keys or ()))
        raise InvalidParameter(f"the key {strange[0]!r} is not known in {what}; there are {known}.")
    return content


def _only(told: Mapping[str, Any], name: str, keys: set[str]) -> None:
    _mapping(told, f"question {name!r}", frozenset(keys))


def _text(told: Mapping[str, Any], key: str) -> str:
    if not isinstance(told.get(key), str):
        raise InvalidParameter(f"a survey has a {key}.")
    return str(told[key])


def _whole(value: Any, name: str) -> int:
    number = exact(value, name)
    if number.denominator != 1 or abs(number) > 2**48:
        raise InvalidParameter(f"{name} is a whole number.")
    return int(number)
