"""Several releases of the same rows: their joint privacy loss, by every sound rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.accounting import accountant
from incrowd.accounting.bound import LossBound
from incrowd.core.guarantee import Guarantee, in_sequence
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Theorem, joined
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.bounds.parameters import missing_one, stated_epsilon

_MOST_RELEASES = 10_000  # bounds the time
STATED = Theorem("as-stated", "as stated by the caller")


@dataclass(frozen=True)
class Composition:
    """The joint guarantee: ε and δ, which of them was solved for, by which rule, and what the other rules gave."""

    epsilon: float
    delta: float
    solved: str
    rule: str
    rules: tuple[LossBound, ...]
    releases: int
    unit: str

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return vars(self) | {"rules": [{"rule": joined(bound.rule), self.solved: bound.value} for bound in self.rules]}


def solve_composition(
    guarantees: tuple[Guarantee, ...], epsilon: Number | None = None, delta: Number | None = None
) -> Composition:
    """Return ε at `delta`, or δ at `epsilon`, of guarantees that were all fixed before the first release.

    A live ledger uses sums only, because there a later guarantee may depend on an earlier answer.

    >>> from fractions import Fraction
    >>> from incrowd.core.loss import Pure
    >>> from incrowd.core.unit import Unit
    >>> half = Guarantee(Pure(Fraction(1, 2)), Unit(), "stated")
    >>> solve_composition((half, half), delta=0).epsilon
    1.0
    """
    if not guarantees:
        raise InvalidParameter("name at least one release to compose, such as --pure 0.5 or --safe k=20,rate=0.1.")
    if len(guarantees) > _MOST_RELEASES:
        raise InvalidParameter(
            f"at most {_MOST_RELEASES:,} releases can be composed at once; {len(guarantees):,} were given."
        )
    solved = missing_one({"epsilon": epsilon, "delta": delta})
    joint = in_sequence(guarantees)
    if solved == "epsilon":
        at = exact(delta if delta is not None else 0, "delta")
        bounds = accountant.epsilon_by_rule(joint.loss, at, joint.unit.adjacency)
        if math.isinf(bounds[0].value):
            raise Infeasible(_why_infinite(joint))
        return Composition(
            bounds[0].value, float(at), solved, joined(bounds[0].rule), bounds, len(guarantees), str(joint.unit)
        )
    at = stated_epsilon(epsilon if epsilon is not None else 0)
    bounds = accountant.delta_by_rule(joint.loss, at, joint.unit.adjacency)
    return Composition(
        float(at), bounds[0].value, solved, joined(bounds[0].rule), bounds, len(guarantees), str(joint.unit)
    )


def _why_infinite(joint: Guarantee) -> str:
    floor = accountant.least_delta(joint.loss)
    if floor:
        return (
            "these releases have no finite epsilon at this delta; together their delta is at least "
            f"{float(floor):.6g}. Allow a larger delta, or raise k or lower the rate of each."
        )
    return (
        "these releases have no finite epsilon at this delta: some have no guarantee without a delta, or none at all. "
        "Give a delta above 0, such as 1e-6."
    )


def guarantee_of(document: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee in a certificate, or in the bare JSON of a guarantee."""
    if "certificate" in document:
        from incrowd.workflows.certificates import certificate_of

        return certificate_of(dict(document)).guarantee
    return Guarantee.from_json(document)
