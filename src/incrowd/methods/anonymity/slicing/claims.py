"""What slices claim: differential privacy of all tables together, and of each table alone its crowds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.schema import Schema
from incrowd.core.unit import Unit
from incrowd.methods.crowds import safe_claims
from incrowd.methods.crowds.parameters import Parameters

BLENDING_ALONE = "crowd-blending, each table alone"
_THEOREM = "Li, Qardaji & Su 2010, Theorem 1, by its tight curve for each table, composed over all tables"
_ACROSS = (
    "crowds of different tables do not add up: one person's part in each table, put side by side, may fit nobody else"
)
_LINKS = (
    "which row of one table belongs to which of another is not released, but is not hidden by that: where nearly "
    "everyone agrees in the columns of one table, the tables tell what goes together"
)


def private(found: Parameters, samples: int, unit: Unit, epsilon: Decimal, choosing: Fraction | None) -> Claim:
    """Return the claim about all tables together, and about the private choice of their columns if there was one."""
    chosen = {} if choosing is None else {"choosing": str(choosing)}
    by_design = [
        "every column of a table belongs to the tuple that is counted there",
        "each table has a secret sample of its own, drawn with coins of its own"
        if samples > 1
        else "all tables are computed from one release that was suppressed over all columns together",
        *(["one row moves the association of two columns by at most 2"] if chosen else []),
    ]
    return Claim(
        "approximate differential privacy",
        {
            "k": found.k,
            "rate": str(found.rate),
            "samples": samples,
            "delta": str(found.delta),
            "epsilon": str(epsilon),
            "adjacency": str(unit.adjacency),
            "max_rows": unit.max_rows,
            **chosen,
        },
        str(unit),
        _THEOREM + ("; behind a private choice of the groups" if chosen else ""),
        (
            *(Precondition(text, Status.PROVED) for text in by_design),
            Precondition("in no written table does a tuple occur fewer than k times", Status.CHECKED),
            *_assumed(unit),
        ),
        (safe_claims.GROUPS,),
    )


def blending_alone(k: int, unit: Unit) -> Claim:
    """Return the claim about the crowds of each table; it says nothing about two tables side by side."""
    return Claim(
        BLENDING_ALONE,
        {"k": k, "epsilon": "0"},
        str(unit),
        "Gehrke, Hay, Lui & Pass 2012, Example 1, for one table",
        (
            Precondition("in no written table does a tuple occur fewer than k times", Status.CHECKED),
            *_assumed(unit),
        ),
        (safe_claims.GROUPS, _ACROSS),
    )


def k_anonymity(k: int, tables: int, schema: Schema) -> Claim:
    """Return the claim about the form of each table, which anyone can recount."""
    whole = safe_claims.k_anonymity(k, tuple(column.name for column in schema.released), schema.unit)
    return Claim(
        whole.kind,
        {**whole.parameters, "tables": tables},
        whole.unit,
        "counted: in every table each tuple over all columns of that table occurs at least k times",
        whole.preconditions,
        (*whole.not_protected, _ACROSS, _LINKS),
    )


def _assumed(unit: Unit) -> list[Precondition]:
    return [Precondition(text, Status.ASSUMED) for text in sorted(safe_claims.assumptions(unit, sampled=True))]
