"""`incrowd bounds compose`: several releases about the same rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.bounds.parameters import Delta, Epsilon, Replace
from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table, shown

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.unit import Unit
    from incrowd.workflows.bounds.composed import Composition


def _release(metavar: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar=metavar, help=help_text)
    return option


Releases = list[str]


@dataclass(frozen=True)
class ComposeOptions:
    """What `incrowd bounds compose` can be told."""

    epsilon: Epsilon = None
    delta: Delta = None
    safe: Annotated[Releases, _release("k=20,rate=0.1", "Sampled suppression with a fresh sample.")] = field(
        default_factory=list
    )
    crowd: Annotated[Releases, _release("k=20,rate=0.1,epsilon=0.1", "Crowd-blending on a fresh sample.")] = field(
        default_factory=list
    )
    pure: Annotated[Releases, _release("0.5", "ε-differential privacy; rate=… for a secret sample.")] = field(
        default_factory=list
    )
    approximate: Annotated[Releases, _release("1,1e-6", "(ε, δ)-differential privacy; rate=… for a secret sample.")] = (
        field(default_factory=list)
    )
    rho: Annotated[Releases, _release("0.1", "ρ-zero-concentrated differential privacy.")] = field(default_factory=list)
    laplace: Annotated[
        Releases, _release("scale=10", "Integer Laplace noise; sensitivity=… and rate=… may follow.")
    ] = field(default_factory=list)
    gaussian: Annotated[
        Releases, _release("scale=10", "Integer Gaussian noise; sensitivity=… and rate=… may follow.")
    ] = field(default_factory=list)
    promise: Annotated[Releases, _release("FILE", "The promise in a certificate, or in the JSON of a guarantee.")] = (
        field(default_factory=list)
    )
    replace: Replace = False
    as_json: Json = False


@takes(ComposeOptions)
def compose(options: ComposeOptions) -> None:
    """Say what several releases about the same rows promise together.

    Give delta and get epsilon, or the reverse. Every option for a release can be repeated, and takes "x8" behind it for
    eight such releases. All releases are assumed to be fixed before the first one; a live ledger uses sums.
    """
    from incrowd.workflows.bounds.composed import composed

    promises = _promises(options)
    found = composed(promises, options.epsilon, options.delta)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print(found, promises[0].unit)


def _promises(options: ComposeOptions) -> tuple[Guarantee, ...]:
    from incrowd.cli.bounds.releases import KINDS, promise_in, promises
    from incrowd.core.unit import Adjacency, Unit

    unit = Unit(adjacency=Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE)
    stated = [promise for kind in KINDS for text in getattr(options, kind) for promise in promises(kind, text, unit)]
    return (*stated, *map(promise_in, options.promise))


def _print(found: Composition, unit: Unit) -> None:
    from incrowd.workflows.bounds.odds import in_words

    rows = [
        ("releases", str(found.releases), "with independent coins each"),
        ("epsilon", shown(found.epsilon), ""),
        ("delta", shown(found.delta), ""),
        ("protects", found.unit, ""),
        *(
            (f"by {bound.rule}", shown(bound.value), "the tightest" if bound is found.rules[0] else "")
            for bound in found.rules
        ),
    ]
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Composition", marked, in_words(found.epsilon, found.delta, unit.adjacency))
