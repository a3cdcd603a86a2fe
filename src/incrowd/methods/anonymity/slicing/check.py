"""The files of several tables, counted again: the columns of each, no rare tuple, and rows that fit one release."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from incrowd.core.cells import Cells
from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    Pseudonymity,
    PublishedTheorem,
    Smooth,
    ZeroKnowledge,
)
from incrowd.core.plan import Output
from incrowd.core.schema import Column, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.core.steps.suppression import Suppress
from incrowd.core.unit import Adjacency
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.safe import check as safe
from incrowd.methods.anonymity.slicing.output import Sliced
from incrowd.methods.anonymity.slicing.steps import (
    BlendingAlone,
    ChooseGroups,
    Drawing,
    FreshSamples,
    KeepRowsInTables,
    PublishTables,
    SuppressEach,
    SuppressJointly,
)
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of

_SAMPLES, _SUPPRESSIONS = (SecretSample, FreshSamples), (SuppressJointly, SuppressEach)
STEPS: tuple[type[Step], ...] = (
    ChooseGroups,
    KeepRowsInTables,
    *_SAMPLES,
    Recode,
    *_SUPPRESSIONS,
    PublishTables,
)
CLAIMS: tuple[type[Claim], ...] = (
    ApproximatePrivacy,
    ZeroKnowledge,
    PublishedTheorem,
    Smooth,
    Blending,
    BlendingAlone,
    Anonymity,
    Pseudonymity,
)
ORDER = (
    maybe(ChooseGroups),
    maybe(KeepRowsInTables),
    one(*_SAMPLES),
    one(Recode),
    one(*_SUPPRESSIONS),
    one(PublishTables),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return that samples, groups or the choice of groups contradict each other or the released columns, or None."""
    return safe.contradiction(statement) or _samples(statement.basis) or _groups(statement) or _choice(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the files: their columns, the rarest tuple of any table, and whether they can be parts of one release."""
    columns = [columns_of(file) for file in files]
    problem = _strange(statement, columns)
    yield CheckOutcome("columns in the files", problem, "they are those of the groups, and no others")
    if problem is None:
        sizes = [smallest_class(file, names) for file, names in zip(files, columns, strict=True)]
        least, k = min((size for size in sizes if size is not None), default=None), _k(statement)
        words = f"the rarest tuple of a table occurs {least} times, k is {k}" if least else "there are no rows"
        yield CheckOutcome("crowds in the files", Problem(words) if least is not None and least < k else None, words)
        yield from _split(statement, [_rows(file) for file in files])


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return that tables in memory have strange columns, rare tuples or do not fit one release, or None."""
    if not isinstance(output, Sliced):
        return Problem("these are not several tables")
    strange, k = _strange(statement, [tuple(table.schema.names) for table in output.tables]), _k(statement)
    if strange is not None:
        return strange
    if any(len(table) and int(table.counts.counts.min()) < k for table in output.tables):
        return Problem("some tuple occurs too rarely")
    return next((look.problem for look in _split(statement, [len(table) for table in output.tables])), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Sliced:
    """Count the published files, as anyone can; columns are text."""
    return Sliced(tuple(map(_table, files)), statement.released)


def _samples(basis: ClaimBasis) -> Problem | None:
    """Return that the steps speak of samples for each table in one place and of one sample in another, or None."""
    fresh = basis.need(PublishTables).sample is Drawing.FRESH
    drawn = (type(basis.need(SecretSample)), type(basis.need(Suppress)))
    same = drawn == ((FreshSamples, SuppressEach) if fresh else (SecretSample, SuppressJointly))
    return None if same else Problem("the steps do not agree on how many samples there are")


def _groups(statement: Statement) -> Problem | None:
    """Return that groups which were given do not hold every released column once, or None."""
    publish, chosen = statement.basis.need(PublishTables), statement.basis.find(ChooseGroups)
    if (publish.groups is None) != (chosen is not None):
        return Problem("the groups were neither given nor chosen, or both")
    if publish.tables < 2:
        return Problem("there are not several tables")
    if publish.groups is None:
        return None
    named = [name for group in publish.groups for name in group]
    if sorted(named) != sorted(statement.released) or len(publish.groups) != publish.tables or not all(publish.groups):
        return Problem("the groups do not hold every released column once")
    return None


def _choice(statement: Statement) -> Problem | None:
    """Return that one unit can move the score of a grouping by more than the step of the choice says, or None.

    One row moves the association of two columns by less than 2, and a group of s columns has s·(s − 1)/2 pairs: most
    are kept together where as many groups as possible are full.
    """
    choice, unit, columns = statement.basis.find(ChooseGroups), statement.basis.unit, len(statement.released)
    if choice is None:
        return None
    if choice.size < 2 or math.ceil(columns / choice.size) != statement.basis.need(PublishTables).tables:
        return Problem("there are not as many tables as groups of that size take")
    full, left = divmod(columns, choice.size)
    pairs = full * choice.size * (choice.size - 1) // 2 + left * (left - 1) // 2
    replaced = 1 if unit.adjacency is Adjacency.ADD_REMOVE else 2
    if choice.sensitivity < 2 * pairs * unit.max_rows * replaced:
        return Problem("one person can move the score of a grouping by more than the steps say")
    return None


def _strange(statement: Statement, columns: list[tuple[str, ...]]) -> Problem | None:
    """Return that the tables have other columns than the groups that were given, or than groups that can be chosen."""
    publish, released = statement.basis.need(PublishTables), statement.released
    if publish.groups is not None:
        same = tuple(columns) == publish.groups
        return None if same else Problem("the columns of the tables are not those of the groups")
    once = sorted(name for names in columns for name in names) == sorted(released)
    ordered = all(list(names) == [name for name in released if name in names] for names in columns)
    small = all(0 < len(names) <= statement.basis.need(ChooseGroups).size for names in columns)
    fits = once and ordered and small and len(columns) == publish.tables
    return None if fits else Problem("the tables do not hold every released column once")


def _split(statement: Statement, rows: list[int]) -> Iterator[CheckOutcome]:
    """Where the steps tell of one release that was split, look whether the tables can be that: all have its rows."""
    if statement.basis.need(PublishTables).sample is Drawing.JOINT:
        unlike = Problem("the tables have different numbers of rows, so they are not parts of one release")
        yield CheckOutcome("rows in the files", unlike if len(set(rows)) > 1 else None, "each table has as many rows")


def _k(statement: Statement) -> int:
    return statement.basis.need(Suppress).k


def _rows(file: Path) -> int:
    source = open_source(str(file))
    return sum(len(batch) for batch in source.batches(source.names))


def _table(file: Path) -> Microdata:
    source = open_source(str(file))
    schema = Schema(tuple(Column(name) for name in source.names))
    return Microdata(LocalEngine().count(source, Cells.of(schema, {})))
