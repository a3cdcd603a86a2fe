"""Keyed: a release that is tried again under the same key is the same release, and is paid once where that is honest.

The key and the digest of the policy decide, and nothing about the rows.

- It is finished: the files that were published are returned, and nothing is charged or read.
- It was stopped before its charge: nothing was spent, and it begins again.
- It was stopped after the ledger got the digest of its certificate: those very files are delivered, at no cost.
- It was stopped in between: rows may have been read, so the charge is concluded as "no release".  Another run is
  another draw, and so another charge: a free one would be a choice among runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.core.certificate import Certificate
from incrowd.engines.regular_file import is_regular
from incrowd.errors import InvalidParameter, Refused
from incrowd.store.disk import lock_at
from incrowd.verifier.files import CERTIFICATE, file_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import FingerprintFile
from incrowd.workflows.release.deliver import Destination, PublishedRelease, Released, published_output
from incrowd.workflows.release.recover import deliver_hidden, hidden_releases

_LONGEST = 200


def once(
    policy: Policy, destination: Destination, key: str | None, make: Callable[[str | None], PublishedRelease]
) -> PublishedRelease:
    """Return the release that was made with a key; else make it, with the digest that its charge names the key by."""
    if key is None:
        return make(None)
    if destination.table is not None:
        raise InvalidParameter(
            "a release with a key goes into a folder alone: load its files into the table afterwards."
        )
    ledger, digest = find_book(policy), key_digest(policy, key)
    with alone_with(policy, ledger, digest):
        earlier = finished(policy, ledger, digest, destination.place)
        if earlier is None:
            return make(digest)
    output = published_output(earlier, destination.place)
    notes = ("this release was made before with this key: nothing was charged or read now.",)
    return PublishedRelease(destination.place, internal_folder(policy, earlier.id), Released(output, earlier), notes)


def key_digest(policy: Policy, key: str) -> str:
    """Return what the ledger knows a key by: it may hold something that only its maker should read."""
    if not key.strip() or len(key) > _LONGEST:
        raise InvalidParameter(f"a key is a text of 1 to {_LONGEST} characters, such as stays-2025-03.")
    content = json.dumps(["incrowd release key", policy.name, policy.hash, key])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def alone_with(
    policy: Policy, ledger: Ledger | None, digest: str, what: str = "a release with this key"
) -> Iterator[None]:
    """Hold a key among all processes that use the ledger; one that another process holds is refused."""
    folder = FingerprintFile.of(policy).path.parent  # beside a ledger in a file, whatever the folder for state is
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_at(folder / f".key-{digest[:16]}.lock").acquire(timeout=0))
            locks = None if ledger is None else ledger.chain.database.locks(ledger.id)
            if locks is not None:
                stack.callback(locks.close)
            free = locks is None or stack.enter_context(locks.alone(f"key {digest}"))
        except OSError:  # Timeout is one
            free = False
        if not free:
            raise Refused(f"{what} is running now. Nothing was charged: wait until it is done.")
        yield


def finished(policy: Policy, ledger: Ledger | None, digest: str, target: Path) -> Certificate | None:
    """Return the certificate of the release that was made with a key, its files in place; None where it must be made.

    A charge of a process that was killed before it concluded is concluded here as "no release".
    """
    release = None if ledger is None else ledger.charged_with(digest)
    if ledger is None or release is None:
        return None
    outcome = ledger.conclusions(release)[-1:]
    if not outcome:
        ledger.conclude(_charge(ledger, release), None)
    if outcome in ((), (None,)):
        return None
    if any(hidden.certificate.id == release for hidden in hidden_releases(policy, ledger)):
        deliver_hidden(policy, target)
    certificate = read_certificate(target) if (target / CERTIFICATE).is_file() else None
    if certificate is None or certificate.digest() != outcome[0]:
        raise Refused(
            f"release {release} was made with this key, and it is not in {target}. Look for its certificate where it "
            "was published. Nothing was charged: another run is another release, with another key."
        )
    if any(not is_regular(target / file.name) or file_of(target / file.name) != file for file in certificate.outputs):
        raise Refused(f"the files in {target} are no longer those of release {release}. Nothing was charged.")
    return certificate


def _charge(ledger: Ledger, release: str) -> Entry:
    """Return the entry of a charge that was not concluded."""
    return next(entry for entry in ledger.entries() if entry.kind == "charge" and entry.body["release"] == release)
