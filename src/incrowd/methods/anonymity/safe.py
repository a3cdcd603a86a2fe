"""Safe: a secret sample, recoded blindly, with every tuple seen fewer than k times dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.cells import Cells
from incrowd.core.domain import Text
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Syntactic
from incrowd.core.schema import Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.crowds import robust_claims, safe_claims
from incrowd.methods.crowds.drawing import drawn, with_chances
from incrowd.methods.crowds.parameters import Parameters, Target, loss_of, solve
from incrowd.methods.crowds.robust import Robust, sample_step, solve_robust
from incrowd.methods.outcomes.microdata import WEIGHT, Microdata

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.table import Kept, Table

_TIGHT = "Li, Qardaji & Su 2010, Theorem 1, by its tight curve"
_BLENDING = "Gehrke, Hay, Lui & Pass 2012, Example 1"
_PEOPLE = "group privacy over a person's rows, each with a coin of its own"


@dataclass(frozen=True)
class Safe:
    """(k, β)-sampled suppression on declared levels: microdata that is differentially private.

    Promise: (ε, δ)-differential privacy by the tight curve of sampled suppression; (k, 0)-crowd-blending; zero-
    knowledge with respect to the sample; k-anonymity of the output, over all released columns, the sensitive ones too.
    At rate 1 there is no sample: crowd-blending and k-anonymity remain, and no ε.  With `robust` the rows are a biased
    sample that others drew: every row is read, and the promise is that of Theorem 2 of the second paper.

    Assumes: the coins stay secret; levels, recoding and parameters were chosen without looking at the rows; one row
    is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Qardaji & Su 2010 (SDGS, Theorem 1); Gehrke, Hay, Lui & Pass 2012 (Example 1, Theorem 1).

    >>> safe = Safe(target=Target(Fraction(1, 10**6), Fraction(1)), rate=Fraction(1, 10))
    >>> safe.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "safe"

    levels: Mapping[str, int] = field(default_factory=dict)
    target: Target | None = None
    rate: Fraction | None = None
    k: int | None = None
    weights: bool = False
    robust: Robust | None = None

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.target is None and not (self.unsampled and self.k is not None):
            raise InvalidParameter(
                "method safe needs target: {delta: …}, with epsilon or with both k and rate. "
                "Only at rate 1, which promises no differential privacy, is k enough."
            )
        if self.weights and self.unsampled:
            raise InvalidParameter("at rate 1 every weight is 1: leave weights out.")
        if self.robust is not None and (self.rate is not None or self.weights or self.target is None):
            raise InvalidParameter(
                "robust says that the rows are a sample already: leave rate and weights out, and give target: {delta}."
            )

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

    def smallest_class(self, schema: Schema) -> int:
        """Return k."""
        return self.k if self.k is not None else self.parameters(schema.unit).k

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return k, and where there is a sample the rate, ε and δ, the solved one named."""
        if self.unsampled or schema.drafted:
            return {"k": self.smallest_class(schema)}
        return asdict(self.parameters(schema.unit))

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that can be released, or refuse free text that nothing makes coarser."""
        cells = Cells.of(schema, self.levels)
        if self.weights and WEIGHT in cells.names:
            raise InvalidParameter(f"a column {WEIGHT!r} is released already: leave weights out.")
        if self.robust is not None and self.robust.probability is not None:
            with_chances(cells, schema, self.robust.probability)
        for recoding in cells.recodings:
            if recoding.level == 0 and recoding.column.pseudonymous:
                raise InvalidParameter(
                    f"the column {recoding.column.name!r} has a pseudonym: level 0 would release the name behind it."
                )
            if recoding.level == 0 and isinstance(recoding.column.domain, Text):
                raise InvalidParameter(
                    f"the column {recoding.column.name!r} would be released as free text. List its categories, give it "
                    "a hierarchy and a level above 0, or make it an identifier, which is never released."
                )
        return cells

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone; levels or domains drafted from rows leave nothing but k-anonymity."""
        self.cells(schema)
        k = self.smallest_class(schema)
        if self.unsampled and schema.unit.max_rows > 1:
            raise InvalidParameter(
                "at rate 1 crowds of rows say nothing about people with several rows: keep max_rows at 1."
            )
        if schema.drafted:
            loss = Syntactic("k-anonymity", (("k", str(k)), ("drafted from rows", ", ".join(schema.drafted))))
            return Guarantee(loss, schema.unit, "counted in the output; what was drafted from rows voids the rest")
        if self.unsampled:
            return Guarantee(Crowd(k), schema.unit, _BLENDING, safe_claims.assumptions(schema.unit, sampled=False))
        found = self.parameters(schema.unit)
        if self.robust is not None:
            assumed = robust_claims.assumptions(self.robust, schema.unit)
            return Guarantee(self.robust.loss(found.k), schema.unit, robust_claims.THEOREM, assumed, found.delta)
        because = _TIGHT if schema.unit.max_rows == 1 else f"{_TIGHT}; {_PEOPLE}"
        return Guarantee(
            loss_of(found.k, found.rate, schema.unit),
            schema.unit,
            because,
            safe_claims.assumptions(schema.unit, sampled=True),
            found.delta,
        )

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the claims in order of strength."""
        if schema.drafted:
            anonymous = safe_claims.k_anonymity(self.smallest_class(schema), self.cells(schema).names, schema.unit)
            return (anonymous, *safe_claims.pseudonyms(schema))
        found = None if self.unsampled else self.parameters(schema.unit)
        if found is not None and self.robust is not None:
            biased = robust_claims.claims(found, self.robust, self.cells(schema).names, schema.unit)
            return (*biased, *safe_claims.pseudonyms(schema))
        made = safe_claims.claims(self.smallest_class(schema), found, self.cells(schema).names, schema.unit)
        return (*made, *safe_claims.pseudonyms(schema))

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the steps: whose rows, which sample, which recoding, which suppression, which order."""
        steps: list[Mapping[str, Any]] = [
            self._sample(schema),
            {"step": "recode", "columns": _recodings(self.cells(schema))},
        ]
        if schema.unit.kind is Kind.PERSON:
            rule = {
                "column": schema.unit.column,
                "rows": schema.unit.max_rows,
                "rule": "at random among a person's own",
            }
            steps.insert(0, {"step": "keep rows of each person", **rule})
        steps.append({"step": "suppress", "k": self.smallest_class(schema), "over": "all released columns"})
        return (*steps, {"step": "order", "by": "released values", "weights": self.weights})

    def _sample(self, schema: Schema) -> Mapping[str, Any]:
        if self.unsampled:
            return {"step": "sample", "rate": "1", "design": "none: every row is read"}
        if self.robust is not None:
            return sample_step(self.robust)
        return {
            "step": "sample",
            "rate": str(self.parameters(schema.unit).rate),
            "design": "Poisson, one secret coin per row",
            "coins": "AES-256 in counter mode under a key from the operating system, forgotten afterwards",
        }

    def release(self, table: Table, coins: Coins) -> Microdata:
        """Count the sampled rows of each tuple in one pass and keep the tuples seen at least k times."""
        schema, unit, k = table.schema, table.schema.unit, self.smallest_class(table.schema)
        kept: list[Kept] = []
        if unit.column is not None:
            kept.append(table.engine.limit(table.rows, schema[unit.column], unit.max_rows, coins))
        if not self.unsampled and self.robust is None:
            kept.append(coins.sample(self.parameters(unit).rate))
        cells, robust = self.cells(schema), self.robust
        if robust is not None and robust.probability is not None:
            split = table.engine.count(table.rows, with_chances(cells, schema, robust.probability), *kept)
            counts = drawn(split, robust.low, robust.high, coins).at_least(k)
        else:
            counts = table.engine.count(table.rows, cells, *kept, at_least=k).at_least(k)
        return Microdata(counts, 1 / self.parameters(unit).rate if self.weights else None)


@lru_cache(maxsize=256)
def _solved(k: int | None, rate: Fraction | None, target: Target, unit: Unit) -> Parameters:
    return solve(k, rate, target, unit)


def _recodings(cells: Cells) -> list[dict[str, Any]]:
    return [
        {
            "column": recoding.column.name,
            "level": recoding.level,
            "of": recoding.column.hierarchy.height,
            "rule": recoding.column.hierarchy.rule,
            "provenance": _provenance(
                recoding.column.hierarchy.provenance.derived, recoding.column.hierarchy.provenance.public
            ),
            "missing": str(recoding.column.missing),
            "outside": str(recoding.column.rule_outside) if recoding.column.domain.closed else "nothing is outside",
        }
        for recoding in cells.recodings
    ]


def _provenance(derived: bool, public: str | None) -> str:
    if not derived:
        return "declared"
    return f"drafted from rows, vouched for by {public}" if public else "drafted from rows"
