"""Snapshot: who takes part in one release, read from the registry once, and the gate in its certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from incrowd.core.schema import Column
from incrowd.core.steps.around import ConsentGate
from incrowd.core.subjects import SubjectKey
from incrowd.core.table import Engine, PersonFilter, Rows
from incrowd.engines.local.views import PseudonymFilter, RowIdFilter
from incrowd.engines.people import PersonIds
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.registry import Registry, RegistrySnapshot
from incrowd.governance.consent.state import AsOf, Fold, Unlinked, folded
from incrowd.store.chain_entry import Anchor
from incrowd.workflows.consent.place import ConsentPlace, open_registry, person_column, subject_key
from incrowd.workflows.policy.linked_tables import linked_schema
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class ConsentSnapshot:
    """Who consented to a purpose, under their pseudonyms, and the gate that a certificate tells of."""

    gate: ConsentGate
    key: SubjectKey
    subjects: frozenset[str]
    unlinked: Unlinked = field(default_factory=Unlinked)
    """Whom decisions against ids that are written alike leave out, though no event links them."""

    def by(self, person: Column) -> PseudonymFilter:
        """Return whose rows of a table take part, by its person ID column."""
        excluded = self.unlinked.excludes if self.unlinked.grants else None
        return PseudonymFilter(person, self.key, self.subjects, excluded)

    def among(self, names: Iterable[str]) -> frozenset[str]:
        """Return who takes part, by pseudonyms, if these are the ids of the data."""
        if not self.unlinked.grants:
            return self.subjects
        people = map(self.key.linked, names)
        return self.subjects - {one.pseudonym for one in people if self.unlinked.excludes(one.pseudonym, one.alike)}


def admit(policy: Policy, data: object = None) -> ConsentSnapshot | None:
    """Read who may take part in a release that starts now; None where the policy names no purpose.

    The time is that of the clock, or the policy's, never that of an event.  Whoever consented as of the policy's time
    and has withdrawn since is left out as well.
    """
    planned = policy.gate
    return None if planned is None else admitted_at(ConsentPlace.of(policy, data), planned)


def admitted_at(place: ConsentPlace, planned: ConsentGate) -> ConsentSnapshot:
    """Read from a registry who may take part now in what a gate was planned for.

    The end of the registry is read before the clock: every entry up to it is at most as new as the run, so what is
    folded and remembered for this end leaves none of them out.
    """
    key, registry = place.key(), place.open()
    head = registry.chain.head()
    run = registry.clock()
    if planned.as_of is not None and planned.as_of > run:
        raise InvalidParameter("consent: as_of: is in the future: correct it.")
    snapshot = registry.snapshot(head)
    gate = replace(planned, run=run, nonce=snapshot.nonce, mark=snapshot.mark)
    standing = _eligible_now(registry, head, gate)
    return ConsentSnapshot(gate, key, standing.subjects, standing.unlinked)


@dataclass(frozen=True)
class _Standing:
    """Who is eligible in one state of a registry, from a moment until a decision begins or ends to hold."""

    since: str
    until: str
    subjects: frozenset[str]
    unlinked: Unlinked


_STANDINGS: dict[tuple[str, str, str, str | None], _Standing] = {}
"""What was folded last, by registry, state, purpose and time: a server is asked again and again."""
_KEPT = 8


def _eligible_now(registry: Registry, head: Anchor, gate: ConsentGate) -> _Standing:
    """Return who is eligible at the run; folded anew only if an event arrived, or one began or ended to hold."""
    key, run = (head.chain, head.hash, gate.purpose, gate.as_of), gate.run or ""
    standing = _STANDINGS.get(key)
    if standing is None or not standing.since <= run < standing.until:
        folds = folded(registry.rows(head), _folds(gate))
        standing = _Standing(run, folds[-1].next_change(), *_shared(folds))
        while len(_STANDINGS) >= _KEPT:
            _STANDINGS.pop(next(iter(_STANDINGS)), None)
        _STANDINGS[key] = standing
    return standing


def _folds(gate: ConsentGate) -> list[Fold]:
    """Return folds as of the run, and of the policy's time if that is another."""
    run = gate.run or ""
    return [Fold(gate.purpose, AsOf(at, run)) for at in dict.fromkeys((gate.as_of or run, run))]


def _shared(folds: Sequence[Fold]) -> tuple[frozenset[str], Unlinked]:
    """Return who consents by every fold; what the last one says of unlinked ids holds at the run."""
    standings = [fold.standing() for fold in folds]
    return frozenset.intersection(*(subjects for subjects, _ in standings)), standings[-1][1]


def eligible(registry: Registry, gate: ConsentGate) -> tuple[frozenset[str], Unlinked]:
    """Return whose consent was in force as a settled gate says, whenever this is computed.

    Only entries up to the place that the gate marks are read: an event may be recorded while a release reads the
    registry, with an earlier time than the run, and the release did not see it.
    """
    if gate.run is None or gate.nonce is None or gate.mark is None:
        raise InvalidParameter("a planned consent gate admits nobody: it names no run.")
    end = registry.place(RegistrySnapshot(gate.nonce, gate.mark))
    if end is None:
        raise Refused(
            "the consent registry was never in the state that the certificate names: an old copy was restored, or it "
            "was changed. It is unknown who consented to that release. Restore the newest copy of the registry; a "
            "release with an epsilon does not depend on it."
        )
    return _shared(folded(registry.rows(end), _folds(gate)))


def admitted_by(policy: Policy, gate: ConsentGate) -> ConsentSnapshot:
    """Return who took part in a release, by its settled gate."""
    return ConsentSnapshot(gate, subject_key(policy), *eligible(open_registry(policy), gate))


def taking_part_linked(
    engine: Engine, tables: Sequence[Rows], policy: Policy, consent: ConsentSnapshot | None
) -> tuple[Rows, ...]:
    """Return the rows of linked tables that belong to people who take part; all rows where there is no gate.

    A table without a person ID is filtered by row IDs of its parent; of the others nothing but keys is read.
    """
    if consent is None:
        return tuple(tables)
    schema = linked_schema(policy)
    admitted = {schema.name: engine.admitted(tables[0], consent.by(person_column(policy)))}
    for child, rows in zip(schema.tables, tables[1:], strict=True):
        people: PersonFilter
        if child.person is not None:
            people = consent.by(child.schema[child.person])
        else:
            own = schema.table(child.parent).schema[schema.table(child.parent).id or ""]
            above = engine.learn(admitted[child.parent], [own.name], partial(PersonIds, own)).names
            people = RowIdFilter(child.schema[child.foreign_key], frozenset(above))
        admitted[child.name] = engine.admitted(rows, people)
    return tuple(admitted.values())


def linked_gate(policy: Policy, gate: ConsentGate | None) -> ConsentSnapshot | None:
    """Return who took part in a release of linked tables by its gate, else who consents now; None without a purpose."""
    return admit(policy) if gate is None else admitted_by(policy, gate)


def taking_part(engine: Engine, rows: Rows, policy: Policy, gate: ConsentGate | None = None) -> Rows:
    """Return the rows that somebody who looks at the data of a policy may see: of people who consent, where it asks.

    With the gate of a release, of those who consented when it was made.  Rows that say of nobody whose they are, such
    as released ones, are nobody's to withhold.
    """
    if (policy.gate is None and gate is None) or person_column(policy).name not in rows.names:
        return rows
    admission = admit(policy) if gate is None else admitted_by(policy, gate)
    return rows if admission is None else engine.admitted(rows, admission.by(person_column(policy)))
