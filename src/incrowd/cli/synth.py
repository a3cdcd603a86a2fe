"""`incrowd synth compare`: several ways to synthesize a table, charged together; the best by a private error."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import cost_text, print_json, print_table, shown_path
from incrowd.cli.progress import progress

synth = typer.Typer(help="Compare ways to make synthetic rows.", no_args_is_help=True)


@synth.callback()
def _group() -> None:
    """Compare ways to make synthetic rows."""


@dataclass(frozen=True)
class CompareOptions(ReadingOptions):
    """The options of `incrowd synth compare`."""

    policy: Annotated[
        list[Path],
        typer.Option("--policy", help="A policy file; several that differ in how they synthesize, or one comparison."),
    ]
    out: Annotated[Path, typer.Option("--out", help="A new folder for rows, model, certificate and report.")]
    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@synth.command("compare")
@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Run several ways to synthesize a table, and release the rows of the best.

    All runs and their private errors are charged together, before a row is read: the policies' epsilon is that of all.
    Each run gets an equal part of it. One certificate covers everything.
    """
    from dataclasses import replace

    from incrowd.engines.settings import override
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.release.comparison import comparison_policy
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.tables import release_to

    policy = read_as(comparison_policy(options.policy), options.source_options)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    with progress(not options.json) as tell:
        made = release_to(options.data, policy, Destination(options.out), tell)
    certificate = made.release.certificate
    evidence, names = certificate.evidence, tuple(policy.method.candidates)  # type: ignore[attr-defined]
    best = names[evidence["way"]]
    ways = dict(zip(names, zip(evidence["errors of ways"], evidence["margins of ways"], strict=True), strict=True))
    if options.json:
        errors = {name: {"error": error, "margin": margin} for name, (error, margin) in ways.items()}
        plain = {"folder": str(made.folder), "best": best, "ways": errors}
        print_json(plain | {"certificate": certificate.to_json(), "notes": list(made.notes)})
        return
    spent = certificate.accounting.spent
    printed = [
        (name, f"{float(error):.2%} ± {float(margin):.2%}{' (best)' if name == best else ''}")
        for name, (error, margin) in ways.items()
    ]
    print_table("mean error of pairs", printed, "Measured privately. Margins hold in 19 of 20 cases.")
    lines = [
        ("rows", str(made.folder / "data.parquet")),
        ("certificate", str(made.folder / "certificate.json")),
        ("report", str(made.folder / "report.html")),
        ("internal", shown_path(made.internal)),
        ("guarantee", certificate.claims[0].kind),
        ("spent", f"{cost_text(spent.epsilon, spent.delta)} for all {len(ways)} runs"),
        *(("note", note) for note in made.notes),
    ]
    print_table("released", lines)
    print(f"next\n\n  incrowd verify {shlex.quote(str(made.folder))}")
