"""`incrowd ledger check`: find out whether every entry still is what was written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.ledger.address import DEFAULT, Address
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.store.link import Anchor

_FAILED = 1


@dataclass(frozen=True)
class LedgerCheckOptions:
    """What `incrowd ledger check` can be told."""

    against: Annotated[
        list[str], typer.Option(metavar="CERTIFICATE", help="A certificate that names an entry; can be repeated.")
    ] = field(default_factory=list)
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(LedgerCheckOptions)
def check(options: LedgerCheckOptions) -> None:
    """Recompute the whole chain; exit 1 and name the first entry that is wrong.

    A changed or deleted entry is always found. A cut-off tail or a restored old copy is found only --against a
    certificate.
    """
    from incrowd.accounting.ledger.ledger import Ledger

    anchors = [_anchor(path) for path in options.against]
    report = Ledger.open(options.ledger).check(*anchors)
    if options.as_json:
        found = {"ok": report.ok, "entries": report.entries, "bad": report.bad, "finding": report.finding}
        print_json(found | {"head": report.head.to_json(), "against": len(anchors)})
    else:
        compared = f"and {len(anchors)} certificates agree" if anchors else "not compared with any certificate"
        rows = [("entries in order", str(report.entries)), ("finding", report.finding or f"none, {compared}")]
        print_table("The ledger is in order" if report.ok else "The ledger is NOT in order", rows)
    if not report.ok:
        raise typer.Exit(_FAILED)


def _anchor(path: str) -> Anchor:
    from incrowd.core.codec import encode
    from incrowd.store.link import Anchor
    from incrowd.workflows.verify.verify import certificate_of

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"{path} cannot be read as a certificate: it must be a file with JSON in it.") from error
    if not isinstance(document, dict):
        raise InvalidParameter(f"{path} is no certificate: a certificate is one JSON object.")
    return Anchor.from_json(encode(certificate_of(document).ledger) if "certificate" in document else document)
