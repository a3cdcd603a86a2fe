"""`incrowd release`: charge, release, certify."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, IdempotencyKey, Json, Master, ReadingOptions, Recover, Remote, takes
from incrowd.cli.output import cost_text, print_json, print_table, shown_path
from incrowd.cli.progress import progress
from incrowd.cli.published import show_published
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.workflows.policy.policy import Policy
    from incrowd.workflows.release.deliver import PublishedRelease


@dataclass(frozen=True)
class ReleaseOptions(ReadingOptions):
    """The options of `incrowd release`."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file.")]
    out: Annotated[
        str,
        typer.Option("--out", help="A new folder, or s3://, gs://, az://: only what may be published goes there."),
    ]
    data: Annotated[
        str | None,
        typer.Argument(help="A file, folder, pattern, address, or - for standard input; default: the policy's source."),
    ] = None
    form: Annotated[
        str, typer.Option("--format", help="parquet, csv or tsv; dta, sav or xpt for Stata, SPSS, SAS.")
    ] = "parquet"
    spreadsheet: Annotated[
        bool | None,
        typer.Option(
            "--spreadsheet/--no-spreadsheet",
            help="With csv or tsv: an apostrophe before text that looks like a formula; default: where the policy "
            "allows such text.",
        ),
    ] = None
    sign: Annotated[Path | None, typer.Option("--sign", help="Sign with this Ed25519 private key (PEM).")] = None
    table: Annotated[
        str | None, typer.Option("--table", help="A new table for the same rows, at a postgresql:// address.")
    ] = None
    force: Annotated[
        bool, typer.Option("--force", help="Release even if probably empty, or if an earlier release is missing.")
    ] = False
    hold_out: Annotated[
        str | None,
        typer.Option("--hold-out", metavar="SHARE", help="Sampling rate of the holdout group, such as 10%."),
    ] = None
    last_step: Annotated[
        int | None, typer.Option("--last-step", metavar="STEP", help="Stop after this step of a list of masks.")
    ] = None
    key: IdempotencyKey = None
    recover: Recover = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(ReleaseOptions)
def release(options: ReleaseOptions) -> None:
    """Release a table under a policy.

    incrowd computes the guarantee from the policy alone, charges the ledger, and then reads the rows. Data, certificate
    and report appear together in a new folder, or not at all.
    """
    from dataclasses import replace
    from functools import partial

    from incrowd.engines.settings import override
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.tables import ReleaseTerms, release_to, share_of

    if options.recover is not None:
        return recover(load_policy(options.policy, options.last_step), options.out, options.recover, options.json)
    policy = read_as(load_policy(options.policy, options.last_step), options.source_options)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    with progress(not options.json) as tell:
        destination = Destination(options.out, _form(options, policy), options.sign, options.table)
        announce = None if options.json else partial(show_published, policy)
        terms = ReleaseTerms(share_of(options.hold_out), options.force, options.key, announce)
        published = release_to(options.data, policy, destination, tell, terms)
    if options.json:
        certificate = published.release.certificate.to_json()
        print_json({"folder": str(published.folder), "certificate": certificate, "notes": list(published.notes)})
    else:
        _show(published, options.table)
    return None


def recover(policy: Policy, out: str, action: str, json: bool) -> None:
    """Deliver or discard what a killed release left complete; nothing is charged or read."""
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.recover import deliver_hidden, discard_hidden
    from incrowd.workflows.release.upload import Upload, deliver_upload

    actions = {"deliver": deliver_hidden, "discard": discard_hidden}
    if action not in actions:
        raise InvalidParameter("--recover takes deliver or discard.")
    place = Destination(out)
    if place.address is None:
        certificate = actions[action](policy, place.place)
    elif action == "deliver":
        certificate = deliver_upload(policy, place.address)
    else:
        certificate = discard_hidden(policy, Upload.of(policy, place.address).copy)
    if json:
        print_json({"folder": out, "recovered": action, "certificate": certificate.to_json()})
    elif action == "deliver":
        print_table("delivered, at no cost", [("release", certificate.id), ("folder", out)])
    else:
        print_table("discarded", [("release", certificate.id), ("charge", "not refunded")])


def _form(options: ReleaseOptions, policy: Policy) -> str:
    """Return the format of the files; text for spreadsheets has its name, and is the default where it is needed."""
    from incrowd.core.spreadsheet import MARK, formulas_possible

    text = options.form in ("csv", "tsv")
    if options.spreadsheet and not text:
        raise InvalidParameter("--spreadsheet needs a text format: give --format csv or --format tsv.")
    guarded = options.spreadsheet
    if guarded is None:
        guarded = text and not policy.linked and formulas_possible(policy.schema)
    return f"{MARK}.{options.form}" if guarded else options.form


def _show(published: PublishedRelease, table: str | None) -> None:
    from incrowd.core.words import short_down
    from incrowd.verifier.files import tables_of

    certificate = published.release.certificate
    spent, left = certificate.accounting.spent, certificate.accounting.left
    tables = tables_of(certificate)
    lines = [
        *(("data", str(published.folder / file.name) + _rows(published, len(tables))) for file in tables),
        *([] if table is None else [("table", table)]),
        ("certificate", str(published.folder / "certificate.json")),
        ("report", str(published.folder / "report.html")),
        ("internal", shown_path(published.internal)),
        ("guarantee", certificate.claims[0].kind),
        ("spent", cost_text(spent.epsilon, spent.delta)),
    ]
    if left is not None:
        lines.append(
            (
                "remaining",
                f"epsilon {short_down(Decimal(left.epsilon), 6)}, delta {short_down(Decimal(left.delta), 6)}",
            )
        )
    lines += [("note", note) for note in published.notes]
    print_table("released", lines, "Read the report first: it says what is protected and what is not.")
    print(f"next\n\n  incrowd verify {shlex.quote(str(published.folder))}")


def _rows(published: PublishedRelease, tables: int) -> str:
    """Return how many rows were published, where one table holds them all."""
    rows = len(published.release.result)
    if not rows:
        return "  (no rows: all suppressed)"
    return f"  ({rows:,} {'row' if rows == 1 else 'rows'})" if tables == 1 else ""
