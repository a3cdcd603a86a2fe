"""Preconditions of a release with consent: its day is in the calendar, and the registry is not an old copy.

A gated release without an ε may have to wait until more people leave or join, and those who expect it see that it
waits.  If its day were free, the day itself would depend on who withdrew.  With a calendar, only whether a release
appears on a day can depend on it; the certificate says so under what is not protected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.around import ConsentGate, gate_of
from incrowd.errors import Refused
from incrowd.governance.consent.registry import RegistrySnapshot
from incrowd.workflows.consent.place import open_registry
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import Earlier, published_release

_DAY = 10


def require_day(now: ConsentSnapshot | None, earlier: Sequence[Earlier] = ()) -> None:
    """Refuse, uncharged, a release on a day that its calendar does not name, or under a calendar that was changed."""
    if now is None or now.gate.calendar is None:
        return
    today = (now.gate.run or "")[:_DAY]
    if today not in now.gate.calendar:
        after = next((day for day in now.gate.calendar if day > today), None)
        following = "it has no later day" if after is None else f"the next one is {after}"
        raise Refused(
            f"today, {today} in UTC, is not in the calendar of this policy; {following}. Nothing was charged."
        )
    for release in earlier:
        gate = None if release.certificate is None else gate_of(release.certificate.steps)
        if gate is not None and gate.calendar and not _continues(now.gate.calendar, gate.calendar):
            raise Refused(
                f"release {release.release} fixed the calendar, and this one has other days before "
                f"{gate.calendar[-1]}. Nothing was charged. Keep its days; add new ones after the last."
            )


def _continues(days: Sequence[str], earlier: Sequence[str]) -> bool:
    """Whether a calendar has the days of an earlier one until its last, and no others until then.

    >>> _continues(["2027-01-10", "2028-01-10"], ["2027-01-10"]), _continues(["2026-12-10"], ["2027-01-10"])
    (True, False)
    """
    return [day for day in days if day <= earlier[-1]] == list(earlier)


def require_lineage(policy: Policy, ledger: Ledger | None, now: ConsentSnapshot | None) -> None:
    """Refuse, uncharged, a release by a registry that never was in the state of the last gated release of the policy.

    An old copy of a registry that is put back has lost withdrawals, and would let people in again who left.
    """
    if now is None or ledger is None:
        return
    release, gate = next(_gates(policy, ledger), ("", None))
    if gate is None or open_registry(policy).holds(RegistrySnapshot(gate.nonce or "", gate.mark or "")):
        return
    raise Refused(
        f"the consent registry was never in the state that the certificate of release {release} names: an old copy was "
        "restored, or it was changed, and withdrawals may be missing. Nothing was charged. Restore the newest copy; if "
        "there is none, record the lost decisions again, and release with --force."
    )


def _gates(policy: Policy, ledger: Ledger) -> Iterator[tuple[str, ConsentGate]]:
    """Yield the gates of releases of a policy's dataset that are found as they were published, the latest first."""
    charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    for entry in reversed(charges):
        name = str(entry.body["release"])
        if any(charge.dataset == policy.name for charge in entry.charged):
            certificate = published_release(policy, ledger, name).certificate
            gate = None if certificate is None else gate_of(certificate.steps)
            if gate is not None and gate.settled:
                yield name, gate
