"""`incrowd verify`: recompute every claim of a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, NoLimits, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.local.survey_file import SurveyFile
    from incrowd.workflows.policy.policy import Policy
    from incrowd.workflows.verify.verification import Verification
    from incrowd.workflows.verify.verify import References

_SIGNS = {"passed": "✓", "failed": "✗", "cannot be known here": "?"}


@dataclass(frozen=True)
class VerifyOptions:
    """The options of `incrowd verify`."""

    certificate: Annotated[Path, typer.Argument(help="certificate.json, or the folder of a release.")]
    data: Annotated[
        Path | None,
        typer.Argument(help="The released file, or the folder of several; default: beside the certificate."),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            help="Check the charge in this ledger; default: INCROWD_LEDGER, if the certificate names it.",
        ),
    ] = None
    public_key: Annotated[
        list[Path], typer.Option("--public-key", help="A key of the signer (PEM); can be repeated.")
    ] = field(default_factory=list)
    parent: Annotated[
        Path | None, typer.Option("--parent", help="For a coarser table: the folder of its parent release.")
    ] = None
    policy: Annotated[
        Path | None, typer.Option("--policy", metavar="FILE", help="Recompute the plan from this policy or survey.")
    ] = None
    distribution: Annotated[
        str | None,
        typer.Option(
            "--distribution",
            metavar="NAME",
            help="Trust and run the method of this installed distribution.",
        ),
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", help="Also list passed checks.")] = False
    no_limits: NoLimits = False
    json: Json = False


@takes(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Check a certificate: its files, every claim, recomputed independently, the charge and the signature.

    Failures come first, then what cannot be checked here. Exit 1 if anything failed.
    """
    from incrowd.workflows.registry import admit
    from incrowd.workflows.verify.verify import References
    from incrowd.workflows.verify.verify import verify as verified

    policy = None if options.policy is None else _declaration(options.policy)
    if options.distribution is not None:
        admit(options.distribution)
    held = References(
        ledger=_ledger(options, policy), trusted=tuple(options.public_key), parent=options.parent, policy=policy
    )
    verification = verified(options.certificate, options.data, **held)
    if options.json:
        listed = [
            {"about": finding.about, "verdict": str(finding.verdict), "why": finding.why}
            for finding in verification.findings
        ]
        print_json(
            {
                "passed": verification.passed,
                "complete": verification.complete,
                "verdict": verification.verdict,
                "findings": listed,
            }
        )
    else:
        _show(verification, _further(options, held), verbose=options.verbose)
    if not verification.passed:
        raise typer.Exit(1)


def _declaration(file: Path) -> Policy | SurveyFile:
    """Read the policy of a release, or the file of a survey."""
    from incrowd.workflows.local.survey_file import is_survey, load_survey
    from incrowd.workflows.policy.policy import load_policy

    return load_survey(file) if is_survey(file) else load_policy(file)


def _ledger(options: VerifyOptions, policy: Policy | SurveyFile | None) -> Ledger | None:
    """Return the ledger of the option, or that of the environment if the certificate names it.

    A release of another data holder was charged to another ledger; that is not an error.
    """
    import os

    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.certificates import read_certificate
    from incrowd.workflows.policy.ledger_place import VARIABLE, ledger_place

    if options.ledger is None and not os.environ.get(VARIABLE):
        return None
    own = policy.own_ledger if policy is not None and policy.names_ledger else None
    ledger = Ledger.open(ledger_place(options.ledger, own))
    charged = options.ledger is not None or read_certificate(options.certificate).ledger.chain == ledger.id
    return ledger if charged else None


def _further(options: VerifyOptions, held: References) -> str:
    """Return in one line what else could be known, and by which option."""
    levels = {
        "--policy (plan, names of the dataset)": held.get("policy"),
        "--ledger (charge, time, totals)": held.get("ledger"),
        "--public-key (who signed)": options.public_key or None,
    }
    missing = [option for option, reference in levels.items() if reference is None]
    shown_here = "The certificate shows whether its parts agree, the files whether they are those it describes."
    return f"{shown_here} More with {', '.join(missing)}." if missing else shown_here


def _show(verification: Verification, further: str, *, verbose: bool) -> None:
    """Print the verdict, failures and open checks, and the number of passed checks."""
    if verbose:
        rows = [(_SIGNS[str(finding.verdict)], finding.about, finding.why) for finding in verification.findings]
        print_table(verification.verdict, rows, f"✓ passed   ✗ failed   ? cannot be checked here\n{further}")
        return
    *lines, (label, passed) = verification.summary
    print_table(verification.verdict, [*lines, (label, f"{passed}; --verbose lists them")], further)
