"""`incrowd plan`: a dry run of a release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table, shown

if TYPE_CHECKING:
    from incrowd.workflows.plan import Plan


@dataclass(frozen=True)
class PlanOptions:
    """What `incrowd plan` takes."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file.")]
    data: Annotated[str | None, typer.Argument(help="The table; only its columns' names are looked at.")] = None
    json: Json = False


@takes(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Say what a release would promise, cost and leave; nothing is spent and no row is read.

    Exit code 1 if the ledger would refuse it.
    """
    from incrowd.workflows.plan import plan as planned
    from incrowd.workflows.policy import load_policy
    from incrowd.workflows.protect import open_data

    policy = load_policy(options.policy)
    if options.data is not None or policy.source is not None:
        open_data(options.data, policy)
    found = planned(policy)
    if options.json:
        print_json(_as_json(found))
    else:
        _show(found)
    if not found.allowed:
        raise typer.Exit(1)


def _as_json(found: Plan) -> dict[str, object]:
    left = found.standing.left if found.standing else None
    return {
        "dataset": found.policy.name,
        "method": found.policy.method.name,
        "parameters": {name: str(value) for name, value in found.parameters.items()},
        "epsilon": str(found.epsilon) if found.epsilon.is_finite() else None,
        "delta": str(found.delta),
        "rule": found.rule,
        "unit": str(found.promise.unit),
        "because": found.promise.because,
        "assumes": sorted(found.promise.assumes),
        "left": None if left is None else left.to_json(),
        "allowed": found.allowed,
        "refusal": found.refusal,
        "warnings": list(found.warnings),
        "defaults": _defaults(found),
    }


def _show(found: Plan) -> None:
    parameters = found.parameters
    lines = [
        ("dataset", found.policy.name),
        ("protects", str(found.promise.unit)),
        ("method", found.policy.method.name),
        ("k", str(parameters["k"]) + (" (solved)" if parameters.get("solved") == "k" else "")),
        *([("rate", str(parameters["rate"]))] if "rate" in parameters else []),
        ("epsilon", shown(float(found.epsilon))),
        ("delta", shown(float(found.delta))),
        ("because", found.promise.because),
        *[("assumes", text) for text in sorted(found.promise.assumes)],
        *[("default", f"{name}: {value}") for name, value in _defaults(found).items()],
        *[("note", text) for text in found.warnings],
        ("verdict", "would be released" if found.allowed else f"would be refused: {found.refusal}"),
    ]
    print_table("plan: nothing is spent", lines)


def _defaults(found: Plan) -> dict[str, str]:
    """Return what the policy left out, and what stands there instead."""
    section = found.policy.section
    filled = {}
    if "unit" not in section.dataset.model_fields_set:
        filled["unit"] = str(found.policy.schema.unit)
    if "ledger" not in section.model_fields_set:
        filled["ledger"] = section.ledger
    if section.budget is None:
        filled["budget"] = "what this release costs"
    for name, column in section.columns.items():
        if "missing" not in column.model_fields_set and column.role != "identifier":
            filled[f"{name}.missing"] = "a class of its own"
    levels = getattr(found.policy.method, "levels", {})
    filled |= {f"{column.name}.level": "0" for column in found.policy.schema.released if column.name not in levels}
    return filled
