"""The certificate verifier: an independent check of a release, and exports in other formats."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.engines.worker import limited
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verifier.check import CheckOutcome, Verdict
from incrowd.web.studio.books import books_of, ledger_name
from incrowd.web.studio.jobs import Job, Tell, Work
from incrowd.web.studio.page import Download, Page, PageContent, PageRequest, Redirect, command
from incrowd.web.studio.sessions import UPLOAD
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.export.formats import Exported, PublisherInfo, exported
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import verify_named

FORMS = {"croissant": "croissant.json", "ro-crate": "ro-crate.zip", "ddi": "ddi.xml", "dp-registry": "dp-registry.yaml"}
"""The forms that a button offers, and how the file of each is called."""
_HOLDER = ("curator", "license", "url")
_NOTHING = "none"
_SHOWN = 20_000
_ORDER = ("failed", "not known here", "assumed", "passed")


@dataclass(frozen=True)
class _Held:
    """What a release is compared with: a policy by the name of its file, and a ledger by its name and address."""

    file: str | None = None
    policy: Policy | None = None
    ledger: Ledger | None = None
    name: str | None = None
    address: str | None = None


def show(request: PageRequest) -> PageContent:
    """Show the releases of the folder, or what a check of one of them found."""
    if not request.value("release"):
        chosen = {"release": None, "releases": request.folder.releases(), "most": UPLOAD}
        return PageContent(chosen, commands=("incrowd verify FOLDER",))
    folder, name = request.release(), request.value("release")
    held = _against(request, folder)
    checked = _begun(request, *_check(request, folder, held))
    written = _written(request, folder) if request.value("to") else None
    verification: Verification | None = checked.result
    content = {
        "release": name,
        "releases": request.folder.releases(),
        "policies": request.folder.policies(),
        "against": request.value("against"),
        "held": {"policy": held.file, "ledger": held.name},
        "signer": request.value("signer"),
        "problem": _plainly(request, checked.problem),
        "verification": None if verification is None else _plain(verification),
        "files": sorted(path.name for path in folder.iterdir() if path.is_file()),
        "forms": list(FORMS),
        "to": request.value("to"),
        "holder": {name: request.value(name) for name in _HOLDER},
        "export": None if written is None else _export(request, written),
        "most": UPLOAD,
    }
    running = next((job for job in (checked, written) if job is not None and job.running), None)
    return PageContent(content, commands=_lines(request, held), job=running)


def _check(request: PageRequest, folder: Path, held: _Held) -> tuple[str, str, Work]:
    """Return a check as a job: its key says what is checked and against what, as these are now."""
    signer = request.folder.file(request.value("signer")) if request.value("signer") else None
    head = None if held.ledger is None else held.ledger.chain.head().hash
    references = (held.file, None if held.policy is None else held.policy.hash, head, request.value("signer"))

    policy = None if held.file is None else request.named_policy(held.file).path

    def work(tell: Tell) -> Verification:
        _require_plain_names(folder)
        checked: Verification = limited(verify_named, folder, policy, held.address, signer, stop=tell)
        return checked

    return f"verify {_state(folder)} {references}", f"Checking {request.value('release')}", work


def _against(request: PageRequest, folder: Path) -> _Held:
    """Return what a release is compared with: a policy that is named, or what this folder has of it."""
    named = request.value("against")
    if named == _NOTHING:
        return _Held()
    if named:
        policy = request.named_policy(named).policy
        ledger = find_book(policy)
        if ledger is None:
            return _Held(named, policy)
        return _Held(
            named, policy, ledger, ledger_name(policy.ledger_address, request.folder.root), policy.ledger_address
        )
    try:
        certificate = read_certificate(folder)
    except IncrowdError:  # the check says so
        return _Held()
    books = books_of(request)
    same = ((name, policy) for name, policy in books.policies.items() if policy.hash == certificate.policy_hash)
    name, same_policy = next(same, (None, None))
    book = next((ledger for ledger in books.ledgers if ledger.ledger.id == certificate.ledger.chain), None)
    return _Held(name, same_policy) if book is None else _Held(name, same_policy, book.ledger, book.name, book.address)


def _require_plain_names(folder: Path) -> None:
    """Refuse a certificate that names files elsewhere: nothing but the folder of the release is read."""
    if any(Path(file.name).name != file.name or "\\" in file.name for file in read_certificate(folder).outputs):
        raise InvalidParameter("this certificate names files outside its own folder: it is not a release.")


def _state(folder: Path) -> str:
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    return f"{folder} {[(name, stat.st_mtime_ns, stat.st_size) for name, stat in stats]}"


def _plain(verification: Verification) -> dict[str, Any]:
    certificate = verification.certificate
    groups: dict[str, list[dict[str, str]]] = {name: [] for name in _ORDER}
    for finding in verification.findings:
        groups[_group(finding)].append({"about": finding.about, "why": finding.why})
    return {
        "verdict": verification.verdict,
        "passed": verification.passed,
        "complete": verification.complete,
        "findings": groups,
        "certificate": certificate.id,
        "created": certificate.created,
        "dataset": certificate.dataset.name,
        "protects": str(certificate.guarantee.unit),
        "method": certificate.method.name,
        "claims": [
            {"kind": claim.kind, "sentence": claim.sentence, "facts": list(claim.facts), "restates": claim.restates}
            for claim in certificate.claims
        ],
        "spent": vars(certificate.accounting.spent),
        "signed": certificate.signature is not None,
    }


def _group(outcome: CheckOutcome) -> str:
    if outcome.verdict is Verdict.UNKNOWN:
        return "assumed" if outcome.about == "assumption" else "not known here"
    return str(outcome.verdict)


def _plainly(request: PageRequest, problem: str | None) -> str | None:
    """Return a problem without the path of the opened folder."""
    return None if problem is None else problem.replace(f"{request.folder.root}/", "")


def _written(request: PageRequest, folder: Path) -> Job:
    """Start writing a release in another form; it is made from what was published alone."""
    to = request.value("to")
    if to not in FORMS:
        raise InvalidParameter(f"a release is written as {', '.join(FORMS)}.")
    held = {name: request.value(name) or None for name in _HOLDER}

    def work(tell: Tell) -> Exported:
        _require_plain_names(folder)
        made: Exported = limited(exported, folder, to, PublisherInfo(**held), stop=tell)
        return made

    return _begun(request, f"export {_state(folder)} {to} {sorted(held.items())}", f"Writing {to}", work)


def _begun(request: PageRequest, key: str, title: str, work: Work) -> Job:
    """Start work unless it was done, also if it failed: the page says why."""
    return request.jobs.find(key) or request.job(key, title, work)


def _export(request: PageRequest, job: Job) -> dict[str, Any]:
    made: Exported | None = job.result
    text = "" if made is None else made.content.decode()
    return {
        "name": f"{request.release().name}-{FORMS[request.value('to')]}",
        "problem": _plainly(request, job.problem),
        "notes": [] if made is None else list(made.notes),
        "files": [] if made is None else [file.name for file in made.files],
        "text": text[:_SHOWN],
        "more": max(0, len(text) - _SHOWN),
        "ready": made is not None,
    }


def export(request: PageRequest) -> Download:
    """Send a release in another form; nothing is kept here."""
    job = request.jobs.wait(_written(request, request.release()).id)
    made: Exported = request.result(job)
    name = f"{request.release().name}-{FORMS[request.value('to')]}"
    if made.name is None:
        return Download(name, made.content)
    return Download(name, _packed(made, made.name))


def _packed(made: Exported, name: str) -> Path:
    """Return an archive of a description under its name, and of the files that belong beside it."""
    with tempfile.NamedTemporaryFile(prefix="incrowd-", delete=False) as file:
        pass
    with zipfile.ZipFile(file.name, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, made.content)
        for path in made.files:
            packed.write(path, path.name)
    return Path(file.name)


def again(request: PageRequest) -> Redirect:
    """Forget what a check found, so that it is done once more."""
    folder = request.release()
    request.jobs.forget(_check(request, folder, _against(request, folder))[0])
    parameters = {name: request.value(name) for name in ("release", "against", "signer") if request.value(name)}
    return request.to("verify", **parameters)


def _lines(request: PageRequest, held: _Held) -> tuple[str, ...]:
    name = request.value("release")
    options = {"--policy": held.file, "--ledger": held.name, "--public-key": request.value("signer")}
    words = [word for option, value in options.items() if value for word in (option, value)]
    check = command("incrowd", "verify", name, *words)
    to = request.value("to")
    if not to:
        return (check,)
    more = [word for name in _HOLDER if request.value(name) for word in (f"--{name}", request.value(name))]
    out = f"{Path(name).name}-{FORMS[to].removesuffix('.zip')}"
    return check, command("incrowd", "export", name, "--to", to, "--out", out, *more)


PAGE = Page(
    "verify",
    "Certificate verifier",
    "Every claim of a release is recomputed by independent code. Nothing is sent from this machine.",
    show,
    {"export": export, "again": again},
)
