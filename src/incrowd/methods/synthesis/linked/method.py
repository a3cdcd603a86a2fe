"""Linked: people and the tables below them, synthesized under one guarantee for people, with keys that match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.core.linked import LinkedSchema, LinkedTables
from incrowd.core.plan import Method, Plan
from incrowd.core.recoding import Classes
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import recoded
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import bin_column
from incrowd.methods.shared.sampling import charged
from incrowd.methods.synthesis.linked.levels import Level, levels_of
from incrowd.methods.synthesis.linked.output import LinkedCheck, LinkedOutput, LinkedPicture
from incrowd.methods.synthesis.linked.rows import LevelRows, read_levels
from incrowd.methods.synthesis.linked.rules import TableRules, patterns_in, pieces_of
from incrowd.methods.synthesis.linked.steps import (
    DrawLinkedRows,
    KeepLinkedRows,
    KeptTable,
    MeasuredLevel,
    MeasureLinked,
)
from incrowd.methods.synthesis.linked.synthesis import MOST_ROWS, PublicSearch, Synthesis
from incrowd.methods.synthesis.marginals.budget import DETAIL
from incrowd.methods.synthesis.marginals.constraints import Constraint
from incrowd.methods.synthesis.marginals.detail import detail_column
from incrowd.methods.synthesis.marginals.junction import cells_of
from incrowd.methods.synthesis.marginals.method import Marginals
from incrowd.methods.synthesis.marginals.patterns import Distance
from incrowd.methods.synthesis.marginals.steps import DrawnColumn
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn, drawn_values

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class Linked(Method):
    """Synthetic linked tables: people, their visits, and the items of these, drawn from models of each table.

    Guarantee: (ε, δ)-differential privacy for one person with all rows of all tables: which tables of columns were
    measured, their noisy counts, every row drawn, the keys, and the statement how good each table is.

    Assumes: domains, levels and links were declared without looking at the rows; each row belongs to one person; where
    a table has no person ID column, no row ID above it belongs to two people.

    Source: McKenna, Mullins, Sheldon & Miklau 2022 (AIM) on weighted rows; Feldman & Zrnic 2021 (the filter); the
    weights are proved in docs/decisions/0039.
    """

    name: ClassVar[str] = "linked"

    epsilon: Fraction
    delta: Fraction
    rows: int | None = None
    rounds: int | None = None
    cells: int = 100_000
    levels: Mapping[str, int] = field(default_factory=dict)
    shares: Mapping[str, Fraction] = field(default_factory=dict)
    constraints: Mapping[str, tuple[Constraint, ...]] = field(default_factory=dict)
    detail: Fraction = DETAIL

    def __post_init__(self) -> None:
        if self.rows is not None and not 0 <= self.rows <= MOST_ROWS:
            raise InvalidParameter(f"from 0 to {MOST_ROWS:,} people are drawn.")
        if any(share <= 0 for share in self.shares.values()):
            raise InvalidParameter("the share of a table is a number above 0; what counts is its part of the sum.")
        self.single()  # raises where a parameter is out of range

    def single(self, schema: LinkedSchema | None = None, table: str | None = None) -> Marginals:
        """Return the method of one table, with its own levels."""
        levels: dict[str, int] = {}
        if schema is not None and table is not None:
            own = schema.columns_of(table).names
            levels = {name: self.levels[t] for name in own if (t := schema.title(table, name)) in self.levels}
        return Marginals(
            self.epsilon,
            self.delta,
            rounds=self.rounds,
            cells=self.cells,
            levels=levels,
            constraints=self.constraints.get(table or "", ()),
            detail=self.detail,
        )

    def plan(self, schema: Schema) -> Plan:
        linked = _require_linked(schema)
        classes, works = self.classes(linked), self.works(linked)
        recoding = [
            replace(recoded(item.recoding), column=linked.title(name, item.recoding.column.name))
            for name, own in classes.items()
            for item in own
        ]
        steps: tuple[Step, ...] = (
            KeepLinkedRows(_kept_tables(linked)),
            RecodeToBins(tuple(recoding)),
            MeasureLinked(self.single().rho, tuple(_measured(work, classes[work.level.name]) for work in works)),
            DrawLinkedRows(linked.table_names, self.rows, _numbers(linked, classes)),
        )
        guarantee = fold(steps, linked.unit, self.delta)
        spent = charged(guarantee.loss, self.delta, linked.unit.adjacency)
        settings = {"epsilon": spent, "delta": self.delta, "rho": self.single().rho, "tables": len(works)}
        return Plan(self.name, steps, guarantee, {"epsilon": spent}, self.release, None, settings)

    def classes(self, schema: LinkedSchema) -> dict[str, tuple[Classes, ...]]:
        """Return the classes of the released columns of every table."""
        return {name: self.single(schema, name).classes(schema.columns_of(name)) for name in schema.table_names}

    def works(self, schema: LinkedSchema) -> tuple[PublicSearch, ...]:
        """Return the search of each table, or refuse models that would be too large from the start."""
        classes = self.classes(schema)
        sizes = {name: {item.recoding.column.name: len(item) for item in own} for name, own in classes.items()}
        for parameter, names in (("shares", self.shares), ("constraints", self.constraints)):
            unknown = [name for name in names if name not in schema.table_names]
            if unknown:
                raise InvalidParameter(f"{parameter} names {unknown[0]!r}; there are {', '.join(schema.table_names)}.")
        parts = {name: self.shares.get(name, Fraction(1)) for name in schema.table_names}
        total, works = sum(parts.values()), []
        for level in levels_of(schema, sizes):
            single, own = self.single(schema, level.name), classes[level.name]
            rules, pieces = TableRules.of(single, level, own, self.cells), pieces_of(single, own)
            self._require_small(level, rules)
            rho = single.rho * parts[level.name] / total
            rounds, first = self.rounds_of(level), self.first_share(level)
            patterns = patterns_in(single, own, rules)
            works.append(PublicSearch(level, rho, rounds, self.cells, first, rules, pieces, self.detail, own, patterns))
        return tuple(works)

    def rounds_of(self, level: Level) -> int:
        """Return in how many rounds tables are chosen: below the people fewer, as what is given is known already."""
        if level.child is None or self.rounds is not None:
            return self.single().rounds_at(self.epsilon, len(level.columns))
        return max(6, 2 * len(level.targets))

    def first_share(self, level: Level) -> Fraction:
        """Return the share of what is measured first: more below the people, where it has the row before beside it."""
        return Fraction(1, 10) if level.child is None and self.epsilon > Fraction(1, 10) else Fraction(2, 5)

    def _require_small(self, level: Level, rules: TableRules) -> None:
        least = max(20 * sum(level.sizes), cells_of(level.sizes, [zero.columns for zero in rules.zeros]))
        if least > self.cells:
            raise InvalidParameter(
                f"the columns of {level.name} and those that it depends on have {sum(level.sizes):,} values: a model "
                f"of them needs {least:,} cells, and it may have {self.cells:,}. Take columns at a coarser level, name "
                "fewer under depends_on, or allow more cells."
            )

    def release(self, tables: LinkedTables, coins: Coins) -> LinkedOutput:
        """Read and cut the rows, measure and draw every table, and give all rows new keys."""
        schema = tables.schema
        classes, works = self.classes(schema), self.works(schema)
        true = read_levels(tables, tuple(classes.values()), coins, [work.fine for work in works])
        results = Synthesis(true, works, self.rows, schema.unit.adjacency, coins).run()
        chance = np.random.default_rng(int(coins.below(2**61, 1)[0]))
        released = {}
        for work in works:
            name, result = work.level.name, results[work.level.name]
            names = [item.recoding.column.name for item in classes[name]]
            plain = [ModelColumn.of(item) for item in classes[name]]
            columns = [result.detailed.get(column, other) for column, other in zip(names, plain, strict=True)]
            values = _values(work.rules, (columns, result.distances), result.rows, chance)
            released[name] = pa.table(_keys(schema, name, result.rows) | dict(zip(names, values, strict=True)))
        return LinkedOutput(released, tuple(results.values()))


def _require_linked(schema: Schema) -> LinkedSchema:
    if not isinstance(schema, LinkedSchema):
        raise InvalidParameter("linked synthesizes several tables: write tables: with a parent: each.")
    return schema


def _kept_tables(schema: LinkedSchema) -> tuple[KeptTable, ...]:
    person = schema.unit.column or ""
    people = KeptTable(schema.name, (person,), person=person, more=schema.unit.more)
    below = (
        KeptTable(
            table.name,
            table.keys,
            table.parent,
            table.foreign_key,
            table.id,
            table.person,
            table.max_rows,
            table.more,
            table.order,
        )
        for table in schema.tables
    )
    return (people, *below)


def _measured(work: PublicSearch, classes: tuple[Classes, ...]) -> MeasuredLevel:
    labels = tuple(bin_column(item.recoding.column.name, item) for item in classes)
    level, declared = work.level, work.rules.declared
    return MeasuredLevel(
        level.name,
        work.rho,
        level.weight,
        level.columns,
        labels,
        work.rounds,
        work.cells,
        declared.zeros or None,
        declared.numbers or None,
        tuple(map(detail_column, work.pieces.values())) or None,
        work.rules.ascending,
        work.patterns or None,
    )


def _numbers(schema: LinkedSchema, classes: Mapping[str, tuple[Classes, ...]]) -> tuple[DrawnColumn, ...]:
    from incrowd.methods.synthesis.marginals.method import _numbers as numbers
    from incrowd.methods.synthesis.marginals.synthetic_model import drawn_number

    return tuple(
        replace(numbers(item), column=schema.title(name, item.recoding.column.name))
        for name, own in classes.items()
        for item in own
        if drawn_number(item)
    )


def _keys(schema: LinkedSchema, name: str, rows: LevelRows) -> dict[str, pa.Array]:
    """Return the keys of drawn rows: numbers from 1 on, and those of the rows above."""
    own, parent, person = (pa.array(places + 1) for places in (np.arange(len(rows)), rows.parent, rows.person))
    if name == schema.name:
        return {schema.unit.column or "": own}
    table = schema.table(name)
    held = {table.id: own, table.foreign_key: parent, table.person: person}
    return {key: held[key] for key in table.keys}


def _values(
    rules: TableRules,
    columns: tuple[Sequence[ModelColumn], Sequence[Distance]],
    rows: LevelRows,
    chance: np.random.Generator,
) -> list[pa.Array]:
    """Return what drawn rows show: labels, and numbers that fit the rules; in a sequence they rise within a parent."""
    groups = {} if rules.ascending is None else {rules.ascending: rows.parent}
    return drawn_values(columns[0], (rules.declared.numbers, columns[1]), rows.codes, chance, groups)


CHECK = LinkedCheck()
PICTURE = LinkedPicture()
METHOD = Linked
