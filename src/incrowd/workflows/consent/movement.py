"""Movement: who left and who joined since earlier releases without an ε, cell by cell, never one against the other.

Two such tables around one withdrawal name the person who left.  So in every cell of an earlier one either nobody left
or at least k people did, and the same holds for those who joined.  A minimum in total is not enough: fifty people who
leave twenty cells still expose one alone with a chance of .994.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from incrowd.core.cells import Cells
from incrowd.core.schema import Role
from incrowd.core.steps.consent import gate_of
from incrowd.core.table import Table
from incrowd.engines.local.cell_people import CellLabels, CellPeople, People, people_in_cells
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.assess.released import levels_of, released_of
from incrowd.workflows.consent.admission import Admission, eligible
from incrowd.workflows.consent.place import open_registry, person_column
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import Earlier


@dataclass(frozen=True)
class Movement:
    """How many people left a cell of an earlier release and how many joined it; None for a cell that is not told."""

    release: str
    k: int
    leavers: int
    joiners: int
    names: tuple[str, ...] = ()
    cell: CellLabels | None = None

    @property
    def isolates(self) -> bool:
        """Whether the two releases together single out fewer than k people who moved."""
        if self.cell is None:
            return self.leavers + self.joiners > 0
        return 0 < self.leavers < self.k or 0 < self.joiners < self.k

    @property
    def sentence(self) -> str:
        """What the two releases would show, for the data holder."""
        if self.cell is None:
            return (
                f"held against release {self.release}, people left or joined, and the cells of that one cannot be made "
                "again from its certificate"
            )
        told = ", ".join(
            f"{name} {'missing' if label is None else label}" for name, label in zip(self.names, self.cell, strict=True)
        )
        return (
            f"held against release {self.release}, fewer than {self.k} people moved in the cell {told}: {self.leavers} "
            f"left and {self.joiners} joined"
        )


def movements(policy: Policy, earlier: Earlier, data: Table, now: Admission) -> Iterator[Movement]:
    """Yield every cell of an earlier release in which somebody left or joined since, as the rows are today."""
    if earlier.certificate is None:
        return
    k = max(filter(None, (policy.plan.smallest_class, earlier.k)), default=0)
    person, cells = person_column(policy), _cells(policy, earlier)
    everywhere = Cells.of(policy.schema, {column.name: column.hierarchy.height for column in policy.schema.released})
    found = people_in_cells(data.engine, data.rows, cells or everywhere, person)
    told = cells is not None and _shows(earlier, found)
    subjects = {name: now.key.pseudonym(name) for names in found.people.values() for name in names}
    gate = gate_of(earlier.certificate.steps)
    before = frozenset(subjects.values()) if gate is None else eligible(open_registry(policy), gate)
    for cell, names in found.people.items():
        here = {subjects[name] for name in names}
        left, joined = len(here & (before - now.subjects)), len(here & (now.subjects - before))
        if left or joined:
            yield Movement(earlier.release, k, left, joined, *((found.cells.names, cell) if told else ()))


def require_crowds(policy: Policy, earlier: Sequence[Earlier], data: Table, now: Admission | None) -> None:
    """Refuse, uncharged, a release without an ε from whose difference to an earlier one few people stand out."""
    for each in earlier:
        _require_purpose(each, now)
        for moved in movements(policy, each, data, now) if now is not None else ():
            if moved.isolates:
                raise Refused(
                    f"{moved.sentence}. Nothing was charged. Wait for the next date of your calendar, release with an "
                    "epsilon, or keep to the earlier release; incrowd consent preview shows all of them."
                )


def require_nobody_moved(policy: Policy, earlier: Sequence[Earlier], data: Table, now: Admission | None) -> None:
    """Refuse, uncharged, a graph without an ε after another one if anybody left or joined: it has no crowds."""
    for each in earlier:
        _require_purpose(each, now)
        if now is None or each.certificate is None:
            continue
        person = person_column(policy)
        names = data.engine.learn(data.rows, [person.name], partial(People, person)).names
        present, gate = frozenset(map(now.key.pseudonym, names)), gate_of(each.certificate.steps)
        before = present if gate is None else eligible(open_registry(policy), gate)
        if present & (before ^ now.subjects):
            raise Refused(
                f"people left or joined since release {each.release}, and the two graphs side by side would show who. "
                "Nothing was charged. Release with an epsilon, or keep to the earlier release."
            )


def _require_purpose(earlier: Earlier, now: Admission | None) -> None:
    """Refuse to show everybody beside a release of people who consented."""
    if now is None and earlier.certificate is not None and gate_of(earlier.certificate.steps) is not None:
        raise Refused(
            f"release {earlier.release} of the same people asked for consent, and this policy names no purpose: the "
            "two together would show who refused. Nothing was charged. Name the purpose."
        )


def _cells(policy: Policy, earlier: Earlier) -> Cells | None:
    """Return the cells of quasi-identifiers that a release may show, or None where its certificate does not tell."""
    certificate = earlier.certificate
    if certificate is None or earlier.folder is None:
        return None
    released, levels = set(certificate.schema.released), levels_of(certificate)
    quasi = [each.name for each in policy.schema.released if each.role is Role.QUASI and each.name in released]
    if not quasi or any(len(levels.get(name, ())) != 1 for name in quasi):
        return None
    return Cells.of(policy.schema, {name: levels[name][0] for name in quasi}, quasi)


def _shows(earlier: Earlier, found: CellPeople) -> bool:
    """Whether published tables show each row at the labels of these cells, unchanged and whole."""
    if earlier.certificate is None or earlier.folder is None:
        return False
    try:
        tables = released_of(earlier.certificate, earlier.folder).tables
    except InvalidParameter:
        return False
    if any(each.blanks or not each.faithful or each.rows is None for each in tables):
        return False
    possible = dict(zip(found.cells.names, found.labels(), strict=True))
    return all(
        set(each.labels[name].to_pylist()) <= possible[name]
        for each in tables
        for name in found.cells.names
        if name in each.labels.column_names
    )
