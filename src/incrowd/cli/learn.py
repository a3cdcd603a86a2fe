"""`incrowd learn`: a model under a policy, charged and certified."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table, shown_path
from incrowd.cli.progress import progress


@dataclass(frozen=True)
class LearnOptions(ReadingOptions):
    """What `incrowd learn` takes."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file; its method is one that learns.")]
    out: Annotated[Path, typer.Option("--out", help="A new folder for the model, its certificate and its report.")]
    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="What is predicted, as the policy must say.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(LearnOptions)
def learn(options: LearnOptions) -> None:
    """Learn a model under a policy.

    The guarantee is made from the policy alone, charged to the ledger, and only then are the rows read. The model is a
    file of plain JSON, which `incrowd predict` uses as often as you like.
    """
    from dataclasses import replace

    from incrowd.core.words import short_up
    from incrowd.engines.settings import override
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.release.learn import learn_to

    policy = read_as(load_policy(options.policy), options.told)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    with progress(not options.json) as tell:
        made = learn_to(options.data, policy, options.out, options.target, tell)
    certificate = made.release.certificate
    if options.json:
        print_json({"folder": str(made.folder), "certificate": certificate.to_json(), "notes": list(made.notes)})
        return
    from decimal import Decimal

    spent = certificate.accounting.spent
    lines = [
        ("model", str(made.folder / "model.json")),
        ("certificate", str(made.folder / "certificate.json")),
        ("report", str(made.folder / "report.html")),
        ("kept apart", shown_path(made.internal)),
        ("guarantee", certificate.claims[0].kind),
        ("spent", f"epsilon {short_up(Decimal(spent.epsilon), 6)}, delta {short_up(Decimal(spent.delta), 6)}"),
        *(("note", note) for note in made.notes),
    ]
    print_table("learned", lines, "Whatever is predicted with the model costs nothing more.")
    print(f"next\n\n  incrowd predict {shlex.quote(str(made.folder))} DATA --out predictions.csv")
