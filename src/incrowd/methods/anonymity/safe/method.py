"""Safe: a secret sample, recoded blindly, with every tuple seen fewer than k times dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.accounting.suppression.theorems import theorem1_delta, theorem6_delta
from incrowd.core.cells import Cells
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.choices import LevelsByLook, SuppressAfterLook
from incrowd.core.steps.rows import Order, keep_rows, recode
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.steps.suppression import Suppress, publishable
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.cells import refuse_names
from incrowd.methods.crowds.parameters import Parameters, Target, solve
from incrowd.methods.crowds.robust import Robust, draw_sample, published_numbers, solve_robust, survey, with_chances
from incrowd.methods.outcomes.microdata import WEIGHT, Microdata
from incrowd.methods.person_rows import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table


@dataclass(frozen=True)
class Safe:
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
            raise InvalidParameter(
                "robust says that the rows are a sample already: leave rate and weights out, and give delta."
            )
        if self.chosen is not None and (self.unsampled or self.robust is not None):
            raise InvalidParameter(
                "levels chosen by a private look need a secret sample: without one, or with robust, crowds are "
                "guaranteed, and who stands in which would hang on the rows. Give a rate below 1, or leave chosen out."
            )

    @property
    def target(self) -> Target | None:
        """ε and δ as one value; None without δ."""
        return Target.of(self.epsilon, self.delta)

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        return self.rate == 1

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.target is not None and self.robust is not None:
            return solve_robust(self.k, self.robust, self.target, unit)
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give a rate below 1.")
        return _solved(self.k, self.rate, self.target, unit)

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that can be released, or refuse free text that nothing makes coarser."""
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
            raise InvalidParameter(
                "at rate 1 crowds of rows say nothing about people with several rows: keep max_rows at 1."
            )
        found = None if self.unsampled or schema.drafted else self.parameters(unit)
        steps = self.steps(unit, cells, k)
        return Plan(
            self.name,
            steps,
            fold(steps, unit, Fraction(0) if found is None else found.delta),
            {} if found is None else self.numbers(found),
            self.release,
            k,
            {"k": k} if found is None else asdict(found),
            cells=self._counted(cells, schema),
        )

    def _counted(self, cells: Cells, schema: Schema) -> Cells:
        """Return the cells that are counted: with the chance of each row, where rows come from a biased sample."""
        if self.robust is None or self.robust.probability is None:
            return cells
        return with_chances(cells, schema, self.robust.probability)

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

    def numbers(self, found: Parameters) -> Mapping[str, Any]:
        """Return what the accountants computed for the claims."""
        if self.robust is not None:
            return {"epsilon": found.epsilon, **published_numbers(found.k, self.robust.bias)}
        if self.chosen is not None or not publishable(found.epsilon, found.rate):
            return {"epsilon": found.epsilon}
        epsilon = Fraction(found.epsilon)
        return {
            "epsilon": found.epsilon,
            "delta of theorem 1": theorem1_delta(found.k, found.rate, epsilon),
            "delta of theorem 6": theorem6_delta(found.k, found.rate, epsilon),
        }

    def release(self, table: Table, coins: Coins) -> Microdata:
        """Count the sampled rows of each tuple in one pass and keep the tuples seen at least k times."""
        schema, unit, k = table.schema, table.schema.unit, self.smallest_class(table.schema)
        kept = [*row_limits(table, coins)]
        if not self.unsampled and self.robust is None:
            kept.append(coins.sample(self.parameters(unit).rate))
        cells, robust = self.cells(schema), self.robust
        if robust is not None and robust.probability is not None:
            split = table.engine.count(table.rows, self._counted(cells, schema), *kept)
            counts = draw_sample(split, robust.low, robust.high, coins).at_least(k)
        else:
            counts = table.engine.count(table.rows, cells, *kept, at_least=k).at_least(k)
        return Microdata(counts, 1 / self.parameters(unit).rate if self.weights else None)


@lru_cache(maxsize=256)
def _solved(k: int | None, rate: Fraction | None, target: Target, unit: Unit) -> Parameters:
    return solve(k, rate, target, unit)
