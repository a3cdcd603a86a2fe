"""Publication: the tables that an attacker has, from a release or any file, and how their labels are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.attacks.candidates import ColumnMatch, match
from incrowd.attacks.cover import Lookup, numbers
from incrowd.attacks.knowledge import PublishedTable
from incrowd.core.certificate import Certificate
from incrowd.core.displacement import Displacement
from incrowd.core.domain import Dates, Numbers
from incrowd.core.reading import canonical, read
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.core.steps.step import Step
from incrowd.core.table import DEFAULTS, Rows
from incrowd.engines.readers.guess import guessed_options
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceUnreadable
from incrowd.methods.perturbation.shared.steps import maskings
from incrowd.methods.synthesis.marginals.detail import drawn_inside, drawn_number
from incrowd.verifier.files import documents_of, tables_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import CERTIFICATE, is_release
from incrowd.workflows.registry import MODELS, linked_method_names

_COUNT = "count"
_NOBODY = "\N{SYMBOL FOR NULL}"
_FOREIGN = 0.5  # if half of the labels are not of the policy, it is the file of another policy
_DOCUMENTS = (".json",)
"""Suffixes of released files that are not tables, such as a model."""


def table_of(rows: Rows, columns: Sequence[str] | None = None) -> pa.Table:
    """Read rows into memory: attacks compare all pairs."""
    names = list(rows.names if columns is None else columns)
    batches = list(rows.batches(names))
    if not batches:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    schema = batches[0].schema
    table = pa.Table.from_batches([batch.cast(schema) if batch.schema != schema else batch for batch in batches])
    del batches
    pa.default_memory_pool().release_unused()  # what reading took: attacks take as much again
    return table


def certificate_at(release: Path) -> Certificate | None:
    """Return the certificate of a release's folder; None for a file that is named itself."""
    return read_certificate(release) if (release / CERTIFICATE).is_file() else None


def read_publication(
    release: Path, policy: Policy | None = None, count: str | None = None, *, other: bool = False
) -> tuple[tuple[str, PublishedTable], ...]:
    """Return every table of a release by the name of its file, or the one file that was named.

    An `other` release may be made under another policy: its labels are read by the hierarchies of this one.
    """
    certificate = certificate_at(release) if release.is_dir() else None
    if certificate is None:
        if release.is_dir():
            raise SourceUnreadable(f"{release} has no {CERTIFICATE}: name the published file itself.")
        files = [release]
    else:
        if policy is not None and policy.hash != certificate.policy_hash and not other:
            raise InvalidParameter(
                "this is not the policy the release was made under: give the same file, with its hierarchies."
            )
        if certificate.method.name in linked_method_names():
            raise InvalidParameter("a release of linked tables is attacked by itself, not beside others: leave it out.")
        beside = documents_of(certificate)
        named = [Path(file.name) for file in tables_of(certificate) if file.name not in beside]
        files = [release / file.name for file in named if file.suffix not in _DOCUMENTS]
    if not files:
        raise SourceUnreadable(f"{release} has no table: it stayed in memory, or is elsewhere.")
    lookups = {} if policy is None else {column.name: lookup_of(column) for column in policy.schema.columns}
    released = None if certificate is None else certificate.schema.released
    masks = None if certificate is None else masks_of(certificate.steps)
    tables = []
    for file in files:
        options = DEFAULTS if certificate is not None or is_release(str(file.parent)) else guessed_options(file)
        table = in_classes(table_of(open_source(file, options)), policy)
        counted = count or (_COUNT if _COUNT in table.column_names and _COUNT not in (released or (_COUNT,)) else None)
        if counted is not None and counted not in table.column_names:
            raise InvalidParameter(f"{counted!r} is not a column of the published table.")
        tables.append((file.stem, PublishedTable(table, lookups, counted, masks=masks)))
    return tuple(tables)


def masks_of(steps: tuple[Step, ...]) -> dict[str, Displacement]:
    """Return which columns the published steps mask, and how far they move values; by rank where several do."""
    masks: dict[str, Displacement] = {}
    for step in maskings(steps):
        for name, moved in step.displaced.items():
            masks[name] = Displacement() if name in masks else moved
    return masks


def in_classes(table: pa.Table, policy: Policy | None) -> pa.Table:
    """Return synthetic rows with classes in place of numbers, which are random within their class.

    The classes are public, and the number inside has no information: attackers use the class.
    """
    if policy is None or policy.plan.method not in MODELS:
        return table
    method: Any = policy.method
    return as_classes(table, method.classes(policy.schema))


def as_classes(table: pa.Table, columns: Sequence[Classes]) -> pa.Table:
    """Return rows with the class in place of each value that was drawn inside of one."""
    for classes in columns:
        name = classes.recoding.column.name
        if drawn_inside(classes) and name in table.column_names:
            values = table[name].combine_chunks().cast(pa.string())
            labels = classes.labels().take(pa.array(classes.recoding.codes_of(values)[:-1]))
            own = pc.is_in(values, value_set=classes.labels()) if not drawn_number(classes) else None
            labels = labels if own is None else pc.if_else(own, values, labels)
            table = table.set_column(table.column_names.index(name), name, labels)
    return table


def lookup_of(column: Column) -> Lookup:
    """Return the labels of values of a column at each level of its hierarchy, which is public."""
    return partial(_levels, column)


def _levels(column: Column, values: pa.Array) -> Iterator[pa.Array]:
    for level in range(1, column.hierarchy.height):
        if column.separator is None:
            recoding = Recoding(column, level)
            if recoding.classes is not None:
                codes = recoding.codes_of(values)[:-1]
                labels = np.append(np.array(recoding.classes.labels().fill_null("").to_pylist(), object), _NOBODY)
                yield pa.array(labels[codes].tolist(), pa.string())
                continue
        yield _open_level(column, level, values)


def _open_level(column: Column, level: int, values: pa.Array) -> pa.Array:
    stored = read(values, column.type).values
    stored = stored if isinstance(column.domain, Numbers | Dates) else canonical(stored)
    inside = column.domain.contains(stored)
    labels = np.full(len(values), _NOBODY, object)
    values_inside = stored.filter(pa.array(inside))
    labels[np.flatnonzero(inside)] = column.hierarchy.names(
        column.hierarchy.lift(values_inside, level), level
    ).to_pylist()
    return pa.array(labels.tolist(), pa.string())


def _inside(column: ColumnMatch) -> bool:
    """Whether most published numbers lie among those of the data."""
    true, rows = numbers(column.values.texts), numbers(column.labels.texts)[column.labels.codes]
    between = (rows >= np.nanmin(true)) & (rows <= np.nanmax(true))
    return bool(between.mean() >= _FOREIGN)


def check_belongs(published: PublishedTable, people: pa.Table, columns: Sequence[str]) -> None:
    """Refuse a release that was hardly made from this data: most labels stand for nobody in it.

    Numbers that a mask may have moved stand for anybody between the least and the largest number of the data.
    """
    for name in columns:
        column = match(published, people, name)
        if column.near is not None and _inside(column):
            continue
        used = np.zeros(len(column.labels.texts), bool)
        used[column.cover.labels] = True
        rows = used[column.labels.codes]
        if len(rows) and rows.mean() < _FOREIGN:
            raise InvalidParameter(
                f"most of what was published in {name!r} stands for nobody in the data: the release was made from "
                "other data, or its labels cannot be read without the policy. Name the data, and give --policy."
            )
