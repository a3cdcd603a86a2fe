"""Check of histograms: bins and counts of a published table, and the tails of noise, recomputed slowly."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.spreadsheet import unguarded
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import Law
from incrowd.core.steps.rows import KeepRows, keeps_rows_of
from incrowd.core.steps.samples import moved
from incrowd.core.unit import Unit
from incrowd.methods.shared.outcome import COUNT, EXACT, Histogram
from incrowd.verifier.check import Check, CheckOutcome, Problem
from incrowd.verifier.slow_accountant.noise import rounds_delta

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNKNOWN_LABEL = "some label is not one of those that the certificate lists"


def read(file: Path) -> pa.Table:
    """Read a published table of bins as anyone can: labels as text, counts as whole numbers."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return opened.read()
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    with csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    numbers = {COUNT: pa.int64(), EXACT: pa.bool_()}
    convert = csv.ConvertOptions(
        column_types={name: numbers.get(name, pa.dictionary(pa.int32(), pa.string())) for name in names},
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    return unguarded(csv.read_csv(file, parse_options=parse, convert_options=convert), file)


@dataclass(frozen=True, kw_only=True)
class HistogramCheck(Check):
    """Bins as declared, and counts that the steps can give.

    `listed` are the ways to list bins that reveal no more than the protection of counts covers.
    """

    listed: tuple[ListedBins, ...] = ()
    exact_counts_marked: str | None = None
    """Why exact counts cannot be marked, where they cannot."""

    def contradiction(self, statement: Statement) -> Problem | None:
        published = statement.basis.find(PublishCounts)
        if self.exact_counts_marked is not None and published is not None and published.exact:
            return Problem(self.exact_counts_marked)
        return bins_problem(statement, self.listed)

    def impossible(self, statement: Statement, counts: Numbers, exact: Flags | None) -> bool:
        """Whether the steps cannot give some of these counts, of which `exact` marks the exact ones."""
        raise NotImplementedError

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        return Histogram(read(files[0]))

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        return self.outcomes(statement, read(file))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, Histogram):
            return Problem("it is not a histogram")
        outcomes = self.outcomes(statement, output.table)
        return next((outcome.problem for outcome in outcomes if outcome.problem is not None), None)

    def outcomes(self, statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
        """Compare the columns, bins and counts of a table with the statement."""
        marked = statement.basis.need(PublishCounts).exact
        other = table.column_names != [*statement.released, COUNT, *([EXACT] if marked else [])]
        columns = Problem("the columns are not those that the certificate says are released") if other else None
        yield CheckOutcome("columns in the file", columns, "they are the released ones and the counts, and no others")
        if not other:
            rows = f"{table.num_rows:,} bins"
            yield CheckOutcome("bins in the file", _bins(statement, table), f"{rows}, as the declaration lists them")
            counts = self._counts(statement, table)
            yield CheckOutcome("counts in the file", counts, "all are such as these steps can give")

    def _counts(self, statement: Statement, table: pa.Table) -> Problem | None:
        base, counts = statement.basis.need(PublishCounts).round, table[COUNT].to_numpy()
        exact = table[EXACT].to_numpy() if EXACT in table.column_names else None
        if np.any(counts % base):
            return Problem(f"some count is not a multiple of {base}")
        if self.impossible(statement, counts, exact):
            return Problem("some count is one that these steps cannot give")
        above = counts[counts > 0]
        recounted = {
            "bins": len(counts),
            "bins above zero": len(above),
            "smallest count above zero": int(above.min()) if len(above) else None,
            "exact counts": None if exact is None else int(exact.sum()),
        }
        if any(statement.evidence.get(name, number) != number for name, number in recounted.items()):
            return Problem("there are other bins or counts than the certificate's evidence says")
        return None


def bins_problem(statement: Statement, listed: tuple[ListedBins, ...]) -> Problem | None:
    """Return where the steps up to the counts contradict the unit or the released columns, or None."""
    basis, unit = statement.basis, statement.basis.unit
    limit, recoding, count = basis.find(KeepRows), basis.need(RecodeToBins), basis.need(Count)
    if not keeps_rows_of(limit, unit):
        return Problem("the rows used of each person are not those of the guarantee's unit")
    if not recoding.names == count.names == statement.released:
        return Problem("the columns that are recoded and counted are not the released ones")
    if recoding.drafted:
        return Problem("bins come from the data, and no guarantee holds for those")
    if count.listed not in listed:
        return Problem("bins that these steps do not list are missing, or others are there")
    if count.listed is ListedBins.ALL and count.size is None:
        return Problem("not all bins are known, so not all can be listed")
    return None


def rounded(count: int, base: int) -> int:
    """Return a count as the nearest multiple of `base`, halves upward.

    >>> [rounded(count, 5) for count in (0, 2, 3, 7, 8)], rounded(3, 2)
    ([0, 0, 5, 5, 10], 4)
    """
    return math.floor(Fraction(count, base) + Fraction(1, 2)) * base


def places_of(column: pa.ChunkedArray, bins: BinColumn, *, in_order: bool) -> Numbers | None:
    """Return the place of each row's label, in the order of its first row if labels are not listed; None: strange ones.

    Labels that are stated by their hash can be held against it if all of them occur, `in_order`.
    """
    chunks = column.cast(pa.string()).chunks
    coded = pa.concat_arrays([pa.array([], pa.string()), *chunks]).dictionary_encode(null_encoding="encode")
    labels = coded.dictionary.to_pylist()
    indices: Numbers = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if isinstance(bins.labels, tuple):
        place = {label: number for number, label in enumerate(bins.labels)}
        if not set(labels) <= set(place):
            return None
        return np.array([place[label] for label in labels], np.int64)[indices]
    if bins.number is not None and len(labels) > bins.number:
        return None
    digest = hashlib.sha256(json.dumps(labels, ensure_ascii=True).encode()).hexdigest()
    return None if in_order and len(labels) == bins.number and digest != bins.sha256 else indices


def alike(columns: list[Numbers]) -> bool:
    """Whether two rows are alike in all columns.

    >>> alike([np.array([0, 1, 0]), np.array([2, 2, 2])]), alike([np.array([0, 0]), np.array([1, 2])])
    (True, False)
    """
    order = np.lexsort(columns)
    rows = [column[order] for column in columns]
    return bool(np.any(np.logical_and.reduce([row[1:] == row[:-1] for row in rows])))


def _bins(statement: Statement, table: pa.Table) -> Problem | None:
    """Return a problem if a bin is missing, unknown, there twice or out of its place, else None."""
    count = statement.basis.need(Count)
    every = count.listed is ListedBins.ALL
    columns = []
    for number, bins in enumerate(count.columns):
        places = places_of(table[bins.column], bins, in_order=every or number == 0)
        if places is None:
            return Problem(UNKNOWN_LABEL)
        columns.append(places)
    if every:
        if table.num_rows != count.size or not _all_in_order(columns, [bins.size or 0 for bins in count.columns]):
            return Problem("the bins are not all those that the certificate lists, each once and in order")
        return None
    if all(isinstance(bins.labels, tuple) for bins in count.columns):
        return None if _rising(columns) else Problem("some bin is there twice, or out of its order")
    return Problem("some bin is there twice") if alike(columns) else None


def _all_in_order(columns: list[Numbers], sizes: list[int]) -> bool:
    """Whether rows go through all combinations of places, the last column fastest."""
    for number, column in enumerate(columns):
        once = np.repeat(np.arange(sizes[number]), math.prod(sizes[number + 1 :]))
        if not np.array_equal(column, np.tile(once, math.prod(sizes[:number]))):
            return False
    return True


def _rising(columns: list[Numbers]) -> bool:
    """Whether each row comes after the one before: larger in the first column in which they differ."""
    higher = np.zeros(max(0, len(columns[0]) - 1), bool)
    same = ~higher
    for column in columns:
        higher |= same & (column[1:] > column[:-1])
        same &= column[1:] == column[:-1]
    return bool(np.all(higher))


TOLERANCE = 1 + 1e-6  # this second route computes with floats, and differences of small numbers cancel
WIDEST = 100_000  # of wider Gaussian noise the law is too long to write out
_NARROWEST = 1e-6  # noise narrower than this moves no count
_MISSED = 0.05  # intervals of 95 %: what they may miss


def strays(law: Law, scale: Fraction, within: int) -> bool:
    """Whether more than 5 % of noisy counts lie further from the truth than `within`.

    >>> strays(Law.LAPLACE, Fraction(1), 3), strays(Law.LAPLACE, Fraction(1), 2)
    (False, True)
    """
    return tail(law, scale, within + 1) * 2.0 > _MISSED * TOLERANCE


def tail(law: Law, scale: Fraction, least: int) -> float:
    """Return the chance that noise is `least` or more; no less than that where `least` is 0 or below."""
    if least <= 0 or (law is Law.GAUSSIAN and scale > WIDEST):
        return 1.0
    if law is Law.LAPLACE:
        return _fall(least / scale) / (1.0 + _fall(1 / scale))
    width = max(float(scale), _NARROWEST)
    reach = math.ceil(40.0 * width) + 2
    above, around = np.arange(least, least + reach, dtype=np.float64), np.arange(-reach, reach + 1, dtype=np.float64)
    return float(np.sum(_bell(above, width)) / np.sum(_bell(around, width)))


def noise_delta(law: Law, scale: Fraction, unit: Unit, epsilon: Fraction) -> float:
    """Return the δ at ε of noise on the counts that a unit moves, if every row is read.

    >>> noise_delta(Law.LAPLACE, Fraction(2), Unit(), Fraction(1, 2)), noise_delta(Law.LAPLACE, Fraction(2), Unit(), 0)
    (0.0, 1.0)
    """
    rows, moves = unit.max_rows, moved(unit)
    if law is Law.LAPLACE:
        return 0.0 if rows * moves / scale <= epsilon else 1.0
    if not _NARROWEST <= scale <= WIDEST:
        return 1.0
    width, most = float(scale), float(min(Fraction(epsilon), Fraction(700)))
    if rows * moves == 1:
        return gaussian_delta(width, most)
    return rounds_delta(rows**2 * moves / (2 * scale**2), scale, rows * moves, most)


def gaussian_delta(scale: float, epsilon: float) -> float:
    """Return δ of integer Gaussian noise on a count that moves by 1, from its law written out.

    >>> f"{gaussian_delta(5.0, 1.0):.4e}"
    '1.8293e-08'
    """
    reach = math.ceil(40.0 * scale) + 2
    outcomes = np.arange(-reach, reach + 1, dtype=np.float64)
    law, shifted = _bell(outcomes, scale), _bell(outcomes - 1.0, scale)
    over = shifted - math.exp(min(epsilon, 700.0)) * law
    return float(np.sum(np.maximum(0.0, over)) / np.sum(law))


def _fall(times: Fraction) -> float:
    return math.exp(-float(min(times, Fraction(1000))))


def _bell(outcomes: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    heights: NDArray[np.float64] = np.exp(-(outcomes**2) / (2.0 * scale * scale))
    return heights
