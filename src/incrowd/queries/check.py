"""The file of an answer: the columns that were asked for, intervals that run forward, noise that is worth its price.

One check serves single queries and several that were paid for as one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.privacy import ApproximatePrivacy, Concentrated, PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.spreadsheet import unguarded
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.core.words import counted
from incrowd.drawing.markup import Description
from incrowd.drawing.picture import Picture
from incrowd.queries.answer import AnswerFiles, AnswerTable
from incrowd.queries.measuring.statistics import Of
from incrowd.queries.query import AggregateKind
from incrowd.queries.steps.noise import (
    AddUp,
    ConcentratedPick,
    CubeNoise,
    GaussianNoise,
    GroupThreshold,
    LaplaceNoise,
    NoiseOnSums,
    PrivatePick,
    SharedGaussianNoise,
)
from incrowd.queries.steps.query import (
    ApproximateTogether,
    BoundContribution,
    Combine,
    GiveAnswer,
    GroupRows,
    ListedGroups,
    OneGroup,
    OpenGroups,
    PureTogether,
    QueryBatch,
    RowSample,
    Understand,
)
from incrowd.queries.steps.workload import AnswerSet, CountBlocks, CountGroups, each_query
from incrowd.verifier.check import Check, CheckOutcome, Problem, in_order, maybe, one, some
from incrowd.verifier.slow_accountant.crowds import TOLERANCE
from incrowd.verifier.slow_accountant.noise import concentrated_delta, cube_tail, gaussian_tail, laplace_tail

GROUPS = (OneGroup, GroupRows, ListedGroups, OpenGroups)
NOISES = (CubeNoise, LaplaceNoise, GaussianNoise, SharedGaussianNoise)
COUNT_NOISES = (LaplaceNoise, GaussianNoise)
PICKS = (PrivatePick, ConcentratedPick)
QUERY = (
    one(Understand),
    maybe(RowSample),
    one(BoundContribution),
    one(*GROUPS),
    maybe(AddUp),
    maybe(*NOISES),
    maybe(GroupThreshold),
    some(*PICKS),
    one(GiveAnswer),
)
"""The order of the steps of one query."""
TABLE = (
    one(Understand),
    one(BoundContribution),
    one(OneGroup, CountGroups, CountBlocks),
    one(AddUp),
    one(*COUNT_NOISES),
)
"""The order of the steps of one table of counts, from which a query workload is answered."""
FREE = (one(Understand), one(OneGroup, GroupRows), one(GiveAnswer))
"""The order of the steps of one query of a set."""
_STEPS = (Understand, RowSample, BoundContribution, *GROUPS, AddUp, *NOISES, GroupThreshold, *PICKS, GiveAnswer)
_FEW = 4  # rows below, at and above a candidate: scores are linear, so that a few rows show how far one moves them


@dataclass(frozen=True, kw_only=True)
class QueryCheck(Check):
    """The files of answers, one for each query."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return _contradiction(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        tables = [part.table for part in self.reopen(statement, files).parts]
        columns = "they are those that were asked for, and their intervals"
        yield CheckOutcome("columns in the file", _columns(statement, tables), columns)
        yield CheckOutcome("intervals in the file", _intervals(tables), "each runs from its lower end to its upper")

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        tables = [pa.Table.from_batches(part.batches(), schema=part.schema) for part in output.parts]
        return _columns(statement, tables) or _intervals(tables)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> AnswerFiles:
        return AnswerFiles(tuple(map(_read, files)))


def _contradiction(statement: Statement) -> Problem | None:
    """Return a problem if steps of a query are out of order, its noise is too small, or columns differ."""
    queries = queries_of(statement.steps)
    sets = [steps[0] for steps in queries if len(steps) == 1 and isinstance(steps[0], AnswerSet)]
    alone = [steps for steps in queries if not any(isinstance(step, AnswerSet) for step in steps)]
    places = [place for group in sets for place in group.places]
    apart = len(set(places)) == len(places) and max(places, default=-1) < len(places) + len(alone)
    whole = apart and len(sets) + len(alone) == len(queries)
    if not whole or not all(in_order(steps, QUERY) for steps in alone):
        return Problem("the steps are not those of an answer, in their order")
    problems = (_low_threshold(steps) or _dear_noise(steps) or _moved_scores(steps) for steps in alone)
    problem = next((problem_ for problem_ in (*map(_strange_set, sets), *problems) if problem_ is not None), None)
    if problem is not None:
        return problem
    released = statement.released
    for columns in _answered(statement):
        released = _without(columns, released)
    return Problem("the columns are not those that were answered") if released else None


def _answered(statement: Statement) -> list[tuple[str, ...]]:
    """Return the columns of each answer, without their intervals."""
    made = [step.columns for step in statement.steps if isinstance(step, Combine)]
    queries = each_query(queries_of(statement.steps))
    return made or [step.columns for steps in queries for step in steps if isinstance(step, GiveAnswer)]


def _strange_set(answer_set: AnswerSet) -> Problem | None:
    """Return a problem if a query workload is not answered from tables of counts, or about other tables, else None."""
    counted = answer_set.parts
    if not all(in_order(steps, FREE) for steps in answer_set.questions) or not all(
        in_order(steps, TABLE) for steps in counted
    ):
        return Problem("the steps are not those of a set of queries, in their order")
    read = {step.tables for step in answer_set.held if isinstance(step, Understand)}
    rows = {step.rows for step in answer_set.held if isinstance(step, BoundContribution)}
    blocks = [step for steps in counted for step in steps if isinstance(step, CountBlocks)]
    domains = {(step.cells, step.atoms) for step in blocks}
    listed = all(place < len(answer_set.questions) for step in blocks for place in step.questions or ())
    if len(read) != 1 or len(rows) != 1 or len(domains) > 1 or not listed:
        return Problem("the tables of a set of queries are not about the same rows")
    if 0 < len(blocks) < len(counted):
        return Problem("some tables count blocks and some do not")
    return _strange_blocks(answer_set, blocks) if blocks else None


def _strange_blocks(answer_set: AnswerSet, blocks: Sequence[CountBlocks]) -> Problem | None:
    """Return a problem if blocks are not those of the queries that they name, else None."""
    groups = [step.groups for steps in answer_set.questions for step in steps if isinstance(step, OneGroup | GroupRows)]
    named = {place for step in blocks for place in step.questions or ()}
    if any(step.blocks != sum(groups[place] for place in step.questions) for step in blocks if step.questions):
        return Problem("there are other blocks than the queries of a set have groups")
    complete = len(named) == len(groups) or any(step.size == 1 for step in blocks)
    return None if complete else Problem("the blocks of a set of queries do not tell what is asked")


def queries_of(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], ...]:
    """Return the steps of each query; one answer may be made of several."""
    if not isinstance(steps[0], QueryBatch) or any(not isinstance(step, Combine) for step in steps[1:]):
        return (steps,)
    return steps[0].questions


def _low_threshold(steps: tuple[Step, ...]) -> Problem | None:
    """Return a problem if a unit alone in its groups reaches the threshold too often, else None."""
    kinds = (BoundContribution, AddUp, NoiseOnSums, GroupThreshold)
    match [step for step in steps if isinstance(step, kinds)]:
        case [BoundContribution() as reach, AddUp() as sums, NoiseOnSums() as noise, GroupThreshold() as threshold]:
            alone = 1 if sums.statistics[threshold.on].of is Of.PEOPLE else reach.rows
            beyond = threshold.least - alone
            if beyond < 1 or chance_of(noise, threshold.on, beyond) * reach.groups > float(threshold.delta) * TOLERANCE:
                return Problem("the threshold is too low for its delta")
    return None


def _dear_noise(steps: tuple[Step, ...]) -> Problem | None:
    """Return a problem if Gaussian noise costs more than its share of ε and δ, else None."""
    sums = next((step for step in steps if isinstance(step, AddUp)), None)
    noise = next((step for step in steps if isinstance(step, SharedGaussianNoise)), None)
    if sums is None or noise is None:
        return None
    delta = concentrated_delta(noise.rho(sums), float(noise.epsilon))
    return (
        Problem("the noise costs more than its epsilon and delta") if delta > float(noise.delta) * TOLERANCE else None
    )


def _moved_scores(steps: tuple[Step, ...]) -> Problem | None:
    """Return a problem if a unit's rows move the scores of a pick further than its steps say, tried on small tables."""
    rows = next(step.rows for step in steps if isinstance(step, BoundContribution))
    for pick in steps:
        if isinstance(pick, PrivatePick) and _furthest(pick) * rows > pick.sensitivity:
            return Problem("one row moves the scores of a pick further than its steps say")
    return None


def _furthest(pick: PrivatePick) -> Fraction:
    """Return how far one row moves the score of a candidate, over tables with few rows below it, at it and above it."""
    tables = itertools.product(range(_FEW), repeat=3)
    return max(
        abs(_score(pick, (*table[:at], table[at] + 1, *table[at + 1 :])) - _score(pick, table))
        for table in tables
        for at in range(3)
    )


def _score(pick: PrivatePick, table: tuple[int, ...]) -> Fraction:
    """Return the score of a candidate with so many rows below it, at it and above it, from its definition.

    A minimum is the second smallest value here: at which rank it aims moves nothing.
    """
    below, at, above = table
    part = Fraction(1, 2) if pick.at is None else pick.at
    if pick.of is AggregateKind.MODE:
        return Fraction(at)
    if pick.score is None:
        return -abs(below * (part.denominator - part.numerator) - above * Fraction(part.numerator))
    fewest, most, aim = below, below + at, part * sum(table)
    if part in (0, 1):
        fewest, most, aim = ((below + 1 if part == 0 else above + 1), (below if part == 0 else above) + at, Fraction(2))
    return -part.denominator * max(Fraction(0), fewest - aim, aim - most)


def _without(columns: tuple[str, ...], released: tuple[str, ...]) -> tuple[str, ...]:
    """Return the released names behind these columns and the ends of their intervals; a strange name stays."""
    for name in columns:
        if released[:1] != (name,):
            return ("",)
        released = released[3:] if released[1:3] == (f"{name}_low", f"{name}_high") else released[1:]
    return released


def _columns(statement: Statement, tables: Sequence[pa.Table]) -> Problem | None:
    answered, in_files = _answered(statement), [tuple(table.column_names) for table in tables]
    alike = len(answered) == len(in_files) and not any(map(_without, answered, in_files))
    if not alike or tuple(name for names in in_files for name in names) != statement.released:
        return Problem("the columns are not those that the certificate says are released")
    return None


def _intervals(tables: Sequence[pa.Table]) -> Problem | None:
    for table in tables:
        for name in table.column_names:
            ends = [f"{name}_low", f"{name}_high"]
            if not set(ends) <= set(table.column_names):
                continue
            low, high = (pc.cast(table[end], pa.float64()) for end in ends)
            if not pc.all(pc.fill_null(pc.less_equal(low, high), True), min_count=0).as_py():
                return Problem(f"an interval of {name!r} ends before it begins")
    return None


def _read(file: Path) -> AnswerTable:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return AnswerTable(opened.read())
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    return AnswerTable(unguarded(csv.read_csv(file, parse_options=parse), file))


def chance_of(noise: NoiseOnSums, place: int, least: int) -> float:
    """Return P[x ≥ least] for the noise of the statistic at a place, least ≥ 1; nearly, where the noise is wide.

    >>> from fractions import Fraction
    >>> round(chance_of(LaplaceNoise(Fraction(1), (1,), 1, Fraction(1)), 0, 14) * 1e6, 3)
    0.608
    """
    match noise:
        case GaussianNoise(scales=scales):
            return gaussian_tail(scales[place], least)
        case LaplaceNoise(scale=scale):
            return laplace_tail(scale, least)
        case CubeNoise(widths=widths, fine=fine, scale=scale):
            return cube_tail(widths, (fine, scale), place, least)
    raise TypeError("the law of this noise is not known here")


class QueryPicture(Picture):
    """An answer in a report: how many groups have noisy numbers; the numbers themselves are its table."""

    evidence: Mapping[str, str] | None = {"groups": "Groups answered"}

    def description(self, statement: Statement) -> Description:
        groups = counted(int(statement.evidence["groups"]), "group")
        full = f"Aggregates of {groups}, each with noise. No row is published."
        return Description("Noisy numbers", full, "the noisy numbers of that person's group")


CHECK = QueryCheck(
    order=(one(QueryBatch, Understand), some(*_STEPS[1:]), maybe(Combine)),
    nested=(AnswerSet, CountGroups, CountBlocks),
    claims=(PurePrivacy, ApproximatePrivacy, Concentrated, PureTogether, ApproximateTogether),
)
PICTURE = QueryPicture()
