"""Recover: what a release that was killed between its conclusion in the ledger and its appearance left behind.

The ledger then names the digest of a certificate that nobody has seen, and the files lie hidden beside their place.
Delivering these bytes costs nothing: they are the one outcome that the ledger names.  A new release would be another
draw, and so another charge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.engines.writers.sinks import Folders, appear, check_free, discard, left_whole
from incrowd.errors import IncrowdError, OutputUnavailable, Refused
from incrowd.verifier.files import file_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.internal import INTERNAL, internal_folder
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class HiddenRelease:
    """A release that the ledger names and that did not appear: its certificate, its place, and where its files lie.

    `internal` is the hidden folder of what stays with the data holder; None where that took its place already.
    """

    certificate: Certificate
    target: Path
    public: Path
    internal: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        facts = {"entry": self.certificate.ledger.sequence, "release": self.certificate.id}
        return {**facts, "state": "finished, but not in place", "target": str(self.target), "files": str(self.public)}

    @property
    def sentence(self) -> str:
        """What happened, and what can be done."""
        return (
            f"release {self.certificate.id} was charged and made for {self.target}, but its process was stopped before "
            f"it appeared there. Its files are in {self.public}. The same command with --recover deliver puts them in "
            "place at no cost; with --recover discard it removes them, and the charge is not refunded."
        )


def hidden_releases(policy: Policy, ledger: Ledger | None) -> tuple[HiddenRelease, ...]:
    """Return the releases under a policy's folder that the ledger names and that did not appear.

    What was staged and is not named there is removed: its charge came to nothing.
    """
    return () if ledger is None else hidden_below(internal_folder(policy, "any").parent, ledger)


def hidden_below(internal: Path, ledger: Ledger) -> tuple[HiddenRelease, ...]:
    """Return the same for the folder that holds what is internal of each release."""
    return tuple(_hidden(internal, ledger))


def _hidden(root: Path, ledger: Ledger) -> Iterator[HiddenRelease]:
    for folder in sorted(root.glob(".*.incrowd-*")):
        place = root / folder.name[1:].partition(".incrowd-")[0]
        if folder.suffix != ".lock" and folder in left_whole(place):
            release = _staged(folder / "internal", folder, ledger)
            if release is None:
                discard(folder)
            else:
                yield release
    for internal in sorted(path for path in root.glob("*") if not path.name.startswith(".")):
        release = _staged(internal, None, ledger)
        if release is not None:
            yield release


def _staged(internal: Path, folder: Path | None, ledger: Ledger) -> HiddenRelease | None:
    """Return the release that an internal folder belongs to, if its public files are hidden and the ledger names it."""
    try:
        facts = json.loads((internal / INTERNAL).read_text(encoding="utf-8"))
        id_, target = str(facts["certificate"]), Path(facts["published"])
    except (OSError, ValueError, KeyError, TypeError):  # not a folder of a release: nothing to recover
        return None
    for public in left_whole(target):
        try:
            certificate = read_certificate(public / "public")
        except IncrowdError:
            continue
        if certificate.id == id_ and ledger.conclusions(id_)[-1:] == (certificate.digest(),):
            return HiddenRelease(certificate, target, public, folder)
        if certificate.id == id_:
            discard(public)
    return None


def require_none_hidden(policy: Policy, ledger: Ledger | None, target: Path) -> tuple[str, ...]:
    """Refuse a release into a folder for which another one is hidden; return what is to be said about others."""
    hidden = hidden_releases(policy, ledger)
    same = next((release for release in hidden if release.target == target.resolve()), None)
    if same is not None:
        raise Refused(f"{same.sentence} Nothing was charged.")
    return tuple(release.sentence for release in hidden)


def deliver_hidden(policy: Policy, target: Path) -> Certificate:
    """Put the files of a hidden release in their place, if they are still those that the ledger names."""
    release = _the_one(policy, find_book(policy), target)
    files = release.public / "public"
    stated = {file.name: file for file in release.certificate.outputs}
    if any(not (files / name).is_file() or file_of(files / name) != file for name, file in stated.items()):
        raise Refused(
            f"the files in {release.public} are not those that the certificate names: nothing was published. Discard "
            "them with --recover discard; the charge is not refunded."
        )
    internal = internal_folder(policy, release.certificate.id)
    place = Folders(release.target, None if release.internal is None else internal)
    check_free(place)
    appear(Folders(files, None if release.internal is None else release.internal / "internal"), place)
    _remove(release)
    return release.certificate


def discard_hidden(policy: Policy, target: Path) -> Certificate:
    """Remove a hidden release, and write into the ledger that nothing came of its charge."""
    ledger = find_book(policy)
    release = _the_one(policy, ledger, target)
    if ledger is not None:
        ledger.conclude(ledger.entry(release.certificate.ledger.sequence), None)
    _remove(release)
    return release.certificate


def _the_one(policy: Policy, ledger: Ledger | None, target: Path) -> HiddenRelease:
    for release in hidden_releases(policy, ledger):
        if release.target == target.resolve():
            return release
    raise OutputUnavailable(f"no release that was charged is hidden beside {target}: there is nothing to recover.")


def _remove(release: HiddenRelease) -> None:
    for folder in filter(None, (release.public, release.internal)):
        discard(folder)
