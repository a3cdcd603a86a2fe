"""Tuning: which model, how many bins and which columns are best, by a noisy score of a random number of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from incrowd.accounting.concentrated import expected_runs, gamma_for, largest_run_rho
from incrowd.core.cells import Cells
from incrowd.core.plan import Method, Plan
from incrowd.core.steps.counts import Law
from incrowd.core.steps.rows import keep_rows
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.classifier.method import PrivateClassifier
from incrowd.methods.learning.classifier.recipes import RECIPES
from incrowd.methods.learning.forms import ModelForm
from incrowd.methods.learning.moves import gaussian_scale, squared_move, summed_move
from incrowd.methods.learning.output import ModelTable
from incrowd.methods.learning.planning import LearningTask, plan_of_steps
from incrowd.methods.learning.records import Records
from incrowd.methods.learning.statistics import noisy
from incrowd.methods.learning.steps import PublishModel
from incrowd.methods.learning.tuning.runs import Folds, best_run, right_rows
from incrowd.methods.learning.tuning.steps import TryModels
from incrowd.methods.shared.columns import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.learning.classifier.recipes import FittedScores, Recipe

_FOR_SCORE = Fraction(1, 10)
_MOST, _MOST_RUNS, _MOST_FOLDS = 64, 1000, 20


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

    def score(self, records: Records, folds: int | None, found: FittedScores, coins: Coins) -> int:
        """Return how many rows are right: by the model itself, or each by a model of the other folds."""
        outputs = len(self.task.outputs)
        if folds is None:
            return right_rows(found, records, outputs)
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
        if any(len(set(each)) < len(each) for each in (self.models, self.bins)):
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
        """Guarantee from the schema alone, the price of all runs included."""
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
        records = [
            Records(
                table.engine.count(table.rows, Cells(tuple(one.recoding for one in candidate.task.classes)), *limits),
                tuple(map(len, candidate.task.classes)),
            )
            for candidate in candidates
        ]

        def run(fresh: Coins) -> tuple[int, tuple[CandidateModel, FittedScores]]:
            place = int(fresh.below(len(candidates), 1)[0])
            found = candidates[place].fit(records[place], fresh)
            right = candidates[place].score(records[place], step.folds, found, fresh)
            return int(noisy(np.array([right]), step.scale, fresh, step.noise)[0]), (candidates[place], found)

        kept, found = best_run(step.gamma, run, coins)
        return ModelTable.of(found.model(kept.task, self.target_column), found.rows)
