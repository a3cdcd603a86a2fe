"""Lineage: a registry once was what the last gated certificate names, or an old copy took its place."""

from __future__ import annotations

from collections.abc import Iterator

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.around import ConsentGate, gate_of
from incrowd.errors import Refused
from incrowd.governance.consent.registry import RegistrySnapshot
from incrowd.workflows.consent.place import open_registry
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.differences import published_release


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
