"""Warnings of a plan: data-dependent lines, and columns released unchanged that can make rows unique.

Only the declaration is read, and the claims that follow from it: no row is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from incrowd.accounting.accountant import charge_of
from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Role, Schema
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import Step, walk
from incrowd.core.terms import joined
from incrowd.core.words import listed, short_up
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sections import ColumnSection

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.schema import Column


_VOUCHED = "the owner vouches for it"


def drafted_lines(policy: Policy) -> tuple[str, ...]:
    """Return each data-dependent line without a public source, with what to write."""
    lines = []
    for name, section in policy.section.columns.items():
        values = "bounds" if section.bounds is not None else "categories"
        parts = ((values, section), ("hierarchy", section.hierarchy))
        held = Role.IDENTIFIER.covers(section.role)
        what = 'to release it write role: quasi, and public: "source"' if held else 'write public: "source" below it'
        marked = [key for key, part in parts if part is not None and part.derived is not None and part.public is None]
        if section.clean is not None and section.clean.derived is not None and section.clean.confirmed is None:
            confirm = 'check it, and write confirmed: "by whom" below it'
            confirm = f"to release it write role: quasi, {confirm}" if held else confirm
            lines.append(f"columns.{name}.clean comes from the data: {confirm}")
        lines += [f"columns.{name}.{key} comes from the data: {what}" for key in marked]
    return tuple(lines)


def vouched(policy: Policy) -> Guarantee | None:
    """Return the guarantee of the same policy when every released line has a public source; None where all have one."""
    if not policy.schema.drafted:
        return None
    sections = policy.section.columns
    columns = tuple(
        column_of(column.name, _vouched(sections[column.name]), policy.folder)
        if column.name in policy.schema.drafted
        else column
        for column in policy.schema.columns
    )
    return policy.method.plan(Schema(columns, policy.schema.unit)).guarantee


def _vouched(section: ColumnSection) -> ColumnSection:
    """Return a column with a public source for each data-dependent part."""
    rule = section.hierarchy
    if rule is not None and rule.derived is not None:
        rule = rule.model_copy(update={"public": rule.public or _VOUCHED})
    source = {} if section.derived is None else {"public": section.public or _VOUCHED}
    clean = section.clean
    if clean is not None and clean.derived is not None:
        clean = clean.model_copy(update={"confirmed": clean.confirmed or _VOUCHED})
    return section.model_copy(update={"hierarchy": rule, "clean": clean, **source})


def vouched_words(policy: Policy) -> str | None:
    """Return in words what the guarantee becomes; None where it stays what it is."""
    guarantee = vouched(policy)
    if guarantee is None:
        return None
    spend = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    if not spend.epsilon.is_finite():
        return f"with public sources, it still has no epsilon: {joined(guarantee.because)}"
    epsilon, delta = short_up(spend.epsilon), short_up(spend.delta)
    return f"with public sources, the guarantee becomes epsilon {epsilon} at delta {delta}"


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
