"""The file of a table with missing cells, counted again: rows that look alike, or rows that match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity, Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import KeepRows, Recode
from incrowd.core.steps.step import Step
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.suppression.steps import (
    ArrangeBlanks,
    LeaveOutCells,
    SubsetsClaim,
    WildcardsClaim,
    WildSubsetsClaim,
)
from incrowd.methods.anonymity.syntactic.check import columns_in, reopen_table, unlike_released
from incrowd.methods.outcomes.anonymized import Blanked
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

STEPS: tuple[type[Step], ...] = (KeepRows, Recode, LeaveOutCells, ArrangeBlanks)
CLAIMS: tuple[type[Claim], ...] = (Anonymity, WildcardsClaim, SubsetsClaim, WildSubsetsClaim, Pseudonymity)
ORDER = (maybe(KeepRows), one(Recode), one(LeaveOutCells), one(ArrangeBlanks))


def contradiction(statement: Statement) -> Problem | None:
    """Return that cells of other columns are left out than people can be looked up by, or None."""
    if statement.basis.need(LeaveOutCells).columns != statement.of_role(Role.QUASI):
        return Problem("the columns whose cells are left out are not the quasi-identifiers")
    return unlike_released(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the file: its columns, and how many rows agree."""
    (file,) = files
    columns = columns_in(statement, file)
    yield columns
    if columns.problem is None:
        quasi = list(statement.basis.need(LeaveOutCells).columns)
        yield from agreements(statement, tuples_of(open_source(str(file)).batches(quasi), quasi))


def agreements(statement: Statement, tuples: pa.Table) -> Iterator[CheckOutcome]:
    """Count every claim about the columns again."""
    for claim in statement.claims:
        if not isinstance(claim, Anonymity | WildcardsClaim | SubsetsClaim):
            continue
        size = claim.size if isinstance(claim, SubsetsClaim) else None
        if isinstance(claim, WildcardsClaim | WildSubsetsClaim):
            found, words = fewest_matching(tuples, claim.k, size), "{} rows or more match each row, k is {}"
        else:
            found, words = fewest_alike(tuples, size), "the rarest combination occurs {} times, k is {}"
        text = "there are no rows" if found is None else words.format(found, claim.k)
        about = "" if size is None else f" of any {size}"
        problem = Problem(text) if found is not None and found < claim.k else None
        yield CheckOutcome(f"{claim.kind}{about} in the file", problem, text)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return in which columns too few rows of an output in memory agree, or None."""
    if not isinstance(output, Blanked):
        return Problem("it is not a table with missing cells")
    tuples = tuples_of(output.batches(), statement.basis.need(LeaveOutCells).columns)
    return next((look.problem for look in agreements(statement, tuples) if look.problem is not None), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Blanked:
    """Count the published file, as anyone can; every column is text."""
    read = reopen_table(statement, files[0], statement.basis.need(LeaveOutCells).columns)
    return Blanked(read.names, read.values, read.keys, read.counts, read.quasi)


_ROWS = "n"


def tuples_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> pa.Table:
    """Return each combination that some columns show, once, and how often; columns are named by their place.

    >>> tuples_of(pa.table({"sex": ["F", "F", None]}).to_batches(), ["sex"]).to_pylist()
    [{'0': 'F', 'n': 2}, {'0': None, 'n': 1}]
    """
    names = [str(place) for place in range(len(columns))]
    schema = pa.schema([*((name, pa.string()) for name in names), (_ROWS, pa.int64())])
    found = [schema.empty_table()]
    for batch in batches:
        texts = [_text(batch.column(batch.schema.get_field_index(name))) for name in columns]
        found.append(
            _grouped(pa.table([*texts, pa.repeat(pa.scalar(1, pa.int64()), len(batch))], schema=schema), names)
        )
    return _grouped(pa.concat_tables(found), names)


def fewest_alike(tuples: pa.Table, size: int | None = None) -> int | None:
    """Return how often the rarest combination occurs, in all columns or in any so many of them; None without rows.

    >>> table = tuples_of(pa.table({"sex": ["F", "F", "M"], "zip": ["1", None, "1"]}).to_batches(), ["sex", "zip"])
    >>> fewest_alike(table), fewest_alike(pa.Table.slice(table, 0, 0))
    (1, None)
    """
    if not len(tuples):
        return None
    return min(int(pc.min(_grouped(tuples, list(chosen))[_ROWS]).as_py()) for chosen in _subsets(tuples, size))


def fewest_matching(tuples: pa.Table, enough: int, size: int | None = None) -> int | None:
    """Return how many rows match the row that fewest match, a missing cell matching anything; at most `enough`.

    Two rows match if they show the same in all columns that both show; in any so many columns, if a size is given.

    >>> table = tuples_of(pa.table({"sex": ["F", "F", "M"], "zip": ["1", None, "2"]}).to_batches(), ["sex", "zip"])
    >>> fewest_matching(table, 9), fewest_matching(table, 1)
    (1, 1)
    """
    if not len(tuples):
        return None
    return min(_matching(_grouped(tuples, list(chosen)), list(chosen), enough) for chosen in _subsets(tuples, size))


def _matching(tuples: pa.Table, names: list[str], enough: int) -> int:
    kinds: dict[tuple[bool, ...], list[int]] = {}
    absent = zip(*(tuples[name].is_null().to_pylist() for name in names), strict=True)
    for place, missing in enumerate(absent):
        kinds.setdefault(missing, []).append(place)
    there = {missing: tuples.take(pa.array(places)) for missing, places in kinds.items()}
    least = enough
    for missing, asking in there.items():
        waiting, found = asking, np.zeros(len(asking), np.int64)
        for others, known in sorted(there.items(), key=lambda kind: -int(pc.sum(kind[1][_ROWS]).as_py())):
            if not len(waiting):
                break
            both = [name for name, a, b in zip(names, missing, others, strict=True) if not a and not b]
            found = found + _agreeing(waiting, known, both)
            waiting, found = waiting.filter(pa.array(found < enough)), found[found < enough]
        least = min([least, *found.tolist()])
    return least


def _agreeing(asking: pa.Table, known: pa.Table, names: list[str]) -> np.ndarray:
    """Return for each asking tuple how many known rows show the same in some columns."""
    if not names:
        return np.full(len(asking), int(pc.sum(known[_ROWS]).as_py()), np.int64)
    numbered = asking.select(names).append_column("place", pa.array(np.arange(len(asking))))
    joined = numbered.join(_grouped(known, names), keys=names, join_type="left outer").sort_by("place")
    agreeing: np.ndarray = joined[_ROWS].fill_null(0).to_numpy()
    return agreeing


def _subsets(tuples: pa.Table, size: int | None) -> Iterable[tuple[str, ...]]:
    names = [name for name in tuples.column_names if name != _ROWS]
    return combinations(names, len(names) if size is None else size)


def _grouped(table: pa.Table, names: list[str]) -> pa.Table:
    return table.group_by(names, use_threads=False).aggregate([(_ROWS, "sum")]).rename_columns([*names, _ROWS])


def _text(column: pa.Array) -> pa.Array:
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return plain.cast(pa.string())
