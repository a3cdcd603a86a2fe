"""Preview: what the next release loses by those who withdrew, for the data holder's eyes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.cells import Cells
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import walk
from incrowd.core.table import Table
from incrowd.engines.people import CellLabels, PersonIds, people_in_cells
from incrowd.engines.settings import engine_of
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.state import AsOf, consenting
from incrowd.workflows.consent.changes import ConsentChanges, movements
from incrowd.workflows.consent.place import open_registry, person_column
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.consent.table import open_people
from incrowd.workflows.policy.ledger import find_book, same_people
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import earlier_releases


@dataclass(frozen=True)
class SmallCrowd:
    """A cell in which fewer than k people consent, and how many did at the last release."""

    names: tuple[str, ...]
    cell: CellLabels
    before: int
    now: int


@dataclass(frozen=True)
class ConsentPreview:
    """What changed since the last release: people of the data who left and joined, small crowds, telling pairs."""

    purpose: str
    since: str | None
    consenting: int
    leavers: int
    joiners: int
    k: int | None
    small: tuple[SmallCrowd, ...]
    isolating: tuple[ConsentChanges, ...]

    @property
    def refused(self) -> bool:
        """Whether the next release would be refused for what it shows beside an earlier one."""
        return bool(self.isolating)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form; it is about people, and for the data holder alone."""
        whole = ("purpose", "since", "consenting", "leavers", "joiners", "k", "refused")
        small = [
            {"cell": dict(zip(crowd.names, crowd.cell, strict=True)), "before": crowd.before, "now": crowd.now}
            for crowd in self.small
        ]
        return {name: getattr(self, name) for name in whole} | {
            "below_k": small,
            "isolating": [change.sentence for change in self.isolating],
        }


def preview(policy: Policy, data: object = None) -> ConsentPreview:
    """Compare who would take part now with who could at the last release; nothing is charged and nothing leaves."""
    with engine_of(policy.engine, data) as engine:
        rows = Table(policy.schema, open_people(data, policy, engine), engine)
        now = admit(policy, data)
        if now is None:
            raise InvalidParameter("this policy does not check consent: add purpose: and consent:.")
        ledger = find_book(policy)
        since = None if ledger is None else _last_charge(policy, ledger)
        registry = open_registry(policy, data)
        moment = AsOf(since, since) if since is not None else None
        before = frozenset[str]() if moment is None else consenting(registry.rows(), now.gate.purpose, moment)
        names = _names(policy, rows)
        present, subjects = frozenset(map(now.key.pseudonym, names)), now.among(names)
        k = policy.plan.smallest_class
        earlier = earlier_releases(policy, ledger, anyway=True)
        moved = [movement for one in earlier for movement in movements(policy, one, rows, now) if movement.isolates]
        return ConsentPreview(
            now.gate.purpose,
            since,
            len(present & subjects),
            len(present & (before - subjects)),
            0 if moment is None else len(present & (subjects - before)),
            k,
            tuple(_small(policy, rows, replace(now, subjects=subjects), before, k)),
            tuple(moved),
        )


def _last_charge(policy: Policy, ledger: Ledger) -> str | None:
    """Return when these people were last charged for something."""
    names = [policy.name, policy.section.dataset.same_people_as or policy.name]
    return max(
        (
            entry.at
            for entry in ledger.entries()
            if any(
                charge.dataset in names or same_people(ledger, charge.dataset, policy.name) for charge in entry.charged
            )
        ),
        default=None,
    )


def _names(policy: Policy, data: Table) -> frozenset[str]:
    """Return the ids of all who have a row."""
    person = person_column(policy)
    return frozenset(data.engine.learn(data.rows, [person.name], partial(PersonIds, person)).names)


def _small(
    policy: Policy, data: Table, now: ConsentSnapshot, before: frozenset[str], k: int | None
) -> Iterator[SmallCrowd]:
    """Yield the cells of the policy's own levels in which some consent, or did, and fewer than k do now."""
    levels = {
        column.column: column.level
        for step in walk(policy.plan.steps)
        if isinstance(step, Recode)
        for column in step.columns
        if column.highest is None
    }
    if k is None or set(levels) != {column.name for column in policy.schema.released}:
        return
    cells = Cells.of(policy.schema, levels)
    people = people_in_cells(data.engine, data.rows, cells, person_column(policy)).people
    for cell, names in sorted(people.items(), key=lambda item: tuple(map(str, item[0]))):
        here = set(map(now.key.pseudonym, names))
        count, then = len(here & now.subjects), len(here & before)
        if count < k and (count or then):
            yield SmallCrowd(cells.names, cell, then, count)
