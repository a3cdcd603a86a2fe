"""`incrowd estimate`: original frequencies of categories that were masked at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table


@dataclass(frozen=True)
class EstimateOptions:
    """The options of `incrowd estimate`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release with method pram.")]
    json: Json = False


@takes(EstimateOptions)
def estimate(options: EstimateOptions) -> None:
    """Estimate the original frequency of each category from a table released with method pram.

    It uses only the published counts and the probabilities in the certificate. The estimates are unbiased, so a rare
    category can have a negative estimate.
    """
    from incrowd.workflows.estimate import estimate_frequencies

    estimates = estimate_frequencies(options.release)
    if options.json:
        print_json({"estimates": [estimate.to_json() for estimate in estimates]})
        return
    for estimated in estimates:
        rows = [
            (
                ", ".join("missing" if value is None else value for value in line["category"].values()),
                f"{line['released']:,}",
                f"{line['estimate']:,.1f}",
                f"{line['low']:,.1f} to {line['high']:,.1f}",
            )
            for line in estimated.lines()
        ]
        note = "95 % confidence intervals by the normal approximation; they cover the masking, not sampling."
        print_table(", ".join(estimated.columns), rows, note, header=("category", "released", "estimate", "interval"))
