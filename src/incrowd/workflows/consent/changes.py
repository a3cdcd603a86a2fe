"""Changes: who left and who joined since earlier releases without an ε, cell by cell, never one against the other.

Two such tables around one withdrawal name the person who left.  So in every cell of an earlier one either nobody left
or at least k people did, and the same holds for those who joined.  A minimum in total is not enough: fifty people who
leave twenty cells still expose one alone with a chance of .994.

Rows may have been erased since.  Whether the people of each cell are those who took part is judged by the counts that
the holder kept of the earlier release, or by its commitment to the rows where it kept none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate
from incrowd.core.schema import Role
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Table
from incrowd.engines.fingerprints import keyed_digest
from incrowd.engines.people import CellLabels, CellPeople, PersonIds, people_in_cells
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.assess.released import levels_of, released_of
from incrowd.workflows.consent.participants import NOBODY, Participants, difference, participants_of
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admitted_by
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import Earlier, is_form

_EMPTY = "without people today"
_WAYS_OUT = "Release with an epsilon, or keep the earlier release."


@dataclass(frozen=True)
class ConsentChanges:
    """How many people left a cell of an earlier release and how many joined it; None for a cell that is not told."""

    release: str
    k: int
    leavers: int
    joiners: int
    names: tuple[str, ...] = ()
    cell: CellLabels | None = None
    unknown: bool = False
    """Whether rows of people who took part are gone, new or in other cells, and how many cannot be known."""

    @property
    def isolates(self) -> bool:
        """Whether the two releases together single out fewer than k people who moved, or may do so."""
        if self.unknown:
            return True
        if self.cell is None:
            return self.leavers + self.joiners > 0
        return 0 < self.leavers < self.k or 0 < self.joiners < self.k

    @property
    def sentence(self) -> str:
        """What the two releases would show, for the data holder."""
        if self.unknown:
            return (
                f"compared with release {self.release}, rows of its people were erased, added or moved to another "
                "cell, or its participants were not stored: the number of people who moved is unknown"
            )
        if self.cell is None:
            return (
                f"compared with release {self.release}, people left or joined, and its cells cannot be recomputed "
                "from its certificate"
            )
        labels = zip(self.names, self.cell, strict=True) if self.cell else ()
        labels_text = ", ".join(f"{name} {'missing' if label is None else label}" for name, label in labels)
        return (
            f"compared with release {self.release}, fewer than {self.k} people moved in the cell "
            f"{labels_text or _EMPTY}: "
            f"{self.leavers} left and {self.joiners} joined"
        )


Moves = list[tuple[CellLabels, int, int]]
"""Cells with the numbers of people who left and who joined; a cell without people today has no labels."""


@dataclass(frozen=True, eq=False)
class _Account:
    """Who could take part before and who can now, and which people are in which cell today; all by pseudonyms."""

    before: frozenset[str]
    now: frozenset[str]
    here: Mapping[CellLabels, frozenset[str]]

    def by_registry(self, but: Collection[CellLabels] = ()) -> Moves:
        """Return how many people of today's cells left and joined by what they decided."""
        left, joined = self.before - self.now, self.now - self.before
        cells = ((cell, people) for cell, people in self.here.items() if cell not in but)
        return [(cell, len(people & left), len(people & joined)) for cell, people in cells]

    def by_counts(self, stored: Participants, *, comparable: bool) -> Moves | None:
        """Return the same with people whose rows are gone or new; None where it cannot be known how many they are.

        It is known where cells were emptied, or where cells were filled that were empty, and where every cell that
        changed lacks exactly some of those people who decided to leave and have no row.  Where some cells were emptied
        and others filled, people may have gone from one to the other.
        """
        today = stored.again({cell: people & self.before for cell, people in self.here.items()})
        labels = {stored.name(cell): cell for cell in self.here}
        changed = [name for name in {*stored.cells, *today.cells} if stored.at(name) != today.at(name)]
        cells = {name: labels.get(name, ()) for name in changed}
        moves = self.by_registry(set(cells.values()))
        emptied = all(today.at(name) == NOBODY and not self._taking_part(cells[name]) for name in changed)
        filled = all(stored.at(name) == NOBODY for name in changed)
        if changed and not comparable:
            return None
        if emptied or filled:
            return moves + [(cells[name], stored.at(name).number, self._taking_part(cells[name])) for name in changed]
        gone = stored.parts(self._gone, [difference(stored.at(name), today.at(name)) for name in changed])
        if gone is None:
            return None
        own = {cell: (left, joined) for cell, left, joined in self.by_registry()}
        counted = zip((cells[name] for name in changed), gone, strict=True)
        return moves + [(cell, own.get(cell, (0, 0))[0] + number, own.get(cell, (0, 0))[1]) for cell, number in counted]

    def _taking_part(self, cell: CellLabels) -> int:
        """Return how many people of a cell take part now."""
        return len(self.here.get(cell, frozenset()) & self.now)

    @property
    def _gone(self) -> frozenset[str]:
        """Who decided to leave and has no row today."""
        return (self.before - self.now).difference(*self.here.values())


def movements(policy: Policy, earlier: Earlier, data: Table, now: ConsentSnapshot) -> Iterator[ConsentChanges]:
    """Yield every cell of an earlier release in which somebody left or joined since, or may have."""
    if earlier.certificate is None:
        return
    k = max(filter(None, (policy.plan.smallest_class, earlier.k)), default=0)
    cell_people = _people(policy, earlier.certificate, data)
    comparable = _cells(policy, earlier.certificate) is not None and _shows(earlier, cell_people)
    here = {cell: frozenset(map(now.key.pseudonym, names)) for cell, names in cell_people.people.items()}
    names = frozenset().union(*cell_people.people.values())
    account = _Account(_before(policy, earlier, here, names), now.among(names), here)
    moves = _moves(policy, earlier, data, account, comparable=comparable)
    if moves is None:
        yield ConsentChanges(earlier.release, k, 0, 0, unknown=True)
    for cell, left, joined in moves or ():
        if left or joined:
            yield ConsentChanges(
                earlier.release, k, left, joined, *((cell_people.cells.names, cell) if comparable else ())
            )


def participants(
    policy: Policy, certificate: Certificate, data: Table, admission: ConsentSnapshot | None
) -> Participants | None:
    """Return who takes part in a release without an ε, as counts that its holder keeps; None where nobody decides."""
    if admission is None or not is_form(policy.plan.guarantee):
        return None
    people = _people(policy, certificate, data).people
    pseudonyms = {cell: frozenset(map(admission.key.pseudonym, names)) for cell, names in people.items()}
    columns = _cells_of(policy, certificate).names
    subjects = admission.among(frozenset().union(*people.values()))
    return Participants.of({cell: names & subjects for cell, names in pseudonyms.items()}, columns)


def _moves(policy: Policy, earlier: Earlier, data: Table, account: _Account, *, comparable: bool) -> Moves | None:
    """Return who moved by the registry and by what was kept of the earlier release; None where it cannot be known."""
    stored = participants_of(policy, earlier.release)
    if stored is not None and earlier.certificate is not None:
        same = stored.columns == _cells_of(policy, earlier.certificate).names
        return account.by_counts(stored, comparable=comparable) if same else None
    return account.by_registry() if _same_rows(earlier, data.engine.digest(data.rows)) else None


def _before(
    policy: Policy, earlier: Earlier, here: Mapping[CellLabels, frozenset[str]], names: Collection[str]
) -> frozenset[str]:
    """Return who could take part in an earlier release: without a gate everybody, of whom today's people are known."""
    gate = None if earlier.certificate is None else gate_of(earlier.certificate.steps)
    return frozenset().union(*here.values()) if gate is None else admitted_by(policy, gate).among(names)


def _same_rows(earlier: Earlier, digest: bytes) -> bool:
    """Whether the rows are, byte by byte, those to which the certificate of an earlier release commits."""
    commitment = None if earlier.certificate is None else earlier.certificate.dataset.commitment
    return bool(earlier.key) and commitment == keyed_digest(digest, earlier.key)


def require_crowds(policy: Policy, earlier: Sequence[Earlier], data: Table, now: ConsentSnapshot | None) -> None:
    """Refuse, uncharged, a release without an ε from whose difference to an earlier one few people stand out."""
    for release in earlier:
        _require_purpose(release, now)
        for moved in movements(policy, release, data, now) if now is not None else ():
            if moved.isolates:
                wait = "" if moved.unknown else "Wait for the next date of your calendar. "
                raise Refused(
                    f"{moved.sentence}. Nothing was charged. {wait}{_WAYS_OUT} See all with incrowd consent preview."
                )


def node_participants(policy: Policy, nodes: Table, now: ConsentSnapshot | None) -> Participants | None:
    """Return whose nodes take part in a graph without an ε, as a count that its holder keeps."""
    if now is None or not is_form(policy.plan.guarantee):
        return None
    names = _names(policy, nodes)
    return Participants.of({(): frozenset(map(now.key.pseudonym, names)) & now.among(names)}, ())


def require_nobody_moved(
    policy: Policy, earlier: Sequence[Earlier], graph: GraphTables, now: ConsentSnapshot | None
) -> None:
    """Refuse, uncharged, a graph without an ε after another one if anybody left or joined: it has no crowds."""
    for release in earlier:
        _require_purpose(release, now)
        if now is None or release.certificate is None:
            continue
        names = _names(policy, graph.nodes)
        here: dict[CellLabels, frozenset[str]] = {(): frozenset(map(now.key.pseudonym, names))}
        account = _Account(_before(policy, release, here, names), now.among(names), here)
        stored = participants_of(policy, release.release)
        moves = account.by_registry() if stored is None else account.by_counts(stored, comparable=False)
        if moves is None or (stored is None and not _same_rows(release, graph.digest)):
            raise Refused(
                f"compared with release {release.release}, nodes are gone or new, or its participants were not "
                f"stored: the two graphs together could show who moved. Nothing was charged. {_WAYS_OUT}"
            )
        if any(left or joined for _, left, joined in moves):
            raise Refused(
                f"people left or joined since release {release.release}, and the two graphs together would show who. "
                f"Nothing was charged. {_WAYS_OUT}"
            )


@dataclass(frozen=True, eq=False)
class GraphTables:
    """The nodes of a graph, and the digest of nodes and edges to which a certificate commits."""

    nodes: Table
    digest: bytes


def _names(policy: Policy, nodes: Table) -> frozenset[str]:
    """Return the ids of all people who have a node."""
    person = person_column(policy)
    return frozenset(nodes.engine.learn(nodes.rows, [person.name], partial(PersonIds, person)).names)


def _require_purpose(earlier: Earlier, now: ConsentSnapshot | None) -> None:
    """Refuse to show everybody beside a release of people who consented."""
    if now is None and earlier.certificate is not None and gate_of(earlier.certificate.steps) is not None:
        raise Refused(
            f"release {earlier.release} of the same people checked consent, and this policy has no purpose: the two "
            "together would show who refused. Nothing was charged. Add the purpose."
        )


def _people(policy: Policy, certificate: Certificate, data: Table) -> CellPeople:
    """Return who is in which cell of a release."""
    return people_in_cells(data.engine, data.rows, _cells_of(policy, certificate), person_column(policy))


def _cells_of(policy: Policy, certificate: Certificate) -> Cells:
    """Return the cells of a release, or the widest ones where its certificate does not tell them."""
    widest = {column.name: column.hierarchy.height for column in policy.schema.released}
    return _cells(policy, certificate) or Cells.of(policy.schema, widest)


def _cells(policy: Policy, certificate: Certificate) -> Cells | None:
    """Return the cells of quasi-identifiers that a release may show, or None where its certificate does not tell."""
    released, levels = set(certificate.schema.released), levels_of(certificate)
    quasi = [column.name for column in policy.schema.released if column.role is Role.QUASI and column.name in released]
    if not quasi or any(len(levels.get(name, ())) != 1 for name in quasi):
        return None
    return Cells.of(policy.schema, {name: levels[name][0] for name in quasi}, quasi)


def _shows(earlier: Earlier, cell_people: CellPeople) -> bool:
    """Whether published tables show each row at the labels of these cells, unchanged and whole."""
    if earlier.certificate is None or earlier.folder is None:
        return False
    try:
        tables = released_of(earlier.certificate, earlier.folder).tables
    except InvalidParameter:
        return False
    if any(table.blanks or not table.faithful or table.rows is None for table in tables):
        return False
    possible = dict(zip(cell_people.cells.names, cell_people.labels(), strict=True))
    return all(
        set(table.labels[name].to_pylist()) <= possible[name]
        for table in tables
        for name in cell_people.cells.names
        if name in table.labels.column_names
    )
