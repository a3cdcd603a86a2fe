"""Safe: a secret sample, recoded blindly, with every tuple seen fewer than k times dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from markupsafe import Markup

from incrowd.accounting.suppression.theorems import theorem1_delta, theorem6_delta
from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import (
    RobustTheorem,
    RobustZeroKnowledge,
)
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import LevelsByLook, SuppressAfterLook
from incrowd.core.steps.rows import KeepRows, Order, Recode, keep_rows, recode
from incrowd.core.steps.samples import DrawnBefore, DrawnHere, EveryRow, SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.steps.suppression import Suppress, publishable
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.drawing.charts import Share, class_sizes, share_bars
from incrowd.drawing.markup import joined, table, tag
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.shared.classes import SAMPLED_CLAIMS, MicrodataCheck, MicrodataPicture
from incrowd.methods.shared.columns import refuse_names, row_limits
from incrowd.methods.shared.microdata import WEIGHT, Microdata
from incrowd.methods.shared.robust import Robust, draw_sample, published_numbers, solve_robust, survey, with_chances
from incrowd.methods.shared.sampling import Parameters, SampledSuppression, Target, solve
from incrowd.verifier.check import Problem, maybe, one


@dataclass(frozen=True)
class Safe(SampledSuppression):
    """(k, β)-sampled suppression on declared levels: microdata that is differentially private.

    Guarantee: (ε, δ)-differential privacy by the tight curve of sampled suppression; (k, 0)-crowd-blending; zero-
    knowledge with respect to the sample; k-anonymity of the output, over all released columns, the sensitive ones too.
    At rate 1 there is no sample: crowd-blending and k-anonymity remain, and no ε.  With `robust` the rows are a biased
    sample that others drew: every row is read, and the guarantee is that of Theorem 2 of the second paper.  With
    `chosen` a private look chose the levels: differential privacy and k-anonymity remain, on top of what the look cost.

    Assumes: the coins stay secret; levels, recoding and parameters were chosen without looking at the rows; one row
    is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Qardaji & Su 2010 (SDGS, Theorem 1); Gehrke, Hay, Lui & Pass 2012 (Example 1, Theorem 1).

    >>> safe = Safe(epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))
    >>> safe.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "safe"

    levels: Mapping[str, int] = field(default_factory=dict)
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    weights: bool = False
    robust: Robust | None = None
    chosen: LevelsByLook | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.target is None and not (self.unsampled and self.k is not None):
            raise InvalidParameter(
                "method safe needs delta and two of epsilon, k and rate. Only at rate 1, which guarantees no "
                "differential privacy, is k enough."
            )
        if self.weights and self.unsampled:
            raise InvalidParameter("at rate 1 every weight is 1: leave weights out.")
        if self.robust is not None and (self.rate is not None or self.weights or self.target is None):
            raise InvalidParameter("with robust the rows are a sample already: leave rate and weights out, give delta.")
        if self.chosen is not None and (self.unsampled or self.robust is not None):
            raise InvalidParameter(
                "levels chosen by a private look need a secret sample: without one, or with robust, crowds are "
                "guaranteed, and who is in which would depend on the rows. Give a rate below 1, or leave chosen out."
            )

    @property
    def target(self) -> Target | None:
        """ε and δ as one value; None without δ."""
        return Target.of(self.epsilon, self.delta)

    @property
    def unsampled(self) -> bool:
        return self.rate == 1

    def parameters(self, unit: Unit) -> Parameters:
        if self.target is not None and self.robust is not None:
            return solve_robust(self.k, self.robust, self.target, unit)
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give a rate below 1.")
        return solve(self.k, self.rate, self.target, unit)

    def cells(self, schema: Schema) -> Cells:
        cells = Cells.of(schema, self.levels)
        if self.weights and WEIGHT in cells.names:
            raise InvalidParameter(f"a column {WEIGHT!r} is released already: leave weights out.")
        if self.robust is not None and self.robust.probability is not None:
            with_chances(cells, schema, self.robust.probability)
        refuse_names(cells)
        return cells

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; levels or domains drafted from rows leave nothing but k-anonymity."""
        unit, cells, k = schema.unit, self.cells(schema), self.smallest_class(schema)
        if self.unsampled and unit.max_rows > 1:
            raise InvalidParameter("at rate 1 people with several rows have no crowd: keep max_rows at 1.")
        parameters = None if self.unsampled or schema.drafted else self.parameters(unit)
        steps = self.steps(unit, cells, k)
        return Plan(
            self.name,
            steps,
            fold(steps, unit, Fraction(0) if parameters is None else parameters.delta),
            {} if parameters is None else self.numbers(parameters),
            self.release,
            k,
            {"k": k} if parameters is None else asdict(parameters),
            cells=self._counted(cells, schema),
        )

    def _counted(self, cells: Cells, schema: Schema) -> Cells:
        """Return the cells that are counted: with the chance of each row, where rows come from a biased sample."""
        if self.robust is None or self.robust.probability is None:
            return cells
        return with_chances(cells, schema, self.robust.probability)

    def at_epsilon(self, epsilon: Fraction) -> Safe | None:
        return replace(self, epsilon=epsilon) if self.k is None and self.delta is not None else None

    def steps(self, unit: Unit, cells: Cells, k: int) -> tuple[Step, ...]:
        """Return what happens to rows: a look that chose the levels stands in front, and takes crowds' claims away."""
        rows = (*keep_rows(unit), self.sample(unit), recode(cells))
        if self.chosen is None:
            return (*rows, Suppress(k), Order(self.weights))
        return (self.chosen, *rows, SuppressAfterLook(k), Order(self.weights))

    def smallest_class(self, schema: Schema) -> int:
        """Return k."""
        return self.k if self.k is not None else self.parameters(schema.unit).k

    def sample(self, unit: Unit) -> Step:
        """Return the step that says which rows are read."""
        if self.unsampled:
            return EveryRow()
        return SecretSample(self.parameters(unit).rate) if self.robust is None else survey(self.robust)

    def numbers(self, parameters: Parameters) -> Mapping[str, Any]:
        """Return what the accountants computed for the claims."""
        k, rate, epsilon = parameters.k, parameters.rate, parameters.epsilon
        if self.robust is not None:
            return {"epsilon": epsilon, **published_numbers(k, self.robust.bias)}
        if self.chosen is not None or not publishable(epsilon, rate):
            return {"epsilon": epsilon}
        return {
            "epsilon": epsilon,
            "delta of theorem 1": theorem1_delta(k, rate, Fraction(epsilon)),
            "delta of theorem 6": theorem6_delta(k, rate, Fraction(epsilon)),
        }

    def release(self, table: Table, coins: Coins) -> Microdata:
        """Count the sampled rows of each tuple in one pass and keep the tuples seen at least k times."""
        schema, unit, k = table.schema, table.schema.unit, self.smallest_class(table.schema)
        filters = [*row_limits(table, coins)]
        if not self.unsampled and self.robust is None:
            filters.append(coins.sample(self.parameters(unit).rate))
        cells, robust = self.cells(schema), self.robust
        if robust is not None and robust.probability is not None:
            split = table.engine.count(table.rows, self._counted(cells, schema), *filters)
            counts = draw_sample(split, robust.low, robust.high, coins).at_least(k)
        else:
            counts = table.engine.count(table.rows, cells, *filters, at_least=k).at_least(k)
        return Microdata(counts, 1 / self.parameters(unit).rate if self.weights else None)


@dataclass(frozen=True, kw_only=True)
class SafeCheck(MicrodataCheck):
    """The check of microdata, whose levels a private look may have chosen."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        chosen, after = basis.find(LevelsByLook), basis.find(SuppressAfterLook)
        if (chosen is None) != (after is None) or (chosen and basis.find(SecretSample) is None):
            return Problem("levels by a private look, and suppression behind it on a secret sample, go together")
        return super().contradiction(statement)


_MOST_CLASSES = 24
_MISSING = "(missing)"
_REST = "(all others)"


class SafePicture(MicrodataPicture):
    """Equivalence classes over all columns, and for the data holder each column before and after."""

    def comparison(self, statement: Statement, output: Microdata, schema: Schema) -> BeforeAndAfter:
        sample, recoding = statement.basis.find(SecretSample), statement.basis.need(Recode)
        levels = {column.column: column.level for column in recoding.columns}
        return BeforeAndAfter(output.counts, Cells.of(schema, levels), Fraction(1) if sample is None else sample.rate)


@dataclass(frozen=True)
class BeforeAndAfter:
    """Released rows, the cells in which original ones are counted beside them, and the rate of the secret sample."""

    released: Counts
    cells: Cells
    rate: Fraction

    def section(self, original: Counts) -> Markup:
        """Return what became of the rows: totals, sizes of classes, and every column before and after."""
        if self.released.names != original.names:
            raise InvalidParameter("the original must be counted over the released columns, in their order.")
        columns = [tag("div", share_bars(name, shares_of(self.released, original, name))) for name in original.names]
        inside = tag("strong", "Nothing here may leave.")
        return joined(
            [
                tag("p", "From the original rows, recoded like the released ones. ", inside),
                self._totals(original),
                tag("div", class_sizes(original.counts, "original rows") or "", class_="sizes"),
                tag("div", *columns, class_="pair"),
            ]
        )

    def _totals(self, original: Counts) -> Markup:
        released, rate = self.released, float(self.rate)
        share = released.total / max(1, original.total)
        once = [f"{int(np.count_nonzero(counts.counts == 1)):,}" for counts in (original, released)]
        rows = [
            ["Rows", f"{original.total:,}", f"{released.total:,}"],
            ["Different combinations of values", f"{len(original):,}", f"{len(released):,}"],
            ["Combinations that occur once", *once],
            ["Share of the rows that was released", "", f"{100 * share:.2f} %"],
            ["Share that a sample draws on average", "", f"{100 * rate:.2f} %"],
            ["Share of the sample that was too rare, about", "", f"{100 * max(0.0, 1.0 - share / rate):.1f} %"],
        ]
        return table("Rows before and after", ["", "Original, recoded", "Released"], rows)


def shares_of(released: Counts, original: Counts, name: str) -> tuple[Share, ...]:
    """Return the classes of a column in order; of many, the largest ones, and the others together."""
    before, after = _marginal(original, name), _marginal(released, name)
    if any(isinstance(label, float) for label in before):  # published files are read as text
        after = {label if label is None else float(str(label)): part for label, part in after.items()}
    one, other = ({_spelled(label): part for label, part in side.items()} for side in (before, after))
    shares = [Share(label, one.get(label, 0.0), other.get(label, 0.0)) for label in one | other]
    if len(shares) <= _MOST_CLASSES:
        return tuple(shares)
    largest = sorted(shares, key=lambda share: max(share.before, share.after), reverse=True)[: _MOST_CLASSES - 1]
    ids = set(map(id, largest))
    rest = [share for share in shares if id(share) not in ids]
    others = Share(_REST, sum(share.before for share in rest), sum(share.after for share in rest))
    return (*(share for share in shares if id(share) in ids), others)


def _marginal(counts: Counts, name: str) -> dict[object, float]:
    one = counts.marginal([name])
    labels, total = one.classes[0].labels().to_pylist(), max(1, one.total)
    return {labels[code]: int(n) / total for code, n in zip(one.codes()[0], one.counts, strict=True)}


def _spelled(label: object) -> str:
    return _MISSING if label is None else str(label)


CHECK = SafeCheck(
    order=(
        maybe(LevelsByLook),
        maybe(KeepRows),
        one(EveryRow, SecretSample, DrawnBefore, DrawnHere),
        one(Recode),
        one(Suppress, SuppressAfterLook),
        one(Order),
    ),
    claims=(*SAMPLED_CLAIMS, RobustZeroKnowledge, RobustTheorem),
)
PICTURE = SafePicture()
METHOD = Safe
