"""Members: who was in which cell of a release without an ε of one period, for the comparison with later periods.

Tables of two periods hold different rows, so their counts may differ by any number.  Their people may be the same:
where all but one of a cell return, whoever knows that one reads the rest.  So of each cell that both tables show either
nobody left or at least k people did, and the same holds for those who joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate
from incrowd.core.schema import Role
from incrowd.core.table import Table
from incrowd.engines.people import CellLabels, people_in_cells
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.assess.released import levels_of, released_of
from incrowd.workflows.coarsen.labels import raise_labels
from incrowd.workflows.policy.internal import internal_folder, write_private
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import FingerprintFile

FILE = "members.json"
_BYTES = 16  # 128 random bits: no two people collide


@dataclass(frozen=True)
class Members:
    """The people of each published cell by keyed digests, and the level of each column that makes the cells.

    Somebody with rows in several cells is a member of each.
    """

    levels: Mapping[str, int]
    cells: Mapping[CellLabels, frozenset[str]] = field(repr=False)
    mark: str = ""
    """What says which key made the digests: under another one nobody would be known again."""

    def raised(self, levels: Mapping[str, int], policy: Policy) -> Members:
        """Return the same people in cells of these columns, at levels that are no lower."""
        names, risen = list(levels), dict[CellLabels, frozenset[str]]()
        own = list(self.levels)
        higher = {
            name: raise_labels(
                policy.schema[name], self.levels[name], levels[name], {cell[own.index(name)] for cell in self.cells}
            )
            for name in names
        }
        for cell, people in self.cells.items():
            target = tuple(higher[name][cell[own.index(name)]] for name in names)
            risen[target] = risen.get(target, frozenset()) | people
        return replace(self, levels=dict(levels), cells=risen)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, which stays with the data holder."""
        cells = [[list(cell), sorted(people)] for cell, people in self.cells.items()]
        return {"levels": dict(self.levels), "cells": cells, "mark": self.mark}


def members_in(policy: Policy, certificate: Certificate, folder: Path, table: Table) -> Members | None:
    """Return the people of each cell that a release shows; None where its certificate does not tell its cells."""
    person, stated = policy.schema.unit.column, levels_of(certificate)
    quasi = [
        column.name
        for column in policy.schema.released
        if column.role is Role.QUASI and column.name in certificate.schema.released
    ]
    if person is None or not quasi or any(len(stated.get(name, ())) != 1 for name in quasi):
        return None
    levels, key = {name: stated[name][0] for name in quasi}, FingerprintFile.of(policy).key()
    try:
        tables = released_of(certificate, folder).tables
    except InvalidParameter:
        return None
    if not tables or any(visible.blanks or not visible.faithful for visible in tables):
        return None
    published = {
        cell for visible in tables for cell in zip(*(visible.labels[name].to_pylist() for name in quasi), strict=True)
    }
    cells = Cells.of(policy.schema, levels, quasi)
    people = people_in_cells(table.engine, table.rows, cells, policy.schema[person]).people
    digest = partial(_digest, key)
    here = {cell: frozenset(map(digest, names)) for cell, names in people.items() if cell in published}
    return Members(levels, here, _digest(key, "members of cells"))


def _digest(key: bytes, name: str) -> str:
    return blake2b(name.encode(), key=key, digest_size=_BYTES, person=b"member").hexdigest()


def keep_members(folder: Path | None, members: Members | None) -> None:
    """Write who was in which cell into the internal folder of a release."""
    if folder is not None and members is not None:
        write_private(folder / FILE, members.to_json())


def members_of(policy: Policy, release: str) -> Members | None:
    """Return who was in which cell of an earlier release; None where this was not stored."""
    try:
        plain = json.loads((internal_folder(policy, release) / FILE).read_text(encoding="utf-8"))
        cells = {tuple(cell): frozenset(map(str, people)) for cell, people in plain["cells"]}
        return Members({str(name): int(level) for name, level in plain["levels"].items()}, cells, str(plain["mark"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def require_crowds_moved(new: Members | None, release: str, k: int, policy: Policy) -> Iterator[str]:
    """Refuse a release if fewer than k people left a cell that an earlier one of another period shows, or joined it.

    Yield why the two were not compared, where they cannot be.
    """
    before = members_of(policy, release)
    if new is None or before is None or new.mark != before.mark:
        yield f"not compared with the people of release {release}: one of the two does not tell who is in which cell"
        return
    shared = [name for name in new.levels if name in before.levels]
    if not shared:
        yield f"not compared with the people of release {release}: the two have no quasi-identifier in common"
        return
    levels = {name: max(new.levels[name], before.levels[name]) for name in shared}
    here, there = new.raised(levels, policy).cells, before.raised(levels, policy).cells
    for cell in here.keys() & there.keys():
        left, joined = len(there[cell] - here[cell]), len(here[cell] - there[cell])
        if 0 < left < k or 0 < joined < k:
            labels = ", ".join(
                f"{name} {'missing' if label is None else label}" for name, label in zip(shared, cell, strict=True)
            )
            raise Refused(
                f"compared with release {release}, which is published, this one would isolate fewer than {k} people: "
                f"of the cell {labels}, {left} left and {joined} joined between the two periods. Nothing appeared. "
                "Release coarser levels, or longer periods."
            )
