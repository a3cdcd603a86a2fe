"""The file of a table of item sets, counted again: no combination of a few items is rare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import Step
from incrowd.criteria.itemsets import KmClaim
from incrowd.criteria.slow_itemsets import baskets_of, rarest
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.itemsets.output import ItemTable
from incrowd.methods.anonymity.itemsets.steps import ArrangeSets, CutItems
from incrowd.methods.anonymity.syntactic.check import columns_in, reopened, unlike_released
from incrowd.verify.statement import Look, Problem, Statement, one

STEPS: tuple[type[Step], ...] = (Recode, CutItems, ArrangeSets)
CLAIMS: tuple[type[Claim], ...] = (KmClaim, Pseudonymity)
ORDER = (one(Recode), one(CutItems), one(ArrangeSets))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the cut is of other columns than people can be looked up by, or about people with rows, or None."""
    cut, quasi = statement.grounds.need(CutItems), statement.of_role(Role.QUASI)
    if statement.grounds.unit.column is not None:
        return Problem("items of one person stand in one row: the unit has no column")
    if cut.items not in quasi or cut.columns != tuple(name for name in quasi if name != cut.items):
        return Problem("the columns of the cut are not the quasi-identifiers")
    return unlike_released(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[Look]:
    """Count the file: its columns, and its rarest combination of items."""
    (file,) = files
    columns = columns_in(statement, file)
    yield columns
    if columns.problem is None:
        cut = statement.grounds.need(CutItems)
        yield rarity(cut, open_source(str(file)).batches([*cut.columns, cut.items]))


def rarity(cut: CutItems, batches: Iterable[pa.RecordBatch]) -> Look:
    """Count the rarest combination of up to m items within a class."""
    found = rarest(baskets_of(batches, cut.columns, cut.items, cut.separator), cut.m)
    about = f"{KmClaim.kind} of {cut.items} in the file"
    if found is None:
        return Look(about, None, "there are no rows")
    text = f"the rarest combination of up to {cut.m} items occurs in {found} rows, k is {cut.k}"
    return Look(about, Problem(text) if found < cut.k else None, text)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return that some combination of items is rare in an output in memory, or None."""
    if not isinstance(output, ItemTable):
        return Problem("it is not a table of item sets")
    return rarity(statement.grounds.need(CutItems), output.batches()).problem


def reopen(statement: Statement, files: tuple[Path, ...]) -> ItemTable:
    """Count the published file, as anyone can; every column is text."""
    cut = statement.grounds.need(CutItems)
    return ItemTable(reopened(statement, files[0], cut.columns), cut.items, cut.separator, cut.m)
