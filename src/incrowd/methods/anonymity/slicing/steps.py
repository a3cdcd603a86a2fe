"""The steps of several tables and what they release: groups of columns, samples of their own, no links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.claims.claim import GROUPS, Claim, Precondition, assumed, checked, proved
from incrowd.core.claims.privacy import Anonymity, ApproximatePrivacy, blended
from incrowd.core.loss import Grouped, Loss, Sampled, Sequence
from incrowd.core.steps.choices import PrivateChoice
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import COINS, SecretSample
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.steps.suppression import Suppress, blends, one_row
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.microdata import Microdata, exposure, opinion_of_rows
from incrowd.methods.shared.outcome import Outcome

_COUNTED_TUPLES_EACH_TABLE = Theorem(
    "counted-tuples-each-table",
    "counted: in every table each tuple over all columns of that table occurs at least k times",
)
_GEHRKE_2012_EXAMPLE_1_ONE_TABLE = Theorem(
    "gehrke-2012-example-1-one-table", "Gehrke, Hay, Lui & Pass 2012, Example 1, for one table"
)
_TUPLE_OF_ONE_TABLE = Condition(
    "tuple-of-one-table", "every column of a table belongs to the tuple that is counted there"
)
_SAMPLES_APART = Condition(
    "samples-apart", "each table has a secret sample of its own, drawn independently of the others"
)
_ONE_RELEASE_COMPUTED = Condition(
    "one-release-computed", "all tables are computed from one release that was suppressed over all columns together"
)
_ASSOCIATION_SENSITIVITY = Condition(
    "association-sensitivity", "one row moves the association of two columns by at most 2"
)


@dataclass(frozen=True, kw_only=True)
class BlendingAlone(Claim):
    """(k, 0)-crowd-blending of each table alone."""

    kind = "crowd-blending, each table alone"
    rank: ClassVar[int] = 20

    k: int
    epsilon: Fraction

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return f"Of each table by itself: {blended(self.epsilon)} Of several tables side by side this is not said."


_MOST_TABLES = 1000  # each shares the budget, and is a file
RARE = checked(Condition("no-rare-tuple-each-table", "in no written table does a tuple occur fewer than k times"))
_CHOSEN = Theorem("private-choice-of-groups", "groups chosen by an epsilon-private selection")
_THEOREM = Theorem(
    "li-2010-theorem-1-tight-each-table",
    "Li, Qardaji & Su 2010, Theorem 1, by its tight bound for each table, composed over all tables",
)
_BEHIND = Theorem("behind-choice-of-groups", "behind a private choice of the groups")
_ACROSS = Exposure(
    "tables-side-by-side",
    "crowds of different tables do not add up: one person's part in each table, put side by side, may fit nobody else",
)
_LINKS = Exposure(
    "links-between-tables",
    "which row of one table belongs to which of another is not released, but is not hidden by"
    " that: where nearly everyone agrees in the columns of one table, the tables tell what "
    "goes together",
)


class Drawing(StrEnum):
    """How the samples of several tables are drawn: one for each, or one that is split."""

    FRESH = "fresh"
    JOINT = "joint"


@dataclass(frozen=True)
class TablesGuarantee(StepGuarantee):
    """A guarantee about one table that will be repeated for as many as have a sample of their own."""

    samples: int = 1


@dataclass(frozen=True)
class ChooseGroups(PrivateChoice):
    """A private selection puts columns that go together into groups."""

    kind: ClassVar[str] = "choose groups"
    title: ClassVar[str] = "Choose groups privately"

    size: int
    candidates: int
    sensitivity: int

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"Columns that go together are put into groups of at most {self.size}. A private selection with an ε of "
            f"{self.epsilon} chooses the groups; it reads all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the choice in front, and its reason."""
        around = super().around(inner, unit)
        return inner if around is inner else replace(around, because=(_CHOSEN, *inner.because))


@dataclass(frozen=True)
class KeepRowsInTables(KeepRows):
    """Of each person, a limited number of rows is used in a table."""

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Group what is guaranteed for one row in each table; the reason for the tables covers it."""
        if unit.max_rows == 1 or inner.loss is None:
            return inner
        if isinstance(inner.loss, Sequence):
            return replace(inner, loss=Sequence(tuple(map(self._grouped, inner.loss.parts))))
        return replace(inner, loss=self._grouped(inner.loss))

    def _grouped(self, loss: Loss) -> Loss:
        return Grouped(self.rows, loss) if isinstance(loss, Sampled) else loss


@dataclass(frozen=True)
class FreshSamples(SecretSample):
    """Each row is sampled for each table independently, in secret."""

    kind: ClassVar[str] = "sample for each table"

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Repeat what is guaranteed of one table for each of them."""
        around = super().around(inner, unit)
        if around is inner or around.loss is None or not isinstance(inner, TablesGuarantee):
            return around
        return replace(around, loss=Sequence((around.loss,) * inner.samples))


@dataclass(frozen=True)
class SuppressJointly(Suppress):
    """Tuples over all columns that occur fewer than k times are dropped, before tables are split off."""

    because: ClassVar[Theorem] = Theorem(
        "tables-of-one-release",
        "one release by sampled suppression over all columns, by its tight bound; its tables are computed from it",
    )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a crowd of k; on a secret sample, by the reason of the tables."""
        crowd = super().around(StepGuarantee(), unit)
        return replace(inner, loss=crowd.loss, because=crowd.because, assumes=crowd.assumes, on_sample=(self.because,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what one release claims if nothing was chosen, else differential privacy of everything together."""
        return super().claims(basis) if basis.find(ChooseGroups) is None else together(self, basis)

    def anonymity(self, basis: ClaimBasis) -> Anonymity:
        """Claim that nothing published is rare in its table, which anyone can recount."""
        whole = super().anonymity(basis)
        return replace(
            whole,
            tables=basis.need(PublishTables).tables,
            theorem=(_COUNTED_TUPLES_EACH_TABLE,),
            not_protected=(*whole.not_protected, _ACROSS, _LINKS),
        )


@dataclass(frozen=True)
class SuppressEach(SuppressJointly):
    """In each table, tuples over its columns that occur fewer than k times are dropped."""

    kind: ClassVar[str] = "suppress in each table"
    because: ClassVar[Theorem] = Theorem(
        "tables-sampled-apart",
        "sampled suppression by its tight bound for each table, with fresh randomness, composed over all tables",
    )

    @property
    def over(self) -> str:
        """Which columns make a tuple."""
        return "all columns of a table"

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of all tables together, and of each alone its crowds."""
        alone = basis.find(ChooseGroups) is None and blends(basis) and not basis.guarantee.syntactic
        return (*together(self, basis), *([blending_alone(self.k, basis)] if alone else []))


@dataclass(frozen=True)
class PublishTables(Step):
    """Several tables are published, each sorted by its values; no row of one is linked to a row of another."""

    kind: ClassVar[str] = "publish tables"
    title: ClassVar[str] = "Publish, not linked"

    tables: int
    sample: Drawing
    groups: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        """Refuse more tables than any release has: the loss of each is a part of the guarantee."""
        if self.tables > _MOST_TABLES:
            raise InvalidParameter(f"a release has at most {_MOST_TABLES:,} tables: put more columns into a group.")

    @property
    def samples(self) -> int:
        """How many secret samples are drawn."""
        return self.tables if self.sample is Drawing.FRESH else 1

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        samples = "each from a sample of its own" if self.sample is Drawing.FRESH else "all from the one sample"
        return (
            f"{counted(self.tables, 'table')}, {samples}, each sorted by released values. Which row of one belongs to "
            "which of another is not told."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Say how often what is guaranteed of a table will be repeated."""
        return inner if inner.loss is not None else TablesGuarantee(samples=self.samples)


def together(suppress: SuppressJointly, basis: ClaimBasis) -> tuple[Claim, ...]:
    """Claim differential privacy of all tables and of the choice of their columns, and the form of each table."""
    same = suppress.anonymity(basis)
    if basis.guarantee.syntactic:
        return (same,)
    unit, choice, samples = basis.unit, basis.find(ChooseGroups), basis.need(PublishTables).samples
    private = ApproximatePrivacy(
        k=suppress.k,
        rate=basis.need(SecretSample).rate,
        samples=samples,
        delta=basis.guarantee.delta,
        epsilon=basis.epsilon,
        choosing=None if choice is None else choice.epsilon,
        adjacency=unit.adjacency,
        max_rows=unit.max_rows,
        unit=unit,
        theorem=(_THEOREM,) if choice is None else (_THEOREM, _BEHIND),
        preconditions=(*_by_design(samples, chosen=choice is not None), *RARE, *_outside(unit)),
        not_protected=(GROUPS,),
    )
    return (private, same)


def blending_alone(k: int, basis: ClaimBasis) -> BlendingAlone:
    """Claim the crowds of each table; it says nothing about two tables side by side."""
    return BlendingAlone(
        k=k,
        epsilon=Fraction(0),
        unit=basis.unit,
        theorem=(_GEHRKE_2012_EXAMPLE_1_ONE_TABLE,),
        preconditions=(*one_row(basis.unit), *RARE, *_outside(basis.unit)),
        not_protected=(GROUPS, _ACROSS),
    )


def _by_design(samples: int, *, chosen: bool) -> tuple[Precondition, ...]:
    return proved(
        _TUPLE_OF_ONE_TABLE,
        _SAMPLES_APART if samples > 1 else _ONE_RELEASE_COMPUTED,
        *([_ASSOCIATION_SENSITIVITY] if chosen else []),
    )


def _outside(unit: Unit) -> tuple[Precondition, ...]:
    return assumed(assumptions(unit) | {COINS})


SLICE = "slice"
"""The column that numbers the tables from 1, where all of them are shown in one."""
_UNLINKED = (
    "identifiers are not released; rows are in the order of their values, and which row of one table belongs to which "
    "of another is not told"
)


@dataclass(frozen=True)
class Sliced(Outcome):
    """Several released tables over different columns: a file each, and in memory one below the other.

    `names` are all columns in order.  Seen as one table it has a first column `slice`, and a row is empty in the
    columns that its table does not have.
    """

    form: ClassVar[str] = "sliced"

    tables: tuple[Microdata, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        have = [name for table in self.tables for name in table.schema.names]
        if sorted(have) != sorted(self.names):
            raise InvalidParameter("slices have each of their columns once.")
        if SLICE in self.names:
            raise InvalidParameter(f"a column {SLICE!r} numbers the tables of a release: give yours another name.")

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def parts(self) -> tuple[Microdata, ...]:
        """The tables, in the order of their numbers."""
        return self.tables

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns of all tables, behind the number of the table."""
        fields = {field.name: field for table in self.tables for field in table.schema}
        return pa.schema([pa.field(SLICE, pa.int32()), *(fields[name] for name in self.names)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of the first table, then those of the second, and so on."""
        schema = self.schema
        for number, table in enumerate(self.tables, 1):
            for batch in table.batches():
                columns_of_table = {SLICE: pa.repeat(pa.scalar(number, pa.int32()), len(batch))}
                columns_of_table |= dict(zip(batch.schema.names, batch.columns, strict=True))
                columns = [columns_of_table.get(field.name, pa.nulls(len(batch), field.type)) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what all tables show together, the worst of them counting, and the size of each."""
        together = exposure(self._sizes, unit)
        tables = [
            {"columns": list(table.schema.names), "rows": len(table), "classes": len(table.counts)}
            for table in self.tables
        ]
        return {**together, "tables": tables}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        tests = opinion_of_rows(self._sizes, unit, private=private)
        return tests | ({"linkability": _UNLINKED} if tests else {})

    @property
    def _sizes(self) -> NDArray[np.int64]:
        return np.concatenate([table.counts.counts for table in self.tables])
