"""Snapshot: who takes part in one release, read from the registry once, and the gate in its certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from incrowd.core.schema import Column
from incrowd.core.steps.around import ConsentGate
from incrowd.core.subjects import SubjectKey
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.views import PseudonymFilter
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.registry import Registry, RegistrySnapshot
from incrowd.governance.consent.state import AsOf, Fold, consenting
from incrowd.store.chain_entry import Anchor
from incrowd.workflows.consent.place import ConsentPlace, open_registry, person_column, subject_key
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class ConsentSnapshot:
    """Who consented to a purpose, under their pseudonyms, and the gate that a certificate tells of."""

    gate: ConsentGate
    key: SubjectKey
    subjects: frozenset[str]

    def by(self, person: Column) -> PseudonymFilter:
        """Return whose rows of a table take part, by its person ID column."""
        return PseudonymFilter(person, self.key, self.subjects)


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
    return ConsentSnapshot(gate, key, _eligible_now(registry, head, gate))


@dataclass(frozen=True)
class _Standing:
    """Who is eligible in one state of a registry, from a moment until a decision begins or ends to hold."""

    since: str
    until: str
    subjects: frozenset[str]


_STANDINGS: dict[tuple[str, str, str, str | None], _Standing] = {}
"""What was folded last, by registry, state, purpose and time: a server is asked again and again."""
_KEPT = 8


def _eligible_now(registry: Registry, head: Anchor, gate: ConsentGate) -> frozenset[str]:
    """Return who is eligible at the run; folded anew only if an event arrived, or one began or ended to hold."""
    key, run = (head.chain, head.hash, gate.purpose, gate.as_of), gate.run or ""
    standing = _STANDINGS.get(key)
    if standing is None or not standing.since <= run < standing.until:
        folds = [Fold(gate.purpose, AsOf(at, run)) for at in dict.fromkeys((gate.as_of or run, run))]
        for recorded, rows in registry.rows(head):
            for fold in folds:
                fold.add(recorded, rows)
        subjects = frozenset.intersection(*(fold.people() for fold in folds))
        standing = _Standing(run, folds[-1].next_change(), subjects)
        while len(_STANDINGS) >= _KEPT:
            _STANDINGS.pop(next(iter(_STANDINGS)), None)
        _STANDINGS[key] = standing
    return standing.subjects


def eligible(registry: Registry, gate: ConsentGate) -> frozenset[str]:
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
    times = {AsOf(at, gate.run) for at in (gate.as_of or gate.run, gate.run)}
    return consenting(registry.rows(end), gate.purpose, *times)


def admitted_by(policy: Policy, gate: ConsentGate) -> ConsentSnapshot:
    """Return who took part in a release, by its settled gate."""
    return ConsentSnapshot(gate, subject_key(policy), eligible(open_registry(policy), gate))


def taking_part(engine: Engine, rows: Rows, policy: Policy, gate: ConsentGate | None = None) -> Rows:
    """Return the rows that somebody who looks at the data of a policy may see: of people who consent, where it asks.

    With the gate of a release, of those who consented when it was made.  Rows that say of nobody whose they are, such
    as released ones, are nobody's to withhold.
    """
    if (policy.gate is None and gate is None) or person_column(policy).name not in rows.names:
        return rows
    admission = admit(policy) if gate is None else admitted_by(policy, gate)
    return rows if admission is None else engine.admitted(rows, admission.by(person_column(policy)))
