"""Survey file: a survey as one YAML file; every scalar is the text that was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.accounting.budget import Budget
from incrowd.core.limits import DOCUMENT_BYTES
from incrowd.core.rounding import exact
from incrowd.engines.regular_file import read_bounded
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import check_purpose
from incrowd.methods.local.mechanisms.memoized import MOST_MEMOS, Memoized
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.survey.definition import Batches, LocalSurvey
from incrowd.methods.local.survey.questions import ChoiceQuestion, SurveyQuestion
from incrowd.methods.local.survey.steps import RoundForm, SurveyRounds, WhichAnswers
from incrowd.workflows.local.survey_questions import SurveyOdds, mapping, question_of, whole_number
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
    section = mapping(content, "a survey", _KEYS)
    if section.get("survey") not in ("1", 1):
        raise InvalidParameter("a survey file begins with `survey: 1`, the version of its format.")
    parts = mapping(section.get("questions"), "questions", None)
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
        questions = tuple(question_of(str(name), part, odds) for name, part in parts.items())
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
    part = mapping(section["consent"], "consent", frozenset({"registry", "key"}))
    return ConsentSection(registry=_text(part, "registry"), key=_text(part, "key"))


def _rounds(part: Any) -> tuple[SurveyRounds | None, Fraction | None]:
    """Return the rounds of a survey, and the ε of an instantaneous report where people keep permanent answers."""
    if part is None:
        return None, None
    section = mapping(part, "rounds", frozenset({"count", "form", "distinct", "instant"}))
    count = whole_number(section.get("count") or "", "count")
    try:
        form = RoundForm(section.get("form") or RoundForm.ONE)
    except ValueError:
        raise InvalidParameter(f"form: of rounds is {' or '.join(RoundForm)}.") from None
    if form is RoundForm.ONE:
        if set(section) - {"count", "form"}:
            raise InvalidParameter("distinct and instant are for form: memoized: leave them out.")
        return SurveyRounds(count), None
    distinct = whole_number(section.get("distinct") or str(min(count, MOST_MEMOS)), "distinct")
    if not 1 <= distinct <= count:
        raise InvalidParameter("distinct: is from 1 to the number of rounds: how many different answers are reported.")
    instant = None if section.get("instant") is None else exact(section["instant"], "instant")
    return SurveyRounds(count, form, distinct), instant


def _mechanisms(parts: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the mechanisms that memoized questions name, and the questions without them."""
    named, plain = {}, {}
    for name, part in parts.items():
        section = mapping(part, f"question {name!r}", None)
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
    sections = {str(name): mapping(part, f"question {name!r}", None) for name, part in parts.items()}
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
        questions.append(replace(question_of(name, plain, SurveyOdds.of(epsilon)), epsilon=epsilon))
    return tuple(questions)


def _odds(section: Mapping[str, Any]) -> SurveyOdds:
    if (section.get("epsilon") is None) == (section.get("odds") is None):
        raise InvalidParameter("a survey has an epsilon for each report, or odds of the true answer: one of both.")
    if section.get("epsilon") is not None:
        return SurveyOdds.of(exact(section["epsilon"], "epsilon"))
    return SurveyOdds.exactly(exact(section["odds"], "odds"))


def _batches(part: Any) -> Batches | None:
    if part is None:
        return None
    section = mapping(part, "shuffled", frozenset({"batch", "honest", "delta"}))
    batch = whole_number(section.get("batch") or "", "batch")
    return Batches(
        batch, whole_number(section.get("honest") or str(batch), "honest"), exact(section.get("delta") or "", "delta")
    )


def _budget(part: Any) -> Budget:
    section = mapping(part, "budget", frozenset({"epsilon", "delta"}))
    return Budget.of(section.get("epsilon") or 0, section.get("delta") or 0)


def _text(section: Mapping[str, Any], key: str) -> str:
    if not isinstance(section.get(key), str):
        raise InvalidParameter(f"a survey has a {key}.")
    return str(section[key])
