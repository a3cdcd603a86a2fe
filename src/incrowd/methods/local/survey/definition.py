"""Definition: a survey as it is published: its questions, its ε, how reports are collected; and its plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.accounting.amplification import check_delta, shuffled_epsilon
from incrowd.core.codec import canonical, digest
from incrowd.core.plan import Plan
from incrowd.core.rounding import round_up
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.drawing.catalog import document
from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.memoized import Memoized
from incrowd.methods.local.mechanisms.ratio import exponential_below, logarithm_of
from incrowd.methods.local.survey.output import SurveyTable
from incrowd.methods.local.survey.questions import (
    SurveyQuestion,
)
from incrowd.methods.local.survey.steps import (
    ALL_OF_THEM,
    AskedQuestion,
    CollectReports,
    ShuffleReports,
    SurveyRounds,
    WhichAnswers,
    values_of_response,
)

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


NAME = "survey"
UNIT = Unit(Kind.REPORT, Adjacency.REPLACE)
HISTORY = Unit(Kind.HISTORY, Adjacency.REPLACE)
WORDS = "words.json"
SCRIPTS = ("randomizer.js", "published.js", "explanation.js", "fields.js", "page.js", WORDS)
"""What the page of a survey runs, and its sentences: it randomizes, checks a survey, explains chance, and asks."""
_LANGUAGE = re.compile(r"[a-z]{2,3}")


@dataclass(frozen=True)
class Batches:
    """Reports that are shuffled: how many wait for each other, how many of them are taken to be honest, and δ."""

    batch: int
    honest: int
    delta: Fraction

    def __post_init__(self) -> None:
        if not 2 <= self.honest <= self.batch <= 10**8:
            raise InvalidParameter("a batch has at least two honest people, and at most 100,000,000 people in all.")
        check_delta(self.delta)


@dataclass(frozen=True)
class LocalSurvey:
    """What is asked of whom: a report is about one question, drawn at random if there are several, or about all.

    Guarantee: ε for one report, replaced: whatever the answers, and whoever reads the report.  Where a report is about
    all questions, each has a part of ε, and the parts add up to it.
    Assumes: randomizing happens at the person, by the published script; one report is sent.
    Source: Warner 1965; Kasiviswanathan et al. 2011.
    """

    name: str
    title: str
    epsilon: Fraction
    questions: tuple[SurveyQuestion, ...]
    batches: Batches | None = None
    per_person: Fraction | None = None
    scripts: Mapping[str, str] = field(default_factory=dict)
    purpose: str | None = None
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the page shows besides, by language and place: introduction, organizer, questions, units, categories."""
    answers: WhichAnswers = WhichAnswers.ONE
    """Which answers a report holds."""
    rounds: SurveyRounds | None = None
    people: str | None = None
    """Whose answers these are, where several surveys ask the same people: all are charged to them together."""

    def __post_init__(self) -> None:
        names = [question.name for question in self.questions]
        if not names or len(set(names)) < len(names):
            raise InvalidParameter("a survey has at least one question, and each has a name of its own.")
        self._check_parts()
        self._check_rounds()
        if not self.scripts:
            object.__setattr__(self, "scripts", script_hashes())
        if self.per_person is not None and self.per_person < self.epsilon:
            raise InvalidParameter("per_person is what a client lets out of one person in all: at least epsilon.")
        if not all(_LANGUAGE.fullmatch(language) for language in self.texts):
            raise InvalidParameter("a language is written as two or three small letters, such as en or de.")

    def _check_parts(self) -> None:
        """Refuse a survey of all answers whose questions do not each have a part of ε, or whose parts are not ε."""
        parts = [question.epsilon for question in self.questions]
        if self.answers is WhichAnswers.ONE:
            if any(part is not None for part in parts):
                raise InvalidParameter("a question has an epsilon of its own only in a survey with `answers: all`.")
            return
        if sum(part or 0 for part in parts) != self.epsilon:
            raise InvalidParameter("the epsilons of all questions add up to that of the survey.")
        for question in self.questions:
            if question.epsilon is None or question.ratio > exponential_below(question.epsilon):
                raise InvalidParameter(f"a report about {question.name!r} would lose more than its epsilon.")

    def _check_rounds(self) -> None:
        """Refuse rounds that are shuffled, and memoized ones whose questions have no permanent answers."""
        if self.rounds is not None and self.batches is not None:
            raise InvalidParameter("reports of rounds are not shuffled: leave shuffled: out, or rounds:.")
        memoized, distinct = self.memoized, None if self.rounds is None else self.rounds.distinct
        for question in self.questions:
            made = question.randomizer
            if isinstance(made, Memoized) is not memoized:
                raise InvalidParameter(
                    "every question of a memoized survey has categories or ranges, and no other has."
                )
            if isinstance(made, Memoized) and (made.distinct, made.rounds) != (
                min(distinct or 0, made.size),
                self.rounds and self.rounds.count,
            ):
                raise InvalidParameter(f"{question.name!r} is made for other rounds than the survey has.")
        if memoized and self.answers is WhichAnswers.ONE and len(self.questions) > 1:
            raise InvalidParameter(ALL_OF_THEM)

    @property
    def memoized(self) -> bool:
        """Whether people keep permanent answers over rounds."""
        return self.rounds is not None and self.rounds.memoized

    @property
    def unit(self) -> Unit:
        """What is protected: one report, or where there are rounds or several surveys all reports of a person."""
        return UNIT if self.rounds is None and self.people is None else HISTORY

    @cached_property
    def public(self) -> dict[str, Any]:
        """What anyone may know, and a page needs: with the hashes of the scripts."""
        shuffled = None if self.batches is None else {name: str(part) for name, part in vars(self.batches).items()}
        purpose = {} if self.purpose is None else {"purpose": self.purpose}
        texts = {"texts": {language: dict(part) for language, part in self.texts.items()}} if self.texts else {}
        together = {} if self.answers is WhichAnswers.ONE else {"answers": str(self.answers)}
        people = {} if self.people is None else {"people": self.people}
        return (
            purpose
            | texts
            | together
            | people
            | self._public_rounds
            | {
                "survey": 1,
                "name": self.name,
                "title": self.title,
                "epsilon": str(self.epsilon),
                "questions": [question.public() for question in self.questions],
                "shuffled": shuffled,
                "per_person": None if self.per_person is None else str(self.per_person),
                "scripts": dict(self.scripts),
            }
        )

    @property
    def _public_rounds(self) -> dict[str, Any]:
        if self.rounds is None:
            return {}
        distinct = {} if self.rounds.distinct is None else {"distinct": str(self.rounds.distinct)}
        return {"rounds": {"count": str(self.rounds.count), "form": str(self.rounds.form), **distinct}}

    @cached_property
    def id(self) -> str:
        """The digest of all that: reports name it, so those of another version are refused."""
        return digest("incrowd survey 1", self.public)

    @property
    def plan(self) -> Plan:
        steps = self._steps()
        guarantee = fold(steps, self.unit)
        numbers: dict[str, Any] = {"epsilon": round_up(guarantee.loss.epsilon)}  # type: ignore[union-attr]
        if self.batches is not None:
            numbers["shuffled epsilon"] = self._shuffled(self.batches)
        if self.memoized:
            collect = next(step for step in steps if isinstance(step, CollectReports))
            numbers["any histories"] = round_up(logarithm_of(collect.any_histories))
        return Plan(NAME, steps, guarantee, numbers, self._table)

    def _steps(self) -> tuple[Step, ...]:
        questions = tuple(
            AskedQuestion(question.name, str(question.asks), question.randomness) for question in self.questions
        )
        scripts = tuple(self.scripts.items())
        collect = CollectReports(self.id, scripts, questions, self.epsilon, self.purpose, self.answers, self.rounds)
        if self.batches is None:
            return (collect,)
        return collect, ShuffleReports(**vars(self.batches))

    def _shuffled(self, batches: Batches) -> Decimal:
        collect = next(step for step in self._steps() if isinstance(step, CollectReports))
        values = values_of_response(collect)
        return round_up(Fraction(shuffled_epsilon(collect.ratio, batches.honest, batches.delta, values)))

    def _table(self, _rows: Any, _coins: Coins) -> SurveyTable:
        return SurveyTable.of(self._steps(), canonical(self.public))

    def question(self, name: str) -> SurveyQuestion:
        """Return a question by its name."""
        match = next((question for question in self.questions if question.name == name), None)
        if match is None:
            raise InvalidParameter(f"the survey has no question {name!r}; it asks {', '.join(self.names)}.")
        return match

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the questions."""
        return tuple(question.name for question in self.questions)

    def randomize(
        self, answers: Mapping[str, Sequence[str]], coins: Coins, number: int | None = None
    ) -> list[dict[str, Any]]:
        """Return one report for each person, given all answers of all people, in the order of people.

        Where there are rounds, `number` is that of the reports; permanent answers are new ones.
        """
        reports = self._randomize(answers, coins)
        return [{**report, **self._round(number)} for report in reports]

    def _round(self, number: int | None) -> dict[str, int]:
        if self.rounds is None:
            return {}
        if number is None or not 1 <= number <= self.rounds.count:
            raise InvalidParameter(f"this survey has {self.rounds.count:,} rounds: name one of them.")
        return {"round": number}

    def memos(self, coins: Coins) -> dict[str, list[Any]]:
        """Draw a person's permanent answers to every value of every question, whatever the answers will be."""
        return {
            question.name: question.randomizer.plain(question.randomizer.memos(coins)) for question in self.questions
        }

    def report_round(
        self, memos: Mapping[str, Sequence[Any]], values: Mapping[str, int], number: int, coins: Coins
    ) -> dict[str, Any]:
        """Return the report of one round, made from a person's permanent answers to these values and nothing else."""
        parts = {}
        for question in self.questions:
            permanent = question.randomizer.permanent.read([memos[question.name][values[question.name]]])
            (parts[question.name],) = question.plain(question.randomizer.reports(permanent, coins))
        return {"survey": self.id, **self._as_sent(parts), **self._round(number)}

    def _as_sent(self, parts: Mapping[str, Any]) -> dict[str, Any]:
        if self.answers is WhichAnswers.ALL:
            return {"reports": dict(parts)}
        ((name, report),) = parts.items()
        return {"question": name, "report": report}

    def _randomize(self, answers: Mapping[str, Sequence[str]], coins: Coins) -> list[dict[str, Any]]:
        if set(answers) != set(self.names):
            raise InvalidParameter(f"the survey asks {', '.join(self.names)}: give one answer of each person to each.")
        codes = [question.codes(answers[question.name]) for question in self.questions]
        if self.answers is WhichAnswers.ALL:
            return self._randomize_all(codes, coins)
        places = coins.below(len(self.questions), len(codes[0]))
        reports: list[dict[str, Any]] = [{} for _ in places]
        for place, (question, code) in enumerate(zip(self.questions, codes, strict=True)):
            rows = np.flatnonzero(places == place)
            made = question.plain(question.randomize(question.filled(code[rows], coins), coins))
            for row, report in zip(rows, made, strict=True):
                reports[row] = {"survey": self.id, "question": question.name, "report": report}
        return reports

    def _randomize_all(self, codes: list[NDArray[np.int64]], coins: Coins) -> list[dict[str, Any]]:
        columns = [
            question.plain(question.randomize(question.filled(code, coins), coins))
            for question, code in zip(self.questions, codes, strict=True)
        ]
        return [
            {"survey": self.id, "reports": dict(zip(self.names, row, strict=True))}
            for row in zip(*columns, strict=True)
        ]

    def read(self, reports: Sequence[Any]) -> dict[str, tuple[NDArray[np.int64], Any]]:
        """Return for each question which reports are about it, and the reports; refuse what is none of this survey."""
        keys = {"survey", "reports"} if self.answers is WhichAnswers.ALL else {"survey", "question", "report"}
        keys |= set() if self.rounds is None else {"round"}
        for report in reports:
            if not isinstance(report, dict) or set(report) != keys:
                raise InvalidParameter(f"a report of this survey has {', '.join(sorted(keys))}: it is refused.")
            if report["survey"] != self.id:
                raise InvalidParameter("a report belongs to another survey, or another version of it: it is refused.")
            if self.rounds is not None and not (
                type(report["round"]) is int and 1 <= report["round"] <= self.rounds.count
            ):
                raise InvalidParameter("a report names a round that this survey does not have: it is refused.")
        return self._read_all(reports) if self.answers is WhichAnswers.ALL else self._read_one(reports)

    def _read_all(self, reports: Sequence[Any]) -> dict[str, tuple[NDArray[np.int64], Any]]:
        parts = [report["reports"] for report in reports]
        if not all(isinstance(part, dict) and set(part) == set(self.names) for part in parts):
            raise InvalidParameter("a report does not answer every question of the survey: it is refused.")
        rows = np.arange(len(parts), dtype=np.int64)
        return {
            question.name: (rows, question.read([part[question.name] for part in parts])) for question in self.questions
        }

    def _read_one(self, reports: Sequence[Any]) -> dict[str, tuple[NDArray[np.int64], Any]]:
        names = [report["question"] for report in reports]
        if not all(isinstance(name, str) and name in self.names for name in names):
            raise InvalidParameter("a report answers a question that the survey does not ask: it is refused.")
        parts = {}
        for question in self.questions:
            rows = np.array([row for row, name in enumerate(names) if name == question.name], np.int64)
            parts[question.name] = rows, question.read([reports[row]["report"] for row in rows])
        return parts


def script(name: str) -> bytes:
    """Return a script of the page, or its sentences, as they are served and hashed."""
    if name == WORDS:
        return canonical(document("survey")).encode()
    return files("incrowd.methods.local.survey").joinpath(name).read_bytes()


def script_hashes() -> dict[str, str]:
    """Return the SHA-256 of each script.

    >>> sorted(script_hashes())
    ['explanation.js', 'fields.js', 'page.js', 'published.js', 'randomizer.js', 'words.json']
    """
    return {name: sha256(script(name)).hexdigest() for name in SCRIPTS}


def report_text(report: Mapping[str, Any]) -> str:
    """Return the one text of a report, as it is stored, sent and hashed.

    >>> report_text({"survey": "ab", "question": "travel", "report": 1})
    '{"question":"travel","report":1,"survey":"ab"}'
    """
    return canonical(dict(report))
