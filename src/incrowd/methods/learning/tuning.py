"""Tuning: which model, how many bins and which columns are best, by a noisy score of a random number of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from incrowd.accounting.concentrated import expected_runs, gamma_for, largest_run_rho
from incrowd.core.cells import Cells
from incrowd.core.codec import encode
from incrowd.core.loss import BestRun, Pure, ZeroConcentrated
from incrowd.core.plan import Method, Plan
from incrowd.core.rounding import short
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.counts import Law
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.step import Step, StepGuarantee, inside, steps_of
from incrowd.core.terms import Assumption, Condition, Theorem
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.classifier.method import PrivateClassifier
from incrowd.methods.learning.classifier.recipes import RECIPES
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.moves import gaussian_rho, gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.shared.output import ORDER, LearningCheck, LearningPicture, ModelTable, differs
from incrowd.methods.learning.shared.planning import LearningTask, plan_of_steps
from incrowd.methods.learning.shared.statistics import Integers, Records, noisy
from incrowd.methods.learning.shared.steps import LearnFrom, ModelForm, PublishModel
from incrowd.methods.shared.columns import row_limits
from incrowd.verifier.check import Problem, in_order, maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.classifier.recipes import FittedScores, Recipe

BEST = Theorem(
    "best-of-random-runs",
    "Papernot & Steinke 2022, Theorem 2 and Corollary 3: the best of a random number of runs, of the logarithmic law",
)
_SCORED = Condition(
    "best-run-by-noisy-score",
    "every run has randomness and a noisy score of its own, and of all runs only the one with the best score is used",
)
SECRET = Assumption("runs-stay-secret", "how many runs there were, and how long they took, stays with the data holder")


@dataclass(frozen=True)
class TryModels(Step):
    """K times a candidate is drawn, learned and scored with noise; only the run with the best noisy score is kept.

    K is secret: P[K = k] = (1 − γ)^k / (k · ln(1/γ)).  The score is the number of rows whose class is predicted.  With
    `folds`, an own coin puts each row into one of them, rows are scored by a model of the other folds, and the model
    that is kept is learned from all rows.
    """

    kind: ClassVar[str] = "try models"
    title: ClassVar[str] = "Try models"
    proves: ClassVar[tuple[Condition, ...]] = (_SCORED,)

    gamma: Fraction
    noise: Law
    scale: Fraction
    candidates: tuple[tuple[Step, ...], ...]
    folds: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1 or self.scale <= 0 or not self.candidates:
            raise InvalidParameter("at least one candidate is tried, by a gamma between 0 and 1 and a noisy score.")
        if self.folds is not None and self.folds < 2:
            raise InvalidParameter("rows are put into two folds at least.")

    @property
    def sentence(self) -> str:
        how = "by how many rows it gets right"
        if self.folds is not None:
            how = f"by how many rows models of the other folds get right, in {self.folds} folds"
        return (
            f"A secret random number of times, one of {counted(len(self.candidates), 'candidate')} is drawn, learned, "
            f"and scored {how}, with {self.noise} noise of scale {float(self.scale):.4g}; only the run with the best "
            "noisy score is kept, and of the others nothing."
        )

    @property
    def held(self) -> tuple[Step, ...]:
        return tuple(step for steps in self.candidates for step in steps)

    def fits(self, unit: Unit) -> int:
        """Return how many models of one run a unit has a part in, at most.

        A single row is in one fold, and has no part in the model that is learned from the others.
        """
        return 1 if self.folds is None else self.folds + (unit.max_rows > 1)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            raise InvalidParameter("nothing else is summed beside candidates that are tried.")
        parts = [inside(steps, unit) for steps in self.candidates]
        reasons = dict.fromkeys((*(reason for part in parts for reason in part.because), self.noise.source, BEST))
        assumes = frozenset({SECRET}).union(*(part.assumes for part in parts))
        return StepGuarantee(
            BestRun(self.gamma, self._run([part.loss for part in parts], unit)), tuple(reasons), assumes
        )

    def _run(self, losses: list[Any], unit: Unit) -> Pure | ZeroConcentrated:
        """Return what one run costs: the dearest candidate as often as a unit meets it, and the score."""
        fits = self.fits(unit)
        if self.noise is Law.LAPLACE and all(isinstance(loss, Pure) for loss in losses):
            return Pure(fits * max(loss.epsilon for loss in losses) + summed_move(unit, 1) / self.scale)
        if self.noise is Law.GAUSSIAN and all(isinstance(loss, ZeroConcentrated) for loss in losses):
            score = gaussian_rho(self.scale, squared_move(unit, 1, aligned=True))
            return ZeroConcentrated(fits * max(loss.rho for loss in losses) + score)
        raise InvalidParameter("candidates and their score have noise of one kind.")

    def to_json(self) -> dict[str, Any]:
        stated = {"gamma": str(self.gamma), "noise": encode(self.noise), "scale": str(self.scale)}
        steps = [[step.to_json() for step in steps] for steps in self.candidates]
        folds = {} if self.folds is None else {"folds": self.folds}
        return {"step": self.kind, **stated, "candidates": steps, **folds}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> TryModels | None:
        others = tuple(step_class for step_class in classes if step_class is not cls)
        try:
            step = cls(
                Fraction(short(plain["gamma"])),
                Law(plain["noise"]),
                Fraction(short(plain["scale"])),
                tuple(steps_of(steps, others) for steps in plain["candidates"]),
                plain.get("folds"),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
            return None
        return step if step.to_json() == plain and type(plain.get("folds", 2)) is int else None


Outcome = TypeVar("Outcome")
_PIECE = 2**20  # rows at a time
_FINE = _LARGEST = 2.0**20  # scores are whole multiples of 2⁻²⁰ within ±2²⁰: the products of both stay within 2⁵³


def number_of_runs(gamma: Fraction, coins: Coins) -> int:
    """Draw K of the logarithmic law exactly: a geometric number k, taken with chance 1/k, or else another."""
    while True:
        number = 1
        while not coins.bernoulli(gamma, 1)[0]:
            number += 1
        if coins.below(number, 1)[0] == 0:
            return number


def best_run(gamma: Fraction, run: Callable[[Coins], tuple[int, Outcome]], coins: Coins) -> Outcome:
    """Run a secret random number of times, and return what the run with the best score made, the first among equals."""
    best, outcome = run(coins)
    for _ in range(number_of_runs(gamma, coins) - 1):
        score, made = run(coins)
        if score > best:
            best, outcome = score, made
    return outcome


@dataclass(frozen=True, eq=False)
class Folds:
    """Records whose rows were put into folds, an own coin each: how many rows of each record are in each fold."""

    records: Records
    counts: Integers

    @classmethod
    def deal(cls, records: Records, folds: int, coins: Coins) -> Folds:
        """Put each row into a fold of its own, whatever the others are."""
        ends = np.cumsum(records.counts.counts)
        total, counts = int(ends[-1]) if len(ends) else 0, np.zeros((len(ends), folds), np.int64)
        for start in range(0, total, _PIECE):
            rows = np.arange(start, min(total, start + _PIECE))
            places = np.searchsorted(ends, rows, side="right") * folds + coins.below(folds, len(rows))
            counts += np.bincount(places, minlength=counts.size).reshape(counts.shape)
        return cls(records, counts)

    def pairs(self) -> Iterator[tuple[Records, Records]]:
        """Return for each fold the rows of the others, and its own."""
        every = self.counts.sum(axis=1)
        for fold in range(self.counts.shape[1]):
            own = self.counts[:, fold]
            yield self._of(every - own), self._of(own)

    def _of(self, counts: Integers) -> Records:
        return Records(replace(self.records.counts, counts=counts), self.records.sizes)


def right_rows(fitted: FittedScores, records: Records, outputs: int) -> int:
    """Return for how many rows the largest score is that of their class, the scores taken as whole numbers.

    The target is the last column of the records; rows of classes of it from `outputs` on are never right.
    """
    offset, tables = _whole(fitted.offset), [_whole(table) for table in fitted.tables]
    right = 0
    for codes, times in records.pieces():
        scores = np.tile(offset, (len(codes), 1))
        for place, table in enumerate(tables):
            scores += table[codes[:, place]]
        right += int(times[(scores.argmax(axis=1) == codes[:, -1]) & (codes[:, -1] < outputs)].sum())
    return right


def _whole(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Integers:
    return np.rint(_FINE * np.clip(numbers, -_LARGEST, _LARGEST)).astype(np.int64)


_FOR_SCORE = Fraction(1, 10)  # of a run's ρ: a score is one number and needs little; costs add up, any share is private
_MOST, _MOST_RUNS, _MOST_FOLDS = 64, 1000, 20  # each run and each fold is a whole training: bounds the time


@dataclass(frozen=True)
class CandidateModel:
    """A model that may be tried: what it learns from, the way, and the sums with their noise."""

    task: LearningTask
    recipe: Recipe
    sums: tuple[Step, ...]

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps of one model, without those that all candidates share."""
        shared = len(keep_rows(schema.unit))
        return self.task.around(self.sums, schema, self.recipe.form)[shared:-1]

    def fit(self, records: Records, coins: Coins) -> FittedScores:
        """Return a model from records."""
        return self.recipe.fit(self.task, records, self.sums, coins)

    def score(self, records: Records, folds: int | None, fitted: FittedScores, coins: Coins) -> int:
        """Return how many rows are right: by the model itself, or each by a model of the other folds."""
        outputs = len(self.task.outputs)
        if folds is None:
            return right_rows(fitted, records, outputs)
        pairs = Folds.deal(records, folds, coins).pairs()
        return sum(right_rows(self.fit(others, coins), own, outputs) for others, own in pairs)


@dataclass(frozen=True)
class TunedClassifier(Method):
    """A model that predicts a class, the best by a noisy score among models, bins and sets of columns.

    Guarantee: (ε, δ)-differential privacy of everything together: every run, the choice, the model that is kept, and
    whatever is predicted with it; ε-differential privacy where no δ is given.

    Assumes: candidates, classes, bounds and parameters were declared without looking at the rows; how many runs there
    were stays secret.

    Source: Papernot & Steinke 2022 (the best of a random number of runs); Liu & Talwar 2019; and what each model rests
    on: Canonne, Kamath & Steinke 2020 (integer noise), Bun & Steinke 2016 (ρ adds up).
    """

    name: ClassVar[str] = "tuning"

    target_column: str
    epsilon: Fraction
    delta: Fraction | None = None
    models: tuple[Literal["auto", "naive-bayes", "gradient", "additive", "moments"], ...] = ("auto",)
    bins: tuple[int, ...] = ()
    column_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    runs: int = 5
    folds: int | None = None
    expected_rows: int | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.runs <= _MOST_RUNS:
            raise InvalidParameter(f"there are 2 to {_MOST_RUNS:,} runs on average.")
        if self.folds is not None and not 2 <= self.folds <= _MOST_FOLDS:
            raise InvalidParameter(f"rows are put into 2 to {_MOST_FOLDS} folds.")
        if any(len(set(values)) < len(values) for values in (self.models, self.bins)):
            raise InvalidParameter("models and bins are listed once each: a candidate is drawn by an even chance.")
        if not 2 <= len(self.classifiers) <= _MOST:
            raise InvalidParameter(
                f"{len(self.classifiers)} candidates: list 2 to {_MOST} in models, bins or column_sets together; with "
                "one there is nothing to tune, and the method classifier costs less."
            )

    @property
    def classifiers(self) -> tuple[PrivateClassifier, ...]:
        """Every candidate: each model with each number of bins on each set of columns."""
        sets = tuple(self.column_sets.values()) or ((),)
        return tuple(
            PrivateClassifier(
                self.target_column, self.epsilon, self.delta, model, columns, self.levels, bins, self.expected_rows
            )
            for model, bins, columns in product(self.models, self.bins or (None,), sets)
        )

    @property
    def gamma(self) -> Fraction:
        """The parameter of the law of the number of runs."""
        return gamma_for(self.runs)

    def task(self, schema: Schema) -> LearningTask:
        """Return what the first candidate learns from; all predict the same."""
        return self.classifiers[0].task(schema)

    def tried(self, schema: Schema) -> tuple[tuple[CandidateModel, ...], TryModels]:
        """Return the candidates, and the step that tries them at the price that may be spent."""
        unit = schema.unit
        run = self.epsilon / 2 if self.delta is None else largest_run_rho(self.epsilon, self.delta, self.gamma)
        fits = TryModels(self.gamma, Law.LAPLACE, Fraction(1), ((),), self.folds).fits(unit)
        budget = run * (1 - _FOR_SCORE) / fits
        candidates = []
        for classifier in self.classifiers:
            task = classifier.task(schema)
            if classifier.choice(task.inputs, len(task.outputs)) not in RECIPES:  # trees are not tuned
                classifier = replace(classifier, model="naive-bayes")  # noqa: PLW2901 - the same candidate
            recipe, _ = classifier.recipe(task)
            candidates.append(CandidateModel(task, recipe, recipe.sums(task, budget, unit)))
        law, scale = self._score_noise(run * _FOR_SCORE, unit)
        steps = tuple(candidate.steps(schema) for candidate in candidates)
        return tuple(candidates), TryModels(self.gamma, law, scale, steps, self.folds)

    def _score_noise(self, budget: Fraction, unit: Unit) -> tuple[Law, Fraction]:
        if self.delta is None:
            return Law.LAPLACE, summed_move(unit, 1) / budget
        return Law.GAUSSIAN, gaussian_scale(budget, squared_move(unit, 1, aligned=True))

    def plan(self, schema: Schema) -> Plan:
        candidates, step = self.tried(schema)
        steps = (*keep_rows(schema.unit), step, PublishModel(ModelForm.BEST_OF_SEVERAL))
        settings = {
            "model": ModelForm.BEST_OF_SEVERAL,
            "classes": len(candidates[0].task.outputs),
            "candidates": len(candidates),
            "runs": f"{expected_runs(self.gamma):.1f} on average, secret",
            "folds": self.folds or "none: scored on the rows that are learned from",
        }
        return plan_of_steps(self, schema, steps, settings)

    def release(self, table: Table, coins: Coins) -> ModelTable:
        """Count the records of every candidate, run a random number of times, and keep the best run."""
        candidates, step = self.tried(table.schema)
        limits = row_limits(table, coins)
        records = []
        for classes in (candidate.task.classes for candidate in candidates):
            cells = Cells(tuple(item.recoding for item in classes))
            records.append(Records(table.engine.count(table.rows, cells, *limits), tuple(map(len, classes))))

        def run(fresh: Coins) -> tuple[int, tuple[CandidateModel, FittedScores]]:
            place = int(fresh.below(len(candidates), 1)[0])
            fitted = candidates[place].fit(records[place], fresh)
            right = candidates[place].score(records[place], step.folds, fitted, fresh)
            return int(noisy(np.array([right]), step.scale, fresh, step.noise)[0]), (candidates[place], fitted)

        winner, fitted = best_run(step.gamma, run, coins)
        return ModelTable.of(fitted.model(winner.task, self.target_column), fitted.rows)


_CANDIDATE = tuple(place for place in ORDER if not {KeepRows, PublishModel} & set(place.classes))
_CANDIDATE_STEPS = tuple(dict.fromkeys(step for place in _CANDIDATE for step in place.classes))


class TuningCheck(LearningCheck):
    """The files of a tuned model: it is one of the candidates, and its table is the model's."""

    def contradiction(self, statement: Statement) -> Problem | None:
        predictions = set()
        for candidate in _alone(statement):
            if not in_order(candidate.steps, _CANDIDATE):
                return Problem("the steps of a candidate are not those of a model")
            problem = super().contradiction(candidate)
            if problem is not None:
                return problem
            learn, recode = candidate.basis.need(LearnFrom), candidate.basis.need(RecodeToBins)
            predictions.add((learn.target, learn.outputs, recode.names[-1]))
        return None if len(predictions) == 1 else Problem("candidates predict different things")

    def model_problem(self, statement: Statement, model: LearnedModel) -> Problem | None:
        problems = [differs(candidate, model) for candidate in _alone(statement)]
        return None if None in problems else problems[0]


def _alone(statement: Statement) -> list[Statement]:
    """Return a statement for each candidate, as if it were learned alone."""
    candidates = statement.basis.need(TryModels).candidates
    return [replace(statement, basis=replace(statement.basis, steps=steps)) for steps in candidates]


class TuningPicture(LearningPicture):
    """A tuned model in a report: that it is the best of several, and what each class of its columns adds to it."""

    def text(self, statement: Statement, numbers: int) -> str:
        tried, learn = statement.basis.need(TryModels), statement.basis.need(LearnFrom)
        return (
            f"A model that predicts {learn.target}, the best of a secret random number of runs among "
            f"{counted(len(tried.candidates), 'candidate')}: {counted(numbers, 'number')}. The claims bound how "
            "it and its choice depend on the rows, and it can be used as often as anyone likes."
        )


CHECK = TuningCheck((maybe(KeepRows), one(TryModels), one(PublishModel)), _CANDIDATE_STEPS)
PICTURE = TuningPicture()
METHOD = TunedClassifier
