"""`incrowd consent`: the consent registry of a policy."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from incrowd.governance.consent.event import Decided
    from incrowd.workflows.consent.decisions import ConsentDecision
    from incrowd.workflows.policy.policy import Policy

PolicyFile = Annotated[Path, typer.Option("--policy", help="The policy, with purpose: and consent:.")]
Person = Annotated[str, typer.Argument(metavar="ID", help="The person's ID in the data.")]
Purpose = Annotated[
    str | None, typer.Option("--purpose", metavar="PURPOSE", help="Another purpose than the policy's; it may be wider.")
]
Basis = Annotated[str | None, typer.Option("--basis", metavar="TEXT", help="The legal basis; consent by default.")]
Notice = Annotated[str | None, typer.Option("--notice", metavar="TEXT", help="Version of the consent notice.")]
From = Annotated[str | None, typer.Option("--valid-from", metavar="TIME", help="Start; default: its time.")]
Until = Annotated[
    str | None, typer.Option("--valid-to", metavar="TIME", help="End: the consent is in force before this time.")
]
At = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="Time of the decision; default: now. Later decisions count.")
]
Guardian = Annotated[
    str | None, typer.Option("--guardian", metavar="TEXT", help="The guardian who decides, as a role such as mother.")
]
OfAge = Annotated[
    str | None, typer.Option("--of-age", metavar="DAY", help="Day from which the person decides; ends the consent.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write an HTML page to this file.")]
Language = Annotated[
    str, typer.Option("--language", metavar="LANGUAGE", help="Language of the page: en, de, fr, es or nl.")
]
NewPurpose = Annotated[bool, typer.Option("--new-purpose", help="Accept a purpose that no decision was ever about.")]
_FIELDS = ("purpose", "at", "valid_from", "valid_to", "basis", "notice", "guardian", "of_age")
_FAILED = 1
_LISTED = 50
consent = typer.Typer(help="Record consent, and show its consequences for releases.", no_args_is_help=True)


def _policy(path: Path) -> Policy:
    from incrowd.workflows.policy.policy import load_policy

    return load_policy(path)


@dataclass(frozen=True)
class ImportOptions:
    """The options of `incrowd consent import`."""

    policy: PolicyFile
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The decisions.")]
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="csv, fhir or 27560; default: detected.")
    ] = None
    new_purpose: NewPurpose = False
    provisions_permit: Annotated[
        bool, typer.Option("--provisions-permit", help="FHIR R5: the purposes in a permit are those permitted.")
    ] = False
    as_json: Json = False


@takes(ImportOptions)
def import_(options: ImportOptions) -> None:
    """Record the decisions of a file: CSV, FHIR Consent resources (R4, R4B, R5), or records after ISO/IEC TS 27560.

    A missing registry is created. IDs are stored as pseudonyms under the key. A CSV file with a mistake changes
    nothing; a FHIR resource that cannot be read is skipped and listed. Exit 1 if a decision was skipped, or if a
    withdrawal matches nobody who consented: it is recorded, and listed by its place in the file.
    """
    from incrowd.workflows.consent.imports import FORMATS, ImportRules, import_records

    if options.form not in (None, *FORMATS):
        raise InvalidParameter(f"a format is one of {', '.join(FORMATS)}.")
    rules = ImportRules(options.form, options.new_purpose, options.provisions_permit)
    imported = import_records(_policy(options.policy), options.file, rules)
    if options.as_json:
        print_json(imported.to_json())
    else:
        lines = [(place, _note(decision)) for place, decision in imported.notes[:_LISTED]]
        lines += [(one.place, f"skipped: {one.reason}.") for one in imported.skipped]
        hidden = len(imported.notes) + len(imported.skipped) - _LISTED
        more = [("and", f"{hidden:,} more; --json lists all")] if hidden > 0 else []
        rare = {"not in the table": imported.absent, "before a later consent": imported.overridden}
        lines = [(name, f"{count:,}") for name, count in rare.items() if count] + lines[:_LISTED]
        print_table("Recorded", [("decisions", f"{imported.count:,}"), *lines, *more])
    if not imported.ok:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class StatusOptions:
    """The options of `incrowd consent status`."""

    policy: PolicyFile
    as_json: Json = False


@takes(StatusOptions)
def status(options: StatusOptions) -> None:
    """Count who consents to the policy's purpose now. The counts are internal and must not be published."""
    from incrowd.workflows.consent.decisions import status

    counts = status(_policy(options.policy))
    if options.as_json:
        return print_json(counts.to_json())
    lines = [("purpose", counts.purpose), ("as of", counts.as_of), ("people who consent", f"{counts.consenting:,}")]
    lines += [("people who do not", f"{counts.others:,}")]
    lines += [(f"events: {name}", f"{count:,}") for name, count in counts.events.items()]
    print_table("Consent", lines, "The number of people who consent is internal: no certificate contains it.")
    return None


@dataclass(frozen=True)
class GiveOptions:
    """The options of `incrowd consent give`."""

    policy: PolicyFile
    id: Person
    purpose: Purpose = None
    at: At = None
    valid_from: From = None
    valid_to: Until = None
    basis: Basis = None
    notice: Notice = None
    guardian: Guardian = None
    of_age: OfAge = None
    new_purpose: NewPurpose = False
    as_json: Json = False


@takes(GiveOptions)
def give(options: GiveOptions) -> None:
    """Record that a person consents. Exit 1 if the table has other IDs that are written almost like this one."""
    from incrowd.governance.consent.event import Decided

    more = {name: getattr(options, name) for name in _FIELDS} | {"new_purpose": "yes" if options.new_purpose else None}
    _decide(options.policy, options.id, Decided.GIVE, more, options.as_json)


@dataclass(frozen=True)
class WithdrawOptions:
    """The options of `incrowd consent withdraw`."""

    policy: PolicyFile
    id: Person
    purpose: Purpose = None
    at: At = None
    basis: Basis = None
    notice: Notice = None
    guardian: Guardian = None
    as_json: Json = False


@takes(WithdrawOptions)
def withdraw(options: WithdrawOptions) -> None:
    """Record that a person withdraws. Releases that check this consent no longer use the person's rows.

    Published releases cannot be recalled, and their cost is not refunded. Exit 1 if nobody with this ID consented to
    the purpose, or no row of the table has it; the withdrawal is still recorded. IDs match without regard to case and
    leading zeros. A terminal shows the nearest IDs of the table.
    """
    from incrowd.governance.consent.event import Decided

    more = {name: getattr(options, name) for name in ("purpose", "at", "basis", "notice", "guardian")}
    _decide(options.policy, options.id, Decided.WITHDRAW, more, options.as_json)


@dataclass(frozen=True)
class CorrectOptions:
    """The options of `incrowd consent correct`."""

    policy: PolicyFile
    id: Person
    of: Annotated[
        str, typer.Option("--of", metavar="TIME", help="Time of the wrong decision, as the receipt shows it.")
    ]
    decision: Annotated[
        str, typer.Option("--decision", metavar="DECISION", help="give, refuse, withdraw, expire, restrict or void.")
    ] = "void"
    purpose: Purpose = None
    at: At = None
    valid_from: From = None
    valid_to: Until = None
    basis: Basis = None
    notice: Notice = None
    guardian: Guardian = None
    of_age: OfAge = None
    as_json: Json = False


@takes(CorrectOptions)
def correct(options: CorrectOptions) -> None:
    """Replace a decision that was recorded wrongly; void says that it was never taken.

    The wrong decision stays in the registry, and past releases are still explained by it. From now on it does not
    count. Exit 1 if no decision of this ID has this time and purpose: then nothing is recorded.
    """
    from incrowd.governance.consent.event import Decided

    if options.decision not in list(Decided):
        raise InvalidParameter(f"a decision is one of {', '.join(Decided)}.")
    more = {name: getattr(options, name) for name in _FIELDS} | {"corrects": options.of, "new_purpose": "yes"}
    _decide(options.policy, options.id, Decided(options.decision), more, options.as_json)


def _decide(path: Path, person: str, decided: Decided, more: dict[str, str | None], as_json: bool) -> None:
    from incrowd.workflows.consent.decisions import decide

    decision = decide(_policy(path), person, decided, **more)
    event = decision.event
    summary = {"decision": str(event.decided), "purpose": event.purpose, "at": event.at, "valid_from": event.valid_from}
    if as_json:
        print_json(summary | {"valid_to": event.valid_to, "matched": decision.ok, "note": decision.note})
    else:
        print_table("Recorded" if decision.ok else "Recorded, not matched", list(summary.items()), _note(decision))
    if not decision.ok:
        raise typer.Exit(_FAILED)


def _on_terminal() -> bool:
    """Whether values of the rows reach a person and no log."""
    return sys.stdout.isatty()


def _note(decision: ConsentDecision) -> str:
    """Return what the holder should know, with the nearest ids of the table on a terminal, and nowhere else."""
    nearest = decision.table.nearest if decision.table is not None and not decision.ok and _on_terminal() else ()
    ids = f"Nearest IDs in the table: {', '.join(nearest)}." if nearest else ""
    return " ".join(filter(None, (decision.note, ids)))


@dataclass(frozen=True)
class PreviewOptions:
    """The options of `incrowd consent preview`."""

    policy: PolicyFile
    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    as_json: Json = False


@takes(PreviewOptions)
def preview(options: PreviewOptions) -> None:
    """Show how withdrawals change the next release: cells below k, and releases that would isolate a person.

    Exit 1 if the next release would be refused, compared with an earlier one. The output is internal.
    """
    from incrowd.workflows.consent.preview import preview

    changes = preview(_policy(options.policy), options.data)
    if options.as_json:
        print_json(changes.to_json())
    else:
        lines = [("purpose", changes.purpose), ("since", changes.since or "no release yet")]
        lines += [("consent now", f"{changes.consenting:,}"), ("left, with a row", f"{changes.leavers:,}")]
        lines += [("joined, with a row", f"{changes.joiners:,}")]
        for crowd in changes.small:
            cell = ", ".join(f"{name} {label}" for name, label in zip(crowd.names, crowd.cell, strict=True))
            lines.append(("below k", f"{cell}: {crowd.now} of {changes.k}, {crowd.before} before"))
        lines += [("isolates", pair.sentence) for pair in changes.isolating]
        print_table("The next release", lines, "Internal: these numbers are about individuals.")
    if changes.refused:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class ReceiptOptions:
    """The options of `incrowd consent receipt`."""

    policy: PolicyFile
    id: Person
    out: Out = None
    language: Language = "en"
    as_json: Json = False


@takes(ReceiptOptions)
def receipt(options: ReceiptOptions) -> None:
    """Write a person's consent receipt: as JSON after ISO/IEC TS 27560, or as a page."""
    from incrowd.workflows.consent.decisions import receipt

    _check_page(options.out, options.language)
    decisions = receipt(_policy(options.policy), options.id)
    if options.out is not None:
        options.out.write_text(decisions.to_html(options.language), encoding="utf-8")
    if options.as_json:
        return print_json(decisions.to_json())
    rows = [(str(e.event.decided), e.event.purpose, e.event.at, e.event.valid_to or "") for _, e in decisions.decisions]
    print_table("Decisions", rows or [("none", "", "", "")], header=("decision", "purpose", "at", "until"))
    return None


def _check_page(out: Path | None, language: str) -> None:
    from incrowd.governance.consent.phrases import LANGUAGES

    if language not in LANGUAGES:
        raise InvalidParameter(f"a language is one of {', '.join(LANGUAGES)}.")
    if out is not None and out.exists():
        raise OutputUnavailable(f"{out} already exists. Choose another name.")


@dataclass(frozen=True)
class SubjectOptions:
    """The options of `incrowd consent subject`."""

    policy: PolicyFile
    id: Person
    token: Annotated[bool, typer.Option("--token", help="Make a one-time token for the page /consent of a server.")] = (
        False
    )
    out: Out = None
    language: Language = "en"
    as_json: Json = False


@takes(SubjectOptions)
def subject(options: SubjectOptions) -> None:
    """Show a person's releases: those the person was eligible for, their guarantees and total privacy loss."""
    from incrowd.workflows.consent.page import subject_page
    from incrowd.workflows.consent.subject import subject_report

    if options.token:
        return _print_token(options)
    _check_page(options.out, options.language)
    report = subject_report(_policy(options.policy), options.id)
    if options.out is not None:
        options.out.write_text(subject_page(report, options.id, options.language), encoding="utf-8")
    if options.as_json:
        return print_json(report.to_json())
    lines = [
        ("purpose", report.purpose),
        ("consents now", "yes" if report.consents else "no"),
        ("total privacy loss", report.total),
        ("what it can tell", report.sentence()),
        *((release.at, f"{release.release}: {release.cost}, {release.guarantee}") for release in report.releases),
    ]
    print_table("Releases", lines, report.basis)
    return None


def _print_token(options: SubjectOptions) -> None:
    from incrowd.workflows.consent.decisions import ever_consented
    from incrowd.workflows.consent.subject import issue_token

    policy = _policy(options.policy)
    token, consented = issue_token(policy, options.id), ever_consented(policy, options.id)
    if options.as_json:
        print_json({"token": token, "ever_consented": consented})
    else:
        note = "Pass it on safely: it is shown only once, and works once, within seven days, on the page /consent."
        check = "" if consented else " Nobody with this ID ever consented: check the ID before you pass it on."
        print_table("Token", [("token", token)], note + check)


@dataclass(frozen=True)
class ConsentCheckOptions:
    """The options of `incrowd consent check`."""

    policy: PolicyFile
    against: Annotated[
        Path | None, typer.Option("--against", metavar="CERTIFICATE", help="A certificate, preferably the latest.")
    ] = None
    as_json: Json = False


@takes(ConsentCheckOptions)
def check(options: ConsentCheckOptions) -> None:
    """Recompute the registry. With a certificate, also detect a restored old copy. Exit 1 if something is wrong."""
    from incrowd.workflows.consent.decisions import check_registry

    report = check_registry(_policy(options.policy), options.against)
    if options.as_json:
        print_json({"ok": report.ok, "finding": report.finding, "against": report.against})
    else:
        print_table("Registry", [("finding", report.finding or "in order")])
    if not report.ok:
        raise typer.Exit(_FAILED)


consent.command("import")(import_)
consent.command("status")(status)
consent.command("give")(give)
consent.command("withdraw")(withdraw)
consent.command("correct")(correct)
consent.command("preview")(preview)
consent.command("receipt")(receipt)
consent.command("subject")(subject)
consent.command("check")(check)
