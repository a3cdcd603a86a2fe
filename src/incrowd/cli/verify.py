"""`incrowd verify`: derive every claim again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.policy.policy import Policy
    from incrowd.workflows.verify.verify import Verification

_SIGNS = {"passed": "✓", "failed": "✗", "cannot be known here": "?"}


@dataclass(frozen=True)
class VerifyOptions:
    """What `incrowd verify` takes."""

    certificate: Annotated[Path, typer.Argument(help="certificate.json, or the folder of a release.")]
    data: Annotated[
        Path | None, typer.Argument(help="The released file, or the folder of several; by default beside it.")
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            help="Look the charge up in this ledger; by default in that of INCROWD_LEDGER, if it is the one.",
        ),
    ] = None
    public_key: Annotated[Path | None, typer.Option("--public-key", help="The signer's key (PEM).")] = None
    parent: Annotated[
        Path | None, typer.Option("--parent", help="Of a coarser table: the folder of the release it was made from.")
    ] = None
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Make the whole plan again from this policy.")
    ] = None
    distribution: Annotated[
        str | None,
        typer.Option(
            "--distribution",
            metavar="NAME",
            help="Trust and run the method of this installed distribution, if the certificate names it.",
        ),
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", help="List what passed, too.")] = False
    json: Json = False


@takes(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Check a certificate: its files, every claim by a second route, the charge, the signature.

    What failed comes first, then what cannot be known here. Exit code 1 if anything failed.
    """
    from incrowd.workflows.distributions import admit
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.verify.verify import References
    from incrowd.workflows.verify.verify import verify as verified

    policy = None if options.policy is None else load_policy(options.policy)
    if options.distribution is not None:
        admit(options.distribution)
    held = References(ledger=_ledger(options, policy), trusted=options.public_key, parent=options.parent, policy=policy)
    found = verified(options.certificate, options.data, **held)
    if options.json:
        listed = [
            {"about": finding.about, "verdict": str(finding.verdict), "why": finding.why} for finding in found.findings
        ]
        print_json({"passed": found.passed, "complete": found.complete, "verdict": found.verdict, "findings": listed})
    else:
        _show(found, verbose=options.verbose)
    if not found.passed:
        raise typer.Exit(1)


def _ledger(options: VerifyOptions, policy: Policy | None) -> Ledger | None:
    """Return the ledger of the option, or that of the environment where it is the one that the certificate names.

    A release of somebody else was charged to another ledger, which says nothing against it.
    """
    import os

    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.policy.ledger_place import VARIABLE, ledger_place
    from incrowd.workflows.verify.verify import read_certificate

    if options.ledger is None and not os.environ.get(VARIABLE):
        return None
    own = policy.own_ledger if policy is not None and policy.names_ledger else None
    ledger = Ledger.open(ledger_place(options.ledger, own))
    charged = options.ledger is not None or read_certificate(options.certificate).ledger.chain == ledger.id
    return ledger if charged else None


def _show(found: Verification, *, verbose: bool) -> None:
    """Print the verdict, what failed, what is open, and how much passed, or all of it."""
    if verbose:
        rows = [(_SIGNS[str(finding.verdict)], finding.about, finding.why) for finding in found.findings]
        print_table(found.verdict, rows, "✓ passed   ✗ failed   ? cannot be known here")
        return
    *lines, (label, passed) = found.summary
    print_table(found.verdict, [*lines, (label, f"{passed}; --verbose lists them")])
