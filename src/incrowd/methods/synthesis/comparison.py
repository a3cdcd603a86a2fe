"""Comparison: several ways to synthesize one table, and the rows of the one whose private error is smallest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from incrowd.accounting.concentrated import epsilon_of_rho, largest_rho
from incrowd.core.claims.claim import proved
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step, StepGuarantee, fold
from incrowd.core.terms import Condition
from incrowd.core.words import counted
from incrowd.drawing.markup import Description, joined, table
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.sampling import charged
from incrowd.methods.synthesis.marginals.budget import DETAIL
from incrowd.methods.synthesis.marginals.check import SyntheticCheck
from incrowd.methods.synthesis.marginals.constraints import Constraint
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.output import STATED, SyntheticPicture, SyntheticRows
from incrowd.methods.synthesis.marginals.steps import DrawRows, MeasureTables
from incrowd.methods.synthesis.tree import SpanningTree
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema
    from incrowd.core.steps.step import ClaimBasis
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.methods.synthesis.marginals.evaluation import Evaluation

_CHOSEN = Condition(
    "synthesis-by-private-error",
    "every run was paid from ρ with its noisy error, and which rows are released follows from these errors alone",
)
_MOST = 8  # every run gets an equal part of ρ: with more than a few, all are mostly noise
_DIGITS = 10**6  # an ε of a run has six decimals, rounded down
_UNREADABLE = (KeyError, TypeError, ValueError, IndexError)
_BEST, _ERRORS, _MARGINS = "way", "errors of ways", "margins of ways"


@dataclass(frozen=True)
class CompareSyntheses(Step):
    """Each of several ways measures tables within its own ρ, and says with noise how good its rows are.

    The rows of the one with the smallest noisy error are released, and the noisy errors of all.
    """

    kind: ClassVar[str] = "compare syntheses"
    title: ClassVar[str] = "Compare ways to synthesize"
    glyph: ClassVar[str | None] = "coarser"
    proves: ClassVar[tuple[Condition, ...]] = (_CHOSEN,)

    names: tuple[str, ...]
    candidates: tuple[MeasureTables, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.candidates) <= _MOST or len(set(self.names)) != len(self.candidates):
            raise InvalidParameter(f"2 to {_MOST} ways to synthesize are compared, each under a name of its own.")

    @property
    def rho(self) -> Fraction:
        """What all runs cost together."""
        return sum((candidate.rho for candidate in self.candidates), Fraction(0))

    @property
    def held(self) -> tuple[Step, ...]:
        return self.candidates

    @property
    def sentence(self) -> str:
        ways = "; ".join(
            f"“{name}”: {candidate.sentence}" for name, candidate in zip(self.names, self.candidates, strict=True)
        )
        return (
            f"{counted(len(self.names), 'way')} to synthesize run one after the other, and each measures the mean "
            f"error of its rows with noise; the rows with the smallest noisy error are released. {ways}"
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        parts = [candidate.around(inner, unit) for candidate in self.candidates]
        reasons = tuple(dict.fromkeys(reason for part in parts for reason in part.because))
        return StepGuarantee(
            ZeroConcentrated(self.rho), reasons, frozenset[Any]().union(*(part.assumes for part in parts))
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        whole = replace(self.candidates[0], rho=self.rho).claims(basis)
        return tuple(
            replace(claim, preconditions=(*proved(_CHOSEN), *claim.preconditions))
            for claim in whole
            if isinstance(claim, ApproximatePrivacy)
        )


@dataclass(frozen=True)
class Candidate:
    """A way to synthesize: a method with the parameters that are its own."""

    method: Literal["marginals", "tree"] = "marginals"
    workload: tuple[tuple[str, ...], ...] | None = None
    rounds: int | None = None
    cells: int = 100_000
    target_column: str | None = None
    detail: Fraction = DETAIL


@dataclass(frozen=True, eq=False)
class ComparedRows(SyntheticRows):
    """Synthetic rows, and the noisy errors of all ways among which theirs was the smallest."""

    compared: tuple[Evaluation, ...] = ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        own = super().evidence(unit, private=private)
        if not self.compared:
            return own
        errors = [f"{evaluation.error:.6f}" for evaluation in self.compared]
        margins = [f"{evaluation.margin:.6f}" for evaluation in self.compared]
        return own | {_ERRORS: errors, _MARGINS: margins, _BEST: smallest(list(map(float, errors)))}


def smallest(errors: Sequence[float]) -> int:
    """Return the place of the smallest error, the first among equals.

    >>> smallest([0.2, 0.1, 0.1])
    1
    """
    return min(range(len(errors)), key=errors.__getitem__)


@dataclass(frozen=True)
class SyntheticComparison(Method):
    """Synthetic rows by the best of several ways, which share a budget and are compared by their private errors.

    Guarantee: (ε, δ)-differential privacy of everything together: all runs, their noisy errors, which one is the best,
    its model, and every row drawn from it now or later.

    Assumes: ways, domains and levels were declared without looking at the rows.

    Source: Bun & Steinke 2016 (ρ adds up), and what each way rests on.
    """

    name: ClassVar[str] = "comparison"

    epsilon: Fraction
    delta: Fraction
    candidates: Mapping[str, Candidate]
    rows: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    zeros: tuple[Mapping[str, str | tuple[str, ...]], ...] = ()
    total: int | None = None
    constraints: tuple[Constraint, ...] = ()
    contradictions: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        if not 2 <= len(self.candidates) <= _MOST:
            raise InvalidParameter(
                f"a comparison has 2 to {_MOST} candidates, each under a name: with one there is nothing to compare, "
                "and the methods marginals and tree leave it all of the budget."
            )
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise InvalidParameter("a model needs an epsilon above 0, and a delta strictly between 0 and 1.")
        self.ways()  # raises where a parameter is out of range

    def ways(self) -> dict[str, Marginals]:
        """Return the method of each candidate, at an equal part of the budget."""
        epsilon = self.epsilon_of_one()
        return {name: self._way(candidate, epsilon) for name, candidate in self.candidates.items()}

    def epsilon_of_one(self) -> Fraction:
        """Return an ε with which as many runs as there are candidates cost at most ε together, rounded down."""
        part = largest_rho(self.epsilon, self.delta) / len(self.candidates)
        epsilon = Fraction(math.floor(epsilon_of_rho(part, self.delta) * _DIGITS), _DIGITS)
        while epsilon > 0 and largest_rho(epsilon, self.delta) > part:
            epsilon -= Fraction(1, _DIGITS)
        return epsilon

    def _way(self, candidate: Candidate, epsilon: Fraction) -> Marginals:
        way = {"marginals": Marginals, "tree": SpanningTree}[candidate.method]
        return way(
            epsilon,
            self.delta,
            self.rows,
            candidate.workload,
            candidate.rounds,
            candidate.cells,
            self.levels,
            self.zeros,
            self.total,
            constraints=self.constraints,
            contradictions=self.contradictions,
            target_column=candidate.target_column,
            detail=candidate.detail,
        )

    def classes(self, schema: Schema) -> tuple[Classes, ...]:
        """Return the classes of each released column, which all ways share: their errors are of the same tables."""
        return next(iter(self.ways().values())).classes(schema)

    def plan(self, schema: Schema) -> Plan:
        plans = {name: way.plan(schema) for name, way in self.ways().items()}
        first = next(iter(plans.values()))
        measured = tuple(step for plan in plans.values() for step in plan.steps if isinstance(step, MeasureTables))
        compare = CompareSyntheses(tuple(plans), measured)
        steps = tuple(compare if isinstance(step, MeasureTables) else step for step in first.steps)
        guarantee = fold(steps, schema.unit, self.delta)
        spent = charged(guarantee.loss, self.delta, schema.unit.adjacency)
        settings = {**first.settings, "epsilon": spent, "rho": compare.rho, "ways": len(plans)}
        return Plan(self.name, steps, guarantee, {"epsilon": spent}, self.release, None, settings)

    def release(self, table: Table, coins: Coins) -> ComparedRows:
        """Run every way, and return the rows whose noisy error is the smallest."""
        results = [way.release(table, coins) for way in self.ways().values()]
        errors = tuple(result.evaluation for result in results if result.evaluation is not None)
        best = results[smallest([float(f"{evaluation.error:.6f}") for evaluation in errors])]
        return ComparedRows(
            best.table, best.model, best.search, best.evaluation, best.names, best.declared, compared=errors
        )


def of_best(statement: Statement) -> Statement:
    """Return what is said of the way whose rows are released, as if it had run alone."""
    compare = statement.basis.need(CompareSyntheses)
    own = compare.candidates[statement.evidence[_BEST]]
    steps = tuple(own if step is compare else step for step in statement.steps)
    evidence = {key: value for key, value in statement.evidence.items() if key not in (_BEST, _ERRORS, _MARGINS)}
    return replace(statement, basis=replace(statement.basis, steps=steps), evidence=evidence)


class ComparisonCheck(SyntheticCheck):
    """The files of the best of several ways to synthesize, and that it is the one with the smallest stated error."""

    def __init__(self) -> None:
        super().__init__(
            order=(maybe(KeepRows), one(RecodeToBins), one(CompareSyntheses), one(DrawRows)),
            stated=STATED | {_BEST, _ERRORS, _MARGINS},
        )

    def contradiction(self, statement: Statement) -> Problem | None:
        compare = statement.basis.need(CompareSyntheses)
        first = compare.candidates[0]
        if any((item.columns, item.public) != (first.columns, first.public) for item in compare.candidates):
            return Problem("the ways that were compared have other columns or other declarations")
        try:
            errors, margins, place = (statement.evidence[key] for key in (_ERRORS, _MARGINS, _BEST))
            lengths = {len(errors), len(margins), len(compare.names)}
            least = smallest([float(error) for error in errors])
            proper = all(0 <= float(error) <= 1 for error in errors) and all(float(margin) >= 0 for margin in margins)
            own = (statement.evidence["mean error of pairs"], statement.evidence["margin of the error"])
            same = type(place) is int and (errors[place], margins[place]) == own
        except _UNREADABLE:
            return Problem("the errors of the ways that were compared cannot be read")
        if not proper or len(lengths) > 1 or not same:
            return Problem("other ways were compared than the steps say, or their errors are no shares")
        if place != least:
            return Problem("the rows are not those with the smallest error")
        return super().contradiction(of_best(statement))

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        return super().inspect(of_best(statement), files)

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        return super().recount(of_best(statement), output)


class ComparisonPicture(SyntheticPicture):
    """The best of several ways to synthesize in a report: as any synthetic rows, and the errors of all ways."""

    def description(self, statement: Statement) -> Description:
        own, names = super().description(of_best(statement)), statement.basis.need(CompareSyntheses).names
        best = names[statement.evidence[_BEST]]
        return replace(own, full=f"{own.full} They are the best of {counted(len(names), 'way')}: “{best}”.")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        names = statement.basis.need(CompareSyntheses).names
        errors, margins = statement.evidence[_ERRORS], statement.evidence[_MARGINS]
        rows = [
            [name, f"{float(error):.2%}", f"± {float(margin):.2%}"]
            for name, error, margin in zip(names, errors, margins, strict=True)
        ]
        ways = table("Mean error of all pairs of columns, measured privately", ["way", "error", "margin"], rows)
        rest = super().draw(of_best(statement), output)
        return ways if rest is None else joined([ways, rest])


CHECK = ComparisonCheck()
PICTURE = ComparisonPicture()
METHOD = SyntheticComparison
