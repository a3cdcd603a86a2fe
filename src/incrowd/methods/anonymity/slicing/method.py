"""Slicing: groups of columns, each released as a safe table from a secret sample of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.rows import keep_rows, recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter, SampleReused
from incrowd.methods.anonymity.safe.method import Safe
from incrowd.methods.anonymity.slicing.grouping import (
    Grouping,
    Groups,
    associations,
    groups_of,
    part_of,
    released_names,
)
from incrowd.methods.anonymity.slicing.output import Sliced
from incrowd.methods.anonymity.slicing.price import SampledSlices
from incrowd.methods.anonymity.slicing.steps import (
    Drawing,
    FreshSamples,
    KeepRowsInTables,
    PublishTables,
    SuppressEach,
    SuppressJointly,
)
from incrowd.methods.crowds.parameters import Parameters, Target, charged
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.person_rows import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_AUTO = "auto"
_SHARED = frozenset({"shared", "same", "one", "single", "common"})
_COUNTEREXAMPLE = (
    "one sample shared by several suppressed tables betrays people, because the tables can be put side by side: "
    "of twelve (F, z1) and one (F, z2), at k = 3 and rate 0.2, a table by sex that counts more F than the table by zip "
    "counts z1 shows the one, with probability 0.145 at every epsilon. Write sample: fresh, which draws a sample for "
    "each table, or sample: joint, which suppresses over all columns once and splits what is left."
)


@dataclass(frozen=True)
class Slicing:
    """Tables over groups of columns, each by sampled suppression: what belongs together stays, the rest is not linked.

    Guarantee: (ε, δ)-differential privacy of all tables together, and of the private choice of the groups where there
    is one; of each table alone k-anonymity and, where the groups were given, (k, 0)-crowd-blending.  With `sample:
    joint`
    one sample is suppressed over all columns and then split: everything that holds for a safe release holds.

    Assumes: the coins stay secret; groups or their size, levels and parameters were chosen without looking at the rows;
    one row is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Li, Zhang & Molloy 2012 for the idea of the groups; Li, Qardaji & Su 2010 for each table.

    Proof.  Every row has a part in every table: losses add up over all of them, and no table is spared.  For groups
    fixed without the rows each table is a release by sampled suppression, and its coins are independent of the others',
    so a pair of laws that dominates each of them composes (the accountant's envelope).  Groups chosen with ε₁ stand in
    front: whatever they are, k, the rate and the number of tables stay the same, so adaptive composition adds ε₁ as one
    more part.  Jointly: the tables are marginals of one safe release, hence post-processing, and a sum of counts of at
    least k is at least k.  ∎

    >>> slicing = Slicing((("age",), ("sex", "zip")), Fraction(1, 10**6), Fraction(1), rate=Fraction(1, 10))
    >>> slicing.parameters(Unit(), 2).k
    8
    """

    name: ClassVar[str] = "slicing"
    one_part_each: ClassVar[bool] = True
    """Each released table holds some of the columns only."""

    groups: tuple[tuple[str, ...] | str, ...] | str
    delta: Fraction
    epsilon: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    levels: Mapping[str, int] = field(default_factory=dict)
    choosing: Fraction | None = None
    size: int | None = None
    sample: str = Drawing.FRESH.value

    def __post_init__(self) -> None:
        if self.sample in _SHARED:
            raise SampleReused(f"sample: {self.sample} is refused: {_COUNTEREXAMPLE}")
        if self.sample not in tuple(Drawing):
            raise InvalidParameter(
                f"sample: {self.sample} is not known: fresh draws one for each table, joint splits one release."
            )
        if self.rate == 1:
            raise InvalidParameter("method slicing needs a secret sample: give a rate below 1.")
        if isinstance(self.groups, str) and self.groups != _AUTO:
            raise InvalidParameter("groups: is a list of groups, each a list of columns; or auto.")
        if self.chosen != (self.choosing is not None) or self.chosen != (self.size is not None):
            raise InvalidParameter(
                "groups: auto needs choosing, the epsilon of the choice, and size, the most columns in a group; groups "
                "that are given need neither."
            )
        if self.choosing is not None and self.choosing <= 0:
            raise InvalidParameter("choosing: the groups cost an epsilon above 0, such as 0.1.")
        Safe(self.levels, self.epsilon, self.delta, self.rate, self.k)

    @property
    def chosen(self) -> bool:
        """Whether the rows choose the groups, privately."""
        return self.groups == _AUTO

    def tables(self, schema: Schema) -> int:
        """Return how many tables there will be."""
        given = self.given(schema)
        return self.grouping(schema).groups if given is None else len(given)

    def given(self, schema: Schema) -> Groups | None:
        """Return the groups that were given, each in the order of the columns; None if the rows will choose them."""
        return None if isinstance(self.groups, str) else groups_of(self.groups, schema)

    def grouping(self, schema: Schema) -> Grouping:
        """Return how columns are put into groups where the rows choose them."""
        if self.size is None:
            raise InvalidParameter("the groups were given: nothing is chosen.")
        return Grouping(len(released_names(schema)), self.size)

    def parameters(self, unit: Unit, tables: int) -> Parameters:
        """Return k, rate, ε and δ of so many tables together; a choice of groups costs `choosing` beside them."""
        return self._slices(unit, tables).solve(self.k, self.rate, Target(self.delta, self.epsilon))

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        (found, slices), unit, steps = self._found(schema), schema.unit, self.steps(schema)
        guarantee = fold(steps, unit, found.delta)
        settings: dict[str, Any] = {"tables": self.tables(schema), "k": found.k}
        if guarantee.syntactic:
            return Plan(self.name, steps, guarantee, {}, self.release, found.k, settings)
        if self.choosing is not None:
            settings |= {"choosing": self.choosing, "candidates": self.grouping(schema).counted()}
        epsilon = charged(guarantee.loss, found.delta, unit.adjacency)
        settings |= {"rate": found.rate, "epsilon": epsilon, "delta": found.delta}
        split = slices.samples == 1 and not self.chosen
        numbers = self._safe(schema).numbers(found) if split else {"epsilon": epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, found.k, settings)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: a choice of groups, then those of a safe release for each of them, or for all together."""
        (found, _), unit = self._found(schema), schema.unit
        chosen = () if self.choosing is None else (self.grouping(schema).step(self.choosing, unit),)
        fresh = self.sample == Drawing.FRESH
        return (
            *chosen,
            *(KeepRowsInTables(kept.column, kept.rows, kept.more) for kept in keep_rows(unit)),
            FreshSamples(found.rate) if fresh else SecretSample(found.rate),
            recode(self._safe(schema).cells(schema)),
            SuppressEach(found.k) if fresh else SuppressJointly(found.k),
            PublishTables(self.tables(schema), Drawing(self.sample), self.given(schema)),
        )

    def release(self, table: Table, coins: Coins) -> Sliced:
        """Choose the groups if the rows do, then release each from a fresh sample, or split one release."""
        schema, groups = table.schema, self.given(table.schema)
        groups = self._chosen(table, coins) if groups is None else groups
        if self.sample == Drawing.JOINT:
            whole = self._safe(schema).release(table, coins)
            tables = tuple(Microdata(whole.counts.marginal(group)) for group in groups)
        else:
            parts = [Table(part_of(schema, group), table.rows, table.engine) for group in groups]
            tables = tuple(self._safe(schema, part.schema).release(part, coins) for part in parts)
        return Sliced(tables, tuple(column.name for column in schema.released))

    def _chosen(self, table: Table, coins: Coins) -> Groups:
        """Return the groups that a private look at all rows chose."""
        schema, unit = table.schema, table.schema.unit
        counts = table.engine.count(table.rows, self._safe(schema).cells(schema), *row_limits(table, coins))
        if self.choosing is None:
            raise AssertionError("a choice has its epsilon")
        groups = self.grouping(schema).choose(associations(counts), self.choosing, unit, coins)
        return tuple(tuple(counts.names[place] for place in group) for group in groups)

    def _slices(self, unit: Unit, tables: int) -> SampledSlices:
        return SampledSlices(1 if self.sample == Drawing.JOINT else tables, unit)

    def _found(self, schema: Schema) -> tuple[Parameters, SampledSlices]:
        tables = self.tables(schema)
        return self.parameters(schema.unit, tables), self._slices(schema.unit, tables)

    def _safe(self, schema: Schema, part: Schema | None = None) -> Safe:
        """Return the safe release of some of the columns, at the k and the rate that all tables have."""
        found, _ = self._found(schema)
        kept = self.levels if part is None else part.names
        levels = {name: level for name, level in self.levels.items() if name in kept}
        return Safe(levels, None, found.delta, found.rate, found.k)
