"""`incrowd verify`: derive every claim again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.workflows.verify import Verification

_SIGNS = {"passed": "✓", "failed": "✗", "cannot be known here": "?"}


@dataclass(frozen=True)
class VerifyOptions:
    """What `incrowd verify` takes."""

    certificate: Annotated[Path, typer.Argument(help="certificate.json, or the folder of a release.")]
    data: Annotated[
        Path | None, typer.Argument(help="The released file, or the folder of several; by default beside it.")
    ] = None
    ledger: Annotated[str | None, typer.Option("--ledger", help="Look the charge up in this ledger.")] = None
    public_key: Annotated[Path | None, typer.Option("--public-key", help="The signer's key (PEM).")] = None
    parent: Annotated[
        Path | None, typer.Option("--parent", help="Of a coarser table: the folder of the release it was made from.")
    ] = None
    json: Json = False


@takes(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Check a certificate: its files, every claim by a second route, the charge, the signature.

    Exit code 1 if anything failed; what cannot be known here is said.
    """
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.verify import verify as verified

    ledger = None if options.ledger is None else Ledger.open(options.ledger)
    found = verified(options.certificate, options.data, ledger, options.public_key, options.parent)
    if options.json:
        listed = [{"about": each.about, "outcome": str(each.outcome), "why": each.why} for each in found.findings]
        print_json({"passed": found.passed, "complete": found.complete, "findings": listed})
    else:
        rows = [(_SIGNS[str(each.outcome)], each.about, each.why) for each in found.findings]
        print_table(_title(found), rows, "✓ passed   ✗ failed   ? cannot be known here")
    if not found.passed:
        raise typer.Exit(1)


def _title(found: Verification) -> str:
    if not found.passed:
        return "NOT verified"
    return (
        "verified"
        if found.complete
        else "verified, but some claim or step could not be derived again: see the question marks"
    )
