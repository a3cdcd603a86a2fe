"""`incrowd bounds amplify`: what a secret sample saves a differentially private mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from incrowd.cli.bounds.parameters import Rate
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table, shown


@dataclass(frozen=True)
class AmplifyOptions:
    """What `incrowd bounds amplify` can be told."""

    rate: Rate = None
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="ε of the mechanism on its sample.")] = None
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="δ of the mechanism on its sample; 0 if not given.")
    ] = None
    sampled_epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="ε of sampling and mechanism together.")
    ] = None
    sampled_delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="δ of sampling and mechanism together; 0 if not given.")
    ] = None
    as_json: Json = False


@takes(AmplifyOptions)
def amplify(options: AmplifyOptions) -> None:
    """Say what a secret Poisson sample saves a differentially private mechanism.

    Give two of rate, epsilon (on the sample) and sampled-epsilon (of the whole); the third is solved.
    """
    from incrowd.workflows.bounds.amplification import AmplifyQuestion, amplified
    from incrowd.workflows.bounds.odds import in_words

    found = amplified(
        AmplifyQuestion(options.rate, options.epsilon, options.sampled_epsilon, options.delta, options.sampled_delta)
    )
    if options.as_json:
        return print_json(found.to_json())
    rows = [
        ("rate", f"{found.rate:.9g}", "rate"),
        ("on the sample", f"epsilon {shown(found.epsilon)}, delta {shown(found.delta)}", "epsilon"),
        ("the whole", f"epsilon {shown(found.sampled_epsilon)}, delta {shown(found.sampled_delta)}", "sampled_epsilon"),
        ("rule", found.rule, ""),
    ]
    marked = [(name, value, "← solved" if key == found.solved else "") for name, value, key in rows]
    print_table("Amplification by sampling", marked, in_words(found.sampled_epsilon, found.sampled_delta))
    return None
