"""Steps: which columns a model is learned from, what is summed with noise for it, and that it is published.

Every sum costs what its scale says; together they cost the sum of that, also where a later one depends on the noisy
results of earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, checked, proved
from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy
from incrowd.core.loss import Pure, Sequence, ZeroConcentrated
from incrowd.core.steps.bins import BinColumn
from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, walk
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.moves import gaussian_rho, squared_move, summed_move

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


class ModelForm(StrEnum):
    """The form of a model.

    >>> ModelForm.NAIVE_BAYES, ModelForm.NAIVE_BAYES.words
    (<ModelForm.NAIVE_BAYES: 'naive-bayes'>, 'naive Bayes')
    """

    NAIVE_BAYES = "naive-bayes"
    GRADIENT = "gradient"
    ADDITIVE = "additive"
    ADDITIVE_SUMS = "additive-sums"
    SAMPLED_ADDITIVE = "sampled-additive"
    LEAST_SQUARES = "least-squares"
    LINEAR = "linear"
    DECISION_TREES = "decision-trees"
    RANDOM_TREES = "random-trees"
    REGRESSION_TREES = "regression-trees"
    CENTERS = "centers"
    COMPONENTS = "components"
    BEST_OF_SEVERAL = "best-of-several"

    @property
    def words(self) -> str:
        """The form, for people."""
        return _WORDS[self]


_WORDS = {
    ModelForm.NAIVE_BAYES: "naive Bayes",
    ModelForm.GRADIENT: "noisy gradient descent",
    ModelForm.ADDITIVE: "additive, from naive Bayes by noisy gradients",
    ModelForm.ADDITIVE_SUMS: "additive, by noisy sums and gradients",
    ModelForm.SAMPLED_ADDITIVE: "additive, by noisy gradients of samples",
    ModelForm.LEAST_SQUARES: "least squares from noisy products",
    ModelForm.LINEAR: "least squares with confidence intervals, from noisy products",
    ModelForm.DECISION_TREES: "decision trees",
    ModelForm.RANDOM_TREES: "random trees, each from rows of its own",
    ModelForm.REGRESSION_TREES: "regression trees",
    ModelForm.CENTERS: "centers of clusters",
    ModelForm.COMPONENTS: "components by noisy products",
    ModelForm.BEST_OF_SEVERAL: "the best of several by a noisy score",
}


_COMPOSED = Theorem("rho-adds-up", "Bun & Steinke 2016, Lemma 2.3: ρ adds up, also adaptively")
_CONVERTED = Theorem("rho-converted", "Canonne, Kamath & Steinke 2020, Corollary 13, for ε at δ")
_ALONE = Condition(
    "model-sums-alone",
    "what a row adds to a sum is whole numbers that follow from this row and from earlier noisy results alone",
)
EVERY = Condition("every-sum-noisy", "every number of every sum gets noise of its own, those without a row too")
SUMS = (_ALONE, EVERY)
"""What holds for sums over all rows; steps that draw rows, deal them or choose have conditions of their own."""
_AFTER = Condition("model-from-results", "the model is made from the results of these steps alone, without the rows")
_SHOWN = Condition("model-file-fits", "the columns, classes and numbers of the model's file are those of these steps")
_INDEPENDENT = Exposure(
    "rows-of-one-person-learned",
    "rows of one person as such: they are learned from as if they were of different people",
)
_NUMBER = Exposure("number-of-rows", "how many rows there are: a replaced row leaves their number as it is")


def spent(inner: StepGuarantee, rho: Fraction, because: Theorem, unit: Unit) -> StepGuarantee:
    """Return a guarantee with one noisy sum or private choice more in front."""
    if inner.loss is None:
        return StepGuarantee(ZeroConcentrated(rho), (because,), assumptions(unit))
    if not isinstance(inner.loss, ZeroConcentrated):
        raise InvalidParameter("sums with Gaussian noise are followed by others of that kind alone.")
    reasons = dict.fromkeys((because, *(reason for reason in inner.because if reason != _COMPOSED), _COMPOSED))
    return StepGuarantee(ZeroConcentrated(rho + inner.loss.rho), tuple(reasons), inner.assumes)


def counts_guarantee(noise: Law, scale: Fraction, counts: int, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
    """Return a guarantee with noisy counts in front, to so many of which a row adds 1."""
    if noise is Law.GAUSSIAN:
        return spent(inner, gaussian_rho(scale, squared_move(unit, counts, aligned=True)), noise.source, unit)
    if inner.loss is not None:
        raise InvalidParameter("nothing else is summed beside tables with Laplace noise.")
    return StepGuarantee(Pure(summed_move(unit, counts) / scale), (noise.source,), assumptions(unit))


@dataclass(frozen=True)
class LearnFrom(Step):
    """Which columns a model reads, by their declared classes, and which one it predicts, if any."""

    kind: ClassVar[str] = "learn from columns"
    title: ClassVar[str] = "Learn from columns"
    glyph: ClassVar[str | None] = "coarser"

    columns: tuple[BinColumn, ...]
    target: str | None = None
    outputs: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.columns or any(column.size is None for column in self.columns):
            raise InvalidParameter("every column of a model has a list of classes.")

    @property
    def sentence(self) -> str:
        read = f"A model reads {counted(len(self.columns), 'column')}, each as one of its declared classes."
        if self.target is None:
            return read
        whom = f" It predicts “{self.target}”"
        among = "" if self.outputs is None else f", one of {counted(len(self.outputs), 'declared class')}"
        return f"{read}{whom}{among}; a row in which that is missing or not declared takes no part."


@dataclass(frozen=True)
class CountByTarget(Step):
    """For each column, rows are counted by its class and that of the target, each count with noise."""

    kind: ClassVar[str] = "count by target"
    title: ClassVar[str] = "Count by target"
    glyph: ClassVar[str | None] = "sorted"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    tables: int
    noise: Law
    scale: Fraction

    def __post_init__(self) -> None:
        if self.tables < 1 or self.scale <= 0:
            raise InvalidParameter("a table at least is counted, with noise of a scale above 0.")

    @property
    def law(self) -> Theorem:
        """Who proved what the noise costs."""
        return self.noise.source

    @property
    def sentence(self) -> str:
        return (
            f"For each of {counted(self.tables, 'column')}, rows are counted by its class and that of the target; "
            f"every count gets {self.noise} noise of scale {float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return counts_guarantee(self.noise, self.scale, self.tables, inner, unit)


@dataclass(frozen=True)
class CountAllRows(Step):
    """All rows that take part are counted, with noise."""

    kind: ClassVar[str] = "count all rows"
    title: ClassVar[str] = "Count all rows"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    scale: Fraction

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise InvalidParameter("noise has a scale above 0.")

    @property
    def sentence(self) -> str:
        return f"The rows are counted with integer Gaussian noise of scale {float(self.scale):.4g}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return spent(inner, gaussian_rho(self.scale, squared_move(unit, 1, aligned=True)), Law.GAUSSIAN.source, unit)


@dataclass(frozen=True)
class FollowGradients(Step):
    """Again and again, the residuals of all rows are summed for every class of every column, with noise.

    A row adds its residual, in units of `residual` for 1, once for each column and once for all rows: over several
    outputs its squared length is at most 2.
    """

    kind: ClassVar[str] = "follow gradients"
    title: ClassVar[str] = "Follow gradients"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    rounds: int
    columns: int
    outputs: int
    residual: int
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.rounds, self.columns, self.outputs, self.residual) < 1 or self.scale <= 0:
            raise InvalidParameter("gradients are followed for a round at least, with noise of a scale above 0.")

    @property
    def square(self) -> int:
        """The squared length of what one row adds in one round, at most."""
        return self.residual**2 * (1 if self.outputs == 1 else 2) * (self.columns + 1)

    @property
    def sentence(self) -> str:
        return (
            f"In {counted(self.rounds, 'round')}, by how much the model is off is summed over all rows, for each class "
            f"of {counted(self.columns, 'column')}, in whole numbers; every sum gets integer Gaussian noise of "
            f"{float(self.scale / self.residual):.4g} rows, and the model follows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        square = squared_move(unit, self.square, aligned=False)
        return spent(inner, self.rounds * gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)


@dataclass(frozen=True)
class SumByColumn(Step):
    """For each column, rows are counted as `weight` each and their targets summed, by the class of the column.

    A target is a whole number from −`reach` to `reach`.
    """

    kind: ClassVar[str] = "sum by column"
    title: ClassVar[str] = "Sum by column"
    glyph: ClassVar[str | None] = "sorted"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    tables: int
    reach: int
    weight: int
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.tables, self.reach, self.weight) < 1 or self.scale <= 0:
            raise InvalidParameter("the targets of a column at least are summed, with noise of a scale above 0.")

    @property
    def square(self) -> int:
        """The squared length of what one row adds, at most."""
        return self.tables * (self.reach**2 + self.weight**2)

    @property
    def sentence(self) -> str:
        return (
            f"For each class of {counted(self.tables, 'column')}, rows are counted, as {self.weight:,} each, and their "
            f"targets summed, as whole numbers up to {self.reach:,}; everything gets integer Gaussian noise of scale "
            f"{float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        square = squared_move(unit, self.square, aligned=False)
        return spent(inner, gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)


@dataclass(frozen=True)
class MultiplyColumns(Step):
    """Products of each two numbers of a row are summed over all rows, with noise.

    The numbers of a row are whole; their squares add up to at most `square`.  Squares get noise of `scale`, products of
    two different numbers of `beside`: all products of a row together have the length of the row, squared, if those of
    different numbers are weighed by √2.
    """

    kind: ClassVar[str] = "multiply columns"
    title: ClassVar[str] = "Multiply columns"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    numbers: int
    square: int
    scale: Fraction
    beside: Fraction

    def __post_init__(self) -> None:
        if self.numbers < 1 or self.square < 1 or self.scale <= 0 or 2 * self.beside**2 < self.scale**2:
            raise InvalidParameter("products of different numbers get at least 1/√2 of the noise that squares get.")

    @property
    def sentence(self) -> str:
        return (
            f"Each row becomes {counted(self.numbers, 'whole number')}, whose squares add up to at most "
            f"{self.square:,}; the products of every two of them are summed over all rows, with integer Gaussian noise "
            f"of scale {float(self.scale):.4g}, between different numbers {float(self.beside):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        square = squared_move(unit, self.square**2, aligned=True)
        return spent(inner, gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)


@dataclass(frozen=True)
class MoveCenters(Step):
    """Again and again, rows are summed and counted for the center that they are nearest to, with noise.

    The first round has public points in place of centers, as many as `points`; the next ones start where their noisy
    sums lead.  A row is in one sum of each round, however many there are.  The numbers of a row are whole; their
    squares add up to at most `square`; each row counts as `weight`.
    """

    kind: ClassVar[str] = "move centers"
    title: ClassVar[str] = "Move centers"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    rounds: int
    points: int
    centers: int
    numbers: int
    square: int
    weight: int
    scale: Fraction

    def __post_init__(self) -> None:
        least = min(self.rounds, self.points, self.centers, self.numbers, self.square, self.weight)
        if least < 1 or self.scale <= 0:
            raise InvalidParameter("a center at least is moved, for a round at least, with noise of a scale above 0.")

    @property
    def sentence(self) -> str:
        return (
            f"In {counted(self.rounds, 'round')}, each row goes to the nearest of some points: first of "
            f"{counted(self.points, 'public point')}, then of {counted(self.centers, 'center')} that the noisy sums "
            f"before lead to. For each of them, {counted(self.numbers, 'whole number')} of its rows are summed, and "
            f"the rows are counted, with integer Gaussian noise of scale {float(self.scale):.4g}."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        square = squared_move(unit, self.square + self.weight**2, aligned=False)
        return spent(inner, self.rounds * gaussian_rho(self.scale, square), Law.GAUSSIAN.source, unit)


@dataclass(frozen=True)
class CountGrid(Step):
    """Rows are counted in the cells of a grid over the declared bounds, each count with noise, empty cells too."""

    kind: ClassVar[str] = "count on a grid"
    title: ClassVar[str] = "Count on a grid"
    glyph: ClassVar[str | None] = "sorted"
    proves: ClassVar[tuple[Condition, ...]] = SUMS

    columns: int
    parts: int
    noise: Law
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.columns, self.parts) < 1 or self.scale <= 0:
            raise InvalidParameter("a grid has a cell at least, and counts have noise of a scale above 0.")

    @property
    def law(self) -> Theorem:
        """Who proved what the noise costs."""
        return self.noise.source

    @property
    def sentence(self) -> str:
        return (
            f"Rows are counted on a grid, {self.parts:,} parts along each of {counted(self.columns, 'column')}; each "
            f"of {self.parts**self.columns:,} counts gets {self.noise} noise of scale {float(self.scale):.4g}, and "
            "the centers are those of the noisy counts."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        return counts_guarantee(self.noise, self.scale, 1, inner, unit)


@dataclass(frozen=True)
class PublishModel(Step):
    """The model is published: as a table of its numbers, and as a file that can be used."""

    documents: ClassVar[tuple[str, ...]] = ("model.json",)
    kind: ClassVar[str] = "publish a model"
    title: ClassVar[str] = "Publish the model"

    model: ModelForm

    @property
    def sentence(self) -> str:
        return (
            f"The model ({self.model.words}) is computed from the results of the steps before, without further access "
            "to the rows, and published."
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        unit, guarantee, loss = basis.unit, basis.guarantee, basis.guarantee.loss
        several = (_INDEPENDENT,) if unit.max_rows > 1 else ()
        number = (_NUMBER,) if unit.adjacency is Adjacency.REPLACE else ()
        shared = {
            "epsilon": basis.epsilon,
            "adjacency": unit.adjacency,
            "max_rows": unit.max_rows,
            "unit": unit,
            "preconditions": (*proved(*_proofs(basis), _AFTER), *checked(_SHOWN), *assumed(guarantee.assumes)),
            "not_protected": (GROUPS, *several, *number),
        }
        if isinstance(loss, Sequence):
            return (ApproximatePrivacy(**shared, delta=guarantee.delta, theorem=guarantee.because),)  # type: ignore[arg-type]
        if guarantee.delta:
            rho, theorem = getattr(loss, "rho", None), (*guarantee.because, _CONVERTED)
            return (ApproximatePrivacy(**shared, delta=guarantee.delta, rho=rho, theorem=theorem),)  # type: ignore[arg-type]
        return (PurePrivacy(**shared, theorem=guarantee.because),)  # type: ignore[arg-type]


def _proofs(basis: ClaimBasis) -> tuple[Condition, ...]:
    """Return what each mechanism of a model proves, those of candidates included, each once."""
    return tuple(dict.fromkeys(condition for step in walk(basis.steps) for condition in getattr(step, "proves", ())))
