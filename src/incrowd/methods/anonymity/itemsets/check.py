"""What is claimed of a table of item sets, how it is released and counted again, and what a report draws of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.keys import Layout
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.sets import Rows, Sets
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Arrange
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.criteria.demand import BECAUSE
from incrowd.criteria.itemsets import ASSUMES, KmAnonymity, KmClaim, smallest_support
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description
from incrowd.drawing.picture import Picture
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.shared.classes import columns_in, recoding_problem, reopen_table
from incrowd.methods.anonymity.shared.steps import require_share
from incrowd.methods.shared.microdata import Anonymized
from incrowd.methods.shared.outcome import Outcome, inference
from incrowd.verifier.check import Check, CheckOutcome, Problem


@dataclass(frozen=True)
class CutItems(Step):
    """Items are replaced by coarser ones, or left out everywhere, until no combination of a few is rare."""

    kind: ClassVar[str] = "cut items"
    title: ClassVar[str] = "Make items coarser"
    glyph: ClassVar[str | None] = "coarser"

    items: str
    separator: str
    columns: tuple[str, ...]
    k: int
    m: int
    suppression: Fraction

    def __post_init__(self) -> None:
        require_share(self.suppression)
        _ = self.criterion

    @property
    def criterion(self) -> KmAnonymity:
        """What is demanded of every class."""
        return KmAnonymity(self.items, self.k, self.m)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        classes = " among rows that agree in the other quasi-identifiers" if self.columns else ""
        return (
            f"The items in “{self.items}” are replaced by coarser ones until every combination of up to {self.m} of "
            f"them that occurs, occurs in {self.k} rows{classes}. Items left out: at most a share of "
            f"{self.suppression}. This looks at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic(KmClaim.kind, (("k", str(self.k)), ("m", str(self.m)))), (BECAUSE,), ASSUMES)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that no combination of a few items is rare."""
        return (self.criterion.claim(self.separator, self.columns, basis.unit),)


@dataclass(frozen=True)
class ArrangeSets(Arrange):
    """Rows are published in the order of their values, sets in one way of writing."""

    kind: ClassVar[str] = "arrange sets"


@dataclass(frozen=True, eq=False)
class ItemTable(Outcome):
    """Rows in the order of what they show; one column holds a set of items, in one way of writing.

    `rows.quasi` names the columns that make a class with each other, the set-valued one not among them; m is the
    number of items that somebody may know of a person.
    """

    form: ClassVar[str] = "itemsets"
    faithful: ClassVar[bool] = True

    rows: Anonymized
    column: str
    separator: str
    m: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tuples(self) -> int:
        """How many different rows there are."""
        return self.rows.tuples

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns; sets are text."""
        return self.rows.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Unfold the rows batch by batch."""
        return self.rows.batches()

    def sets(self) -> tuple[Sets, Rows]:
        """Return the sets that occur in the rows, row by row, and the class of each row."""
        codes = dict(zip(self.rows.names, self.rows.layout.unpack(self.rows.keys), strict=True))
        values = self.rows.values[self.rows.names.index(self.column)]
        lists = pc.split_pattern(values, self.separator)
        items = lists.flatten().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        lengths = np.append(pc.list_value_length(lists).to_numpy(zero_copy_only=False), 0)
        different = Sets.of(np.repeat(np.arange(len(lengths)), lengths), items, len(lengths))
        sizes = [len(self.rows.values[self.rows.names.index(name)]) + 1 for name in self.rows.quasi]
        keys = Layout(tuple(sizes)).pack([codes[name] for name in self.rows.quasi]) if sizes else None
        classes = (
            np.zeros(len(codes[self.column]), np.intp) if keys is None else np.unique(keys, return_inverse=True)[1]
        )
        every = np.repeat(np.arange(len(classes)), self.rows.counts)
        return different.take(codes[self.column][every].astype(np.intp)), classes[every].astype(np.intp)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows: its rows, its items, its rarest combination, and how many rows are unique."""
        if not len(self):
            return {"rows": 0}
        sets, classes = self.sets()
        alone = int((self.rows.counts == 1).sum())
        return {
            "rows": len(self),
            "items shown": len(np.unique(sets.items)),
            "largest set": int(sets.lengths.max()),
            "smallest support": min(smallest_support(sets.within(classes), self.m), int(np.bincount(classes).min())),
            "unique rows": alone,
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        alone = int((self.rows.counts == 1).sum())
        return {
            "singling out": f"{alone:,} rows are like no other: who knows more than {self.m} items may find one",
            "linkability": "identifiers are not released; rows are in the order of their values",
            "inference": inference(private=False),
        }


@dataclass(frozen=True, kw_only=True)
class ItemsCheck(Check):
    """Counts a file of item sets: the released columns, and no rare combination of a few items."""

    def contradiction(self, statement: Statement) -> Problem | None:
        cut, quasi = statement.basis.need(CutItems), statement.of_role(Role.QUASI)
        if statement.basis.unit.column is not None:
            return Problem("items of one person stand in one row: the unit has no column")
        if cut.items not in quasi or cut.columns != tuple(name for name in quasi if name != cut.items):
            return Problem("the columns of the cut are not the quasi-identifiers")
        return recoding_problem(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        columns = columns_in(statement, file)
        yield columns
        if columns.problem is None:
            cut = statement.basis.need(CutItems)
            yield _rarity(cut, open_source(str(file)).batches([*cut.columns, cut.items]))

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, ItemTable):
            return Problem("it is not a table of item sets")
        return _rarity(statement.basis.need(CutItems), output.batches()).problem

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> ItemTable:
        cut = statement.basis.need(CutItems)
        return ItemTable(reopen_table(statement, files[0], Anonymized, cut.columns), cut.items, cut.separator, cut.m)


def _rarity(cut: CutItems, batches: Iterable[pa.RecordBatch]) -> CheckOutcome:
    """Count the rarest combination of up to m items within a class."""
    rows = rarest(baskets_of(batches, cut.columns, cut.items, cut.separator), cut.m)
    about = f"{KmClaim.kind} of {cut.items} in the file"
    if rows is None:
        return CheckOutcome(about, None, "there are no rows")
    text = f"the rarest combination of up to {cut.m} items occurs in {rows} rows, k is {cut.k}"
    return CheckOutcome(about, Problem(text) if rows < cut.k else None, text)


Baskets = Mapping[tuple[object, ...], Counter[frozenset[str]]]
"""For each class how often each set of items occurs in it."""


def baskets_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str], items: str, separator: str) -> Baskets:
    """Count the sets of items in each class of a table.

    >>> table = pa.table({"sex": ["F", "F"], "ill": ["flu;gout", "gout;flu"]})
    >>> [sets.total() for sets in baskets_of(table.to_batches(), ["sex"], "ill", ";").values()]
    [2]
    """
    baskets: defaultdict[tuple[object, ...], Counter[frozenset[str]]] = defaultdict(Counter)
    names = [*columns, items]
    for batch in batches:
        counted = pa.Table.from_batches([batch]).select(names).group_by(names).aggregate([([], "count_all")])
        for *group, text, times in zip(
            *(counted.column(name).to_pylist() for name in [*names, "count_all"]), strict=True
        ):
            baskets[tuple(group)][frozenset(str(text).split(separator)) if text else frozenset()] += times
    return baskets


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
        support: Counter[tuple[str, ...]] = Counter()
        for others, times in some:
            for size in range(min(m, len(others) + 1)):
                for chosen in combinations(others, size):
                    support[chosen] += times
        least = min(least, *support.values())
    return least


class ItemsPicture(Picture):
    """How few items identify nobody, and how many rows are unique."""

    evidence = {  # noqa: RUF012 - a constant
        "rows": "Rows published",
        "items shown": "Different items shown",
        "largest set": "Items of the largest set",
        "smallest support": "Rows of the rarest combination of few items",
        "unique rows": "Rows that are like no other",
    }

    def description(self, statement: Statement) -> Description:
        rows, cut = int(statement.evidence["rows"]), statement.basis.need(CutItems)
        if rows == 0:
            return EMPTY
        full = (
            f"The published table has {counted(rows, 'row')} with a set of items each. Every combination of up to "
            f"{cut.m} items that occurs, occurs in {cut.k} rows or more. Rows like no other: "
            f"{int(statement.evidence['unique rows']):,}."
        )
        return Description("Rows with sets of items", full)

    def draw(self, statement: Statement, output: ItemTable) -> Markup | None:
        return class_sizes(output.rows.counts)
