"""The file of a table of item sets, counted again: no combination of a few items is rare."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import Step
from incrowd.criteria.itemsets import KmClaim
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.itemsets.output import ItemTable
from incrowd.methods.anonymity.itemsets.steps import ArrangeSets, CutItems
from incrowd.methods.anonymity.syntactic.check import columns_in, reopen_table, unlike_released
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Recode, CutItems, ArrangeSets)
CLAIMS: tuple[type[Claim], ...] = (KmClaim, Pseudonymity)
ORDER = (one(Recode), one(CutItems), one(ArrangeSets))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the cut is of other columns than people can be looked up by, or about people with rows, or None."""
    cut, quasi = statement.basis.need(CutItems), statement.of_role(Role.QUASI)
    if statement.basis.unit.column is not None:
        return Problem("items of one person stand in one row: the unit has no column")
    if cut.items not in quasi or cut.columns != tuple(name for name in quasi if name != cut.items):
        return Problem("the columns of the cut are not the quasi-identifiers")
    return unlike_released(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the file: its columns, and its rarest combination of items."""
    (file,) = files
    columns = columns_in(statement, file)
    yield columns
    if columns.problem is None:
        cut = statement.basis.need(CutItems)
        yield rarity(cut, open_source(str(file)).batches([*cut.columns, cut.items]))


def rarity(cut: CutItems, batches: Iterable[pa.RecordBatch]) -> CheckOutcome:
    """Count the rarest combination of up to m items within a class."""
    found = rarest(baskets_of(batches, cut.columns, cut.items, cut.separator), cut.m)
    about = f"{KmClaim.kind} of {cut.items} in the file"
    if found is None:
        return CheckOutcome(about, None, "there are no rows")
    text = f"the rarest combination of up to {cut.m} items occurs in {found} rows, k is {cut.k}"
    return CheckOutcome(about, Problem(text) if found < cut.k else None, text)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return that some combination of items is rare in an output in memory, or None."""
    if not isinstance(output, ItemTable):
        return Problem("it is not a table of item sets")
    return rarity(statement.basis.need(CutItems), output.batches()).problem


def reopen(statement: Statement, files: tuple[Path, ...]) -> ItemTable:
    """Count the published file, as anyone can; every column is text."""
    cut = statement.basis.need(CutItems)
    return ItemTable(reopen_table(statement, files[0], cut.columns), cut.items, cut.separator, cut.m)


Baskets = Mapping[tuple[object, ...], Counter[frozenset[str]]]
"""For each class how often each set of items occurs in it."""


def baskets_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str], items: str, separator: str) -> Baskets:
    """Count the sets of items in each class of a table.

    >>> table = pa.table({"sex": ["F", "F"], "ill": ["flu;gout", "gout;flu"]})
    >>> [each.total() for each in baskets_of(table.to_batches(), ["sex"], "ill", ";").values()]
    [2]
    """
    found: defaultdict[tuple[object, ...], Counter[frozenset[str]]] = defaultdict(Counter)
    names = [*columns, items]
    for batch in batches:
        counted = pa.Table.from_batches([batch]).select(names).group_by(names).aggregate([([], "count_all")])
        for *group, text, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            found[tuple(group)][frozenset(str(text).split(separator)) if text else frozenset()] += times
    return found


def rarest(baskets: Baskets, m: int) -> int | None:
    """Return the fewest rows of a class that hold a combination of up to m items which occurs; None without rows.

    >>> rarest({(): Counter({frozenset({"flu", "gout"}): 2, frozenset({"flu"}): 1})}, 2)
    2
    """
    return min((_rarest(sets, m) for sets in baskets.values()), default=None)


def _rarest(sets: Counter[frozenset[str]], m: int) -> int:
    """Go through the items: of all combinations that start with one, counters are held for one item at a time."""
    holding: defaultdict[str, list[tuple[Sequence[str], int]]] = defaultdict(list)
    for items, times in sets.items():
        order = sorted(items)
        for place, item in enumerate(order):
            holding[item].append((order[place + 1 :], times))
    least = sets.total()
    for some in holding.values():
        found: Counter[tuple[str, ...]] = Counter()
        for others, times in some:
            for size in range(min(m, len(others) + 1)):
                for chosen in combinations(others, size):
                    found[chosen] += times
        least = min(least, *found.values())
    return least
