"""`incrowd consent`: what people decided about the use of their data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from incrowd.governance.consent.event import Decided
    from incrowd.workflows.policy.policy import Policy

PolicyFile = Annotated[Path, typer.Option("--policy", help="The policy with purpose: and consent:.")]
Person = Annotated[str, typer.Argument(metavar="ID", help="The person's id, as the data has it.")]
Purpose = Annotated[
    str | None, typer.Option("--purpose", metavar="PURPOSE", help="Another purpose than the policy's; may be wider.")
]
Basis = Annotated[str | None, typer.Option("--basis", metavar="TEXT", help="The legal basis; consent by default.")]
Notice = Annotated[str | None, typer.Option("--notice", metavar="TEXT", help="The version of the notice shown.")]
_FAILED = 1
_LISTED = 50
consent = typer.Typer(help="What people decided about the use of their data, and what follows.", no_args_is_help=True)


def _policy(path: Path) -> Policy:
    from incrowd.workflows.policy.policy import load_policy

    return load_policy(path)


@dataclass(frozen=True)
class ImportOptions:
    """What `incrowd consent import` can be told."""

    policy: PolicyFile
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The decisions.")]
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="csv, fhir or 27560; by default as the file tells.")
    ] = None
    as_json: Json = False


@takes(ImportOptions)
def import_(options: ImportOptions) -> None:
    """Record the decisions of a file: CSV, FHIR R4 Consent resources, or records after ISO/IEC TS 27560.

    The registry is made if it is not there. Ids become pseudonyms under the key; a file with a mistake changes nothing.
    Exit 1 if a withdrawal reaches nobody who consented: it is recorded and listed by its place in the file.
    """
    from incrowd.workflows.consent.decisions import FORMATS, import_records

    if options.form not in (None, *FORMATS):
        raise InvalidParameter(f"a format is one of {', '.join(FORMATS)}.")
    imported = import_records(_policy(options.policy), options.file, options.form)
    if options.as_json:
        print_json(imported.to_json())
    else:
        lines = [(place, decision.note or "") for place, decision in imported.notes[:_LISTED]]
        if len(imported.notes) > _LISTED:
            lines.append(("and", f"{len(imported.notes) - _LISTED:,} more; --json lists all"))
        print_table("Recorded", [("decisions", f"{imported.count:,}"), *lines])
    if not imported.ok:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class StatusOptions:
    """What `incrowd consent status` can be told."""

    policy: PolicyFile
    as_json: Json = False


@takes(StatusOptions)
def status(options: StatusOptions) -> None:
    """Count who consents to the policy's purpose now; the numbers are yours and must not be published."""
    from incrowd.workflows.consent.decisions import status

    found = status(_policy(options.policy))
    if options.as_json:
        return print_json(found.to_json())
    lines = [("purpose", found.purpose), ("as of", found.as_of), ("people who consent", f"{found.consenting:,}")]
    lines += [("people who do not", f"{found.others:,}")]
    lines += [(f"events: {name}", f"{count:,}") for name, count in found.events.items()]
    print_table("Consent", lines, "How many consent is no public number: certificates never tell it.")
    return None


@dataclass(frozen=True)
class GiveOptions:
    """What `incrowd consent give` can be told."""

    policy: PolicyFile
    id: Person
    purpose: Purpose = None
    valid_from: Annotated[
        str | None, typer.Option("--valid-from", metavar="TIME", help="From when it holds; by default now.")
    ] = None
    valid_to: Annotated[
        str | None, typer.Option("--valid-to", metavar="TIME", help="The first moment at which it no longer holds.")
    ] = None
    basis: Basis = None
    notice: Notice = None
    as_json: Json = False


@takes(GiveOptions)
def give(options: GiveOptions) -> None:
    """Record that somebody consents."""
    from incrowd.governance.consent.event import Decided

    more = {name: getattr(options, name) for name in ("purpose", "valid_from", "valid_to", "basis", "notice")}
    _decide(options.policy, options.id, Decided.GIVE, more, options.as_json)


@dataclass(frozen=True)
class WithdrawOptions:
    """What `incrowd consent withdraw` can be told."""

    policy: PolicyFile
    id: Person
    purpose: Purpose = None
    basis: Basis = None
    notice: Notice = None
    as_json: Json = False


@takes(WithdrawOptions)
def withdraw(options: WithdrawOptions) -> None:
    """Record that somebody withdraws: no release that asks for this consent uses their rows from now on.

    What is out stays out, and a charge is not refunded. Exit 1 if nobody with this id consented to the purpose: the
    withdrawal is recorded all the same. It counts for ids in another case or with other leading zeros, too.
    """
    from incrowd.governance.consent.event import Decided

    more = {name: getattr(options, name) for name in ("purpose", "basis", "notice")}
    _decide(options.policy, options.id, Decided.WITHDRAW, more, options.as_json)


def _decide(path: Path, person: str, decided: Decided, more: dict[str, str | None], as_json: bool) -> None:
    from incrowd.workflows.consent.decisions import decide

    decision = decide(_policy(path), person, decided, **more)
    event = decision.event
    told = {"decision": str(event.decided), "purpose": event.purpose, "at": event.at, "valid_from": event.valid_from}
    if as_json:
        print_json(told | {"valid_to": event.valid_to, "matched": decision.ok, "note": decision.note})
    else:
        print_table("Recorded" if decision.ok else "Recorded, not matched", list(told.items()), decision.note or "")
    if not decision.ok:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class PreviewOptions:
    """What `incrowd consent preview` can be told."""

    policy: PolicyFile
    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    as_json: Json = False


@takes(PreviewOptions)
def preview(options: PreviewOptions) -> None:
    """Show what the next release loses, crowds that fall below k, and releases that would isolate somebody.

    Exit 1 if the next release would be refused for what it shows beside an earlier one. It is for your eyes only.
    """
    from incrowd.workflows.consent.preview import preview

    found = preview(_policy(options.policy), options.data)
    if options.as_json:
        print_json(found.to_json())
    else:
        lines = [
            ("purpose", found.purpose),
            ("since", found.since or "no release yet"),
            ("take part now", f"{found.consenting:,}"),
            ("left", f"{found.leavers:,}"),
            ("joined", f"{found.joiners:,}"),
        ]
        for each in found.small:
            cell = ", ".join(f"{name} {label}" for name, label in zip(each.names, each.cell, strict=True))
            lines.append(("below k", f"{cell}: {each.now} of {found.k}, {each.before} before"))
        lines += [("isolates", each.sentence) for each in found.isolating]
        print_table("The next release", lines, "For your eyes only: these numbers are about people.")
    if found.refused:
        raise typer.Exit(_FAILED)


@dataclass(frozen=True)
class ReceiptOptions:
    """What `incrowd consent receipt` can be told."""

    policy: PolicyFile
    id: Person
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write a page there, as HTML.")] = None
    as_json: Json = False


@takes(ReceiptOptions)
def receipt(options: ReceiptOptions) -> None:
    """Tell somebody what they decided: as JSON after ISO/IEC TS 27560, or as a page of HTML."""
    from incrowd.workflows.consent.decisions import receipt

    found = receipt(_policy(options.policy), options.id)
    if options.out is not None:
        if options.out.exists():
            raise OutputUnavailable(f"{options.out} exists, and nothing is overwritten. Choose another name.")
        options.out.write_text(found.to_html(), encoding="utf-8")
    if options.as_json:
        return print_json(found.to_json())
    rows = [(str(e.event.decided), e.event.purpose, e.event.at, e.event.valid_to or "") for _, e in found.decisions]
    print_table("Decisions", rows or [("none", "", "", "")], header=("decision", "purpose", "at", "until"))
    return None


@dataclass(frozen=True)
class SubjectOptions:
    """What `incrowd consent subject` can be told."""

    policy: PolicyFile
    id: Person
    token: Annotated[
        bool, typer.Option("--token", help="Make a token for the page /consent of a server, which works once.")
    ] = False
    as_json: Json = False


@takes(SubjectOptions)
def subject(options: SubjectOptions) -> None:
    """Tell somebody for which releases they were eligible, under which guarantees, and at what total loss."""
    from incrowd.workflows.consent.subject import subject_report

    if options.token:
        return _print_token(options)
    found = subject_report(_policy(options.policy), options.id)
    if options.as_json:
        return print_json(found.to_json())
    lines = [
        ("purpose", found.purpose),
        ("consents now", "yes" if found.consents else "no"),
        ("total loss", f"epsilon at most {found.epsilon}, delta at most {found.delta}"),
        *(
            (release.at, f"{release.release}: epsilon {release.epsilon}, {release.guarantee}")
            for release in found.releases
        ),
    ]
    print_table("What was released", lines, found.basis)
    return None


def _print_token(options: SubjectOptions) -> None:
    from incrowd.workflows.consent.data_subjects import issue_token
    from incrowd.workflows.consent.decisions import ever_consented

    policy = _policy(options.policy)
    token, consented = issue_token(policy, options.id), ever_consented(policy, options.id)
    if options.as_json:
        print_json({"token": token, "ever_consented": consented})
    else:
        note = "Hand it over safely: it is shown this once, works once and for seven days, at the page /consent."
        check = "" if consented else " Nobody with this id ever consented: check the id before you hand it over."
        print_table("A token", [("token", token)], note + check)


@dataclass(frozen=True)
class ConsentCheckOptions:
    """What `incrowd consent check` can be told."""

    policy: PolicyFile
    against: Annotated[
        Path | None, typer.Option("--against", metavar="CERTIFICATE", help="A certificate, best the last one.")
    ] = None
    as_json: Json = False


@takes(ConsentCheckOptions)
def check(options: ConsentCheckOptions) -> None:
    """Recompute the registry; with a certificate, also find one that was restored from an old copy. Exit 1 if not."""
    from incrowd.workflows.consent.decisions import check_registry

    found = check_registry(_policy(options.policy), options.against)
    if options.as_json:
        print_json({"ok": found.ok, "finding": found.finding, "against": found.against})
    else:
        print_table("Registry", [("finding", found.finding or "in order")])
    if not found.ok:
        raise typer.Exit(_FAILED)


consent.command("import")(import_)
consent.command("status")(status)
consent.command("give")(give)
consent.command("withdraw")(withdraw)
consent.command("preview")(preview)
consent.command("receipt")(receipt)
consent.command("subject")(subject)
consent.command("check")(check)
