"""Assess: the information loss and the remaining risk of a release, compared with its data; internal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from incrowd.workflows.assess.comparison import (
    Crowds,
    Original,
    ShownTable,
    crowds,
    held,
    people_in,
    shown_names,
    shown_tables,
)
from incrowd.workflows.assess.identity import (
    IdentityRisk,
    SpecialRows,
    by_household,
    by_weights,
    identity_risk,
    special_rows,
)
from incrowd.workflows.assess.labels import LabelMap
from incrowd.workflows.assess.masked_risk import MaskedRisk, masked_risk
from incrowd.workflows.assess.preservation import PreservedStatistic, preserved_statistics
from incrowd.workflows.assess.released import ReadRelease, levels_of_steps
from incrowd.workflows.assess.utility import SyntheticQuality, Utility, synthetic_quality, utility
from incrowd.workflows.attack.attack import AttackReport
from incrowd.workflows.attack.publication import masks_of, table_of
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.policy import Policy

THRESHOLD = 0.2
"""A row is at risk if an attacker is right about it with a higher probability: usual for data shared with few."""
NOT_JUDGED = (
    "This release has synthetic rows, counts or changed values: its equivalence classes do not show who is who, so the "
    "risk after the release is not judged here. That does not mean that it is low: `incrowd attack`, or --control "
    "here, runs attacks on it."
)
_SAMPLED = "There are too many classes to count every crowd: {:,} of {:,} were counted, evenly spaced."
_BLANKS = "An empty cell counts as a value of its own here: if it can be any value, crowds are larger."
_SETS = (
    "Sets of items are compared as released: the crowds of the journalist and the marketer are those of the release."
)
_LISTED = (
    "The release lists tuples without counts: {:,} of {:,} rows of the data have one of them, and {:,} have one of as "
    "many of the most common tuples."
)
_ABSENT = "not released"


@dataclass(frozen=True)
class ColumnLoss:
    """Information loss of one column: the mean over the released rows, and over all rows; None: unknown."""

    name: str
    level: int | str
    released: float | None
    all: float | None


@dataclass(frozen=True)
class Example:
    """One record of the smallest class: its known values, the sizes of its classes, and the risk as a sentence."""

    values: Mapping[str, str | None]
    released: int
    original: int
    words: str


@dataclass(frozen=True)
class AttributeRisk:
    """What equivalence classes disclose about a sensitive column, in the data and in the release."""

    before: Homogeneity
    after: Homogeneity | None


@dataclass(frozen=True)
class Assessment:
    """Released rows, information loss by column, risk before and after for three attackers, and further measures.

    `classes_after`, `risks`, `example` and `smallest_crowd` are set where rows of people were released, `preserved`
    where masks claim to preserve statistics, `masked` where masks moved values, `quality` for synthetic rows, and `lab`
    where attacks were run with a control group.
    """

    name: str
    rows: int
    released: int
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
    masked: MaskedRisk | None = None
    counted: str = "rows"
    """What equivalence classes consist of: rows, or people where they are the unit of privacy."""

    @property
    def loss_released(self) -> float | None:
        """The mean over columns of the loss of released rows; None where it is unknown for a column."""
        return _mean([column.released for column in self.columns])

    @property
    def loss(self) -> float | None:
        """The mean over columns of the loss of all rows; a row that was not released lost everything."""
        return _mean([column.all for column in self.columns])

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON, with the definition of every attacker."""
        from incrowd.workflows.assess.record import plain

        return plain(self)


def assess(
    released: Rows | ReadRelease, original: Rows, policy: Policy, engine: Engine = LOCAL, *, weights: str | None = None
) -> Assessment:
    """Compare a release with the data and the policy it was made from; `engine` reads the data.

    Before, the quasi-identifiers are those of the data; after, those of the release, at any levels.  The prosecutor's
    crowd after is the class in the release; the crowd of the journalist and the marketer is the rows of the original
    that could be in it, which represent the population.  `weights` names a column of survey weights, by default the
    policy's.  For a release with a consent check the data are the rows of people who consented when it was made.
    """
    read = released if isinstance(released, ReadRelease) else _without_certificate(released, policy)
    original = taking_part(engine, original, policy, read.gate)
    names = shown_names(read, policy.schema)
    data = Original.of(original, policy.schema, names, engine)
    tables = shown_tables(read, policy.schema, data)
    quasi = tuple(name for name in names if name in policy.schema.quasi) or names
    sizes, rows = _before(original, quasi, policy, engine)
    released_rows = max(table.total for table in tables)
    faithful = all(table.faithful for table in tables)
    if faithful and released_rows > rows:
        raise InvalidParameter(
            "the release has more rows than the data: it was made from other data. Name what it was made from."
        )
    crowd_counts = [_crowds(table, quasi, data) for table in tables] if faithful else []
    after = Sizes(np.concatenate([crowd.owners for crowd in crowd_counts])) if crowd_counts else None
    weighing = weights or policy.schema.weight
    links = None if weighing is None else by_weights(original, quasi, weighing, engine)
    household = policy.schema.household
    homes = None
    if household is not None and data.pairs is None:  # of somebody with several rows each would count as a member
        homes = by_household(original, quasi, household, engine)
    special = _special(tables[0], quasi) if faithful and len(tables) == 1 else None
    coded = data.people([name for name in quasi if name in data.counts.names])
    unit = "rows" if data.pairs is None else "people"
    masked = None if faithful else _masked(read, original, names, policy)
    return Assessment(
        read.name,
        rows,
        released_rows,
        tuple(table.total for table in tables),
        _losses(tables, policy, data, rows),
        sizes,
        after,
        _risks(sizes, after, crowd_counts),
        _example(tables, crowd_counts, quasi, unit),
        min((int(crowd.people.min()) for crowd in crowd_counts if len(crowd.people)), default=None),
        replace(
            identity_risk(coded, (sizes, after), policy.section.dataset.population, special, links), households=homes
        ),
        _attributes(tables, quasi, policy, data),
        utility(tables, data, policy.schema),
        _notes(tables, crowd_counts, data, judged=faithful or masked is not None),
        preserved_statistics(read, original, policy, engine),
        synthetic_quality(read.tables[0], original, policy, engine) if len(read.tables) == 1 else None,
        masked=masked,
        counted=unit,
    )


def _before(original: Rows, quasi: Sequence[str], policy: Policy, engine: Engine) -> tuple[Sizes, int]:
    """Return the classes of the data as it is, in rows or in people as the unit of privacy says, and its rows."""
    person = policy.schema.unit.column
    if person is None or person in quasi or person not in original.names:
        sizes = Sizes.of(engine.count(original, as_is(original, quasi, engine)), quasi)
        return sizes, sizes.rows
    pairs = engine.count(original, as_is(original, [*quasi, person], engine))
    return Sizes.of(people_in(pairs, quasi), quasi), pairs.total


def _without_certificate(rows: Rows, policy: Policy) -> ReadRelease:
    """Return rows without a certificate as a release under a policy, all of whose columns they must have."""
    require(rows.names, tuple(column.name for column in policy.schema.released))
    steps = policy.plan.steps
    return replace(ReadRelease.of(rows, levels_of_steps(steps)), masks=masks_of(steps))


def _masked(read: ReadRelease, original: Rows, names: Sequence[str], policy: Policy) -> MaskedRisk | None:
    """Return the risk of masked rows by distance; the rows are read into memory, as they were to be masked."""
    return masked_risk(read.tables, read.masks, table_of(original, names), policy.schema) if read.masks else None


def _crowds(table: ShownTable, quasi: Sequence[str], data: Original) -> Crowds:
    """Return the crowds of a table's classes; where no value has two labels, whole rows are checked too."""
    maps = [label_map for label_map in table.label_maps if label_map is not None]
    if all(label_map.apart for label_map in maps):
        crowds(table, table.read, data)
    return crowds(table, _places(table, quasi), data)


def _places(table: ShownTable, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(table.names) if name in names)


def _losses(tables: Sequence[ShownTable], policy: Policy, data: Original, rows: int) -> tuple[ColumnLoss, ...]:
    losses = {
        name: _item_loss(table, place, policy, data, rows)
        if label_map is None
        else _loss(table, place, label_map, rows)
        for table in tables
        for place, (name, label_map) in enumerate(zip(table.names, table.label_maps, strict=True))
    }
    names = [column.name for column in policy.schema.released]
    return tuple(losses.get(name, ColumnLoss(name, _ABSENT, 1.0, 1.0)) for name in names)


def _loss(table: ShownTable, place: int, label_map: LabelMap, rows: int) -> ColumnLoss:
    name = table.names[place]
    if label_map.changed or table.listed:
        return ColumnLoss(name, label_map.level, None, None)
    counts = np.bincount(table.codes[place], table.rows, len(label_map.lengths)).astype(np.int64)
    left_out = max(0, rows - table.total)
    return ColumnLoss(
        name, label_map.level, mean_loss(label_map.losses, counts), mean_loss(label_map.losses, counts, left_out)
    )


def _item_loss(table: ShownTable, place: int, policy: Policy, data: Original, rows: int) -> ColumnLoss:
    """Return the loss of a column of sets: items that are suppressed or generalized, as a share of all items."""
    name = table.names[place]
    column, written = policy.schema[name], data.counts.marginal([name])
    separator, worth = column.separator or "", _item_worth(column)
    values = [sum(worth.get(item, 0.0) for item in (label or "").split(separator)) for label in table.labels[place]]
    sets = [(label or "").split(separator) for label in written.classes[0].labels().to_pylist()]
    items = [len({item.strip() for item in items_of_set} - {""}) for items_of_set in sets]
    had = float((np.array(items)[written.codes()[0]] * written.counts).sum())
    remaining = float((np.array(values)[table.codes[place]] * table.rows).sum()) if values else 0.0
    released, whole = (1.0 - remaining / part if part else 0.0 for part in (had * table.total / max(1, rows), had))
    return ColumnLoss(name, "items", float(np.clip(released, 0.0, 1.0)), float(np.clip(whole, 0.0, 1.0)))


def _item_worth(column: Column) -> dict[str | None, float]:
    """Return how much of an item each label preserves, from 1 for itself to 0."""
    worth: dict[str | None, float] = {}
    for level in reversed(range(column.hierarchy.height + 1)):
        classes = Recoding(column.item, level).classes
        if classes is not None:
            worth |= dict(zip(classes.labels().to_pylist(), (1.0 - class_losses(classes)).tolist(), strict=True))
    return worth


def _risks(before: Sizes, after: Sizes | None, crowd_counts: Sequence[Crowds]) -> dict[str, tuple[SizeRisk, SizeRisk]]:
    if after is None:
        return {}
    at_first = risk(before.counts, before.counts, THRESHOLD)
    released = np.concatenate([crowd.rows for crowd in crowd_counts])
    rows = np.concatenate([crowd.rows[crowd.counted] for crowd in crowd_counts])
    hidden = risk(rows, np.concatenate([crowd.people for crowd in crowd_counts]), THRESHOLD)
    return {
        "prosecutor": (at_first, risk(released, after.counts, THRESHOLD)),
        "journalist": (at_first, hidden),
        "marketer": (at_first, hidden),
    }


def _example(
    tables: Sequence[ShownTable], crowd_counts: Sequence[Crowds], quasi: Sequence[str], counted: str
) -> Example | None:
    """Return a record of the smallest class of the release, with its risk."""
    candidates = [(table, crowd) for table, crowd in zip(tables, crowd_counts, strict=False) if len(crowd.counted)]
    if not candidates:
        return None
    table, crowd = min(candidates, key=lambda pair: int(pair[1].owners[pair[1].counted].min()))
    which = int(np.argmin(crowd.owners[crowd.counted]))
    place = crowd.counted[which]
    columns = _places(table, quasi)
    values = {
        table.names[c]: table.labels[c][int(code)] for c, code in zip(columns, crowd.labels[:, place], strict=True)
    }
    here, owners, in_data = int(crowd.rows[place]), int(crowd.owners[place]), int(crowd.people[which])
    described = ", ".join(f"{name} {'missing' if value is None else value}" for name, value in values.items())
    of_people = counted == "people"
    equal = f"{here} released rows, of at least {owners} people," if of_people else f"{here} released rows"
    words = (
        f"A person with {described}: {equal} are equal, so an attacker who knows that this person is among them is "
        f"right with probability 1/{owners}; {in_data} {counted} of the data "
        f"{'have these values' if of_people else 'are'}, so one who does not know that is right "
        f"with probability 1/{in_data}."
    )
    return Example(values, here, in_data, words)


def _special(table: ShownTable, quasi: Sequence[str]) -> SpecialRows | None:
    columns = _places(table, quasi)
    labels, rows = table.classes(columns)
    return special_rows([table.names[place] for place in columns], list(labels), rows) if columns else None


def _attributes(
    tables: Sequence[ShownTable], quasi: Sequence[str], policy: Policy, data: Original
) -> tuple[AttributeRisk, ...]:
    before, risks = data.coded, []
    for table in tables:
        names_known = [name for name in table.names if name in quasi]
        for name in table.names:
            if policy.schema[name].role is not Role.SENSITIVE or not names_known:
                continue
            places = tuple(before.place(quasi_name) for quasi_name in names_known)
            one = homogeneity(before, places, before.place(name))
            if one is not None:
                risks.append(AttributeRisk(one, _in_labels(table, names_known, name) if table.faithful else None))
    return tuple(risks)


def _in_labels(table: ShownTable, quasi: Sequence[str], name: str) -> Homogeneity | None:
    sizes = tuple(max(1, len(labels)) for labels in table.labels)
    coded = Coded(table.names, table.codes, table.rows.astype(float), sizes, (None,) * len(sizes))
    return homogeneity(coded, _places(table, quasi), coded.place(name))


def _notes(
    tables: Sequence[ShownTable], crowd_counts: Sequence[Crowds], data: Original, *, judged: bool
) -> tuple[str, ...]:
    notes = [] if judged else [NOT_JUDGED]
    for table in tables:
        if table.listed:
            here, best = held(table, data)
            notes.append(_LISTED.format(here, data.counts.total, best))
    notes += [_SAMPLED.format(len(crowd.counted), len(crowd.rows)) for crowd in crowd_counts if not crowd.whole]
    notes += [_BLANKS] if any(table.blanks for table in tables) else []
    notes += (
        [_SETS] if crowd_counts and any(label_map is None for table in tables for label_map in table.label_maps) else []
    )
    return tuple(notes)


def _mean(losses: Sequence[float | None]) -> float | None:
    numbers = [loss for loss in losses if loss is not None]
    return float(np.mean(numbers)) if numbers and len(numbers) == len(losses) else None
