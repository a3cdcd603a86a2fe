"""Verify: derive every claim of a certificate again, hash the files again, look the charge up in the ledger.

Claims are derived by `rederive`, which shares no code with the accountants that made them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Certificate, Status
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.workflows.certify import accounting_of
from incrowd.workflows.consistency import (
    check_accounting,
    check_folder,
    check_outputs,
    standing_at,
)
from incrowd.workflows.files import placed
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.coarsened.again import check_again
from incrowd.workflows.forms.coarsened.parent import charged, parent_of, step_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.shown import shown
from incrowd.workflows.signing import check_signature

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger


_CLAIM = "claim: "
_STEPS = "steps"


class Outcome(StrEnum):
    """What a check found."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot be known here"


@dataclass(frozen=True)
class Finding:
    """One check: what was looked at, what was found, and why."""

    about: str
    outcome: Outcome
    why: str


@dataclass(frozen=True)
class Verification:
    """All findings; verified means that nothing failed, not that nothing is unknown."""

    certificate: Certificate
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(finding.outcome is not Outcome.FAILED for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether every claim was decided, and the steps it rests on: none is left that could not be derived again."""
        decided = [each for each in self.findings if each.about.startswith(_CLAIM) or each.about == _STEPS]
        return all(finding.outcome is not Outcome.UNKNOWN for finding in decided)


def read_certificate(path: Path) -> Certificate:
    """Read a certificate from its file, or from the folder of its release."""
    file = path / "certificate.json" if path.is_dir() else path
    try:
        return Certificate.from_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError):
        raise InvalidParameter(f"{file} is not a certificate: it is not a JSON object.") from None


def verify(
    path: Path,
    data: Path | None = None,
    ledger: Ledger | None = None,
    trusted: Path | None = None,
    parent: Path | None = None,
) -> Verification:
    """Check a certificate; the data is looked for beside it unless named, `trusted` is the signer's public key.

    For a coarser table, `parent` is the folder of the release that it was made from.
    """
    certificate = read_certificate(path)
    folder = path if path.is_dir() else path.parent
    told = [
        *_files(certificate, folder, data),
        *_beside(certificate, path, (data, trusted)),
        *_claims(certificate),
        *_contents(certificate, folder, data),
        *_story(certificate),
        *_descent(certificate, data if data is not None else folder, parent),
    ]
    findings = [
        *told,
        *(_shown(certificate, folder, data) if Verification(certificate, tuple(told)).passed else ()),
        *_ledger(charged(certificate), ledger),
        *_signature(certificate, trusted),
        *_assumed(certificate),
    ]
    return Verification(certificate, tuple(findings))


def _files(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[Finding]:
    problem = check_outputs(certificate)
    if problem is not None:
        yield Finding("files", Outcome.FAILED, problem.text)
        return
    for output, file in zip(certificate.outputs, placed(certificate, folder, data), strict=True):
        about = f"file {output['name']}"
        if not file.is_file():
            yield Finding(
                about, Outcome.FAILED, "the file is not there: name it as DATA, or put it beside the certificate"
            )
            continue
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        same = found == output.get("sha256") and file.stat().st_size == output.get("bytes")
        yield Finding(
            about,
            Outcome.PASSED if same else Outcome.FAILED,
            "its SHA-256 is the certified one"
            if same
            else "its SHA-256 or its size differs: this is not the file that was certified",
        )
    if not certificate.outputs and data is not None:
        yield Finding("files", Outcome.FAILED, "the certificate names no files: this one was not certified")
    elif not certificate.outputs:
        yield Finding("files", Outcome.UNKNOWN, "the certificate names no files: the release stayed in memory")


def _beside(certificate: Certificate, path: Path, named: tuple[Path | None, ...]) -> Iterator[Finding]:
    """Look at what else lies in the folder; what the caller named is known."""
    if path.is_dir():
        known = [each.name for each in named if each is not None and each.resolve().parent == path.resolve()]
        problem = check_folder(certificate, path, known)
        yield _found("folder", problem, "nothing lies in it that the certificate does not name")


def _claims(certificate: Certificate) -> Iterator[Finding]:
    form = form_of(certificate)
    for claim in certificate.claims:
        derived = f"derived again from its parameters ({claim.theorem})"
        yield _found(f"{_CLAIM}{claim.kind}", form.check_claim(claim, certificate), derived)
    yield _found("claims", form.check_complete(certificate), "none that the guarantee carries is missing")


def _contents(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[Finding]:
    """Look into the file, as its form says: which columns there are, and whether it keeps what was promised."""
    if check_outputs(certificate) is not None or not certificate.outputs:
        return
    files = placed(certificate, folder, data)
    if not all(file.is_file() for file in files):
        return
    try:
        for look in form_of(certificate).looks(certificate, files[0]):
            yield _found(look.about, look.problem, look.otherwise)
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        yield Finding("contents of the file", Outcome.FAILED, f"the file cannot be counted ({type(error).__name__})")


def _shown(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[Finding]:
    """Where all else holds, look at what the file shows beside its counts."""
    if not certificate.outputs:
        return
    file = placed(certificate, folder, data)[0]
    try:
        for look in shown(certificate, form_of(certificate).reopen(certificate, file), file):
            yield _found(look.about, look.problem, look.otherwise)
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        yield Finding("evidence", Outcome.FAILED, f"the file cannot be counted ({type(error).__name__})")


def _found(about: str, problem: Problem | None, otherwise: str) -> Finding:
    """Return what a check found: its problem, or what holds otherwise."""
    if problem is None:
        return Finding(about, Outcome.PASSED, otherwise)
    return Finding(about, Outcome.UNKNOWN if problem.undecided else Outcome.FAILED, problem.text)


def _story(certificate: Certificate) -> Iterator[Finding]:
    """Hold the parts of the certificate against each other."""
    whose = "it with" if step_of(certificate) is None else "its parent's with"
    yield (
        Finding(
            "id", Outcome.PASSED, f"it is the one that these claims and steps have; the ledger holds {whose} the charge"
        )
        if certificate.names_itself()
        else Finding("id", Outcome.FAILED, "claims, steps, guarantee or policy are not those that this id was made for")
    )
    yield _found(_STEPS, form_of(certificate).check_steps(certificate), "they are those of the guarantee")
    priced = "the charge is what the claim costs; the total covers it"
    yield _found("accounting", check_accounting(certificate), priced)


def _descent(certificate: Certificate, data: Path, parent: Path | None) -> Iterator[Finding]:
    """Compute a coarser table again from its parent's file, and hold the certificates against each other."""
    if step_of(certificate) is None:
        if parent is not None:
            yield Finding("parent", Outcome.FAILED, "this release was not made from another: its steps name no parent")
        return
    if parent is None:
        yield Finding("parent", Outcome.UNKNOWN, "its folder was not given: that this table is what its file gives")
        return
    held, name = read_certificate(parent), str(certificate.outputs[0]["name"])
    if held != parent_of(certificate):
        yield Finding("parent", Outcome.FAILED, "the certificate there is not the one that this table was made from")
        return
    folder = parent if parent.is_dir() else parent.parent
    file = data / name if data.is_dir() else data
    try:
        problem = check_again(certificate, file, folder / str(held.outputs[0]["name"]))
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        problem = Problem(f"the files cannot be compared ({type(error).__name__})")
    yield _found("parent", problem, "computed again from its file, the table is the same")


def _ledger(certificate: Certificate, ledger: Ledger | None) -> Iterator[Finding]:
    from incrowd.store.link import Anchor

    if ledger is None:
        yield Finding("ledger", Outcome.UNKNOWN, "no ledger was given: that the charge was made, and what came since")
        return
    try:
        anchor = Anchor.from_json(certificate.ledger)
        report = ledger.check(anchor)
    except IncrowdError as error:
        yield Finding("ledger", Outcome.FAILED, str(error))
        return
    if not report.ok:
        yield Finding("ledger", Outcome.FAILED, report.finding or "the chain is broken")
        return
    entry = next(ledger.entries(anchor.sequence - 1), None)
    paid = [each for each in entry.charged if each.promise == certificate.guarantee] if entry is not None else []
    if entry is None or not paid or entry.body.get("release") != certificate.id:
        yield Finding("ledger", Outcome.FAILED, f"entry {anchor.sequence} is not the charge of this release")
        return
    told = accounting_of(paid[0], standing_at(ledger, paid[0].dataset, anchor.sequence))
    if paid[0].dataset != certificate.dataset.get("name") or told != certificate.accounting:
        yield Finding("ledger", Outcome.FAILED, f"entry {anchor.sequence} tells other amounts, or of another dataset")
        return
    yield Finding(
        "ledger", Outcome.PASSED, f"entry {anchor.sequence} is the charge of this release; the chain is whole"
    )


def _signature(certificate: Certificate, trusted: Path | None) -> Iterator[Finding]:
    if certificate.signature is None:
        yield Finding("signature", Outcome.UNKNOWN, "the certificate is not signed: who made it")
        return
    problem = check_signature(certificate, trusted)
    if problem is not None:
        yield Finding("signature", Outcome.FAILED, problem)
    elif trusted is None:
        yield Finding("signature", Outcome.UNKNOWN, "it is intact; whose key it is must be learned elsewhere")
    else:
        yield Finding("signature", Outcome.PASSED, "signed by the key that was given")


def _assumed(certificate: Certificate) -> Iterator[Finding]:
    texts: dict[str, Any] = {
        condition.text: None
        for claim in certificate.claims
        for condition in claim.preconditions
        if condition.status is Status.ASSUMED
    }
    for text in texts:
        yield Finding("assumption", Outcome.UNKNOWN, text)
