"""`incrowd policy`: the format of policy files, and a check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.core.terms import joined

if TYPE_CHECKING:
    from incrowd.workflows.policy.policy import Policy

policy = typer.Typer(help="Check policy files, and print their JSON Schema.", no_args_is_help=True)


@dataclass(frozen=True)
class SchemaOptions:
    """The options of `incrowd policy schema`."""

    json: Annotated[bool, typer.Option("--json", help="Print it on one line.")] = False


@dataclass(frozen=True)
class PolicyCheckOptions:
    """The options of `incrowd policy check`."""

    file: Annotated[Path, typer.Argument(help="The policy file.")]
    json: Json = False


@policy.command("schema")
@takes(SchemaOptions)
def schema(options: SchemaOptions) -> None:
    """Print the JSON Schema of policy files, for editors."""
    import json

    from incrowd.workflows.policy.file import json_schema

    if options.json:
        print_json(json_schema())
    else:
        print(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@policy.command("check")
@takes(PolicyCheckOptions)
def check(options: PolicyCheckOptions) -> None:
    """Read a policy and show its meaning. No data is opened."""
    from incrowd.workflows.policy.policy import load_policy

    loaded = load_policy(options.file)
    guarantee = None if loaded.step is None else loaded.plan.guarantee
    if options.json:
        method = None if loaded.step is None else loaded.step.name
        plain = {"dataset": loaded.name, "hash": loaded.hash, "method": method}
        columns = [_column(loaded, name) for name in loaded.schema.names]
        unsound = list(loaded.schema.drafted)
        stated = None if guarantee is None else guarantee.to_json()
        print_json(plain | {"guarantee": stated, "columns": columns, "drafted": unsound})
    else:
        _show(loaded, "each query has its own" if guarantee is None else joined(guarantee.because))


def _column(loaded: Policy, name: str) -> dict[str, Any]:
    column = loaded.schema[name]
    level = getattr(loaded.step, "levels", {}).get(name, 0)
    return {
        "name": name,
        "role": str(column.role),
        "type": str(column.type),
        "rule": str(column.hierarchy.rule),
        "level": level,
        "of": column.hierarchy.height,
    }


def _show(loaded: Policy, because: str) -> None:
    from incrowd.core.schema import Role

    rows = []
    for name in loaded.schema.names:
        column = _column(loaded, name)
        dropped = Role.IDENTIFIER.covers(column["role"])
        level = "not released" if dropped else f"level {column['level']} of {column['of']}"
        level = "for queries" if loaded.step is None and not dropped else level
        rows.append((name, column["role"], column["type"], "" if dropped else column["rule"], level))
    note = f"guarantee: {because}."
    if loaded.schema.drafted:
        note += f"\ndata-dependent: {', '.join(loaded.schema.drafted)}; no guarantee depends on a draft."
    title = "queries" if loaded.step is None else f"method {loaded.step.name}"
    print_table(f"{loaded.name}: {title}", rows, note)
