"""Tuning: which model, how many bins and which columns are best, by a noisy score of a random number of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from incrowd.accounting.concentrated import expected_runs, gamma_for, largest_run_rho
from incrowd.core.cells import Cells
from incrowd.core.domain import Numbers
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.counts import Law
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning import regressor
from incrowd.methods.learning.classifier.method import PrivateClassifier
from incrowd.methods.learning.classifier.recipes import RECIPES
from incrowd.methods.learning.regressor import FittedNumbers, NumberRecipe, PrivateRegressor, units_of
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.moves import gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.shared.output import ORDER, LearningCheck, LearningPicture, ModelTable, differs
from incrowd.methods.learning.shared.planning import LearningTask, plan_of_steps
from incrowd.methods.learning.shared.statistics import Records, noisy
from incrowd.methods.learning.shared.steps import LearnFrom, ModelForm, PublishModel
from incrowd.methods.learning.shared.trials import CLOSE, Folds, TryModels, best_run, close_rows, right_rows
from incrowd.methods.shared.columns import row_limits
from incrowd.verifier.check import Problem, in_order, maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.classifier.recipes import FittedScores, Recipe

_FOR_SCORE = Fraction(1, 10)  # of a run's ρ: a score is one number and needs little; costs add up, any share is private
_MOST, _MOST_RUNS, _MOST_FOLDS = 64, 1000, 20  # each run and each fold is a whole training: bounds the time


@dataclass(frozen=True)
class CandidateModel:
    """A model that may be tried: what it learns from, the way, and the sums with their noise."""

    task: LearningTask
    recipe: Recipe | NumberRecipe
    sums: tuple[Step, ...]

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps of one model, without those that all candidates share."""
        shared = len(keep_rows(schema.unit))
        return self.task.around(self.sums, schema, self.recipe.form)[shared:-1]

    def fit(self, records: Records, coins: Coins) -> FittedScores | FittedNumbers:
        """Return a model from records."""
        return self.recipe.fit(self.task, records, self.sums, coins)

    def score(self, records: Records, folds: int | None, fitted: FittedScores | FittedNumbers, coins: Coins) -> int:
        """Return how good predictions are: by the model itself, or of each row by a model of the other folds."""
        if folds is None:
            return self._score(fitted, records)
        pairs = Folds.deal(records, folds, coins).pairs()
        return sum(self._score(self.fit(others, coins), own) for others, own in pairs)

    def _score(self, fitted: FittedScores | FittedNumbers, records: Records) -> int:
        if isinstance(fitted, FittedNumbers):
            return close_rows(np.array([fitted.offset]), fitted.tables, records, units_of(self.task))
        return right_rows(fitted.offset, fitted.tables, records, len(self.task.outputs))


@dataclass(frozen=True)
class TunedModel(Method):
    """A model that predicts a class or a number, the best by a noisy score among models, bins and sets of columns.

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
        if not 2 <= len(self.ways) <= _MOST:
            raise InvalidParameter(
                f"{len(self.ways)} candidates: list 2 to {_MOST} in models, bins or column_sets together; with "
                "one there is nothing to tune, and the methods classifier and regressor cost less."
            )

    @property
    def ways(self) -> tuple[tuple[str, int | None, tuple[str, ...]], ...]:
        """Every candidate: each model with each number of bins on each set of columns."""
        return tuple(product(self.models, self.bins or (None,), tuple(self.column_sets.values()) or ((),)))

    def candidates(self, schema: Schema) -> tuple[PrivateClassifier | PrivateRegressor, ...]:
        """Return the method of every candidate: regressors where the target has numbers."""
        numbers = isinstance(schema[self.target_column].domain, Numbers)
        usable = {"auto", *(regressor.RECIPES if numbers else RECIPES)} - {"linear"}
        odd = [model for model, _, _ in self.ways if model not in usable]
        if odd:
            raise InvalidParameter(
                f"{odd[0]!r} does not predict {'numbers' if numbers else 'classes'}, such as {self.target_column!r}: "
                f"choose among {', '.join(sorted(usable))}."
            )
        return tuple(self._numbers(*way) if numbers else self._classes(*way) for way in self.ways)

    def _classes(self, model: Any, bins: int | None, columns: tuple[str, ...]) -> PrivateClassifier:
        own = (self.target_column, self.epsilon, self.delta, model, columns, self.levels, bins, self.expected_rows)
        return PrivateClassifier(*own)

    def _numbers(self, model: Any, bins: int | None, columns: tuple[str, ...]) -> PrivateRegressor:
        if self.delta is None:
            raise InvalidParameter("regressors need a delta, such as 1e-6: the tuning of one does, too.")
        model = "moments" if model == "auto" else model
        own = (self.target_column, self.epsilon, self.delta, columns, self.levels, bins, model, self.expected_rows)
        return PrivateRegressor(*own)

    @property
    def gamma(self) -> Fraction:
        """The parameter of the law of the number of runs."""
        return gamma_for(self.runs)

    def task(self, schema: Schema) -> LearningTask:
        """Return what the first candidate learns from; all predict the same."""
        return self.candidates(schema)[0].task(schema)

    def tried(self, schema: Schema) -> tuple[tuple[CandidateModel, ...], TryModels]:
        """Return the candidates, and the step that tries them at the price that may be spent."""
        unit = schema.unit
        run = self.epsilon / 2 if self.delta is None else largest_run_rho(self.epsilon, self.delta, self.gamma)
        fits = TryModels(self.gamma, Law.LAPLACE, Fraction(1), ((),), self.folds).fits(unit)
        budget = run * (1 - _FOR_SCORE) / fits
        methods = self.candidates(schema)
        candidates = tuple(_candidate(method, schema, budget) for method in methods)
        closeness = CLOSE if isinstance(methods[0], PrivateRegressor) else None
        law, scale = self._score_noise(run * _FOR_SCORE, unit, closeness or 1)
        steps = tuple(candidate.steps(schema) for candidate in candidates)
        return candidates, TryModels(self.gamma, law, scale, steps, self.folds, closeness)

    def _score_noise(self, budget: Fraction, unit: Unit, reach: int) -> tuple[Law, Fraction]:
        if self.delta is None:
            return Law.LAPLACE, summed_move(unit, reach) / budget
        return Law.GAUSSIAN, gaussian_scale(budget, squared_move(unit, reach**2, aligned=True))

    def plan(self, schema: Schema) -> Plan:
        candidates, step = self.tried(schema)
        steps = (*keep_rows(schema.unit), step, PublishModel(ModelForm.BEST_OF_SEVERAL))
        settings = {
            "model": ModelForm.BEST_OF_SEVERAL,
            **({} if step.closeness else {"classes": len(candidates[0].task.outputs)}),
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

        def run(fresh: Coins) -> tuple[int, tuple[CandidateModel, FittedScores | FittedNumbers]]:
            place = int(fresh.below(len(candidates), 1)[0])
            fitted = candidates[place].fit(records[place], fresh)
            right = candidates[place].score(records[place], step.folds, fitted, fresh)
            return int(noisy(np.array([right]), step.scale, fresh, step.noise)[0]), (candidates[place], fitted)

        winner, fitted = best_run(step.gamma, run, coins)
        return ModelTable.of(fitted.model(winner.task, self.target_column), fitted.rows)


def _candidate(method: PrivateClassifier | PrivateRegressor, schema: Schema, budget: Fraction) -> CandidateModel:
    """Return a candidate with its sums at a price; trees are not tuned, so where one is chosen naive Bayes is tried."""
    task = method.task(schema)
    if isinstance(method, PrivateRegressor):
        number = regressor.RECIPES[method.model]
        return CandidateModel(task, number, number.sums(task, budget, schema.unit))
    if method.choice(task.inputs, len(task.outputs)) not in RECIPES:
        method = replace(method, model="naive-bayes")
    recipe, _ = method.recipe(task)
    return CandidateModel(task, recipe, recipe.sums(task, budget, schema.unit))


_CANDIDATE = tuple(place for place in ORDER if not {KeepRows, PublishModel} & set(place.classes))
_CLOSENESS = 1024  # what a row adds to the score of numbers, at most; to that of classes 1
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
        if len(predictions) != 1:
            return Problem("candidates predict different things")
        ((_, outputs, _),) = predictions
        closeness = _CLOSENESS if outputs is None else None
        same = statement.basis.need(TryModels).closeness == closeness
        return None if same else Problem("a row adds another amount to a score than such a prediction does")

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
METHOD = TunedModel
