"""`incrowd learn`: a model under a policy, charged and certified."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import cost_text, print_json, print_table, shown_path
from incrowd.cli.progress import progress


@dataclass(frozen=True)
class LearnOptions(ReadingOptions):
    """The options of `incrowd learn`."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file, with a learning method.")]
    out: Annotated[Path, typer.Option("--out", help="A new folder for the model, its certificate and its report.")]
    data: Annotated[str | None, typer.Argument(help="The table; by default the policy's source.")] = None
    target: Annotated[
        str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict; it must match the policy.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(LearnOptions)
def learn(options: LearnOptions) -> None:
    """Learn a model under a policy.

    incrowd computes the guarantee from the policy alone, charges the ledger, and then reads the rows. The model is a
    plain JSON file. `incrowd predict` uses it at no further cost.
    """
    from dataclasses import replace

    from incrowd.engines.settings import override
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.release.learn import learn_to

    policy = read_as(load_policy(options.policy), options.source_options)
    policy = replace(policy, engine=override(policy.engine, options.engine, options.master, options.remote))
    with progress(not options.json) as tell:
        made = learn_to(options.data, policy, options.out, options.target, tell)
    certificate = made.release.certificate
    if options.json:
        print_json({"folder": str(made.folder), "certificate": certificate.to_json(), "notes": list(made.notes)})
        return
    spent = certificate.accounting.spent
    lines = [
        ("model", str(made.folder / "model.json")),
        ("certificate", str(made.folder / "certificate.json")),
        ("report", str(made.folder / "report.html")),
        ("internal", shown_path(made.internal)),
        ("guarantee", certificate.claims[0].kind),
        ("spent", cost_text(spent.epsilon, spent.delta)),
        *(("note", note) for note in made.notes),
    ]
    print_table("learned", lines, "Predictions with this model cost nothing more.")
    print(f"next\n\n  incrowd predict {shlex.quote(str(made.folder))} DATA --out predictions.csv")
