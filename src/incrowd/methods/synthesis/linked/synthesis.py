"""Synthesis: each table of linked ones is measured, and drawn below the rows that were drawn above it.

The people come first, with how many rows they have in the tables below; then each table given the one above.  All
measurements together stay within one budget, and everything after them is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.unit import Adjacency
from incrowd.methods.synthesis.linked.conditional import ConditionalModel
from incrowd.methods.synthesis.linked.levels import Level, ModelPart, given_codes, weighted_rows, weights_of
from incrowd.methods.synthesis.linked.rows import LevelRows
from incrowd.methods.synthesis.linked.rules import TableRules
from incrowd.methods.synthesis.linked.search import LinkedLimits, LinkedSearch, first_tables, known_tables
from incrowd.methods.synthesis.marginals.budget import EVALUATION, PATTERNS, Sensitivity, Shares, gaussian_scale
from incrowd.methods.synthesis.marginals.declared import DeclaredConstraints
from incrowd.methods.synthesis.marginals.detail import FinerPieces
from incrowd.methods.synthesis.marginals.evaluation import Evaluation, Evaluator, WeightedRows
from incrowd.methods.synthesis.marginals.model import Codes, PriorTable
from incrowd.methods.synthesis.marginals.patterns import (
    Distance,
    NoisyPattern,
    ValuePattern,
    distances_of,
    measured_patterns,
)
from incrowd.methods.synthesis.marginals.prior import distance_priors
from incrowd.methods.synthesis.marginals.search import (
    MeasuringRound,
    Search,
    TableSelection,
    WorkLimits,
    pattern_rounds,
)
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn

MOST_ROWS = 10**8
"""How many rows are drawn in all tables together, at most."""


def reach_of(level: Level, adjacency: Adjacency) -> Sensitivity:
    """Return how far one person moves what is measured of a table: by its weight, and twice that if replaced."""
    twice = 2 if adjacency is Adjacency.REPLACE else 1
    return Sensitivity(twice * level.weight**2, twice * level.weight)


@dataclass(frozen=True)
class PublicSearch:
    """What is public about the search of one table: its model, its share of ρ, rounds, cells, and the first share.

    `rules` hold in every row.  Columns that have `pieces` are measured once more, within `detail` of the share.
    """

    level: Level
    rho: Fraction
    rounds: int
    cells: int
    one: Fraction
    rules: TableRules
    pieces: Mapping[str, FinerPieces]
    detail: Fraction
    classes: tuple[Classes, ...] = ()
    patterns: tuple[ValuePattern, ...] = ()

    @property
    def detail_rho(self) -> tuple[Fraction, Fraction]:
        """What all finer pieces may cost together, and what all patterns."""
        detail = self.detail * self.rho
        return (detail * (1 - PATTERNS), detail * PATTERNS) if self.patterns else (detail, Fraction(0))

    @property
    def fine(self) -> tuple[Classes, ...]:
        """What is read of columns with finer pieces: those pieces, or single values where patterns need them."""
        return tuple(self._singles.get(name, own.fine) for name, own in self.pieces.items())

    @cached_property
    def _singles(self) -> dict[str, Classes]:
        named = {item.recoding.column.name: item for item in self.classes}
        columns = {name: named[name].recoding.column for own in self.patterns for name in own.columns}
        listed = {name: Recoding(column, 0).classes for name, column in columns.items()}
        return {name: item for name, item in listed.items() if item is not None}

    def in_pieces(self, name: str, codes: Codes) -> Codes:
        """Return the finer piece of each row of a column, given what was read of it."""
        single, fine = self._singles.get(name), self.pieces[name].fine
        if single is None or len(single) == len(fine):
            return codes
        owners = fine.recoding.codes_of(single.marks).astype(np.int64)[: len(single.marks)]
        extra = [fine.other] * single.has_other + [fine.missing] * single.has_missing
        places: Codes = np.append(owners, np.array(extra, np.int64))[np.maximum(codes, 0)]
        return np.where(codes < 0, -1, places)

    def shares(self, tables: int, reach: Sensitivity) -> Shares:
        """Return how the budget is divided, when so many tables are measured first."""
        spendable = 1 - EVALUATION - (self.detail if self.pieces else 0)
        return Shares.of(spendable * self.rho, tables, self.rounds, reach, self.one)


@dataclass(frozen=True, eq=False)
class DrawnLevel:
    """One table: what was measured of it, how good it is, its rows, and columns that were measured in finer pieces."""

    selection: TableSelection
    evaluation: Evaluation
    rows: LevelRows
    detailed: Mapping[str, ModelColumn]
    distances: tuple[Distance, ...] = ()


@dataclass(frozen=True, eq=False)
class Synthesis:
    """The true rows of all tables, the search of each, how many people are synthetic, the adjacency, and coins."""

    rows: Mapping[str, LevelRows]
    works: tuple[PublicSearch, ...]
    people: int | None
    adjacency: Adjacency
    coins: Coins

    def run(self) -> dict[str, DrawnLevel]:
        """Measure and draw every table, the people first."""
        results: dict[str, DrawnLevel] = {}
        synthetic: dict[str, LevelRows] = {}
        numbers: dict[str, NDArray[np.int64]] = {}
        for work in self.works:
            level, chance = work.level, np.random.default_rng(int(self.coins.below(2**61, 1)[0]))
            true, reach = weighted_rows(level, self.rows), reach_of(level, self.adjacency)
            noisy = self.patterned(work, true, reach)
            distances = distances_of(noisy)
            start = distance_priors(distances, work.classes)
            if level.child is None:
                selection = self.of_people(work, true, reach, start)
                codes = self.drawn_people(selection, chance)
            else:
                synthetic[level.name] = below(level, synthetic, numbers[level.name])
                selection = self.of_table(work, true, synthetic, start)
                codes = drawn_below(work, selection, synthetic, chance)
            synthetic[level.name] = with_codes(level, codes, synthetic.get(level.name))
            numbers |= {
                c.table: line for c, line in zip(level.columns, codes, strict=True) if c.part is ModelPart.NUMBER
            }
            error = self.evaluated(work, true, codes, selection)
            detailed, rounds = self.detailed(work, true, noisy)
            selection = TableSelection(selection.fit, (*selection.rounds, *rounds))
            results[level.name] = DrawnLevel(selection, error, synthetic[level.name], detailed, distances)
        return results

    def patterned(self, work: PublicSearch, true: WeightedRows, reach: Sensitivity) -> tuple[NoisyPattern, ...]:
        """Count patterns with noise; rows weigh what they weigh in other tables."""
        if not work.patterns:
            return ()
        fine = dict(zip(work.pieces, self.rows[work.level.name].fine, strict=True))
        scale = gaussian_scale(work.detail_rho[1], len(work.patterns), reach)

        def count(recodings: tuple[Recoding, ...]) -> tuple[list[Codes], Codes]:
            return [fine[recoding.column.name] for recoding in recodings], true.times

        return measured_patterns(work.patterns, work.classes, count, (scale, self.coins))

    def detailed(
        self, work: PublicSearch, true: WeightedRows, patterns: Sequence[NoisyPattern]
    ) -> tuple[dict[str, ModelColumn], tuple[MeasuringRound, ...]]:
        """Measure each column of numbers once more, in finer pieces; rows weigh what they weigh in other tables."""
        made, rounds, reach = dict[str, ModelColumn](), [], reach_of(work.level, self.adjacency)
        fine = self.rows[work.level.name].fine
        names = [column.column for column in work.level.columns]
        for (name, own), read in zip(work.pieces.items(), fine, strict=True):
            codes = work.in_pieces(name, read)
            scale = gaussian_scale(work.detail_rho[0], len(work.pieces), reach)
            counts = np.bincount(codes[codes >= 0], true.times[codes >= 0], len(own.fine)).astype(np.int64)
            noisy = counts + self.coins.gaussian(scale, len(counts))
            made[name] = ModelColumn.measured(own, noisy, float(scale), patterns)
            rounds.append(MeasuringRound((names.index(name),), scale, None, len(counts)))
        return made, (*rounds, *pattern_rounds(patterns, [name or "" for name in names]))

    def of_people(
        self, work: PublicSearch, true: WeightedRows, reach: Sensitivity, start: tuple[PriorTable, ...]
    ) -> TableSelection:
        """Measure the people, with how many rows they have in the tables below."""
        level, rules = work.level, work.rules
        ordered = DeclaredConstraints.ordered(work.classes)
        limits = WorkLimits(
            level.workload(), work.rounds, work.cells, zeros=rules.zeros, faint=rules.faint, ordered=ordered
        )
        search = Search(true, limits, reach, self.coins, prior=start)
        return search.adaptive(work.shares(len(true.sizes), reach))

    def drawn_people(self, selection: TableSelection, chance: np.random.Generator) -> Codes:
        """Draw the people, in a random order: about as many as there are, or as many as the policy says."""
        most = MOST_ROWS // (1 + sum(work.level.child.max_rows for work in self.works if work.level.child is not None))
        rows = min(most, round(selection.model.total) if self.people is None else self.people)
        codes = selection.model.draw(rows, chance)
        shuffled: Codes = codes[:, chance.permutation(rows)]
        return shuffled

    def of_table(
        self,
        work: PublicSearch,
        true: WeightedRows,
        synthetic: Mapping[str, LevelRows],
        start: tuple[PriorTable, ...],
    ) -> TableSelection:
        """Measure a table below the people, given the rows that were drawn above it."""
        level, rules, reach = work.level, work.rules, reach_of(work.level, self.adjacency)
        first, above = first_tables(level, work.cells), _predictor_rows(level, synthetic)
        limits = LinkedLimits(
            level.workload(),
            work.rounds,
            work.cells,
            zeros=rules.zeros,
            faint=rules.faint,
            targets=frozenset(level.targets),
        )
        tree = known_tables(level, above, first, work.cells)
        search = LinkedSearch(true, limits, reach, self.coins, first, above, tree, prior=start)
        return search.adaptive(work.shares(len(first), reach))

    def evaluated(self, work: PublicSearch, true: WeightedRows, codes: Codes, selection: TableSelection) -> Evaluation:
        """Say with noise how far the pairs of columns are from the rows', on average."""
        level, total = work.level, round(selection.model.total)
        weights = np.ones(codes.shape[1], np.int64)
        if level.child is not None:
            weights = weights_of(codes[level.places(ModelPart.CLASS)[0]], level.child.max_rows)
        synthetic = WeightedRows(true.sizes, codes, weights)
        return Evaluator(true, synthetic, total, work.rho, reach_of(level, self.adjacency)).mean(self.coins)


def below(level: Level, synthetic: Mapping[str, LevelRows], numbers: NDArray[np.int64]) -> LevelRows:
    """Return the rows of a table below drawn ones, as many as each has; no person gets more than allowed.

    >>> from incrowd.core.linked import ChildTable
    >>> from incrowd.core.schema import Column, Role, Schema
    >>> stays = Schema((Column("id", Role.IDENTIFIER), Column("ward")))
    >>> level = Level("stays", (), ChildTable("stays", "people", stays, "id", 2, person="id"))
    >>> people = LevelRows((), np.zeros((0, 3), np.int64), np.full(3, -1), np.arange(3))
    >>> below(level, {"people": people}, np.array([0, 3, 1])).parent.tolist()
    [1, 1, 2]
    """
    child = level.child
    if child is None:
        raise AssertionError("the people lie below nothing")
    above = synthetic[child.parent]
    before = np.cumsum(numbers) - numbers  # rows of one person are next to each other
    start = np.searchsorted(above.person, above.person)
    room = child.max_rows - (before - before[start] if len(numbers) else before)
    parent = np.repeat(np.arange(len(above)), np.clip(numbers, 0, np.maximum(room, 0)))
    return LevelRows((), np.zeros((0, len(parent)), np.int64), parent, above.person[parent])


def drawn_below(
    work: PublicSearch, selection: TableSelection, synthetic: Mapping[str, LevelRows], chance: np.random.Generator
) -> Codes:
    """Draw a table below drawn rows: all at once, or in a sequence each row after the one before."""
    level = work.level
    rows, predictors = synthetic[level.name], given_codes(level, synthetic)
    model = ConditionalModel(selection.model, level.predictors, work.rules.zeros)
    if not level.places(ModelPart.PREVIOUS):
        return model.draw(predictors, chance)
    own = level.places(ModelPart.OWN)
    codes = np.zeros((len(level.columns), len(rows)), np.int64)
    position = np.arange(len(rows)) - np.searchsorted(rows.parent, rows.parent)
    for number in range(int(position.max(initial=-1)) + 1):
        now = np.flatnonzero(position == number)
        before = np.zeros((len(own), len(now)), np.int64) if number == 0 else codes[list(own)][:, now - 1] + 1
        codes[:, now] = model.draw(np.concatenate([predictors[:, now], before]), chance)
    return codes


def with_codes(level: Level, codes: Codes, rows: LevelRows | None) -> LevelRows:
    """Return drawn rows with the codes of their own columns; rows of people are their own persons."""
    names = tuple(level.columns[place].column or "" for place in level.places(ModelPart.OWN))
    own = codes[list(level.places(ModelPart.OWN))]
    if rows is None:
        return LevelRows(names, own, np.full(codes.shape[1], -1), np.arange(codes.shape[1]))
    return LevelRows(names, own, rows.parent, rows.person)


def _predictor_rows(level: Level, synthetic: Mapping[str, LevelRows]) -> WeightedRows:
    """Return the given columns of synthetic rows, with the weight of each row; other columns are not known yet."""
    predictors = given_codes(level, synthetic)
    codes = np.zeros((len(level.columns), predictors.shape[1]), np.int64)
    places = level.places(ModelPart.GIVEN, ModelPart.CLASS)
    codes[list(places)] = predictors
    return WeightedRows(level.sizes, codes, weights_of(predictors[-1], level.child.max_rows if level.child else 1))
