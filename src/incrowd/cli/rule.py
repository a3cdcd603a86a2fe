"""`incrowd rule`: whether a suppression rule protects each person."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, takes, whole, whole_or_none
from incrowd.cli.output import loss_text, print_json, print_table, print_text
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.workflows.rules.explain import Explanation
    from incrowd.workflows.rules.rule import Rule


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text)


@dataclass(frozen=True)
class RuleOptions:
    """The options of `incrowd rule`."""

    hide_below: Annotated[str | None, _option("--hide-below", "COUNT", "Counts below this number are hidden.")] = None
    hide_up_to: Annotated[
        str | None, _option("--hide-up-to", "COUNT", "Counts up to this number are hidden: 4 is --hide-below 5.")
    ] = None
    small_counts: Annotated[
        str,
        _option("--small-counts", "LOOK", "How small counts appear: hidden (blank or symbol), zero, or label (<5)."),
    ] = "hidden"
    zeros: Annotated[
        str | None, _option("--zeros", "LOOK", "Empty cells: shown as 0, or hidden like small counts.")
    ] = None
    totals: Annotated[
        bool | None, typer.Option("--totals/--no-totals", help="Totals that count hidden cells, too, are published.")
    ] = None
    percentages: Annotated[bool, typer.Option("--percentages", help="Percentages of all rows are published.")] = False
    secondary: Annotated[
        bool, typer.Option("--secondary", help="Further cells are hidden to protect the first ones.")
    ] = False
    base: Annotated[str | None, _option("--round", "COUNT", "Counts are rounded to multiples of this number.")] = None
    rounding: Annotated[str, _option("--rounding", "WAY", "How: nearest, random, up or down.")] = "nearest"
    round_first: Annotated[
        bool, typer.Option("--round-first", help="Rounded counts are compared with the number of --hide-below.")
    ] = False
    tables: Annotated[str, _option("--tables", "NUMBER", "Number of published tables of the same people.")] = "1"
    rate: Annotated[str | None, _option("--rate", "SHARE", "Sampling rate of a secret sample of the rows.")] = None
    delta: Annotated[str, _option("--delta", "NUMBER", "The δ at which ε is stated.")] = "1e-6"
    policy_only: Annotated[bool, typer.Option("--policy", help="Print the nearest policy, alone.")] = False
    json: Json = False


@takes(RuleOptions)
def rule(options: RuleOptions) -> None:
    """Say whether a suppression rule for tables of counts protects each person: by which theorem, or why not.

    No data is read. On a terminal, missing options are prompted for; elsewhere a missing option is an error.
    """
    from incrowd.workflows.rules.explain import explain

    explanation = explain(_rule(_completed(options)), options.delta)
    if options.json:
        print_json(explanation.to_json())
    elif options.policy_only:
        print(explanation.policy, end="")
    else:
        _print(explanation)


def _rule(options: RuleOptions) -> Rule:
    from incrowd.core.rounding import exact
    from incrowd.workflows.rules.rule import Rounding, Rule, SmallCountRule, Zeros

    return Rule(
        _threshold(options),
        _choice(SmallCountRule, options.small_counts, "--small-counts"),
        _choice(Zeros, options.zeros or "hidden", "--zeros"),
        whole_or_none(options.base, "--round"),
        _choice(Rounding, options.rounding, "--rounding"),
        options.round_first,
        bool(options.totals),
        options.percentages,
        options.secondary,
        whole(options.tables, "--tables"),
        None if options.rate is None else exact(options.rate, "--rate"),
    )


def _threshold(options: RuleOptions) -> int:
    """Return the number below which counts are hidden; 1 for a rule that only rounds."""
    if options.hide_below is not None and options.hide_up_to is not None:
        raise InvalidParameter("--hide-below and --hide-up-to are the same option: give one of them.")
    if options.hide_below is None and options.hide_up_to is None:
        return 1
    up_to = options.hide_up_to
    threshold = whole(options.hide_below or "", "--hide-below") if up_to is None else whole(up_to, "--hide-up-to") + 1
    if threshold < 2:
        raise InvalidParameter("this hides no count: hide counts below 2 or more, or give --round alone.")
    return threshold


def _choice(choices: Any, text: str, name: str) -> Any:
    if text not in tuple(choices):
        raise InvalidParameter(f"{name} is one of: {', '.join(choices)}.")
    return choices(text)


_QUESTIONS = {
    "hide_below": ("--hide-below, --hide-up-to or --round", "Counts below which number are hidden?", ()),
    "zeros": ("--zeros", "Are empty cells shown as 0, or hidden like small counts?", ("shown", "hidden")),
    "totals": ("--totals or --no-totals", "Are totals published that count hidden cells, too?", ("yes", "no")),
}
"""For each option that a rule needs: its names, the question for it, and the answers."""


def _completed(options: RuleOptions) -> RuleOptions:
    """Return the options with what is missing, asked on a terminal; where there is none, refuse and name it."""
    from incrowd.workflows.rules.rule import Zeros

    if options.zeros is not None:  # else the word that it took is called missing
        _choice(Zeros, options.zeros, "--zeros")
    rounds_only = options.base is not None and options.hide_below is None and options.hide_up_to is None
    needed = {
        "hide_below": options.hide_below is None and options.hide_up_to is None and not rounds_only,
        "zeros": options.zeros is None and not rounds_only and options.small_counts != "zero",
        "totals": options.totals is None,
    }
    missing = [name for name, applies in needed.items() if applies]
    if missing and not sys.stdin.isatty():
        texts = [f"{_QUESTIONS[name][0]} is missing. {_QUESTIONS[name][1]}" for name in missing]
        raise InvalidParameter(" ".join(texts))
    answers: dict[str, Any] = {name: _answer(*_QUESTIONS[name][1:]) for name in missing}
    return replace(options, **answers | ({"totals": answers["totals"] == "yes"} if "totals" in answers else {}))


def _answer(question: str, choices: tuple[str, ...]) -> str:
    """Ask on the terminal until the answer is one of the choices, if there are any."""
    hint = f" ({' or '.join(choices)})" if choices else ""
    while True:
        text = str(typer.prompt(f"{question}{hint}", prompt_suffix=" ", err=True)).strip()
        if text in choices or not choices:
            return text


def _print(explanation: Explanation) -> None:
    from incrowd.workflows.rules.explain import ADVICE

    lines = [
        *[("why not", text) for text in explanation.reasons],
        ("rule", f"{explanation.rule.words}."),
        *[("guarantee", text) for text in explanation.guarantees],
        *[("not covered", text) for text in explanation.not_guaranteed],
        ("two tables", explanation.overlap),
        ("next", ADVICE),
        *[("policy differs", text) for text in explanation.differences],
    ]
    print_table(explanation.answer, lines)
    if explanation.sampled:
        rows = [
            (
                str(row.rate),
                "none" if row.epsilon is None else loss_text(row.epsilon, 4),
                loss_text(float(row.delta), 3),
                loss_text(row.delta_at_one, 3),
            )
            for row in explanation.sampled
        ]
        print_table("after a secret sample", rows, header=("rate", "epsilon", "at delta", "delta at epsilon 1"))
    print_text("The nearest policy (incrowd rule … --policy prints it alone):\n")
    print(explanation.policy, end="")
