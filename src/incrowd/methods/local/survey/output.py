"""Output: the published table of a survey, every randomizer with the weights it draws with; its check and picture."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.codec import digest
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.core.unit import Adjacency, Kind
from incrowd.core.words import counted
from incrowd.drawing.markup import Description
from incrowd.drawing.picture import Picture
from incrowd.methods.local.mechanisms.randomizer import Family
from incrowd.methods.local.survey.steps import (
    DEFINITION,
    CollectReports,
    LocalPrivacy,
    MemoizedPrivacy,
    ShuffledPrivacy,
    ShuffleReports,
    SurveyRounds,
)
from incrowd.methods.shared.outcome import Tabular
from incrowd.verifier.check import Check, CheckOutcome, Problem, maybe, one

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


COLUMNS = ("question", "asks", "level", "family", "size", "own", "other", "width", "share")
NONE = "none"


@dataclass(frozen=True, eq=False)
class SurveyTable(Tabular):
    """One row for each randomizer: its question, its level, its family and its weights."""

    form: ClassVar[str] = "survey"

    definition: str

    @classmethod
    def of(cls, steps: Iterable[Step], definition: str) -> SurveyTable:
        """Return the table of a survey's steps, with the text of all that the survey publishes."""
        rows = rows_of(next(step for step in steps if isinstance(step, CollectReports)))
        return cls(_table(rows), definition)

    @property
    def documents(self) -> dict[str, str]:
        """What is published beside the table: the definition of the survey, by which pages and clients ask."""
        return {DEFINITION: self.definition}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        return {
            "questions": len(set(self.table["question"].to_pylist())),
            "randomizers": len(self),
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no report is published here, only how reports are made",
            "linkability": "no report is published here, only how reports are made",
            "inference": "bounded by the claims above, for every report and every reader",
        }


def _table(rows: list[dict[str, str]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS})


def rows_of(step: CollectReports) -> list[dict[str, str]]:
    """Return the rows of the table, as texts."""
    return [
        {
            "question": question.name,
            "asks": question.asks,
            "level": str(level),
            **{name: NONE if value is None else str(value) for name, value in vars(randomness).items()},
        }
        for question in step.questions
        for level, randomness in enumerate(question.randomizers)
    ]


_TOLERANCE = 1 + 1e-6
_NEAR = 0.99
"""A claim's ε is at most 1 % larger than that of the batch, or its δ is: sums over rounded counts are this near."""
_FAR = 14.0
_MOST, _MOST_OF_RESPONSE = 1_000_000, 20_000
_DIGITS = 10
"""Counts keep this number of binary digits: one more than the accountant of the claim."""


class SurveyCheck(Check):
    """The published table of a survey, read again; and what shuffling saves, summed up a second time."""

    def contradiction(self, statement: Statement) -> Problem | None:
        if statement.released:
            return Problem("a survey releases no column of a table")
        unit = statement.basis.unit
        if unit.kind not in (Kind.REPORT, Kind.HISTORY) or unit.adjacency is not Adjacency.REPLACE:
            return Problem("local privacy is guaranteed to one report, or all reports, of one person, replaced")
        rounds = statement.basis.need(CollectReports).rounds
        if rounds is not None and unit.kind is not Kind.HISTORY:
            return Problem("where there are rounds, the unit is all reports of one person")
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        file, definition = files
        step = statement.basis.need(CollectReports)
        ratios = "they are those of the steps, whose ratios are at most e^epsilon"
        yield CheckOutcome("weights in the file", _weights_problem(_read(file), step), ratios)
        same = "its digest is the one that reports and steps name"
        shuffled = statement.basis.find(ShuffleReports)
        yield CheckOutcome("definition", _definition_problem(definition, step, shuffled), same)

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        rows = [row for batch in output.batches() for row in batch.to_pylist()]
        return _weights_problem(rows, statement.basis.need(CollectReports))

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> SurveyTable:
        return SurveyTable(_table(_read(files[0])), files[1].read_text(encoding="utf-8"))

    def recompute(self, claim: Claim, basis: ClaimBasis) -> Problem | None:
        if isinstance(claim, MemoizedPrivacy):
            return _rounds_problem(claim, basis.need(CollectReports))
        if not isinstance(claim, ShuffledPrivacy):
            return None
        if claim.people > (_MOST if claim.values is None else _MOST_OF_RESPONSE):
            return Problem("a batch of so many people is not summed up again", undecided=True)
        ratio, epsilon = float(basis.need(CollectReports).ratio), float(claim.epsilon)

        def derived(at: float) -> float:
            if claim.values is None:
                return clones_delta(ratio, claim.people, at)
            return response_delta(ratio, claim.people, at, claim.values)

        if derived(epsilon) > float(claim.delta) * _TOLERANCE:
            return Problem(f"at its epsilon the batch has a delta of {derived(epsilon):.6g}, and the claim says less")
        if epsilon and derived(epsilon * _NEAR) <= float(claim.delta) * _NEAR:
            return Problem("its epsilon is larger than that of such a batch")
        return None


def _rounds_problem(claim: MemoizedPrivacy, step: CollectReports) -> Problem | None:
    """Sum up again what all reports lose between any two histories: per round, the log of each question's weights."""
    parts = [question.randomizers[-1] for question in step.questions]
    sizes = [part.size if part.family is Family.SYMMETRIC else 1 for part in parts]  # bits that can differ
    once = math.fsum(size * math.log(part.own / part.other) for size, part in zip(sizes, parts, strict=True))
    every = once * (step.rounds.count if step.rounds is not None else 1)
    if not every * (1 - 1e-9) <= float(claim.any_histories) <= every * _TOLERANCE:
        return Problem(f"between any two histories the reports lose {every:.6g}, and the claim says otherwise")
    return None


def _weights_problem(rows: list[dict[str, str]], step: CollectReports) -> Problem | None:
    return None if rows == rows_of(step) else Problem("the table holds other weights than the steps")


def _definition_problem(definition: Path, step: CollectReports, shuffled: ShuffleReports | None) -> Problem | None:
    """Return where the published definition and the steps differ: digest, weights, scripts, ε or batches; or None."""
    public = json.loads(definition.read_text(encoding="utf-8"))
    published = [row for question in public["questions"] for row in question["randomizers"]]
    weights = [{name: row.get(name) for name in COLUMNS[3:]} for row in published]
    expected = [{name: None if row[name] == NONE else row[name] for name in COLUMNS[3:]} for row in rows_of(step)]
    same = digest("incrowd survey 1", public) == step.survey and public["epsilon"] == str(step.epsilon)
    same = same and public.get("purpose") == step.purpose and public.get("answers", "one") == str(step.answers)
    same = same and public.get("rounds") == _public_rounds(step.rounds)
    batches = None if shuffled is None else {name: str(part) for name, part in vars(shuffled).items()}
    if public.get("shuffled") != batches:
        return Problem("reports are shuffled in other batches, or with another delta, than the definition says")
    if not all(_options_fit(question) for question in public["questions"]):
        return Problem("two answers to a question can differ in more options than its weights are made for")
    if same and weights == expected and public["scripts"] == dict(step.scripts):
        return None
    return Problem("the published definition is not the one that the steps name")


def _public_rounds(rounds: SurveyRounds | None) -> dict[str, str] | None:
    if rounds is None:
        return None
    distinct = {} if rounds.distinct is None else {"distinct": str(rounds.distinct)}
    return {"count": str(rounds.count), "form": str(rounds.form), **distinct}


def _options_fit(question: Mapping[str, Any]) -> bool:
    """Whether a question with several answers divides its loss among all options in which two of them can differ."""
    if question["asks"] != "several":
        return True
    (weights,) = question["randomizers"]
    return int(weights["width"]) >= min(len(question["labels"]), 2 * int(question["most"]))


def clones_delta(ratio: float, people: int, epsilon: float) -> float:
    """Return E[((p − α) A − (α p − 1) B)⁺] / n, (A, B) multinomial(n; 1/(p+1), 1/(p+1)), summed over A and then B.

    >>> round(clones_delta(math.e, 100, 0.5) * 1e6, 4)
    1.7024
    """
    alpha, total = math.exp(epsilon), 0.0
    if alpha >= ratio:
        return 0.0
    ones, masses = _likely(people, 1.0 / (ratio + 1.0))
    for one_, mass in zip(ones, masses, strict=True):
        others, weights = _likely(people - int(one_), 1.0 / ratio)
        excess = (ratio - alpha) * one_ - (alpha * ratio - 1.0) * others
        total += mass * float(weights @ np.maximum(excess, 0.0))
    return float(total) / people


def response_delta(ratio: float, people: int, epsilon: float, values: int) -> float:
    """Return the same for randomized response over d values: ((p − 1)(A − α B) − (α − 1) S)⁺ / n, S silent reports.

    Its mean given S, divided by S, does not grow with S: S is rounded down to ten binary digits.
    """
    alpha, share, total = math.exp(epsilon), values / (ratio + values - 1.0), 0.0
    if alpha >= ratio:
        return 0.0
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, people + 1)))])
    for number, mass in _rounded(*_likely(people - 1, share)).items():
        ones, chances = _likely(number, 1.0 / values)
        over = (ratio - 1.0) * ones - (alpha - 1.0) * number
        ones, chances, over = ones[over > 0.0], chances[over > 0.0], over[over > 0.0]
        if len(ones):
            lost = (ratio - 1.0) * alpha
            others, weights = _others(number - ones, 1.0 / (values - 1.0), int(over.max() / lost), logs)
            excess = np.maximum(over[:, None] - lost * others[None, :], 0.0)
            total += mass * share * float(chances @ (weights * excess).sum(axis=1)) / number
    return float(total)


def _others(
    rest: NDArray[np.int64], chance: float, most: int, logs: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return numbers up to `most`, and how likely each binomial number takes them, by logarithms of factorials."""
    least = int(rest.min()) * chance
    low = max(0, math.floor(least - _FAR * math.sqrt(least) - _FAR))
    others = np.arange(low, max(low, most) + 1)
    left = rest[:, None] - others[None, :]
    log = logs[rest][:, None] - logs[np.minimum(others, len(logs) - 1)] - logs[np.maximum(left, 0)]
    mass = np.exp(log + others * math.log(chance) + left * math.log1p(-chance))
    return others, np.where(left >= 0, mass, 0.0)


def _rounded(others: NDArray[np.int64], masses: NDArray[np.float64]) -> dict[int, float]:
    """Return how likely each number of silent reports is, one more than that of others, after it was rounded down."""
    masses_by_number: dict[int, float] = {}
    for other, mass in zip(others.tolist(), masses.tolist(), strict=True):
        spare = max(0, (other + 1).bit_length() - _DIGITS)
        number = (other + 1) >> spare << spare
        masses_by_number[number] = masses_by_number.get(number, 0.0) + mass
    return masses_by_number


def _likely(number: int, chance: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the likely values of a binomial number with their chances, by logarithms of factorials."""
    from scipy.special import gammaln, xlog1py, xlogy

    spread = _FAR * math.sqrt(number * chance * (1.0 - chance)) + _FAR
    low, high = max(0, math.floor(number * chance - spread)), min(number, math.ceil(number * chance + spread))
    counts = np.arange(low, high + 1)
    log = gammaln(number + 1) - gammaln(counts + 1) - gammaln(number - counts + 1)
    return counts, np.exp(log + xlogy(counts, chance) + xlog1py(number - counts, -chance))


def _read(file: Path) -> list[dict[str, str]]:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        rows: list[dict[str, str]] = pq.read_table(file).to_pylist()
        return rows
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text, delimiter="\t" if file.suffix == ".tsv" else ","))


class SurveyPicture(Picture):
    """A survey in a report: how reports are made; its reports are not part of it."""

    evidence: Mapping[str, str] | None = {"questions": "Questions asked", "randomizers": "Randomizers"}

    def description(self, statement: Statement) -> Description:
        questions = counted(int(statement.evidence["questions"]), "question")
        full = f"How answers to {questions} are randomized before they are sent; nobody's report."
        return Description("How reports are made", full, "one randomized report of that person")


CHECK = SurveyCheck(
    order=(one(CollectReports), maybe(ShuffleReports)), claims=(LocalPrivacy, MemoizedPrivacy, ShuffledPrivacy)
)
PICTURE = SurveyPicture()
