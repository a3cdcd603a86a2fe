"""Rehearsal: how much of what can be learned noise will leave, from public numbers alone.

Rows are made up, of the declared shape and number, and learned from by the real code with noise of the real scale: once
where a quarter of the columns have to do with what is learned, and once where all have.  A gain of 1 is what a model
without noise reaches on the same made-up rows, one of 0 the baseline.  Nothing of it reads a row or costs
anything, and its chance is public.  What a model without noise reaches is that of the same method at a vast ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Layout
from incrowd.core.table import Table
from incrowd.core.words import counted
from incrowd.methods.learning.shared.models import LearnedModel, Use
from incrowd.methods.learning.shared.statistics import Integers
from incrowd.methods.learning.shared.steps import LearnFrom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.core.cells import Cells
    from incrowd.core.plan import Plan
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema


Floats = NDArray[np.float64]
_FEWEST_ROWS, _MOST_CODES, _TESTS = 1000, 40_000, 1000  # made-up rows of a rehearsal: more shows more and takes longer
_SEEDS = (11, 22)  # fixed, so that a plan is the same when it is made again; two, to see how much chance does
_FEW, _ALL = 4, 1  # every fourth column matters, or every one
_LATENT, _SPREAD = 3, 0.2  # hidden causes of made-up columns, and how far they spread; any value is a guess
_NOISE = {
    (Use.CLASSES, _FEW): 0.2,
    (Use.CLASSES, _ALL): 0.12,
    (Use.NUMBERS, _FEW): 0.2,
    (Use.NUMBERS, _ALL): 0.2,
    (Use.COMPONENTS, _FEW): 0.05,
    (Use.COMPONENTS, _ALL): 0.1,
}
_PULL = {
    (Use.CLASSES, _FEW): 0.25,
    (Use.CLASSES, _ALL): 0.5,
    (Use.NUMBERS, _FEW): 0.4,
    (Use.NUMBERS, _ALL): 0.6,
    (Use.COMPONENTS, _FEW): 0.14,
    (Use.COMPONENTS, _ALL): 0.25,
}
_QUIET, _LEAST = 10_000, 1e-3  # an ε at which noise vanishes, to compare with; and no division by zero
_HOPELESS = 0.45  # of what is learned without noise: less is announced as useless
_STEPS = (3, 10, 30)  # times ε: what is suggested where a plan is hopeless


@dataclass(frozen=True)
class PublicCoins:
    """Chance for made-up rows alone: a public seed, and noise that is rounded; never for anything that leaves."""

    chance: np.random.Generator

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        """Toss coins."""
        return np.asarray(self.chance.random(size) < float(probability), np.bool_)

    def below(self, bound: int, size: int) -> Integers:
        """Draw whole numbers below a bound."""
        return self.chance.integers(0, bound, size)

    def gaussian(self, scale: Fraction, size: int) -> Integers:
        """Draw about integer Gaussian noise."""
        return np.rint(self.chance.normal(0.0, float(scale), size)).astype(np.int64)

    def laplace(self, scale: Fraction, size: int) -> Integers:
        """Draw about integer Laplace noise."""
        return np.rint(self.chance.laplace(0.0, float(scale), size)).astype(np.int64)

    def decay(self, scale: Fraction, steps: Integers) -> NDArray[np.bool_]:
        """Toss coins that come up with about e^(−steps / scale)."""
        return np.asarray(self.chance.random(steps.size) < np.exp(-steps / float(scale)), np.bool_)


@dataclass(frozen=True, eq=False)
class MadeUpRows:
    """What made-up rows are drawn from: where each column lies, between 0 and 1, by a hidden class or number.

    It stands in for an engine: `count` returns made-up rows in place of those of a table.
    """

    seed: int
    rows: int
    target: str | None
    kind: Use
    groups: int
    every: int
    met: list[tuple[Classes, ...]] = field(default_factory=list)

    @property
    def shares(self) -> Floats:
        """How common each class is: the first twice as common as the last."""
        weights = 1.0 / np.linspace(1.0, 2.0, self.groups)
        shares: Floats = weights / weights.sum()
        return shares

    def limit(self, *_: object) -> None:
        """Keep all rows: they are of nobody."""

    exclude = limit

    def count(self, _rows: object, cells: Cells, *_limits: object) -> Counts:
        """Return made-up rows as if an engine had counted them."""
        classes = tuple(recoding.classes for recoding in cells.recodings)
        listed = tuple(item for item in classes if item is not None)
        self.met.append(listed)
        number = min(self.rows, max(_FEWEST_ROWS, _MOST_CODES // len(listed)))
        codes, _ = self.sample(listed, number, self.seed)
        times = np.full(number, self.rows // number, np.int64)
        times[: self.rows % number] += 1
        layout = Layout(tuple(max(1, len(item)) for item in listed))
        return Counts(listed, layout.pack([codes[:, place].astype(np.int32) for place in range(len(listed))]), times)

    def sample(self, classes: Sequence[Classes], number: int, seed: int) -> tuple[Integers, Floats]:
        """Return codes of rows, the target's last, and where their columns lie; the world is the same for all seeds."""
        world, chance = np.random.default_rng(self.seed), np.random.default_rng([seed, number])
        inputs = len(classes) - (self.target is not None)
        matters = np.arange(inputs) % self.every == 0
        latent, pull = self._latent(chance, number), self._pulls(world, inputs) * matters
        noise = chance.normal(0.0, _NOISE[self.kind, self.every], (number, inputs))
        places = np.clip(0.5 + latent @ pull + noise, 0.0, 1.0 - 1e-9)
        marks = [max(1, len(item.marks)) for item in classes]
        codes = np.column_stack([np.floor(places[:, j] * marks[j]) for j in range(inputs)]).astype(np.int64)
        if self.target is None:
            return codes, places
        own = latent.argmax(axis=1) if self.kind is Use.CLASSES else np.floor((latent[:, 0] + 0.5) * marks[-1])
        return np.column_stack([codes, own.astype(np.int64)]), places

    def _latent(self, chance: np.random.Generator, number: int) -> Floats:
        if self.kind is Use.NUMBERS:
            return np.clip(chance.normal(0.0, _SPREAD, (number, 1)), -0.5, 0.5 - 1e-9)
        if self.kind is Use.COMPONENTS:
            hidden: Floats = chance.normal(0.0, 1.0, (number, _LATENT)) * np.array([1.0, 0.7, 0.5])
            return hidden
        return np.eye(self.groups)[chance.choice(self.groups, number, p=self.shares)]

    def _pulls(self, world: np.random.Generator, inputs: int) -> Floats:
        most, signs = _PULL[self.kind, self.every], world.choice([-1.0, 1.0], (1, inputs))
        if self.kind is Use.NUMBERS:
            return most * signs
        if self.kind is Use.COMPONENTS:
            return most * signs * np.eye(_LATENT)[np.arange(inputs) // self.every % _LATENT].T
        return world.uniform(-most, most, (self.groups, inputs))


def figure(plan: Plan, schema: Schema, made: MadeUpRows) -> float:
    """Return how good a model is that is learned from made-up rows, on other made-up rows; 0 is the baseline."""
    table: Any = Table(schema, None, made)  # type: ignore[arg-type]
    coins: Any = PublicCoins(np.random.default_rng(made.seed))
    model: LearnedModel = plan.draw(table, coins).model
    shape = [(column.name, len(column.labels)) for column in model.columns]
    for classes in made.met:
        if [(item.recoding.column.name, len(item)) for item in classes[: len(shape)]] == shape:
            result: float = _FIGURES[made.kind](model, made, classes)
            return result
    return math.nan


def _rows_right(model: LearnedModel, made: MadeUpRows, classes: tuple[Classes, ...]) -> float:
    tests, _ = made.sample(classes, _TESTS, made.seed + 1)
    return float((model.coded_scores(tests[:, : len(model.columns)]).argmax(axis=1) == tests[:, -1]).mean()) - float(
        made.shares.max()
    )


def _variance_explained(model: LearnedModel, made: MadeUpRows, classes: tuple[Classes, ...]) -> float:
    tests, _ = made.sample(classes, _TESTS, made.seed + 1)
    low, high = model.bounds or (0.0, 1.0)
    predictions = (np.clip(model.coded_scores(tests[:, :-1])[:, 0], low, high) - low) / (high - low)
    truth = (tests[:, -1] + 0.5) / len(classes[-1].marks)
    return 1.0 - float(((truth - predictions) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def _variance_held(model: LearnedModel, made: MadeUpRows, classes: tuple[Classes, ...]) -> float:
    _, points = made.sample(classes, _TESTS, made.seed + 1)
    if model.vectors is None or model.vectors.shape[1] != points.shape[1]:
        return math.nan  # categories have a place for each class: not rehearsed
    centered = points - points.mean(axis=0)
    basis, _ = np.linalg.qr(model.vectors.T)
    held: float = float(((centered @ basis) ** 2).sum()) / float((centered**2).sum())
    return held - float(len(model.vectors) / points.shape[1])


_FIGURES = {
    Use.CLASSES: _rows_right,
    Use.NUMBERS: _variance_explained,
    Use.COMPONENTS: _variance_held,
}


@dataclass(frozen=True)
class GainBand:
    """What noise leaves of what can be learned: where a quarter of the columns matter, and where all do.

    `enough` is an ε, where this one is too small, at which that is not so any more.
    """

    rows: int
    columns: int
    epsilon: Fraction
    some: float
    all: float
    enough: Fraction | None = None

    @property
    def hopeless(self) -> bool:
        """Whether most of the model will be noise, halfway between where some and where all columns matter."""
        return (min(1.0, max(0.0, self.some)) + min(1.0, max(0.0, self.all))) / 2 < _HOPELESS

    @property
    def sentence(self) -> str:
        """What to expect, for people."""
        shape = f"{counted(self.rows, 'row')} and {counted(self.columns, 'column')}"
        low, high = (f"{100 * min(1.0, max(0.0, share)):.0f} %" for share in sorted((self.some, self.all)))
        text = (
            f"on made-up rows of this shape, {shape}, a model keeps {low} to {high} of what one without noise gains "
            "over the baseline, by whether one column in four matters or all do; yours may differ"
        )
        if not self.hopeless:
            return text
        where = f"at ε = {float(self.epsilon):.3g}" if self.enough is None else f"below ε = {float(self.enough):.3g}"
        unless = "" if self.all < _HOPELESS else ", unless nearly all columns matter"
        return f"hopeless {where} with {shape}{unless}: most of the model will be noise; {text}"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "some": round(self.some, 3),
            "all": round(self.all, 3),
            "hopeless": self.hopeless,
            "enough": None if self.enough is None else str(self.enough),
            "sentence": self.sentence,
        }


def rehearse(method: Any, schema: Schema, rows: int) -> GainBand | None:
    """Return what noise will leave of a model of so many rows; None for clusters and components of categories.

    Nor is a model rehearsed that draws a sample in each round: it would take as long as learning it.
    """
    if hasattr(method, "clusters") or getattr(method, "model", None) == "stream":
        return None
    band = _band(method, schema, rows)
    if band is None or not band.hopeless:
        return band
    for more in _STEPS:
        tried = _band(replace(method, epsilon=more * method.epsilon), schema, rows)
        if tried is not None and not tried.hopeless:
            return replace(band, enough=more * method.epsilon)
    return band


def _band(method: Any, schema: Schema, rows: int) -> GainBand | None:
    plan, quiet = method.plan(schema), replace(method, epsilon=Fraction(_QUIET)).plan(schema)
    learn = plan.basis.need(LearnFrom)
    kind, groups = _kind_of(learn)
    ends = []
    for every in (_FEW, _ALL):
        worlds = [MadeUpRows(seed, rows, learn.target, kind, groups, every) for seed in _SEEDS]
        gained, most = (np.mean([figure(candidate, schema, world) for world in worlds]) for candidate in (plan, quiet))
        ends.append(float(gained) / max(_LEAST, float(most)))
    return GainBand(rows, len(learn.columns), method.epsilon, ends[0], ends[1]) if np.isfinite(ends).all() else None


def _kind_of(learn: LearnFrom) -> tuple[Use, int]:
    if learn.target is None:
        return Use.COMPONENTS, 1
    return (Use.NUMBERS, 1) if learn.outputs is None else (Use.CLASSES, len(learn.outputs))
