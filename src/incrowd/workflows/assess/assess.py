"""Assess: what a release lost and what risk is left, beside the data it came from; internal, since both are needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.measures.coded import Coded
from incrowd.measures.risk.classes import Homogeneity, SizeRisk, Sizes, homogeneity, risk
from incrowd.quality.ladder import class_losses, mean_loss
from incrowd.workflows.assess.comparison import Crowds, Original, ShownTable, crowds, held, shown_names, shown_tables
from incrowd.workflows.assess.identity import (
    IdentityRisk,
    SpecialRows,
    by_model,
    by_weights,
    in_population,
    ranked,
    special_rows,
)
from incrowd.workflows.assess.labels import LabelMap
from incrowd.workflows.assess.preservation import PreservedStatistic, preserved_statistics
from incrowd.workflows.assess.released import ReadRelease
from incrowd.workflows.assess.synthetic import SyntheticQuality, synthetic_quality
from incrowd.workflows.assess.utility import Utility, utility
from incrowd.workflows.attack.attack import AttackReport
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.policy import Policy

THRESHOLD = 0.2
"""A row is at risk if an attacker is right about it more often than this: the usual line for data given to few."""
NOBODYS = (
    "The rows of this release were changed or made anew, or it shows counts: rows that look alike do not tell who is "
    "whom, so no attacker is counted here, and the risk after the release is not judged. That does not mean that it is "
    "low: `incrowd attack`, or --control here, matches changed values by distance."
)
_SAMPLED = "There are too many classes to count every crowd: {:,} of {:,} were counted, evenly chosen."
_BLANKS = "An empty cell counts as a value of its own here: who takes it for any value finds larger crowds."
_SETS = (
    "Sets of items are taken as they are shown: the journalist's and the marketer's crowds are those of the release."
)
_LISTED = (
    "The release lists tuples, not how many rows they have: {:,} of {:,} rows of the data lie in them, and {:,} lie in "
    "as many of the most common ones."
)
_ABSENT = "not released"


@dataclass(frozen=True)
class ColumnLoss:
    """What became of one column: the mean loss of the rows that were kept, and of all rows; None: not known."""

    name: str
    level: int | str
    kept: float | None
    all: float | None


@dataclass(frozen=True)
class Example:
    """One record in the smallest class, worked through: what is known, how many look like it, in words."""

    values: Mapping[str, str | None]
    released: int
    original: int
    words: str


@dataclass(frozen=True)
class AttributeRisk:
    """What classes tell about a sensitive column, in the data and in the release."""

    before: Homogeneity
    after: Homogeneity | None


@dataclass(frozen=True)
class Assessment:
    """Rows kept, loss per column, the risk before and after for three attackers, and every further measure.

    `classes_after`, `risks`, `example` and `smallest_crowd` are there where rows of people were released, `preserved`
    where masks claim what they keep, `quality` where rows were drawn from a model, and `lab` where attacks were run
    beside people who are not in the data.
    """

    name: str
    rows: int
    kept: int
    tables: tuple[int, ...]
    columns: tuple[ColumnLoss, ...]
    classes_before: Sizes
    classes_after: Sizes | None
    risks: Mapping[str, tuple[SizeRisk, SizeRisk]]
    example: Example | None
    smallest_crowd: int | None
    identity: IdentityRisk
    attributes: tuple[AttributeRisk, ...]
    utility: Utility
    notes: tuple[str, ...]
    preserved: tuple[PreservedStatistic, ...] = ()
    quality: SyntheticQuality | None = None
    lab: AttackReport | None = None

    @property
    def loss_kept(self) -> float | None:
        """The mean over columns of what kept rows lost; None where some column's is not known."""
        return _mean([column.kept for column in self.columns])

    @property
    def loss(self) -> float | None:
        """The mean over columns of what all rows lost, where it is known; a row that was not kept lost everything."""
        return _mean([column.all for column in self.columns])

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with the definition of every attacker."""
        from incrowd.workflows.assess.plain import plain

        return plain(self)


def assess(
    released: Rows | ReadRelease, original: Rows, policy: Policy, engine: Engine = LOCAL, *, weights: str | None = None
) -> Assessment:
    """Compare a release, which is read here, with the data and the policy it was made from; `engine` has the data.

    Before, the quasi-identifiers are taken as they are in the data; after, as they were released, whatever the levels.
    The prosecutor's crowd after is the class in the release; the journalist's and the marketer's is the rows of the
    original that could be in it, which stand for the population.  `weights` names a column of survey weights, by
    default the one that the policy gives this role.  Of a gated release the data are the rows of people who consented
    when it was made.
    """
    shown = released if isinstance(released, ReadRelease) else _told(released, policy)
    original = taking_part(engine, original, policy, shown.gate)
    names = shown_names(shown, policy.schema)
    there = Original.of(original, policy.schema, names, engine)
    tables = shown_tables(shown, policy.schema, there)
    quasi = tuple(name for name in names if name in policy.schema.quasi) or names
    before = engine.count(original, as_is(original, quasi, engine))
    sizes = Sizes.of(before, quasi)
    kept = max(table.total for table in tables)
    faithful = all(table.faithful for table in tables)
    if faithful and kept > sizes.rows:
        raise InvalidParameter(
            "the release has more rows than the data: it was made from other data. Name what it was made from."
        )
    found = [_crowds(table, quasi, there) for table in tables] if faithful else []
    after = Sizes(np.concatenate([each.rows for each in found])) if found else None
    people, weighing = policy.section.dataset.population, weights or policy.schema.weight
    unique, intrusion = in_population(sizes.counts, None if after is None else after.counts, people)
    coded = there.counts.marginal([name for name in quasi if name in there.counts.names])
    return Assessment(
        shown.name,
        sizes.rows,
        kept,
        tuple(table.total for table in tables),
        _losses(tables, policy, there, sizes.rows),
        sizes,
        after,
        _risks(sizes, after, found),
        _example(tables, found, quasi),
        min((int(each.people.min()) for each in found if len(each.people)), default=None),
        IdentityRisk(
            (
                special_rows(coded.names, coded.codes(), coded.counts),
                _special(tables[0], quasi) if faithful and len(tables) == 1 else None,
            ),
            ranked(coded),
            unique,
            intrusion,
            by_model(coded.codes(), coded.counts, people),
            None if weighing is None else by_weights(original, quasi, weighing, engine),
        ),
        _attributes(tables, quasi, policy, there),
        utility(tables, there, policy.schema),
        _notes(tables, found, there),
        preserved_statistics(shown, original, policy, engine),
        synthetic_quality(shown.tables[0], original, policy, engine) if len(shown.tables) == 1 else None,
    )


def _told(rows: Rows, policy: Policy) -> ReadRelease:
    """Return rows without a certificate as a release under a policy, all of whose columns they must have."""
    names = tuple(column.name for column in policy.schema.released)
    require(rows.names, names)
    levels = getattr(policy.method, "levels", {})
    return ReadRelease.of(rows, levels if isinstance(levels, Mapping) else {})


def _crowds(table: ShownTable, quasi: Sequence[str], there: Original) -> Crowds:
    """Return the crowds of a table's classes; where no value lies under two labels, whole rows are looked for too."""
    read = [book for book in table.books if book is not None]
    if all(book.apart for book in read):
        crowds(table, table.read, there)
    return crowds(table, _places(table, quasi), there)


def _places(table: ShownTable, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(table.names) if name in names)


def _losses(tables: Sequence[ShownTable], policy: Policy, there: Original, rows: int) -> tuple[ColumnLoss, ...]:
    found = {
        name: _item_loss(table, place, policy, there, rows) if book is None else _loss(table, place, book, rows)
        for table in tables
        for place, (name, book) in enumerate(zip(table.names, table.books, strict=True))
    }
    names = [column.name for column in policy.schema.released]
    return tuple(found.get(name, ColumnLoss(name, _ABSENT, 1.0, 1.0)) for name in names)


def _loss(table: ShownTable, place: int, book: LabelMap, rows: int) -> ColumnLoss:
    name = table.names[place]
    if book.changed or table.listed:
        return ColumnLoss(name, book.level, None, None)
    each = np.bincount(table.codes[place], table.rows, len(book.lengths)).astype(np.int64)
    left_out = max(0, rows - table.total)
    return ColumnLoss(name, book.level, mean_loss(book.losses, each), mean_loss(book.losses, each, left_out))


def _item_loss(table: ShownTable, place: int, policy: Policy, there: Original, rows: int) -> ColumnLoss:
    """Return what a column of sets lost: items that are gone, or coarser, as a share of all items there were."""
    name = table.names[place]
    column, written = policy.schema[name], there.counts.marginal([name])
    separator, worth = column.separator or "", _item_worth(column)
    values = [sum(worth.get(item, 0.0) for item in (label or "").split(separator)) for label in table.labels[place]]
    sets = [(label or "").split(separator) for label in written.classes[0].labels().to_pylist()]
    items = [len({item.strip() for item in each} - {""}) for each in sets]
    had = float((np.array(items)[written.codes()[0]] * written.counts).sum())
    shown = float((np.array(values)[table.codes[place]] * table.rows).sum()) if values else 0.0
    kept, whole = (1.0 - shown / part if part else 0.0 for part in (had * table.total / max(1, rows), had))
    return ColumnLoss(name, "items", float(np.clip(kept, 0.0, 1.0)), float(np.clip(whole, 0.0, 1.0)))


def _item_worth(column: Column) -> dict[str | None, float]:
    """Return how much of an item is left that is shown under each label, from 1 for itself to 0."""
    found: dict[str | None, float] = {}
    for level in reversed(range(column.hierarchy.height + 1)):
        classes = Recoding(column.item, level).classes
        if classes is not None:
            found |= dict(zip(classes.labels().to_pylist(), (1.0 - class_losses(classes)).tolist(), strict=True))
    return found


def _risks(before: Sizes, after: Sizes | None, found: Sequence[Crowds]) -> dict[str, tuple[SizeRisk, SizeRisk]]:
    if after is None:
        return {}
    at_first = risk(before.counts, before.counts, THRESHOLD)
    rows = np.concatenate([each.rows[each.asked] for each in found])
    hidden = risk(rows, np.concatenate([each.people for each in found]), THRESHOLD)
    return {
        "prosecutor": (at_first, risk(after.counts, after.counts, THRESHOLD)),
        "journalist": (at_first, hidden),
        "marketer": (at_first, hidden),
    }


def _example(tables: Sequence[ShownTable], found: Sequence[Crowds], quasi: Sequence[str]) -> Example | None:
    """Work through a record of the smallest class of the release."""
    candidates = [(table, each) for table, each in zip(tables, found, strict=False) if len(each.asked)]
    if not candidates:
        return None
    table, each = min(candidates, key=lambda pair: int(pair[1].rows[pair[1].asked].min()))
    which = int(np.argmin(each.rows[each.asked]))
    place = each.asked[which]
    columns = _places(table, quasi)
    values = {
        table.names[c]: table.labels[c][int(code)] for c, code in zip(columns, each.labels[:, place], strict=True)
    }
    here, there = int(each.rows[place]), int(each.people[which])
    known = ", ".join(f"{name} {'missing' if value is None else value}" for name, value in values.items())
    words = (
        f"Somebody with {known}: {here} released rows look like that, so one who knows that this person is among them "
        f"is right with 1/{here}; {there} rows of the data do, so one who does not know is right with 1/{there}."
    )
    return Example(values, here, there, words)


def _special(table: ShownTable, quasi: Sequence[str]) -> SpecialRows | None:
    columns = _places(table, quasi)
    labels, rows = table.classes(columns)
    return special_rows([table.names[place] for place in columns], list(labels), rows) if columns else None


def _attributes(
    tables: Sequence[ShownTable], quasi: Sequence[str], policy: Policy, there: Original
) -> tuple[AttributeRisk, ...]:
    before, found = there.coded, []
    for table in tables:
        known = [name for name in table.names if name in quasi]
        for name in table.names:
            if policy.schema[name].role is not Role.SENSITIVE or not known:
                continue
            places = tuple(before.place(each) for each in known)
            one = homogeneity(before, places, before.place(name))
            if one is not None:
                found.append(AttributeRisk(one, _in_labels(table, known, name) if table.faithful else None))
    return tuple(found)


def _in_labels(table: ShownTable, known: Sequence[str], name: str) -> Homogeneity | None:
    sizes = tuple(max(1, len(labels)) for labels in table.labels)
    coded = Coded(table.names, table.codes, table.rows.astype(float), sizes, (None,) * len(sizes))
    return homogeneity(coded, _places(table, known), coded.place(name))


def _notes(tables: Sequence[ShownTable], found: Sequence[Crowds], there: Original) -> tuple[str, ...]:
    notes = [] if all(table.faithful for table in tables) else [NOBODYS]
    for table in tables:
        if table.listed:
            here, best = held(table, there)
            notes.append(_LISTED.format(here, there.counts.total, best))
    notes += [_SAMPLED.format(len(each.asked), len(each.rows)) for each in found if not each.whole]
    notes += [_BLANKS] if any(table.blanks for table in tables) else []
    notes += [_SETS] if found and any(book is None for table in tables for book in table.books) else []
    return tuple(notes)


def _mean(losses: Sequence[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None]
    return float(np.mean(known)) if known and len(known) == len(losses) else None
