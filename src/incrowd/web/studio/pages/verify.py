"""The certificate verifier: a release is checked by a second route, here; and written in the forms of others."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.verifier.check import CheckOutcome, Verdict
from incrowd.web.studio.books import books_of, ledger_name
from incrowd.web.studio.jobs import Job, Work
from incrowd.web.studio.page import Download, Page, PageContent, PageRequest, Redirect, command
from incrowd.web.studio.sessions import UPLOAD
from incrowd.workflows.export.formats import Exported, PublisherInfo, exported
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.verify.verify import Verification, read_certificate, verify

FORMS = {"croissant": "croissant.json", "ro-crate": "ro-crate.zip", "ddi": "ddi.xml", "dp-registry": "dp-registry.yaml"}
"""The forms that a button offers, and how the file of each is called."""
_HOLDER = ("curator", "license", "url")
_NOTHING = "none"
_SHOWN = 20_000
_ORDER = ("failed", "not known here", "assumed", "passed")


@dataclass(frozen=True)
class _Held:
    """What a release is held against: a policy by the name of its file, and a ledger by its address."""

    file: str | None = None
    policy: Policy | None = None
    ledger: Ledger | None = None
    address: str | None = None


def show(asked: PageRequest) -> PageContent:
    """Show the releases of the folder, or what a check of one of them found."""
    if not asked.value("release"):
        chosen = {"release": None, "releases": asked.folder.releases(), "most": UPLOAD}
        return PageContent(chosen, commands=("incrowd verify FOLDER",))
    folder, name = asked.release(), asked.value("release")
    held = _against(asked, folder)
    checked = _begun(asked, *_check(asked, folder, held))
    written = _written(asked, folder) if asked.value("to") else None
    found: Verification | None = checked.result
    content = {
        "release": name,
        "releases": asked.folder.releases(),
        "policies": asked.folder.policies(),
        "against": asked.value("against"),
        "held": {"policy": held.file, "ledger": held.address},
        "signer": asked.value("signer"),
        "problem": _plainly(asked, checked.problem),
        "found": None if found is None else _plain(found),
        "files": sorted(path.name for path in folder.iterdir() if path.is_file()),
        "forms": list(FORMS),
        "to": asked.value("to"),
        "holder": {each: asked.value(each) for each in _HOLDER},
        "export": None if written is None else _export(asked, written),
        "most": UPLOAD,
    }
    running = next((job for job in (checked, written) if job is not None and job.running), None)
    return PageContent(content, commands=_lines(asked, held), job=running)


def _check(asked: PageRequest, folder: Path, held: _Held) -> tuple[str, str, Work]:
    """Return a check as a job: its key says what is checked and against what, as these are now."""
    signer = asked.folder.file(asked.value("signer")) if asked.value("signer") else None
    head = None if held.ledger is None else held.ledger.chain.head().hash
    told = (held.file, None if held.policy is None else held.policy.hash, head, asked.value("signer"))

    def work(_tell: object) -> Verification:
        _require_plain_names(folder)
        return verify(folder, policy=held.policy, ledger=held.ledger, trusted=signer)

    return f"verify {_state(folder)} {told}", f"Checking {asked.value('release')}", work


def _against(asked: PageRequest, folder: Path) -> _Held:
    """Return what a release is held against: a policy that is named, or what this folder has of it."""
    named = asked.value("against")
    if named == _NOTHING:
        return _Held()
    if named:
        policy = asked.named_policy(named).policy
        ledger, address = find_book(policy), ledger_name(policy.ledger_address, asked.folder.root)
        return _Held(named, policy, ledger, None if ledger is None else address)
    try:
        certificate = read_certificate(folder)
    except IncrowdError:  # the check says so
        return _Held()
    books = books_of(asked)
    same = ((name, each) for name, each in books.policies.items() if each.hash == certificate.policy_hash)
    name, found = next(same, (None, None))
    book = next((each for each in books.ledgers if each.ledger.id == certificate.ledger.chain), None)
    return _Held(name, found) if book is None else _Held(name, found, book.ledger, book.name)


def _require_plain_names(folder: Path) -> None:
    """Refuse a certificate that names files elsewhere: nothing but the folder of the release is read."""
    if any(Path(file.name).name != file.name or "\\" in file.name for file in read_certificate(folder).outputs):
        raise InvalidParameter("this certificate names files outside of its own folder: it is no release.")


def _state(folder: Path) -> str:
    stats = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    return f"{folder} {[(name, stat.st_mtime_ns, stat.st_size) for name, stat in stats]}"


def _plain(found: Verification) -> dict[str, Any]:
    certificate = found.certificate
    groups: dict[str, list[dict[str, str]]] = {name: [] for name in _ORDER}
    for finding in found.findings:
        groups[_group(finding)].append({"about": finding.about, "why": finding.why})
    return {
        "verdict": found.verdict,
        "passed": found.passed,
        "complete": found.complete,
        "findings": groups,
        "certificate": certificate.id,
        "created": certificate.created,
        "dataset": certificate.dataset.name,
        "protects": str(certificate.guarantee.unit),
        "method": certificate.method.name,
        "claims": [
            {"kind": claim.kind, "sentence": claim.sentence, "facts": list(claim.facts)} for claim in certificate.claims
        ],
        "spent": vars(certificate.accounting.spent),
        "signed": certificate.signature is not None,
    }


def _group(found: CheckOutcome) -> str:
    if found.verdict is Verdict.UNKNOWN:
        return "assumed" if found.about == "assumption" else "not known here"
    return str(found.verdict)


def _plainly(asked: PageRequest, problem: str | None) -> str | None:
    """Return a problem without the path of the opened folder."""
    return None if problem is None else problem.replace(f"{asked.folder.root}/", "")


def _written(asked: PageRequest, folder: Path) -> Job:
    """Start writing a release in another form; it is made from what was published alone."""
    to = asked.value("to")
    if to not in FORMS:
        raise InvalidParameter(f"a release is written as {', '.join(FORMS)}.")
    held = {name: asked.value(name) or None for name in _HOLDER}

    def work(_tell: object) -> Exported:
        _require_plain_names(folder)
        return exported(folder, to, PublisherInfo(**held))

    return _begun(asked, f"export {_state(folder)} {to} {sorted(held.items())}", f"Writing {to}", work)


def _begun(asked: PageRequest, key: str, title: str, work: Work) -> Job:
    """Start work unless it was done, also if nothing came of it: the page says why."""
    return asked.jobs.known(key) or asked.job(key, title, work)


def _export(asked: PageRequest, job: Job) -> dict[str, Any]:
    made: Exported | None = job.result
    text = "" if made is None else made.content.decode()
    return {
        "name": f"{asked.release().name}-{FORMS[asked.value('to')]}",
        "problem": _plainly(asked, job.problem),
        "notes": [] if made is None else list(made.notes),
        "files": [] if made is None else [file.name for file in made.files],
        "text": text[:_SHOWN],
        "more": max(0, len(text) - _SHOWN),
        "ready": made is not None,
    }


def export(asked: PageRequest) -> Download:
    """Send a release in another form; nothing is kept here."""
    job = asked.jobs.wait(_written(asked, asked.release()).id)
    made: Exported = asked.result(job)
    name = f"{asked.release().name}-{FORMS[asked.value('to')]}"
    if made.name is None:
        return Download(name, made.content)
    return Download(name, _packed(made, made.name))


def _packed(made: Exported, name: str) -> Path:
    """Return an archive of a description under its name, and of the files that belong beside it."""
    with tempfile.NamedTemporaryFile(prefix="incrowd-", delete=False) as file:
        pass
    with zipfile.ZipFile(file.name, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, made.content)
        for each in made.files:
            packed.write(each, each.name)
    return Path(file.name)


def again(asked: PageRequest) -> Redirect:
    """Forget what a check found, so that it is done once more."""
    folder = asked.release()
    asked.jobs.forget(_check(asked, folder, _against(asked, folder))[0])
    given = {name: asked.value(name) for name in ("release", "against", "signer") if asked.value(name)}
    return asked.to("verify", **given)


def _lines(asked: PageRequest, held: _Held) -> tuple[str, ...]:
    name = asked.value("release")
    told = {"--policy": held.file, "--ledger": held.address, "--public-key": asked.value("signer")}
    words = [word for option, value in told.items() if value for word in (option, value)]
    check = command("incrowd", "verify", name, *words)
    to = asked.value("to")
    if not to:
        return (check,)
    more = [word for each in _HOLDER if asked.value(each) for word in (f"--{each}", asked.value(each))]
    out = f"{Path(name).name}-{FORMS[to].removesuffix('.zip')}"
    return check, command("incrowd", "export", name, "--to", to, "--out", out, *more)


PAGE = Page(
    "verify",
    "Certificate verifier",
    "Every claim of a release is derived again, by a second route that shares no code with the first. Nothing leaves "
    "this machine.",
    show,
    {"export": export, "again": again},
)
