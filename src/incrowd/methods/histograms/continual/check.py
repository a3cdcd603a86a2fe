"""Check and picture of running counts: D by brute force over whole numbers, and every number from what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.statement import Statement
from incrowd.core.steps.bins import Count, ListedBins
from incrowd.core.unit import Kind
from incrowd.core.words import counted
from incrowd.drawing.markup import Description, figure, joined, table
from incrowd.drawing.multiples import Multiple, multiples, rising
from incrowd.drawing.picture import Picture
from incrowd.methods.histograms.continual.running import (
    COLUMNS,
    KINDS,
    MEASURED,
    NUMBER,
    PERIOD,
    WITHIN,
    RunningCounts,
)
from incrowd.methods.histograms.continual.steps import LimitPeriods, RunningNoise
from incrowd.methods.histograms.continual.strategies import NoiseStrategy
from incrowd.methods.histograms.shared.check import bins_problem
from incrowd.verifier.check import Check, CheckOutcome, Problem

_LESS = 1 - 1e-6  # the second route computes with floats, in another order
_NEAR = 0.01  # numbers are printed to three digits
_BITS = 12
_MOST = 1000
_SHOWN = 12
_WIDE = 1000  # integer Gaussian noise this wide is normal to every digit that is printed


def slow_matrix(step: RunningNoise) -> list[list[int]]:
    """Return the strategy again, from fractions of factorials and whole roots, column by column."""
    size, fine = step.periods, 1 << 96
    roots = [math.factorial(2 * k) * fine // (math.factorial(k) ** 2 * 4**k) for k in range(size)]
    values = roots
    if step.strategy is NoiseStrategy.WINDOW_ROOT:
        values = _window(roots, step.window, fine)
    elif step.strategy is NoiseStrategy.INDEPENDENT:
        values = [fine] + [0] * (size - 1)
    columns = []
    for column in range(size):
        unit = fine
        if step.strategy is NoiseStrategy.NORMALIZED_ROOT:
            unit = math.isqrt(sum(value * value for value in roots[: size - column]))
        below = [((value << (_BITS + 1)) + unit) // (2 * unit) for value in values[: size - column]]
        columns.append([0] * column + below)
    return columns


def _window(roots: list[int], window: int, fine: int) -> list[int]:
    """Return the coefficients of the root of windows, as the product of two power series."""
    halves = [fine]
    for place in range(1, 1 + len(roots) // window):
        halves.append(halves[-1] * (2 * place - 3) // (2 * place))
    return [sum(halves[i] * roots[k - window * i] for i in range(1 + k // window)) // fine for k in range(len(roots))]


def slow_squared(step: RunningNoise, rows: int) -> int:
    """Return the largest squared change by one person, pair by pair of participations.

    The p-th participation lies in a column of at least p·apart, and two of them lie at least |p − q|·apart apart: each
    pair is at most the largest inner product of two such columns, which is found from the last columns backwards.  A
    row that can be taken back stands for its column, or for what is left of it after any later one.
    """
    columns, size, apart = np.array(slow_matrix(step), np.int64), step.periods, step.apart
    inner = columns @ columns.T
    times = min(1 + (size - 1) // apart, step.participations or size)
    inner = slow_taken_back(inner) if step.withdrawals else inner
    if times == size:
        return rows**2 * int(inner[inner > 0].sum())
    best: dict[tuple[int, int], int] = {}
    for first in reversed(range(size)):
        for gap in reversed(range(size - first)):
            others = [best[place] for place in ((first, gap + 1), (first + 1, gap)) if place in best]
            best[first, gap] = max(int(inner[first, first + gap]), *others, -(1 << 62))
    pairs = ((p, q) for p in range(times) for q in range(times))
    return rows**2 * sum(max(0, best[min(p, q) * apart, abs(p - q) * apart]) for p, q in pairs)


def slow_taken_back(inner: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest inner product of what is left of two columns, from the last column of the one backwards."""
    size = len(inner)
    largest = np.zeros((size, size), np.int64)
    for other in range(size):
        left = np.array([inner[other], *(inner[other] - inner[later] for later in range(other + 1, size))])
        least = np.zeros(len(left), np.int64)  # nothing is taken away, or the column that helps most
        for own in reversed(range(size)):
            largest[other, own] = (left[:, own] - least).max()
            least = np.minimum(least, left[:, own])
    return largest


def slow_norms(step: RunningNoise, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the norms of the numbers of each of these periods (each one, totals, windows), by substitution."""
    matrix, size = np.array(slow_matrix(step), np.float64).T[np.ix_(numbers - 1, numbers - 1)], len(numbers)
    counts = np.zeros((size, size))
    for row in range(size):
        counts[row] = ((np.arange(size) == row) - matrix[row, :row] @ counts[:row]) / matrix[row, row]
    totals = np.cumsum(counts, axis=0)
    recent = (numbers[:, None] >= numbers) & (numbers[:, None] < numbers + step.window)
    kinds = (counts, totals, recent.astype(np.float64) @ counts)
    norms: NDArray[np.float64] = np.stack([np.sqrt((rows**2).sum(axis=1)) for rows in kinds])
    return norms


def slow_factor(step: RunningNoise, numbers: int) -> float:
    """Return how many standard errors so many numbers stay within, all of them in 95 % of cases."""
    normal = -NormalDist().inv_cdf(1 / (40 * numbers))
    return normal if step.scale > _WIDE else math.sqrt(2.0 * math.log(40.0 * numbers))


def slow_within(step: RunningNoise, cells: int) -> tuple[float, ...]:
    """Return within what 95 % of the numbers of the worst period lie, of each kind; and all of a kind at once."""
    worst = float(step.scale) * slow_norms(step, np.arange(1, step.periods + 1)).max(axis=1)
    factors = slow_factor(step, 1), slow_factor(step, step.periods * cells)
    return tuple(factor * float(norm) for factor in factors for norm in worst)


def _within(step: RunningNoise) -> tuple[int, ...]:
    return step.alone, step.totals, step.windows, *step.together


@dataclass(frozen=True, kw_only=True)
class RunningCheck(Check):
    """A plan whose D is not too small, and a table whose numbers follow from what was measured."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        noise, limit, unit = basis.need(RunningNoise), basis.find(LimitPeriods), basis.unit
        if noise.periods > _MOST:
            return Problem("the series is too long to recompute its noise", undecided=True)
        pattern, cells = (noise.participations, noise.apart), basis.need(Count).size or 1
        if unit.kind is Kind.PERSON_PERIOD:
            return Problem("running counts protect a person over all periods")
        if ((None, 1) if limit is None else (limit.participations, limit.apart)) != pattern:
            return Problem("the noise is planned for another pattern than the one that is enforced")
        squared = slow_squared(noise, unit.max_rows)
        if noise.squared < squared:
            return Problem(f"one person can change the squares by {squared}, and the noise covers {noise.squared}")
        pairs = zip(_within(noise), slow_within(noise, cells), strict=True)
        if any(not own * _LESS <= stated <= math.ceil(own) + 1 for stated, own in pairs):
            return Problem("numbers lie within other distances of the truth than the noise makes")
        return bins_problem(statement, (ListedBins.ALL,))

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        return RunningCounts(read(files[0]))

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        return self.outcomes(statement, read(file))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, RunningCounts):
            return Problem("these are not running counts")
        outcomes = self.outcomes(statement, output.table)
        return next((outcome.problem for outcome in outcomes if outcome.problem is not None), None)

    def outcomes(self, statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
        """Compare columns, cells and numbers of a table with the statement."""
        expected = [PERIOD, NUMBER, *statement.released, MEASURED, *COLUMNS.values(), *WITHIN.values()]
        other = table.column_names != expected
        columns = Problem("the columns are not those that the certificate says are released") if other else None
        yield CheckOutcome("columns in the file", columns, "they are the released ones and the numbers, and no others")
        if not other:
            yield CheckOutcome("cells in the file", self._cells(statement, table), "all of them, in each period")
            yield CheckOutcome(
                "numbers in the file", self._numbers(statement, table), "all follow from what was measured"
            )

    def _cells(self, statement: Statement, table: pa.Table) -> Problem | None:
        size, step = statement.basis.need(Count).size or 0, statement.basis.need(RunningNoise)
        numbers = table[NUMBER].to_numpy()
        if not size or not len(numbers) or len(numbers) % size:
            return Problem("some cell is missing in some period")
        periods = numbers.reshape(-1, size)
        rising = np.all(np.diff(periods[:, 0]) > 0) and periods[0, 0] >= 1 and periods[-1, 0] <= step.periods
        if not rising or np.any(periods != periods[:, :1]):
            return Problem("the periods are not in their order, or beyond the plan")
        if not _labeled(statement, table):
            return Problem("the periods are not those that the certificate names, or the last one is not its own")
        first = table.slice(0, size).select(list(statement.released)).to_pydict()
        for start in range(0, len(numbers), size):
            if table.slice(start, size).select(list(statement.released)).to_pydict() != first:
                return Problem("the cells are not the same in every period")
        if (
            statement.evidence.get("periods", len(periods)) != len(periods)
            or statement.evidence.get("cells", size) != size
        ):
            return Problem("there are other periods or cells than the certificate's evidence says")
        return None if _in_order(statement, first) else Problem("the cells are not those that the certificate lists")

    def _numbers(self, statement: Statement, table: pa.Table) -> Problem | None:
        step, size = statement.basis.need(RunningNoise), statement.basis.need(Count).size or 1
        numbers = table[NUMBER].to_numpy()[::size]
        measured = table[MEASURED].to_numpy().reshape(len(numbers), size).astype(np.float64)
        columns = slow_matrix(step)
        counts = np.zeros_like(measured)
        for row, number in enumerate(numbers):  # what was mixed in before is subtracted, period by period
            mixed = sum(
                (columns[other - 1][number - 1] * counts[place] for place, other in enumerate(numbers[:row])), 0.0
            )
            counts[row] = (measured[row] - mixed) / columns[number - 1][number - 1]
        totals = np.cumsum(counts, axis=0)
        windows = np.array(
            [counts[(numbers <= number) & (numbers > number - step.window)].sum(axis=0) for number in numbers]
        )
        widths = slow_factor(step, 1) * float(step.scale) * slow_norms(step, numbers)
        for kind, values, width in zip(KINDS, (counts, totals, windows), widths, strict=True):
            stated, within = (table[names[kind]].to_numpy().reshape(values.shape) for names in (COLUMNS, WITHIN))
            if not np.all(np.abs(within - width[:, None]) <= _NEAR + 1e-6 * width[:, None]):
                return Problem(f"some interval in {WITHIN[kind]!r} is not the one that the noise makes")
            if not np.all(np.abs(stated - values) <= _NEAR + 1e-6 * np.abs(values)):
                return Problem(f"some number in {COLUMNS[kind]!r} does not follow from what was measured")
        return None


def _labeled(statement: Statement, table: pa.Table) -> bool:
    """Whether each number has the label of its period in the certificate's calendar, and the last one is its own."""
    read = statement.period
    if read is None:
        return True
    labels = read.calendar.labels
    named = [str(label) for label in table[PERIOD].to_pylist()]
    expected = [labels[number - 1] if number <= len(labels) else None for number in table[NUMBER].to_pylist()]
    return named == expected and named[-1] == read.label


def _in_order(statement: Statement, first: dict[str, list[Any]]) -> bool:
    """Whether the cells are all combinations of the listed labels, the last column fastest."""
    columns = statement.basis.need(Count).columns
    repeat = math.prod(bins.size or 0 for bins in columns)
    for bins in columns:
        labels, size = bins.labels, bins.size or 1
        repeat //= size
        cells = [None if label is None else str(label) for label in first[bins.column]]
        if labels is not None and any(cell != labels[place // repeat % size] for place, cell in enumerate(cells)):
            return False
    return True


def read(file: Path) -> pa.Table:
    """Read a published table of running counts as anyone can."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return opened.read()
    from pyarrow import csv

    from incrowd.core.spreadsheet import unguarded

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    with csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    types = {
        NUMBER: pa.int64(),
        MEASURED: pa.int64(),
        **dict.fromkeys((*COLUMNS.values(), *WITHIN.values()), pa.float64()),
    }
    convert = csv.ConvertOptions(
        column_types={name: types.get(name, pa.string()) for name in names},
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    return unguarded(csv.read_csv(file, parse_options=parse, convert_options=convert), file)


class RunningPicture(Picture):
    """Cells over periods as small multiples, each with its interval."""

    def description(self, statement: Statement) -> Description:
        periods, cells = (int(statement.evidence[name]) for name in ("periods", "cells"))
        full = (
            f"How many rows there are in each of {counted(cells, 'cell')}, over {counted(periods, 'period')}, with "
            "totals and windows. Every number carries noise. No row is published."
        )
        return Description("Running counts", full, "the counts of that person's cells")

    def draw(self, statement: Statement, output: RunningCounts) -> Markup | None:
        step, size = statement.basis.need(RunningNoise), statement.basis.need(Count).size or 1
        published = output.table
        numbers = published[NUMBER].to_pylist()[::size]
        if len(numbers) < 2:
            return None
        read = statement.period
        span = read.calendar.labels if read is not None else tuple(map(str, range(1, step.periods + 1)))
        labels = list(zip(*(published[name].to_pylist()[:size] for name in output.labels), strict=True))
        values, totals = (published[COLUMNS[kind]].to_numpy().reshape(len(numbers), size) for kind in KINDS[:2])
        largest = np.sort(np.argsort(-np.abs(values).sum(axis=0), kind="stable")[:_SHOWN])
        names = {place: ", ".join(map(_label, labels[place])) for place in largest}
        lines = {place: list(zip(numbers, values[:, place].tolist(), strict=True)) for place in names}
        sums = {place: list(zip(numbers, totals[:, place].tolist(), strict=True)) for place in names}
        charts = [Multiple(names[place], line) for place, line in lines.items()]
        rising_charts = [
            Multiple(names[place], line, () if step.withdrawals else rising([value for _, value in line]))
            for place, line in sums.items()
        ]
        what = "All cells" if len(charts) == size else f"The {len(charts)} largest of {size:,} cells"
        caption = f"{what}, period by period; the band is ± {step.alone:,} (95 % of numbers)."
        whole = (
            f"Totals of these cells; the band is ± {step.totals:,}."
            if step.withdrawals
            else f"Totals of these cells; the band is ± {step.totals:,}. Dashed: the nearest line that never falls, "
            "for the eye alone; use the numbers, which are unbiased and never change."
        )
        rows = [[names[place], f"{values[-1, place]:,.0f}"] for place in largest]
        last = [[names[place], f"{totals[-1, place]:,.0f}"] for place in largest]
        heads = [", ".join(output.labels), "Count"], [", ".join(output.labels), "Total"]
        return joined(
            [
                figure(
                    multiples(caption, charts, float(step.alone), span),
                    caption,
                    table("Counts of the last period", heads[0], rows),
                ),
                figure(
                    multiples(whole, rising_charts, float(step.totals), span),
                    whole,
                    table("Totals at the last period", heads[1], last),
                ),
            ]
        )


def _label(part: object) -> str:
    return "missing" if part is None else str(part)
