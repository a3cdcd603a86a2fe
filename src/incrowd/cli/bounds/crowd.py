"""`incrowd bounds crowd`: crowd-blending after a secret sample, also a biased one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.bounds.parameters import Delta, Epsilon, Plot, Rate, whole_or_none
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table, shown

if TYPE_CHECKING:
    from incrowd.workflows.bounds.crowd import CrowdBound


@dataclass(frozen=True)
class CrowdOptions:
    """What `incrowd bounds crowd` can be told."""

    k: Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Number of people in a crowd.")] = None
    rate: Rate = None
    crowd_epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="ε of the crowd-blending itself; 0 for suppression.")
    ] = "0"
    epsilon: Epsilon = None
    delta: Delta = None
    high_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: no regular rate is above this.")
    ] = None
    irregular: Annotated[
        str | None, typer.Option(metavar="COUNT", help="Biased sampling: so many people have any rate up to max-rate.")
    ] = None
    max_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: nobody's rate is above this.")
    ] = None
    plot: Plot = None
    as_json: Json = False


@takes(CrowdOptions)
def crowd(options: CrowdOptions) -> None:
    """Say what a (k, ε)-crowd-blending mechanism promises after a secret sample.

    Prints δ at the ε of Gehrke et al. 2012 (Theorem 1), at --epsilon, or the ε that --delta allows. With --high-rate,
    --irregular or --max-rate the sample may be biased (Theorem 2), and --rate is the lowest regular rate.
    """
    from incrowd.workflows.bounds.crowd import CrowdQuestion, solve

    question = CrowdQuestion(
        whole_or_none(options.k, "k"),
        options.rate,
        options.crowd_epsilon,
        options.epsilon,
        options.delta,
        options.high_rate,
        whole_or_none(options.irregular, "irregular"),
        options.max_rate,
    )
    found = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.plot import crowd_curve, draw

        draw(crowd_curve(found), options.plot)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _print(found: CrowdBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    rows = [
        ("k", str(found.k), "people blend, or the one is ignored"),
        ("rate", f"{found.rate:.9g}", "share of the people in the secret sample"),
        ("crowd epsilon", shown(found.crowd_epsilon), "how well the crowd blends"),
        ("epsilon", shown(found.epsilon), ""),
        ("delta", shown(found.delta), one_in(found.delta)),
        ("paper's epsilon", shown(found.epsilon_zk), "at which the paper states its theorem"),
        ("closed form there", shown(found.delta_closed), "δ by the closed form with explicit constants"),
        ("rule", found.rule, ""),
    ]
    if found.high_rate is not None:
        bias = f"rates up to {found.high_rate:.9g}, {found.irregular} people up to {found.max_rate:.9g}"
        rows.insert(2, ("bias", bias, ""))
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Crowd-blending after sampling", marked, in_words(found.epsilon, found.delta))
