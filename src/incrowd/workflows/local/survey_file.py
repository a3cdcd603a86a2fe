"""Survey file: a survey as one YAML file; every scalar is the text that was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from incrowd.accounting.budget import Budget
from incrowd.core.limits import DOCUMENT_BYTES
from incrowd.core.rounding import exact
from incrowd.engines.regular_file import read_bounded
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import check_purpose
from incrowd.methods.local.choice import categorical, numeric, options, tree
from incrowd.methods.local.mechanisms.memoized import MOST_MEMOS, Memoized
from incrowd.methods.local.mechanisms.options import MOST_OPTIONS
from incrowd.methods.local.mechanisms.randomizer import MOST, Family
from incrowd.methods.local.mechanisms.ratio import Weights, check_epsilon, logarithm_of
from incrowd.methods.local.survey.definition import Batches, LocalSurvey
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
from incrowd.methods.local.survey.steps import RoundForm, SurveyRounds, WhichAnswers
from incrowd.workflows.local.survey_texts import survey_texts
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
        "answers",
        "shuffled",
        "per_person",
        "budget",
        "ledger",
        "people",
        "rounds",
        "purpose",
        "consent",
        "language",
        "introduction",
        "organizer",
        "contact",
        "aim",
        "minutes",
        "translations",
    }
)
_MOST_LABELS = 65_536  # answers of a question: two bytes


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
        if file.stat().st_size > DOCUMENT_BYTES:
            return False
        with file.open(encoding="utf-8") as text:
            return any(line.startswith("survey:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False


def load_survey(path: Path) -> SurveyFile:
    """Read a survey file, or say what is wrong with it."""
    try:
        text = read_bounded(path, DOCUMENT_BYTES, through_link=True).decode("utf-8")
    except (OSError, UnicodeError):
        raise InvalidParameter(f"{path} cannot be read: name a survey file, as the guide to surveys shows.") from None
    return survey_of(read_document(text).content, path.absolute().parent)


def survey_of(content: Any, folder: Path) -> SurveyFile:
    """Return the survey of a document's content.

    >>> told = {"survey": "1", "name": "coins", "odds": "3", "questions": {"ever": {"categories": ["yes", "no"]}}}
    >>> survey_of(told, Path()).survey.questions[0].randomizer.p
    Fraction(3, 4)
    """
    section = _mapping(content, "a survey", _KEYS)
    if section.get("survey") not in ("1", 1):
        raise InvalidParameter("a survey file begins with `survey: 1`, the version of its format.")
    parts = _mapping(section.get("questions"), "questions", None)
    answers = _answers(section)
    permanent: dict[str, Any] = {}
    rounds, instant = _rounds(section.get("rounds"))
    if rounds is not None and rounds.memoized:
        permanent, parts = _mechanisms(parts)
    if answers is WhichAnswers.ALL:
        questions = _parted(section, parts)
        epsilon = sum((question.epsilon or Fraction(0) for question in questions), Fraction(0))
    else:
        odds = _odds(section)
        questions = tuple(_question(str(name), part, odds) for name, part in parts.items())
        epsilon = odds.epsilon
    if rounds is not None and rounds.distinct is not None:
        rounds = replace(rounds, distinct=min(rounds.distinct, max(question.values for question in questions)))
        questions = tuple(
            replace(question, randomizer=_memoized(question, rounds, (question.epsilon or epsilon, instant), permanent))
            for question in questions
        )
    spent = section.get("per_person")
    survey = LocalSurvey(
        _text(section, "name"),
        str(section.get("title") or section["name"]),
        epsilon,
        questions,
        _batches(section.get("shuffled")),
        None if spent is None else exact(spent, "per_person"),
        purpose=_purpose(section),
        texts=survey_texts(section, questions),
        answers=answers,
        rounds=rounds,
        people=None if section.get("people") is None else _text(section, "people"),
    )
    budget = None if section.get("budget") is None else _budget(section["budget"])
    return SurveyFile(survey, folder, _ledger(section), budget, _consent(section))


def _ledger(section: Mapping[str, Any]) -> str | None:
    return str(section["ledger"]) if section.get("ledger") else None


def _purpose(section: Mapping[str, Any]) -> str | None:
    if (section.get("purpose") is None) != (section.get("consent") is None):
        raise InvalidParameter("a purpose asks for consent, which is kept somewhere: write purpose: and consent:.")
    return None if section.get("purpose") is None else check_purpose(_text(section, "purpose"))


def _consent(section: Mapping[str, Any]) -> ConsentSection | None:
    if section.get("consent") is None:
        return None
    part = _mapping(section["consent"], "consent", frozenset({"registry", "key"}))
    return ConsentSection(registry=_text(part, "registry"), key=_text(part, "key"))


def _rounds(part: Any) -> tuple[SurveyRounds | None, Fraction | None]:
    """Return the rounds of a survey, and the ε of an instantaneous report where people keep permanent answers."""
    if part is None:
        return None, None
    section = _mapping(part, "rounds", frozenset({"count", "form", "distinct", "instant"}))
    count = _whole(section.get("count") or "", "count")
    try:
        form = RoundForm(section.get("form") or RoundForm.ONE)
    except ValueError:
        raise InvalidParameter(f"form: of rounds is {' or '.join(RoundForm)}.") from None
    if form is RoundForm.ONE:
        if set(section) - {"count", "form"}:
            raise InvalidParameter("distinct and instant are for form: memoized: leave them out.")
        return SurveyRounds(count), None
    distinct = _whole(section.get("distinct") or str(min(count, MOST_MEMOS)), "distinct")
    if not 1 <= distinct <= count:
        raise InvalidParameter("distinct: is from 1 to the number of rounds: how many different answers are reported.")
    instant = None if section.get("instant") is None else exact(section["instant"], "instant")
    return SurveyRounds(count, form, distinct), instant


def _mechanisms(parts: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the mechanisms that memoized questions name, and the questions without them."""
    named, plain = {}, {}
    for name, part in parts.items():
        section = _mapping(part, f"question {name!r}", None)
        mechanism = section.get("mechanism")
        if mechanism not in (None, *MEMOIZED):
            raise InvalidParameter(
                f"a memoized question has the mechanism {' or '.join(MEMOIZED)}, or none for the best."
            )
        if mechanism is not None:
            named[str(name)] = str(mechanism)
        plain[str(name)] = {key: value for key, value in section.items() if key != "mechanism"}
    return named, plain


MEMOIZED = ("response", "rappor")


def _memoized(
    question: SurveyQuestion,
    rounds: SurveyRounds,
    epsilons: tuple[Fraction, Fraction | None],
    mechanisms: Mapping[str, str],
) -> Memoized:
    """Return the permanent and instantaneous randomizers of a question: ε is for all its different answers."""
    if not isinstance(question, ChoiceQuestion):
        raise InvalidParameter(f"{question.name!r}: a memoized question has categories or ranges.")
    size, (epsilon, instant) = len(question.labels), epsilons
    distinct = min(rounds.distinct or 1, size)
    once = epsilon / distinct
    made = {
        name: Memoized(
            size,
            Weights.below(once / loss),
            Weights.below((instant or once) / loss),
            distinct,
            rounds.count,
            unary=name == "rappor",
        )
        for name, loss in zip(MEMOIZED, (1, 2), strict=True)
    }
    mechanism = mechanisms.get(question.name)
    return made[mechanism] if mechanism is not None else min(made.values(), key=lambda one: one.error)


def _answers(section: Mapping[str, Any]) -> WhichAnswers:
    try:
        return WhichAnswers(section.get("answers") or WhichAnswers.ONE)
    except ValueError:
        raise InvalidParameter(
            "answers: is `one`, so that each person reports one answer, picked at random, or `all`."
        ) from None


def _parted(section: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[SurveyQuestion, ...]:
    """Return the questions of a survey of all answers: with an ε each, or with even parts of the survey's."""
    sections = {str(name): _mapping(part, f"question {name!r}", None) for name, part in parts.items()}
    own = [part["epsilon"] for part in sections.values() if part.get("epsilon") is not None]
    whole = section.get("epsilon") is not None
    if section.get("odds") is not None or len(own) != (0 if whole else len(sections)) or not sections:
        raise InvalidParameter(
            "with `answers: all`, the survey has an epsilon, which all questions share evenly, or each question has "
            "one and the survey none: a person's epsilon is their sum."
        )
    share = None if own else exact(section["epsilon"], "epsilon") / len(sections)
    questions = []
    for name, part in sections.items():
        epsilon = exact(part["epsilon"], "epsilon") if share is None else share
        plain = {key: value for key, value in part.items() if key != "epsilon"}
        questions.append(replace(_question(name, plain, SurveyOdds.of(epsilon)), epsilon=epsilon))
    return tuple(questions)


def _odds(section: Mapping[str, Any]) -> SurveyOdds:
    if (section.get("epsilon") is None) == (section.get("odds") is None):
        raise InvalidParameter("a survey has an epsilon for each report, or odds of the true answer: one of both.")
    if section.get("epsilon") is not None:
        return SurveyOdds.of(exact(section["epsilon"], "epsilon"))
    return SurveyOdds.exactly(exact(section["odds"], "odds"))


def _question(name: str, part: Any, odds: SurveyOdds) -> SurveyQuestion:
    section = _mapping(part, f"question {name!r}", None)
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
    starts = [_whole(start, "ranges") for start in section["ranges"]] if isinstance(section["ranges"], list) else []
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
    most = _whole(section.get("at_most") or str(len(labels)), "at_most")
    if not 1 <= most <= len(labels):
        raise InvalidParameter(f"at_most of {name!r} is from 1 to the number of its options.")
    return SeveralQuestion(name, text, options(len(labels), most, odds.epsilon), tuple(labels), most)


def _number(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "low", "high", "cells", "mechanism"})
    low, high = (exact(section.get(key) or "", key) for key in ("low", "high"))
    cells = _whole(section.get("cells") or "1000", "cells")
    if low >= high or cells % 2:
        raise InvalidParameter(f"{name!r} lies between low and a larger high, on a grid with an even number of cells.")
    return NumberQuestion(name, text, numeric(_family(section), cells // 2, odds.whole), low, high)


def _ordered(name: str, text: str, section: Mapping[str, Any], odds: SurveyOdds) -> SurveyQuestion:
    _only(section, name, {"text", "first", "last", "fanout"})
    first, last = (_whole(section.get(key) or "", key) for key in ("first", "last"))
    fanout = _whole(section.get("fanout") or "4", "fanout")
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
    alphabet, length = str(section["alphabet"]), _whole(section.get("length") or "", "length")
    step = _whole(section.get("step") or "1", "step")
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


def _batches(part: Any) -> Batches | None:
    if part is None:
        return None
    section = _mapping(part, "shuffled", frozenset({"batch", "honest", "delta"}))
    batch = _whole(section.get("batch") or "", "batch")
    return Batches(
        batch, _whole(section.get("honest") or str(batch), "honest"), exact(section.get("delta") or "", "delta")
    )


def _budget(part: Any) -> Budget:
    section = _mapping(part, "budget", frozenset({"epsilon", "delta"}))
    return Budget.of(section.get("epsilon") or 0, section.get("delta") or 0)


def _mapping(content: Any, what: str, keys: frozenset[str] | None) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise InvalidParameter(f"{what} is written as keys with values.")
    unknown_keys = sorted(set(content) - keys) if keys is not None else []
    if unknown_keys:
        allowed = ", ".join(sorted(keys or ()))
        raise InvalidParameter(f"the key {unknown_keys[0]!r} is not known in {what}; there are {allowed}.")
    return content


def _only(section: Mapping[str, Any], name: str, keys: set[str]) -> None:
    _mapping(section, f"question {name!r}", frozenset(keys))


def _text(section: Mapping[str, Any], key: str) -> str:
    if not isinstance(section.get(key), str):
        raise InvalidParameter(f"a survey has a {key}.")
    return str(section[key])


def _whole(value: Any, name: str) -> int:
    number = exact(value, name)
    if number.denominator != 1 or abs(number) > 2**48:
        raise InvalidParameter(f"{name} is a whole number.")
    return int(number)
