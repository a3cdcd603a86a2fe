"""Survey texts: what a survey file says to respondents besides its questions, in one or several languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from incrowd.drawing.catalog import BASE
from incrowd.errors import InvalidParameter
from incrowd.methods.local.survey.questions import ChoiceQuestion, SeveralQuestion, SurveyQuestion

ABOUT = ("introduction", "organizer", "contact", "aim", "minutes")
_LONGEST = 4_000  # characters of a text on the survey page
_TRANSLATED = frozenset({"title", *ABOUT, "questions"})
_OF_QUESTION = frozenset({"text", "unit", "categories", "options"})

Texts = dict[str, dict[str, str]]


def survey_texts(section: Mapping[str, Any], questions: Sequence[SurveyQuestion]) -> Texts:
    """Return the texts of a survey file by language and place, or refuse what a page could not show.

    Places are `introduction`, `organizer`, `contact`, `aim`, `minutes`, `title`, `text.NAME`, `unit.NAME` and
    `label.NAME.NUMBER`.  A text that a language lacks is shown as the survey has it.
    """
    own = {place: _text(section[place], place) for place in ABOUT if section.get(place) is not None}
    for question in questions:
        unit = section["questions"][question.name].get("unit")
        if unit is not None:
            own[f"unit.{question.name}"] = _text(unit, f"the unit of {question.name!r}")
    texts = {_language(section.get("language") or BASE): own} if own or section.get("language") else {}
    translations = section.get("translations") or {}
    if not isinstance(translations, Mapping):
        raise InvalidParameter("translations are written as languages, such as de:, each with its texts.")
    for language, part in translations.items():
        if _language(language) in texts:
            raise InvalidParameter(f"{language!r} is the survey's own language: write its texts outside translations.")
        texts[str(language)] = dict(_translation(str(language), part, questions))
    return texts


def _translation(language: str, part: Any, questions: Sequence[SurveyQuestion]) -> Iterator[tuple[str, str]]:
    where = f"the translation {language!r}"
    _check_keys(part, where, _TRANSLATED)
    for place in ("title", *ABOUT):
        if part.get(place) is not None:
            yield place, _text(part[place], place)
    names = {question.name: question for question in questions}
    translated = part.get("questions") or {}
    _check_keys(translated, f"questions of {where}", frozenset(names))
    for name, texts in translated.items():
        _check_keys(texts, f"{name!r} of {where}", _OF_QUESTION)
        yield from ((f"{place}.{name}", _text(texts[place], place)) for place in ("text", "unit") if texts.get(place))
        yield from _labels(names[name], texts.get("categories") or texts.get("options"), where)


def _labels(question: SurveyQuestion, labels: Any, where: str) -> Iterator[tuple[str, str]]:
    if labels is None:
        return
    own = question.labels if isinstance(question, ChoiceQuestion | SeveralQuestion) else ()
    if not isinstance(labels, list) or len(labels) != len(own) or len(set(map(str, labels))) < len(labels):
        raise InvalidParameter(
            f"{where} has as many categories of {question.name!r} as the survey, in the same order, each once."
        )
    for place, label in enumerate(labels):
        yield f"label.{question.name}.{place}", _text(label, "a category")


def _check_keys(part: Any, where: str, keys: frozenset[str]) -> None:
    if not isinstance(part, Mapping):
        raise InvalidParameter(f"{where} is written as keys with values.")
    unknown_keys = sorted(set(part) - keys)
    if unknown_keys:
        raise InvalidParameter(
            f"the key {unknown_keys[0]!r} is not known in {where}; there are {', '.join(sorted(keys))}."
        )


def _language(code: Any) -> str:
    if not isinstance(code, str) or not code.isascii() or not code.islower() or not 2 <= len(code) <= 3:
        raise InvalidParameter("a language is written as two or three small letters, such as en or de.")
    return code


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise InvalidParameter(f"{place} is a text of 1 to {_LONGEST:,} characters.")
    return value.strip()
