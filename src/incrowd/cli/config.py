"""`incrowd config`: where a command looks for its ledger and keeps its state, and who decided that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from incrowd.cli.options import Address, Json, takes
from incrowd.cli.output import print_json, print_table

config = typer.Typer(
    help="Where a command looks for its ledger and keeps its state, and who decided that.", no_args_is_help=True
)


@dataclass(frozen=True)
class ConfigOptions:
    """The options of `incrowd config show`."""

    policy: Annotated[
        Path | None, typer.Option("--policy", help="A policy; without one, the places of this folder.")
    ] = None
    ledger: Address = None
    json: Json = False


@config.callback()
def _group() -> None:
    """Keep `show` a word of its own, for others may follow."""


@config.command("show")
@takes(ConfigOptions)
def show(options: ConfigOptions) -> None:
    """Show every setting that lies outside of policies, its value, and what decided it.

    Options come first, then the environment, then the policy, then defaults. Only places can be set there; nothing that
    a guarantee depends on.
    """
    from incrowd.workflows.policy.ledger_place import places
    from incrowd.workflows.policy.policy import load_policy

    settings = places(None if options.policy is None else load_policy(options.policy), options.ledger)
    if options.json:
        print_json({place.name: {"value": place.value, "by": place.by} for place in settings})
        return
    note = "An option or variable that contradicts ledger: in a policy is refused, and nothing is charged."
    print_table(
        "Settings", [(place.name, place.value, place.by) for place in settings], note, ("", "value", "decided by")
    )
