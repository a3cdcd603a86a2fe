"""Slicing: groups of columns, each released as a safe table from a secret sample of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup

from incrowd.core.coins import Coins
from incrowd.core.plan import Method, Output, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode, keep_rows, recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import ClaimBasis, Step, fold
from incrowd.core.steps.suppression import Suppress
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Unit
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import figure, joined, table, tag
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SampleReused
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.shared.classes import SAMPLED_CLAIMS, ClassesPicture, recoding_problem, reopen_rows
from incrowd.methods.anonymity.slicing.grouping import (
    Grouping,
    Groups,
    associations,
    groups_of,
    part_of,
    released_names,
)
from incrowd.methods.anonymity.slicing.steps import (
    BlendingAlone,
    ChooseGroups,
    Drawing,
    FreshSamples,
    KeepRowsInTables,
    PublishTables,
    Sliced,
    SuppressEach,
    SuppressJointly,
)
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.microdata import Microdata
from incrowd.methods.shared.sampling import Parameters, SampledSlices, Target, priced_plan
from incrowd.verifier.check import Check, CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of

_AUTO = "auto"
_SHARED = frozenset({"shared", "same", "one", "single", "common"})
_COUNTEREXAMPLE = (
    "one sample shared by several suppressed tables betrays people, because the tables can be put side by side: "
    "of twelve (F, z1) and one (F, z2), at k = 3 and rate 0.2, a table by sex that counts more F than the table by zip "
    "counts z1 shows the one, with probability 0.145 at every epsilon. Write sample: fresh, which draws a sample for "
    "each table, or sample: joint, which suppresses over all columns once and splits what is left."
)


@dataclass(frozen=True)
class Slicing(Method):
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
                f"sample: {self.sample} is not fresh (one for each table) or joint (one release is split)."
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
        groups = self.named_groups(schema)
        return self.grouping(schema).groups if groups is None else len(groups)

    def named_groups(self, schema: Schema) -> Groups | None:
        """Return the groups that were given, each in the order of the columns; None if the rows will choose them."""
        return None if isinstance(self.groups, str) else groups_of(self.groups, schema)

    def grouping(self, schema: Schema) -> Grouping:
        """Return how columns are put into groups where the rows choose them."""
        if self.size is None:
            raise InvalidParameter("the groups were given: nothing is chosen.")
        return Grouping(len(released_names(schema)), self.size)

    def parameters(self, unit: Unit, tables: int) -> Parameters:
        """Return k, rate, ε and δ of so many tables together; a choice of groups costs `choosing` beside them."""
        samples = 1 if self.sample == Drawing.JOINT else tables
        return SampledSlices(samples, unit).solve(self.k, self.rate, Target(self.delta, self.epsilon))

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        parameters, steps = self.parameters(schema.unit, self.tables(schema)), self.steps(schema)
        guarantee = fold(steps, schema.unit, parameters.delta)
        settings: dict[str, Any] = {"tables": self.tables(schema), "k": parameters.k}
        if self.choosing is not None and not guarantee.syntactic:
            settings |= {"choosing": self.choosing, "candidates": self.grouping(schema).counted()}
        plan = priced_plan(Plan(self.name, steps, guarantee, {}, self.release, parameters.k, settings), parameters)
        split = self.sample == Drawing.JOINT and not self.chosen and not guarantee.syntactic
        return replace(plan, numbers=self._safe(schema).numbers(parameters)) if split else plan

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: a choice of groups, then those of a safe release for each of them, or for all together."""
        parameters, unit = self.parameters(schema.unit, self.tables(schema)), schema.unit
        chosen = () if self.choosing is None else (self.grouping(schema).step(self.choosing, unit),)
        fresh = self.sample == Drawing.FRESH
        return (
            *chosen,
            *(KeepRowsInTables(limit.column, limit.rows, limit.more) for limit in keep_rows(unit)),
            FreshSamples(parameters.rate) if fresh else SecretSample(parameters.rate),
            recode(self._safe(schema).cells(schema)),
            SuppressEach(parameters.k) if fresh else SuppressJointly(parameters.k),
            PublishTables(self.tables(schema), Drawing(self.sample), self.named_groups(schema)),
        )

    def release(self, table: Table, coins: Coins) -> Sliced:
        """Choose the groups if the rows do, then release each from a fresh sample, or split one release."""
        schema, groups = table.schema, self.named_groups(table.schema)
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

    def _safe(self, schema: Schema, part: Schema | None = None) -> Safe:
        """Return the safe release of some of the columns, at the k and the rate that all tables have."""
        parameters = self.parameters(schema.unit, self.tables(schema))
        names = self.levels if part is None else part.names
        levels = {name: level for name, level in self.levels.items() if name in names}
        return Safe(levels, None, parameters.delta, parameters.rate, parameters.k)


@dataclass(frozen=True, kw_only=True)
class SlicingCheck(Check):
    """Counts the files of several tables: the columns of each, no rare tuple, and rows that fit one release."""

    def contradiction(self, statement: Statement) -> Problem | None:
        own = _samples(statement.basis) or _groups(statement) or _choice(statement)
        return recoding_problem(statement) or own

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        columns = [columns_of(file) for file in files]
        problem = _other_columns(statement, columns)
        yield CheckOutcome("columns in the files", problem, "they are those of the groups, and no others")
        if problem is None:
            sizes = [smallest_class(file, names) for file, names in zip(files, columns, strict=True)]
            least, k = min((size for size in sizes if size is not None), default=None), _k(statement)
            text = f"the rarest tuple of a table occurs {least} times, k is {k}" if least else "there are no rows"
            yield CheckOutcome("crowds in the files", Problem(text) if least is not None and least < k else None, text)
            yield from _split(statement, [_rows(file) for file in files])

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, Sliced):
            return Problem("these are not several tables")
        problem = _other_columns(statement, [tuple(table.schema.names) for table in output.tables])
        if problem is not None:
            return problem
        if any(len(table) and int(table.counts.counts.min()) < _k(statement) for table in output.tables):
            return Problem("some tuple occurs too rarely")
        return next((outcome.problem for outcome in _split(statement, [len(table) for table in output.tables])), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Sliced:
        return Sliced(tuple(reopen_rows(file, columns_of(file)) for file in files), statement.released)


def _samples(basis: ClaimBasis) -> Problem | None:
    """Return a problem if some steps have a sample for each table and others one for all, else None."""
    fresh = basis.need(PublishTables).sample is Drawing.FRESH
    steps = (type(basis.need(SecretSample)), type(basis.need(Suppress)))
    same = steps == ((FreshSamples, SuppressEach) if fresh else (SecretSample, SuppressJointly))
    return None if same else Problem("the steps do not agree on how many samples there are")


def _groups(statement: Statement) -> Problem | None:
    """Return a problem if groups which were given do not hold every released column once, else None."""
    publish, chosen = statement.basis.need(PublishTables), statement.basis.find(ChooseGroups)
    if (publish.groups is None) != (chosen is not None):
        return Problem("the groups were neither given nor chosen, or both")
    if publish.tables < 2:
        return Problem("there are not several tables")
    if publish.groups is None:
        return None
    named = [name for group in publish.groups for name in group]
    if sorted(named) != sorted(statement.released) or len(publish.groups) != publish.tables or not all(publish.groups):
        return Problem("the groups do not hold every released column once")
    return None


def _choice(statement: Statement) -> Problem | None:
    """Return a problem if one unit can move the score of a grouping by more than the step says, else None.

    One row moves the association of two columns by less than 2, and a group of s columns has s·(s − 1)/2 pairs: most
    are kept together where as many groups as possible are full.
    """
    choice, unit, columns = statement.basis.find(ChooseGroups), statement.basis.unit, len(statement.released)
    if choice is None:
        return None
    if choice.size < 2 or math.ceil(columns / choice.size) != statement.basis.need(PublishTables).tables:
        return Problem("there are not as many tables as groups of that size take")
    full, left = divmod(columns, choice.size)
    pairs = full * choice.size * (choice.size - 1) // 2 + left * (left - 1) // 2
    replaced = 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2
    if choice.sensitivity < 2 * pairs * unit.max_rows * replaced:
        return Problem("one person can move the score of a grouping by more than the steps say")
    return None


def _other_columns(statement: Statement, columns: list[tuple[str, ...]]) -> Problem | None:
    """Return a problem if the tables' columns are not those of the groups, given or chosen."""
    publish, released = statement.basis.need(PublishTables), statement.released
    if publish.groups is not None:
        same = tuple(columns) == publish.groups
        return None if same else Problem("the columns of the tables are not those of the groups")
    once = sorted(name for names in columns for name in names) == sorted(released)
    ordered = all(list(names) == [name for name in released if name in names] for names in columns)
    small = all(0 < len(names) <= statement.basis.need(ChooseGroups).size for names in columns)
    fits = once and ordered and small and len(columns) == publish.tables
    return None if fits else Problem("the tables do not hold every released column once")


def _split(statement: Statement, rows: list[int]) -> Iterator[CheckOutcome]:
    """Where the steps tell of one release that was split, look whether the tables can be that: all have its rows."""
    if statement.basis.need(PublishTables).sample is Drawing.JOINT:
        unlike = Problem("the tables have different numbers of rows, so they are not parts of one release")
        yield CheckOutcome("rows in the files", unlike if len(set(rows)) > 1 else None, "each table has as many rows")


def _k(statement: Statement) -> int:
    return statement.basis.need(Suppress).k


def _rows(file: Path) -> int:
    source = open_source(str(file))
    return sum(len(batch) for batch in source.batches(source.names))


_LINE, _WIDE, _GAP = 24, 100.0, 4.0  # height of a block; percent of the width
_NAMED, _LONG = 8, 12


class SlicingPicture(ClassesPicture):
    """Which columns stay together in which table, and how large the classes of each are."""

    where = "tables have together"

    def draw(self, statement: Statement, output: Sliced) -> Markup:
        parts = [_blocks(output)]
        for number, part in enumerate(output.tables, 1):
            parts.append(tag("h3", f"Table {number}: {', '.join(part.schema.names)}"))
            chart = class_sizes(part.counts.counts, f"rows of table {number}")
            parts.append(chart or tag("p", "Every row was suppressed."))
        return joined(parts)


def _blocks(sliced: Sliced) -> Markup:
    """Return a block for each column, those of one table side by side; between the tables nothing is linked."""
    columns, shapes = len(sliced.names), []
    wide, left = (_WIDE + _GAP - _GAP * len(sliced.tables)) / columns, 0.0
    for part in sliced.tables:
        for name in part.schema.names:
            shapes.append(tag("rect", x=f"{left:.2f}%", y=0, width=f"{wide:.2f}%", height=_LINE, class_="bar"))
            if columns <= _NAMED:
                shapes.append(tag("text", name[:_LONG], x=f"{left:.2f}%", y=_LINE + 16, class_="faint"))
            left += wide
        left += _GAP
    title = f"{len(sliced.tables)} tables, a block for each column; no row goes across"
    rows = [
        [number, ", ".join(part.schema.names), f"{len(part):,}", f"{len(part.counts):,}"]
        for number, part in enumerate(sliced.tables, 1)
    ]
    drawing = tag("svg", *shapes, height=2 * _LINE, class_="chart", role="img", aria_label=title)
    numbers = table("Tables", ["Table", "Columns that stay together", "Rows", "Different combinations"], rows)
    return figure(drawing, "Which columns stay together. Between two tables no row is linked to another.", numbers)


CHECK = SlicingCheck(
    order=(
        maybe(ChooseGroups),
        maybe(KeepRowsInTables),
        one(SecretSample, FreshSamples),
        one(Recode),
        one(SuppressJointly, SuppressEach),
        one(PublishTables),
    ),
    claims=(*SAMPLED_CLAIMS, BlendingAlone),
)
PICTURE = SlicingPicture()
METHOD = Slicing
