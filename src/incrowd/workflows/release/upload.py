"""Upload: a release for an object store is made and checked here, then uploaded, its certificate last of all.

Whoever finds the certificate there finds all that it names.  The copy here stays, in the folder for state: an upload
that was cut short goes on from it at no cost, and later releases are compared with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.engines.readers.remote import filesystem, public_source
from incrowd.errors import InvalidParameter, OutputUnavailable, PackageMissing, Refused
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.deliver import PublishedRelease
from incrowd.workflows.release.recover import deliver_hidden, hidden_releases

_COPIES = "published"
_GO_ON = "The same command with --recover deliver uploads it at no cost."


@dataclass(frozen=True)
class Upload:
    """Where a release goes, and where its copy is."""

    address: str
    copy: Path

    @classmethod
    def of(cls, policy: Policy, address: str) -> Upload:
        """Return the upload to an address; the copy lies in the policy's folder for state."""
        if address != public_source(address):
            raise InvalidParameter("--out holds a user, a password or a query: keep credentials in the environment.")
        name = hashlib.sha256(address.rstrip("/").encode()).hexdigest()[:16]
        return cls(address.rstrip("/"), state_folder(policy.folder) / _COPIES / name)

    @cached_property
    def store(self) -> Any:
        """The object store."""
        return filesystem(self.address)

    @property
    def made(self) -> bool:
        """Whether the release was made, whole."""
        return (self.copy / CERTIFICATE).is_file()

    def require_free(self) -> None:
        """Refuse, before anything is charged, an address where something is."""
        with _reported(f"{self.address} cannot be looked at", "Nothing was charged."):
            taken = self.store.exists(self.address) or bool(self.store.find(self.address))
        if taken:
            raise OutputUnavailable(
                f"{self.address} holds something already, and nothing is overwritten. Name another."
            )

    def send(self) -> None:
        """Upload the files that are not there yet, and then the certificate; it is there already if all of them are."""
        files = sorted(path for path in self.copy.iterdir() if path.is_file() and path.name != CERTIFICATE)
        certificate = (self.copy / CERTIFICATE).read_bytes()
        with _reported(f"the release in {self.copy} was made, and could not be uploaded", _GO_ON):
            there = f"{self.address}/{CERTIFICATE}"
            if self.store.exists(there):
                same = self.store.cat_file(there) == certificate
            else:
                for path in files:
                    self.store.put_file(str(path), f"{self.address}/{path.name}")
                    if self.store.info(f"{self.address}/{path.name}")["size"] != path.stat().st_size:
                        raise OSError
                self.store.pipe_file(there, certificate)
                same = True
        if not same:
            raise Refused(f"{self.address} holds another release. Nothing was uploaded.")


def uploaded(
    policy: Policy, address: str, key: str | None, make: Callable[[Path], PublishedRelease]
) -> PublishedRelease:
    """Make a release here and upload it; one that was made before is uploaded as it is, where it has a key."""
    upload = Upload.of(policy, address)
    if not upload.made:
        upload.require_free()
    elif key is None:
        raise Refused(f"a release for {upload.address} was made before, and is in {upload.copy}. {_GO_ON}")
    published = make(upload.copy)
    upload.send()
    return replace(published, notes=(*published.notes, f"uploaded to {upload.address}, its certificate last"))


def deliver_upload(policy: Policy, address: str) -> Certificate:
    """Upload a release that was made, and whose upload was cut short; nothing is charged or read."""
    upload = Upload.of(policy, address)
    if any(hidden.target == upload.copy.resolve() for hidden in hidden_releases(policy, find_book(policy))):
        deliver_hidden(policy, upload.copy)
    if not upload.made:
        raise OutputUnavailable(f"no release for {upload.address} was made: there is nothing to upload.")
    upload.send()
    return read_certificate(upload.copy)


@contextmanager
def _reported(what: str, advice: str) -> Iterator[None]:
    """Replace the messages of a service: they may hold signed addresses."""
    kind = None
    try:
        yield
    except PackageMissing:
        raise
    except Exception as error:  # noqa: BLE001 - each service has errors of its own
        kind = type(error).__name__
    if kind is not None:
        raise OutputUnavailable(f"{what} ({kind}): check the address and the credentials. {advice}")
