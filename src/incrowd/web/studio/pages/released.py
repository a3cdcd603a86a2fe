"""Released: the certificate in plain words, derived again by the verifier; the report, the files, the signature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verifier.files import CERTIFICATE, REPORT, tables_of
from incrowd.web.studio.books import ledger_name
from incrowd.web.studio.jobs import Job
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.report.label import label_of
from incrowd.workflows.report.page import assumptions, describe, gaps
from incrowd.workflows.verify.signing import sign_release
from incrowd.workflows.verify.verify import References, Verification, read_certificate, verify


def show(asked: PageRequest) -> PageContent:
    """Show what a certificate says, and what the verifier finds; nothing but published files and the ledger is read."""
    folder, name = asked.release(), asked.value("release")
    certificate = read_certificate(folder)
    policy_name = asked.value("policy") or policy_of(asked, certificate)
    public = _public_keys(asked)
    job = _verification(asked, folder, policy_name, public)
    label = label_of(certificate, describe(certificate))
    content = {
        "release": name,
        "policy_name": policy_name,
        "dataset": certificate.dataset.name,
        "created": certificate.created[:16].replace("T", " "),
        "id": certificate.id,
        "method": certificate.method.name,
        "numbers": label.numbers,
        "guesses": [[words, share] for words, share in label.guesses],
        "alerts": [{"title": alert.title, "text": alert.text} for alert in label.alerts],
        "answers": [
            {"question": answer.question, "short": answer.short, "full": answer.full} for answer in label.answers
        ],
        "gaps": [gap.sentence for gap in gaps(certificate.claims)],
        "assumptions": assumptions(certificate.claims),
        "files": [{"name": output.name, "bytes": output.bytes} for output in certificate.outputs],
        "tables": [each.name for each in tables_of(certificate)],
        "signature": None if certificate.signature is None else certificate.signature.public_key,
        "report": REPORT if (folder / REPORT).is_file() else None,
        "certificate_file": CERTIFICATE,
        "keys": _private_keys(asked),
        "verification": None if result(job) is None else _plain(result(job)),
    }
    lines = [command("incrowd", "verify", name)]
    if policy_name:
        lines = [command("incrowd", "verify", name, "--policy", policy_name, *_ledger_words(asked, policy_name))]
    return PageContent(content, commands=tuple(lines), job=foremost(job))


def policy_of(asked: PageRequest, certificate: Certificate) -> str:
    """Return the policy of the folder that a release was made under, if it is still as it was."""
    for name in asked.folder.policies():
        try:
            if asked.named_policy(name).policy.hash == certificate.policy_hash:
                return name
        except IncrowdError:
            continue
    return ""


def _verification(asked: PageRequest, folder: Path, policy_name: str, public: list[Path]) -> Job:
    written = (folder / CERTIFICATE).stat().st_mtime_ns
    policy = asked.named_policy(policy_name).policy if policy_name else None
    trusted = public[0] if len(public) == 1 and read_certificate(folder).signature is not None else None

    def work(_tell: object) -> Verification:
        ledger = None if policy is None else find_book(policy)
        same = policy if policy is not None and policy.hash == read_certificate(folder).policy_hash else None
        return verify(folder, **References(ledger=ledger, policy=same, trusted=trusted))

    return asked.job(f"verify {folder} {written} {policy and policy.hash}", "Deriving every claim again", work)


def _plain(found: Verification) -> dict[str, Any]:
    listed = [
        {"about": finding.about, "verdict": str(finding.verdict), "why": finding.why} for finding in found.findings
    ]
    return {"passed": found.passed, "complete": found.complete, "verdict": found.verdict, "findings": listed}


def _ledger_words(asked: PageRequest, policy_name: str) -> tuple[str, ...]:
    policy = asked.named_policy(policy_name).policy
    place = ledger_name(policy.ledger_address, asked.folder.root)
    return () if find_book(policy) is None else ("--ledger", place)


def _public_keys(asked: PageRequest) -> list[Path]:
    place = asked.folder.root / "keys"
    return sorted(place.glob("*.pub.pem")) if place.is_dir() else []


def _private_keys(asked: PageRequest) -> list[str]:
    place = asked.folder.root / "keys"
    found = sorted(place.glob("*.pem")) if place.is_dir() else []
    return [asked.folder.name(path) for path in found if not path.name.endswith(".pub.pem")]


def sign(asked: PageRequest) -> Redirect:
    """Sign a certificate that nobody has signed."""
    if not asked.value("key"):
        raise InvalidParameter("choose a key.")
    sign_release(asked.release(), asked.folder.file(asked.value("key")))
    return asked.to("released", release=asked.value("release"))


PAGE = Page(
    "released",
    "Released",
    "What left, and why it may: the certificate, derived again.",
    show,
    {"sign": sign},
    step=7,
    needs=("release",),
)
