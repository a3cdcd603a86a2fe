"""Kept columns: those that leave as they are beside crowds that are counted over others; they may make rows unique.

Only the declaration is read, and the claims that follow from it: no row is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from incrowd.core.schema import Role
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import Step, walk
from incrowd.core.words import listed

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.schema import Column
    from incrowd.workflows.policy.policy import Policy

_MANY = 1000


def kept_columns(claims: Sequence[Claim], steps: Sequence[Step], plain: Sequence[str]) -> tuple[str, ...]:
    """Return which plain columns are released as they are, while crowds are counted over other columns.

    A guarantee with an epsilon, and crowds over all columns, cover them; then there are none.
    """
    counted = {name for claim in claims for name in getattr(claim, "columns", ())}
    if not counted or any("epsilon" in vars(claim) for claim in claims):
        return ()
    levels = {
        column.column: column.levels for step in walk(steps) if isinstance(step, Recode) for column in step.columns
    }
    return tuple(name for name in plain if name not in counted and levels.get(name) == range(1))


def about_kept_columns(policy: Policy, claims: Sequence[Claim]) -> Iterator[str]:
    """Yield what the owner should think about before columns are released that may make rows unique."""
    plain = [column.name for column in policy.schema.released if Role.PLAIN.covers(column.role)]
    columns = [policy.schema[name] for name in kept_columns(claims, policy.plan.steps, plain)]
    rows = policy.section.dataset.rows or policy.section.dataset.population or _MANY
    telling = [column.name for column in columns if _tells_apart(column, rows)]
    if telling:
        yield (
            f"released unchanged, with arbitrary or very many values: {listed(telling)}. Equivalence classes do not "
            "use them, so a value can be unique. Make them quasi-identifiers, or identifiers, which are not "
            "released; or list few categories."
        )
    others = [column.name for column in columns if column.name not in telling]
    if others and not telling:
        yield (
            f"released unchanged, outside the equivalence classes: {listed(others)}. Together with the "
            "quasi-identifiers they can make a row unique. Make columns that others could know quasi-identifiers."
        )


def _tells_apart(column: Column, rows: int) -> bool:
    """Whether a column's declaration allows more values than a crowd can share."""
    members = column.hierarchy.members(0)
    return members is None or len(members) >= min(_MANY, max(1, rows))
