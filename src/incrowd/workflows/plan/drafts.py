"""Drafts: the data-dependent lines of a policy, and the guarantee with public sources for them."""

from __future__ import annotations

from incrowd.accounting.accountant import charge_of
from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Role, Schema
from incrowd.core.terms import joined
from incrowd.core.words import short_up
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sections import ColumnSection

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
    return section.model_copy(update={"hierarchy": rule, **source})


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
