"""The consent desk: who consents, what the next release loses by it, and what people decided, told back to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.governance.consent.event import Decided
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.page import Download, Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.sources import rows_state
from incrowd.workflows.consent.decisions import FORMATS, check_registry, decide, import_records, receipt, status
from incrowd.workflows.consent.place import open_registry
from incrowd.workflows.consent.preview import ConsentPreview, preview
from incrowd.workflows.consent.subject import subject_report
from incrowd.workflows.policy.ledger import record_look

_DECISION = ("purpose", "valid_from", "valid_to", "basis", "notice")
_ENDINGS = (".csv", ".json")
_LISTED = 50


def show(asked: PageRequest) -> PageContent:
    """Show how many consent, and what the next release loses, if somebody asked for that."""
    return _shown(asked)


def _shown(asked: PageRequest, more: Mapping[str, Any] | None = None, lines: tuple[str, ...] = ()) -> PageContent:
    file = asked.policy_file()
    policy = file.policy
    content: dict[str, Any] = {
        "able": policy.gate is not None,
        "purpose": policy.section.purpose,
        "status": None,
        "problem": None,
        "preview": None,
        "formats": list(FORMATS),
        "files": asked.folder.named(_ENDINGS),
        "file": asked.value("file"),
        "done": asked.value("done") if asked.value("done") in ("give", "withdraw", "import") else None,
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
        job = asked.jobs.known(_key(file))
    except IncrowdError as problem:
        content["problem"] = str(problem)
    found: ConsentPreview | None = result(job)
    content["preview"] = None if found is None else _plain(found)
    return PageContent(content, commands=(*lines, line), job=foremost(job))


def _plain(found: ConsentPreview) -> dict[str, Any]:
    told = found.to_json()
    return told | {"below_k": told["below_k"][:_LISTED], "small": len(told["below_k"])}


def _key(file: PolicyFile) -> str:
    """Return what tells one preview from another: the rows, the policy and the registry as they are."""
    policy = file.policy
    return f"consent {file.path} {policy.hash} {rows_state(policy)} {open_registry(policy).chain.head().hash}"


def look(asked: PageRequest) -> Redirect:
    """Compare who takes part now with who did at the last release: rows are read, and the look is recorded."""
    file = asked.policy_file()
    policy = file.policy

    def work(_tell: Tell) -> ConsentPreview:
        record_look(policy, "consent preview")
        file.seen.add("what the next release loses by withdrawals")
        return preview(policy)

    asked.job(_key(file), "Reading the rows of those who consent", work)
    return asked.to("consent")


def give(asked: PageRequest) -> Redirect | PageContent:
    """Record that somebody consents."""
    return _decide(asked, Decided.GIVE)


def withdraw(asked: PageRequest) -> Redirect | PageContent:
    """Record that somebody withdraws."""
    return _decide(asked, Decided.WITHDRAW)


def _decide(asked: PageRequest, decided: Decided) -> Redirect | PageContent:
    """Record a decision; one that reaches nobody, or more than one person, is said to be so."""
    more = {name: asked.value(name) or None for name in _DECISION}
    decision = decide(asked.policy_file().policy, _person(asked), decided, **more)
    if decision.note is not None:
        return _shown(asked, {"notes": [decision.note]})
    return asked.to("consent", done=str(decided))


def _person(asked: PageRequest) -> str:
    """Return an id that a form holds; addresses never do."""
    person = asked.form.get("person", "").strip()
    if not person:
        raise InvalidParameter("write the id of a person, as the data has it.")
    return person


def take(asked: PageRequest) -> Redirect | PageContent:
    """Record the decisions of a file of the folder; those that reach nobody are listed."""
    form = asked.value("form") or None
    if form not in (None, *FORMATS):
        raise InvalidParameter(f"a format is one of {', '.join(FORMATS)}.")
    imported = import_records(asked.policy_file().policy, asked.folder.file(asked.value("file")), form)
    if not imported.notes:
        return asked.to("consent", done="import")
    notes = [f"{place}: {decision.note}" for place, decision in imported.notes[:_LISTED]]
    more = [f"and {len(imported.notes) - _LISTED:,} more"] if len(imported.notes) > _LISTED else []
    return _shown(asked, {"done": "import", "notes": [*notes, *more]})


def tell(asked: PageRequest) -> Download:
    """Send a person's receipt: a page, or JSON after ISO/IEC TS 27560."""
    found = receipt(asked.policy_file().policy, _person(asked))
    page = asked.value("as") != "json"
    text = found.to_html() if page else json.dumps(found.to_json(), indent=1, ensure_ascii=False)
    return Download(f"receipt.{'html' if page else 'json'}", text.encode())


def subject(asked: PageRequest) -> PageContent:
    """Show for which releases somebody was eligible, and at what total loss; no row is read."""
    file = asked.policy_file()
    found = subject_report(file.policy, _person(asked)).to_json()
    return _shown(asked, {"subject": found}, (command("incrowd", "consent", "subject", "ID", "--policy", file.name),))


def check(asked: PageRequest) -> PageContent:
    """Recompute the registry from its first entry."""
    file = asked.policy_file()
    found = check_registry(file.policy)
    line = command("incrowd", "consent", "check", "--policy", file.name)
    return _shown(asked, {"check": {"ok": found.ok, "finding": found.finding}}, (line,))


PAGE = Page(
    "consent",
    "Consent desk",
    "Who consents to the use of their data, what a withdrawal takes from the next release, and receipts.",
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
