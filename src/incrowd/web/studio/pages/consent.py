"""Consent: who consents, what the next release loses by it, and what people decided, told back to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.governance.consent.event import Decided
from incrowd.governance.consent.phrases import LANGUAGES
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.page import Download, Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.rows import rows_state
from incrowd.workflows.consent.decisions import check_registry, decide, receipt, status
from incrowd.workflows.consent.imports import FORMATS, ImportRules, import_records
from incrowd.workflows.consent.place import open_registry
from incrowd.workflows.consent.preview import ConsentPreview, preview
from incrowd.workflows.consent.subject import subject_report
from incrowd.workflows.policy.ledger import record_look

_DECISION = ("purpose", "at", "valid_from", "valid_to", "basis", "notice", "guardian", "of_age")
_ENDINGS = (".csv", ".json", ".ndjson")
_LISTED = 50


def show(request: PageRequest) -> PageContent:
    """Show how many consent, and what the next release loses, if somebody asked for that."""
    return _page(request)


def _page(request: PageRequest, more: Mapping[str, Any] | None = None, lines: tuple[str, ...] = ()) -> PageContent:
    file = request.policy_file()
    policy = file.policy
    content: dict[str, Any] = {
        "able": policy.gate is not None,
        "purpose": policy.section.purpose,
        "status": None,
        "problem": None,
        "preview": None,
        "formats": list(FORMATS),
        "languages": dict(LANGUAGES),
        "files": request.folder.named(_ENDINGS),
        "file": request.value("file"),
        "done": request.value("done") if request.value("done") in ("give", "withdraw", "import") else None,
        "subject": None,
        "check": None,
        "notes": [],
        **(more or {}),
    }
    line = command("incrowd", "consent", "status", "--policy", file.name)
    if policy.gate is None:
        return PageContent(content, commands=(line,))
    job = None
    try:
        content["status"] = status(policy).to_json()
        job = request.jobs.find(_key(file))
    except IncrowdError as problem:
        content["problem"] = str(problem)
    changes: ConsentPreview | None = result(job)
    content["preview"] = None if changes is None else _plain(changes)
    return PageContent(content, commands=(*lines, line), job=foremost(job))


def _plain(changes: ConsentPreview) -> dict[str, Any]:
    plain = changes.to_json()
    return plain | {"below_k": plain["below_k"][:_LISTED], "small": len(plain["below_k"])}


def _key(file: PolicyFile) -> str:
    """Return what tells one preview from another: the rows, the policy and the registry as they are."""
    policy = file.policy
    return f"consent {file.path} {policy.hash} {rows_state(policy)} {open_registry(policy).chain.head().hash}"


def look(request: PageRequest) -> Redirect:
    """Compare who takes part now with who did at the last release: rows are read, and the look is recorded."""
    file = request.policy_file()
    policy = file.policy

    def work(_tell: Tell) -> ConsentPreview:
        record_look(policy, "consent preview")
        file.seen.add("the effect of withdrawals")
        return preview(policy)

    request.job(_key(file), "Reading the rows of those who consent", work)
    return request.to("consent")


def give(request: PageRequest) -> Redirect | PageContent:
    """Record that somebody consents."""
    return _decide(request, Decided.GIVE)


def withdraw(request: PageRequest) -> Redirect | PageContent:
    """Record that somebody withdraws."""
    return _decide(request, Decided.WITHDRAW)


def _decide(request: PageRequest, decided: Decided) -> Redirect | PageContent:
    """Record a decision; one that reaches nobody, or more than one person, is said to be so."""
    more = {name: request.value(name) or None for name in _DECISION}
    decision = decide(request.policy_file().policy, _person(request), decided, **more)
    if decision.note is not None:
        return _page(request, {"notes": [decision.note]})
    return request.to("consent", done=str(decided))


def _person(request: PageRequest) -> str:
    """Return an id that a form holds; addresses never do."""
    person = request.form.get("person", "").strip()
    if not person:
        raise InvalidParameter("write the ID of a person, as in the data.")
    return person


def take(request: PageRequest) -> Redirect | PageContent:
    """Record the decisions of a file of the folder; those that reach nobody are listed."""
    form = request.value("form") or None
    if form not in (None, *FORMATS):
        raise InvalidParameter(f"a format is one of {', '.join(FORMATS)}.")
    file = request.folder.file(request.value("file"))
    imported = import_records(request.policy_file().policy, file, ImportRules(form))
    notes = [f"{place}: {decision.note}" for place, decision in imported.notes]
    notes += [f"{one.place}: skipped: {one.reason}." for one in imported.skipped]
    if not notes:
        return request.to("consent", done="import")
    more = [f"and {len(notes) - _LISTED:,} more"] if len(notes) > _LISTED else []
    return _page(request, {"done": "import", "notes": [*notes[:_LISTED], *more]})


def tell(request: PageRequest) -> Download:
    """Send a person's receipt: a page, or JSON after ISO/IEC TS 27560."""
    decisions = receipt(request.policy_file().policy, _person(request))
    page = request.value("as") != "json"
    text = (
        decisions.to_html(request.value("language"))
        if page
        else json.dumps(decisions.to_json(), indent=1, ensure_ascii=False)
    )
    return Download(f"receipt.{'html' if page else 'json'}", text.encode())


def subject(request: PageRequest) -> PageContent:
    """Show for which releases somebody was eligible, and at what total loss; no row is read."""
    file = request.policy_file()
    report = subject_report(file.policy, _person(request)).to_json()
    return _page(request, {"subject": report}, (command("incrowd", "consent", "subject", "ID", "--policy", file.name),))


def check(request: PageRequest) -> PageContent:
    """Recompute the registry from its first entry."""
    file = request.policy_file()
    report = check_registry(file.policy)
    line = command("incrowd", "consent", "check", "--policy", file.name)
    return _page(request, {"check": {"ok": report.ok, "finding": report.finding}}, (line,))


PAGE = Page(
    "consent",
    "Consent",
    "Consent of data subjects, the effect of withdrawals on the next release, and receipts.",
    show,
    {
        "look": look,
        "give": give,
        "withdraw": withdraw,
        "import": take,
        "receipt": tell,
        "subject": subject,
        "check": check,
    },
    needs=("policy",),
)
