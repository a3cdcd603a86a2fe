"""`incrowd bounds safe`: sampled suppression, any three of k, rate, epsilon and delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.bounds.parameters import Delta, Epsilon, K, Plot, Rate, Replace, whole, whole_or_none
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table, shown

if TYPE_CHECKING:
    from incrowd.workflows.bounds.safe import SafeBound


@dataclass(frozen=True)
class SafeOptions:
    """What `incrowd bounds safe` can be told."""

    k: K = None
    rate: Rate = None
    epsilon: Epsilon = None
    delta: Delta = None
    replace: Replace = False
    rows_per_person: Annotated[
        str, typer.Option(metavar="COUNT", help="Protect people with up to so many rows, each with its own coin.")
    ] = "1"
    plot: Plot = None
    as_json: Json = False


@takes(SafeOptions)
def safe(options: SafeOptions) -> None:
    """Say what sampling in secret, recoding, and publishing what occurs at least k times promises.

    Give three of k, rate, epsilon and delta; the fourth is solved by the tight curve. The δ of the published theorem
    (Li, Qardaji & Su 2010, Theorem 1) is shown beside it.
    """
    from incrowd.core.unit import Adjacency
    from incrowd.workflows.bounds.safe import SafeQuestion, solve

    question = SafeQuestion(
        whole_or_none(options.k, "k"),
        options.rate,
        options.epsilon,
        options.delta,
        Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE,
        whole(options.rows_per_person, "rows-per-person"),
    )
    found = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.curves import safe_curve
        from incrowd.workflows.bounds.plot import draw

        draw(safe_curve(found), options.plot)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _print(found: SafeBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    theorem = "says nothing here" if found.delta_theorem1 is None else shown(found.delta_theorem1)
    rows = [
        ("k", str(found.k), "rows of one kind, or none is published"),
        ("rate", f"{found.rate:.9g}", "share of the rows in the secret sample"),
        ("epsilon", shown(found.epsilon), ""),
        ("delta", shown(found.delta), one_in(found.delta)),
        ("delta, Theorem 1", theorem, "the published bound for the same release"),
        ("protects", found.unit, ""),
        ("rule", found.rule, ""),
    ]
    if found.delta_tight < found.delta:
        rows.insert(4, ("delta reached", shown(found.delta_tight), "the least one at these parameters"))
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Sampled suppression", marked, in_words(found.epsilon, found.delta, found.adjacency))
