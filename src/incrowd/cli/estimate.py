"""`incrowd estimate`: how often categories occurred before they were changed at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table


@dataclass(frozen=True)
class EstimateOptions:
    """What `incrowd estimate` takes."""

    release: Annotated[Path, typer.Argument(help="The folder of a release whose categories were changed at random.")]
    json: Json = False


@takes(EstimateOptions)
def estimate(options: EstimateOptions) -> None:
    """Estimate from a released table how often each category occurred before the method pram changed it.

    Everything is computed from what was published: the counts of the table, and the probabilities in the certificate.
    The estimates are unbiased, so a rare category can come out below zero.
    """
    from incrowd.workflows.estimate import estimate_frequencies

    found = estimate_frequencies(options.release)
    if options.json:
        print_json({"estimates": [each.to_json() for each in found]})
        return
    for each in found:
        rows = [
            (
                ", ".join("missing" if value is None else value for value in line["category"].values()),
                f"{line['released']:,}",
                f"{line['estimate']:,.1f}",
                f"{line['low']:,.1f} to {line['high']:,.1f}",
            )
            for line in each.lines()
        ]
        note = "95 % intervals, by the normal approximation: what the coins alone make uncertain."
        print_table(", ".join(each.columns), rows, note, header=("category", "published", "estimate", "interval"))
