"""Released: the certificate in plain words, recomputed by the verifier; the report, the files, the signature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.engines.worker import limited
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verifier.files import CERTIFICATE, REPORT, tables_of
from incrowd.web.studio.books import ledger_name
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.report.label import label_of
from incrowd.workflows.report.page import assumptions, describe, gaps
from incrowd.workflows.verify.signing import sign_release
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import verify_named


def show(request: PageRequest) -> PageContent:
    """Show what a certificate says, and what the verifier finds; nothing but published files and the ledger is read."""
    folder, name = request.release(), request.value("release")
    certificate = read_certificate(folder)
    policy_name = request.value("policy") or policy_of(request, certificate)
    public = _public_keys(request)
    job = _verification(request, folder, policy_name, public)
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
        "tables": [file.name for file in tables_of(certificate)],
        "signature": None if certificate.signature is None else certificate.signature.public_key,
        "report": REPORT if (folder / REPORT).is_file() else None,
        "certificate_file": CERTIFICATE,
        "keys": _private_keys(request),
        "verification": None if result(job) is None else _plain(result(job)),
    }
    lines = [command("incrowd", "verify", name)]
    if policy_name:
        lines = [command("incrowd", "verify", name, "--policy", policy_name, *_ledger_words(request, policy_name))]
    return PageContent(content, commands=tuple(lines), job=foremost(job))


def policy_of(request: PageRequest, certificate: Certificate) -> str:
    """Return the policy of the folder that a release was made under, if it is still as it was."""
    for name in request.folder.policies():
        try:
            if request.named_policy(name).policy.hash == certificate.policy_hash:
                return name
        except IncrowdError:
            continue
    return ""


def _verification(request: PageRequest, folder: Path, policy_name: str, public: list[Path]) -> Job:
    written = (folder / CERTIFICATE).stat().st_mtime_ns
    file = request.named_policy(policy_name) if policy_name else None
    policy = None if file is None else file.policy
    trusted = public[0] if len(public) == 1 and read_certificate(folder).signature is not None else None

    def work(tell: Tell) -> Verification:
        ledger = None if policy is None or find_book(policy) is None else policy.ledger_address
        same = policy is not None and policy.hash == read_certificate(folder).policy_hash
        path = file.path if file is not None and same else None
        checked: Verification = limited(verify_named, folder, path, ledger, trusted, stop=tell)
        return checked

    return request.job(f"verify {folder} {written} {policy and policy.hash}", "Recomputing every claim", work)


def _plain(verification: Verification) -> dict[str, Any]:
    listed = [
        {"about": finding.about, "verdict": str(finding.verdict), "why": finding.why}
        for finding in verification.findings
    ]
    return {
        "passed": verification.passed,
        "complete": verification.complete,
        "verdict": verification.verdict,
        "findings": listed,
    }


def _ledger_words(request: PageRequest, policy_name: str) -> tuple[str, ...]:
    policy = request.named_policy(policy_name).policy
    place = ledger_name(policy.ledger_address, request.folder.root)
    return () if find_book(policy) is None else ("--ledger", place)


def _public_keys(request: PageRequest) -> list[Path]:
    place = request.folder.root / "keys"
    return sorted(place.glob("*.pub.pem")) if place.is_dir() else []


def _private_keys(request: PageRequest) -> list[str]:
    place = request.folder.root / "keys"
    paths = sorted(place.glob("*.pem")) if place.is_dir() else []
    return [request.folder.name(path) for path in paths if not path.name.endswith(".pub.pem")]


def sign(request: PageRequest) -> Redirect:
    """Sign a certificate that nobody has signed."""
    if not request.value("key"):
        raise InvalidParameter("choose a key.")
    sign_release(request.release(), request.folder.file(request.value("key")))
    return request.to("released", release=request.value("release"))


PAGE = Page(
    "released",
    "Released",
    "What was released, with its recomputed certificate.",
    show,
    {"sign": sign},
    step=7,
    needs=("release",),
)
