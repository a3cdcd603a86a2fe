"""`incrowd rule`: what a suppression rule promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole, whole_or_none
from incrowd.cli.output import loss_text, print_json, print_table, print_text
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.workflows.rules.explain import Explanation
    from incrowd.workflows.rules.rule import Rule


@dataclass(frozen=True)
class RuleOptions:
    """What `incrowd rule` takes."""

    rule: Annotated[
        str | None,
        typer.Argument(help="The rule in words, such as 'counts of 7 or fewer become 0, then round to 5'."),
    ] = None
    minimum: Annotated[
        str | None, typer.Option("--minimum", metavar="COUNT", help="The least count that is published.")
    ] = None
    base: Annotated[str | None, typer.Option("--round", metavar="COUNT", help="What counts are rounded to.")] = None
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="SHARE", help="The rate of a secret sample in front.")
    ] = None
    delta: Annotated[str, typer.Option("--delta", metavar="NUMBER", help="The δ at which ε is told.")] = "1e-6"
    policy_only: Annotated[bool, typer.Option("--policy", help="Print the policy that says the rule, alone.")] = False
    json: Json = False


@takes(RuleOptions)
def rule(options: RuleOptions) -> None:
    """Say what a suppression rule for tables of counts promises, what it does not, and what a secret sample would add.

    Give the rule in words or by its numbers. What is not understood is refused with the nearest phrase that is and what
    that means; where the policy says something else than the rule, it says what.
    """
    from incrowd.workflows.rules.explain import explain

    found = explain(_rule(options), options.delta)
    if options.json:
        print_json(found.to_json())
    elif options.policy_only:
        print(found.policy, end="")
    else:
        _show(found)


def _rule(options: RuleOptions) -> str | Rule:
    from incrowd.core.rounding import exact
    from incrowd.workflows.rules.rule import Rule, Zeros

    numbers = (options.minimum, options.base, options.rate)
    if options.rule is not None:
        if numbers != (None, None, None):
            raise InvalidParameter("give the rule in words or by its numbers, not both.")
        return options.rule
    if options.minimum is None:
        raise InvalidParameter("give the rule in words, such as 'minimum cell size 11', or by --minimum 11.")
    rate = None if options.rate is None else exact(options.rate, "rate")
    return Rule(whole(options.minimum, "minimum"), whole_or_none(options.base, "round"), rate, Zeros.HIDDEN)


def _show(found: Explanation) -> None:
    lines = [
        ("read as", found.reading),
        *[("guarantees", text) for text in found.guarantees],
        *[("does not", text) for text in found.not_guaranteed],
        ("overlap", found.overlap),
        *[("note", text) for text in found.notes],
        *[("policy differs", text) for text in found.differences],
    ]
    print_table("what this rule promises", lines)
    if found.sampled:
        rows = [
            (
                str(promise.rate),
                "none" if promise.epsilon is None else loss_text(promise.epsilon, 4),
                loss_text(float(promise.delta), 3),
                loss_text(promise.delta_at_one, 3),
            )
            for promise in found.sampled
        ]
        header = ("rate", "epsilon", "at delta", "delta at epsilon 1")
        print_table("with a secret sample in front of the counting", rows, header=header)
    nearest = "The nearest policy, which differs from the rule as said above" if found.differences else None
    print_text(f"{nearest or 'The policy that says it'} (incrowd rule … --policy prints it alone):\n")
    print(found.policy, end="")
